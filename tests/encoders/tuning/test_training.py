"""Steps, schedule, early stopping, and what a step costs with many labels."""

import numpy as np
import pytest

from tests.helpers.fine_tuning import require_extra, save_base, toy

require_extra()

import scipy.sparse as sp  # noqa: E402
import torch  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from longleaf.encoders.tuning import training as training_module  # noqa: E402
from longleaf.encoders.tuning.base import Base  # noqa: E402
from longleaf.encoders.tuning.loss import CrossEntropy  # noqa: E402
from longleaf.encoders.tuning.network import LabelNetwork, best_labels  # noqa: E402
from longleaf.encoders.tuning.row_adam import RowAdam  # noqa: E402
from longleaf.encoders.tuning.token_rows import pieces, shuffled  # noqa: E402
from longleaf.encoders.tuning.training import (  # noqa: E402
    Callbacks,
    LabelledTokens,
    Settings,
    Training,
    one_cycle,
)


def network_of(base, n_labels=8, dropout=0.0):
    return LabelNetwork(Base.find(base, 16).model(), n_labels, dropout=dropout)


def data_of(base, n_texts=64, n_labels=8, shortlist=None):
    texts, tags = toy(n_texts)
    topics = np.array([int(one[0].split()[1]) for one in tags])
    Y = sp.csr_array(
        (np.ones(n_texts, np.float32), topics, np.arange(n_texts + 1)), shape=(n_texts, n_labels)
    )
    return LabelledTokens(Base.find(base, 16).tokens(texts, 1), Y, shortlist)


def weights(network):
    return {name: one.clone() for name, one in network.state_dict().items()}


def test_the_loss_and_its_gradient_are_those_of_pytorch():
    torch.manual_seed(0)
    odds = torch.randn(5, 7, requires_grad=True)
    positives = torch.tensor([0, 9, 34])
    truth = torch.zeros(35)
    truth[positives] = 1
    mine = CrossEntropy.apply(odds, positives) / 5
    (gradient,) = torch.autograd.grad(mine, odds)
    usual = torch.nn.functional.binary_cross_entropy_with_logits(odds, truth.view(5, 7), reduction="sum") / 5
    (want,) = torch.autograd.grad(usual, odds)
    torch.testing.assert_close(mine, usual)
    torch.testing.assert_close(gradient, want)


def test_adam_by_rows_is_pytorchs_sparse_adam():
    torch.manual_seed(0)
    table = torch.nn.Embedding(20, 3, sparse=True)
    mine = table.weight.detach().clone()
    usual, adam = torch.optim.SparseAdam(table.parameters(), lr=0.1), RowAdam(mine)
    for number in range(1, 6):
        rows = torch.randperm(20)[:7]
        target = torch.randn(7, 3)
        usual.zero_grad()
        table(rows).sub(target).square().sum().backward()
        usual.step()
        adam.step(rows, 2 * (mine[rows] - target), 0.1, number)
        torch.testing.assert_close(mine, table.weight.detach())


def test_the_learning_rate_rises_and_falls_to_zero():
    rates = [one_cycle(share) for share in np.linspace(0, 1, 101)]
    assert rates[0] == pytest.approx(0.04)
    assert max(rates) == rates[10] == 1
    assert rates[100] == pytest.approx(0)
    assert (np.diff(rates[:11]) > 0).all()
    assert (np.diff(rates[10:]) < 0).all()


def test_batches_have_each_text_once_and_similar_lengths():
    lengths = np.random.default_rng(0).integers(1, 100, 1000)
    batches = shuffled(lengths, 32, np.random.default_rng(1))
    assert sorted(np.concatenate(batches)) == list(range(1000))
    assert max(len(batch) for batch in batches) == 32
    assert np.mean([np.ptp(lengths[batch]) for batch in batches]) < 10


def test_pieces_have_few_tokens_but_at_least_a_text():
    lengths = np.array([3, 8, 9, 100])
    found = pieces(np.array([0, 1, 2]), lengths, 32)
    assert [piece.tolist() for piece in found] == [[0, 1], [2]]
    assert [len(piece) for piece in pieces(np.array([0, 3]), lengths, 32)] == [1, 1]


@pytest.mark.parametrize("listed", [False, True])
def test_a_batch_in_pieces_moves_the_network_as_in_one(tmp_path, monkeypatch, listed):
    base = save_base(tmp_path / "base", hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    shortlist = np.tile(np.arange(8, dtype=np.int32), (64, 1)) if listed else None
    moved = []
    for most in (16, 100_000):
        monkeypatch.setattr(training_module, "TOKENS_ON_CPU", most)
        network = network_of(base)
        Training(
            network, data_of(base, shortlist=shortlist), Settings(epochs=1, batch_size=16), Callbacks()
        ).run()
        moved.append(weights(network))
    for name, one in moved[0].items():
        torch.testing.assert_close(one, moved[1][name], rtol=1e-3, atol=1e-4)


def test_a_shortlist_of_all_labels_is_like_no_shortlist(base):
    losses = []
    for shortlist in (None, np.tile(np.arange(8, dtype=np.int32), (64, 1))):
        training = Training(
            network_of(base), data_of(base, shortlist=shortlist), Settings(3, 16, 1e-3), Callbacks()
        )
        losses.append([epoch.loss for epoch in training.run()])
    np.testing.assert_allclose(*losses, rtol=0.01)  # only one decays the weights of labels


def scripted(figures):
    """A judge that says what it is told."""
    rest = iter(figures)
    return lambda network: {"p@5": next(rest)}


def test_training_ends_when_patience_does_and_returns_to_the_best_epoch(base):
    seen = []
    network = network_of(base)
    calls = Callbacks(judge=scripted([1, 3, 2, 3, 9]), report=lambda epoch: seen.append(weights(network)))
    training = Training(network, data_of(base), Settings(10, 16, 1e-3, patience=2), calls)
    history = training.run()
    assert [epoch.number for epoch in history] == [1, 2, 3, 4]
    assert training.best == 2
    encoder = {name: one for name, one in network.state_dict().items() if name.startswith("encoder.")}
    assert all(torch.equal(one, seen[1][name]) for name, one in encoder.items())
    assert not all(torch.equal(one, seen[3][name]) for name, one in encoder.items())


def test_without_a_judge_the_last_epoch_is_kept(base):
    training = Training(network_of(base), data_of(base), Settings(3, 32), Callbacks())
    assert len(training.run()) == training.best == 3


def test_a_batch_is_trained_on_its_labels_and_shortlists(base):
    shortlist = np.full((64, 3), -1, np.int32)
    shortlist[:, 0] = 7
    data = data_of(base, shortlist=shortlist)
    rows = np.array([0, 1])
    assert data.labels(rows).tolist() == sorted({7, *data.Y[rows].indices.tolist()})


class Largest(TorchDispatchMode):  # type: ignore[misc]
    """Notes how large the largest tensor is that an operation allocates."""

    numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **kwargs or {})
        known = {one.untyped_storage().data_ptr() for one in args if isinstance(one, torch.Tensor)}
        for one in found if isinstance(found, tuple) else [found]:
            if isinstance(one, torch.Tensor) and one.untyped_storage().data_ptr() not in known:
                self.numel = max(self.numel, one.numel())
        return found


@pytest.mark.parametrize("many", [False, True])
def test_a_step_with_a_shortlist_allocates_nothing_as_long_as_the_labels(base, many):
    n_labels, n_texts = 300_000, 64
    shortlist = np.random.default_rng(0).integers(n_labels, size=(n_texts, 60)).astype(np.int32)
    data = data_of(base, n_texts, n_labels, shortlist if many else None)
    training = Training(network_of(base, n_labels), data, Settings(1, 8), Callbacks())
    with Largest() as largest:
        training._step(np.arange(8), 1.0)
    assert (largest.numel < n_labels) == many
    assert largest.numel > 8 * 8


@pytest.mark.parametrize("at_once", [3, 1000])
def test_the_best_labels_are_those_of_all_scores(base, monkeypatch, at_once):
    monkeypatch.setattr("longleaf.encoders.tuning.network.LABELS_AT_ONCE", at_once)
    network, data = network_of(base, 20), data_of(base, n_labels=20)
    network.eval()
    with torch.no_grad():
        features = network.pooled(data.tokens, np.arange(64))
        odds = features @ network.weight.T + network.bias
    found = best_labels(network, data.tokens, 5, 200)
    np.testing.assert_array_equal(found, odds.topk(5).indices.numpy())


def test_the_best_of_a_shortlist_are_ranked_and_the_rest_is_absent(base):
    network, data = network_of(base, 20), data_of(base, n_labels=20)
    shortlist = np.full((64, 4), -1, np.int32)
    shortlist[:, :2] = np.random.default_rng(0).permuted(np.tile(np.arange(20), (64, 1)), axis=1)[:, :2]
    shortlist[3] = -1
    found = best_labels(network, data.tokens, 5, 200, shortlist)
    every = best_labels(network, data.tokens, 20, 200)
    for row in range(64):
        listed = [label for label in every[row].tolist() if label in shortlist[row].tolist()]
        assert found[row].tolist() == listed + [-1] * (5 - len(listed))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("listed", [False, True])
def test_a_gpu_gives_the_same_bits_each_time(base, listed):
    shortlist = np.tile(np.arange(8, dtype=np.int32), (64, 1)) if listed else None
    found = []
    for _ in range(2):
        network = network_of(base, dropout=0.2).cuda()
        Training(network, data_of(base, shortlist=shortlist), Settings(3, 16, 1e-3), Callbacks()).run()
        found.append(weights(network))
    assert all(torch.equal(one, found[1][name]) for name, one in found[0].items())
