import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf.metrics import calibration, evaluate


def top_of(labels, probabilities, scores=None):
    labels, chance = np.array(labels, np.int32), np.array(probabilities, np.float32)
    return ll.TopK(
        labels, chance if scores is None else np.array(scores), chance, np.zeros(len(labels), np.int64)
    )


def test_hand_worked_calibration():
    # Of the first two: 0.95 right; 0.92 wrong; 0.25 right; 0.22 wrong. The pad is no prediction.
    top = top_of([[0, 1, 2], [1, 0, 2], [2, -1, -1]], [[0.95, 0.25, 0.5], [0.92, 0.22, 0.5], [0.28, 0, 0]])
    found = calibration([[0, 1], [2], []], top, k=2)
    low, high = found.bins
    assert (low.low, low.high, low.pairs, low.right) == (0.2, 0.3, 3, 1)
    assert (high.low, high.high, high.pairs, high.right) == (0.9, 1.0, 2, 1)
    assert low.probability == pytest.approx(0.25)
    assert high.share == 0.5
    assert found.pairs == 5
    assert found.probability == pytest.approx((0.95 + 0.92 + 0.25 + 0.22 + 0.28) / 5)
    assert found.share == 2 / 5
    assert found.ece == pytest.approx(100 * (abs(0.75 - 1) + abs(1.87 - 1)) / 5)
    errors = (0.05**2, 0.75**2, 0.92**2, 0.22**2, 0.28**2)
    assert found.brier == pytest.approx(100 * sum(errors) / 5)
    at_one = calibration([[0, 1], [2], []], top, k=1)
    assert at_one.pairs == 3
    assert calibration([[0, 1], [2], []], top, k=9).pairs == 7, "what is not there is not judged"


def test_it_agrees_with_the_slow_formula_on_many_predictions():
    rng = np.random.default_rng(3)
    Y = sp.csr_array(rng.random((300, 20)) < 0.2, dtype=np.float32)
    labels = np.stack([rng.permutation(20)[:5] for _ in range(300)])
    chance = rng.random((300, 5))
    chance[0] = 0, 1, 0.1, 0.9, 0.5  # the bounds of bins
    found = calibration(Y, top_of(labels, chance), k=4)
    p = np.float32(chance[:, :4]).astype(np.float64).ravel()
    right = Y.toarray()[np.arange(300)[:, None], labels[:, :4]].ravel()
    bins = np.minimum((10 * p).astype(int), 9)
    off = [abs(p[bins == one].mean() - right[bins == one].mean()) * (bins == one).mean() for one in range(10)]
    assert found.ece == pytest.approx(100 * sum(off))
    assert found.brier == pytest.approx(100 * np.mean((p - right) ** 2))
    assert sum(one.right for one in found.bins) == right.sum()


def test_true_probabilities_are_calibrated_and_halved_ones_are_not():
    rng = np.random.default_rng(4)
    chance = rng.random((20_000, 1))
    Y = sp.csr_array(rng.random((20_000, 1)) < chance, dtype=np.float32)
    labels = np.zeros((20_000, 1), np.int32)
    assert calibration(Y, top_of(labels, chance), k=1).ece < 1.5
    assert calibration(Y, top_of(labels, chance / 2), k=1).ece == pytest.approx(25, abs=1.5)


def test_probabilities_are_judged_and_not_the_scores_that_rank():
    plain = top_of([[0], [1]], [[0.5], [0.5]])
    gained = top_of([[0], [1]], [[0.5], [0.5]], scores=[[40.0], [3.0]])
    assert calibration([[0], [0]], plain, k=1) == calibration([[0], [0]], gained, k=1)


def test_evaluate_includes_it_exactly_where_probabilities_are_known():
    truth, top = [[0, 1], [2]], top_of([[0, 2], [2, -1]], [[0.9, 0.4], [0.6, 0]])
    found = evaluate(truth, top, k=(1, 2))
    for k in (1, 2):
        want = calibration(truth, top, k)
        assert (found[f"ece@{k}"], found[f"brier@{k}"]) == (want.ece, want.brier)
    assert "ece@1" not in evaluate(truth, top.labels, k=(1, 2))
    unknown = top_of([[0, 2], [2, -1]], np.full((2, 2), np.nan))
    assert "ece@1" not in evaluate(truth, unknown, k=(1, 2))


def test_k_beyond_the_predictions_and_no_predictions_at_all():
    top = top_of([[-1], [-1]], [[0], [0]])
    found = calibration([[0], [1]], top, k=5)
    assert (found.ece, found.brier, found.bins) == (0.0, 0.0, ())
    assert (found.probability, found.share) == (0.0, 0.0)
    assert evaluate([[0], [1]], top, k=5)["ece@5"] == 0


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ([[0], [1]], "top must have the probabilities of its labels, as a TopK does; got list"),
        (top_of([[0], [1]], [[np.nan], [np.nan]]), "top must have the probabilities of its labels"),
        (top_of([[0], [1]], [[0.5], [1.5]]), "top must have probabilities from 0 to 1; got 1.5"),
        (top_of([[0], [1]], [[0.5, 0.1]]), r"top must have a probability for each label; got \(1, 2\)"),
    ],
)
def test_bad_arguments_are_named(top, message):
    with pytest.raises(ValueError, match=message):
        calibration([[0], [1]], top, k=1)
    with pytest.raises(ValueError, match="k must be"):
        calibration([[0], [1]], top_of([[0], [1]], [[1], [1]]), k=0)
