"""Models of omikuji, PECOS and napkinXC: their own predictions first, then what only longleaf gives."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import longleaf as ll
from longleaf.explain import explain_row
from tests.helpers.commands import complaint, run, run_well
from tests.helpers.data import ROOT
from tests.helpers.peers import MODELS, NAMES, Peer, assert_reproduced
from tests.importing.peers import make

PEERS = Path(os.environ.get("LONGLEAF_PEERS", ROOT))
ENVIRONMENTS = {"omikuji": ".venv-peers", "napkinxc": ".venv-peers", "pecos": ".venv-pecos"}


@pytest.fixture(params=NAMES)
def peer(request):
    return Peer.read(MODELS / request.param)


def test_a_peers_own_predictions_are_reproduced(peer):
    assert_reproduced(peer)


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_models_trained_just_now_are_reproduced(kind, tmp_path):
    python = PEERS / ENVIRONMENTS[kind] / "bin" / "python"
    if not python.exists():
        if importlib.util.find_spec(kind) is None:
            pytest.skip(
                f"{kind} is not installed, and {python} does not exist (`make peers`; LONGLEAF_PEERS)"
            )
        python = sys.executable
    subprocess.run([python, make.__file__, tmp_path, kind, "3"], check=True, capture_output=True, timeout=300)
    folders = sorted(tmp_path.iterdir())
    assert len(folders) == len([name for name in NAMES if name.startswith(kind)])
    for folder in folders:
        assert_reproduced(Peer.read(folder))


def test_exact_search_with_gains_is_brute_force(peer):
    model, n_rows = peer.load(), peer.X.shape[0]
    gain = np.linspace(0, 5, model.n_labels_) ** 2
    rows, labels = np.divmod(np.arange(n_rows * model.n_labels_), model.n_labels_)
    score = model.probability(peer.X, rows, labels).reshape(n_rows, -1) * gain
    top = model.top_k(peer.X, k=4, gain=gain)
    np.testing.assert_allclose(top.scores, -np.sort(-score, axis=1)[:, :4], 1e-5, 1e-7)


def test_an_explanation_accounts_for_the_whole_probability(peer):
    model = peer.load()
    label = int(model.top_k(peer.X, k=1).labels[0, 0])
    why = explain_row(model, peer.X, label)
    assert np.exp(why.log_probability) == pytest.approx(model.probability(peer.X, [0], [label])[0], rel=1e-5)
    assert why.contributions.sum() == pytest.approx(why.log_probability - why.log_baseline)


def test_a_saved_import_answers_bit_for_bit_the_same(peer, tmp_path):
    model = peer.load()
    model.save(tmp_path / "model.ll")
    loaded = ll.load(tmp_path / "model.ll", verify=True)
    for one, other in zip(model.top_k(peer.X), loaded.top_k(peer.X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.origin_["imported_from"] == peer.kind
    assert loaded.get_params()["n_trees"] == len(loaded.trees_)


def test_the_tail_dial_needs_the_labels_counts(peer):
    model = peer.load()
    with pytest.raises(ValueError, match="imported without them"):
        model.top_k(peer.X, tail=0.5)
    with pytest.raises(ValueError, match="imported without them"):
        model.inverse_propensity()
    np.testing.assert_array_equal(model.top_k(peer.X, tail=0).scores, model.top_k(peer.X).scores)
    known = peer.load(**peer.counts())
    q = ll.inverse_propensity(peer.train[1])
    np.testing.assert_array_equal(known.top_k(peer.X, tail=1).scores, model.top_k(peer.X, gain=q).scores)


def test_unknown_counts_are_not_zeros(peer):
    model = peer.load()
    leaves = np.unique(np.concatenate([tree.labels for tree in model.trees_]))
    assert (model.label_counts_[leaves] < 0).all()
    assert not np.delete(model.label_counts_, leaves).any()


def test_eight_bits_are_smaller_and_nearly_the_same(peer):
    model, whole = peer.load(weight_bits=8), peer.load()
    assert sum(len(w["bytes"]) for w in model.weights_) < sum(len(w["bytes"]) for w in whole.weights_) / 2
    np.testing.assert_allclose(model.top_k(peer.X).scores, whole.top_k(peer.X).scores, atol=0.1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_features": 39}, "n_features must be at least 40"),
        ({"label_counts": [1] * 14}, "label_counts and n_rows must be given together"),
        ({"label_counts": [1] * 13, "n_rows": 9}, "label_counts must have at least 14 numbers"),
        ({"label_counts": [10] * 14, "n_rows": 9}, "at most the 9 rows"),
        ({"label_counts": [0.5] * 14, "n_rows": 9}, "must be whole numbers"),
        ({"weight_bits": 16}, "weight_bits must be 8 or 32"),
        ({"kind": "fasttext"}, "kind must be one of"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ll.import_model(MODELS / "pecos-hinge", **options)


@pytest.fixture
def data(tmp_path):
    X, Y, _ = make.draw()
    ll.save_xmlc(tmp_path / "train.txt", X, Y)
    return tmp_path / "train.txt"


def test_the_command_takes_counts_and_columns_from_the_training_data(data, tmp_path):
    out = tmp_path / "model.ll"
    said = run_well("import", MODELS / "napkinxc-log", "-o", out, "--data", data)
    assert "imported from napkinxc, trees 1, features 40, labels 14" in said
    assert ll.load(out).n_rows_ == make.ROWS
    assert "psp@1" in run_well("evaluate", out, data, "--tail", "1", "--json")
    assert '"imported_from": "napkinxc"' in run_well("info", out, "--json")


def test_the_command_takes_counts_from_a_file(tmp_path):
    out, counts = tmp_path / "model.ll", tmp_path / "counts.txt"
    counts.write_text("3\n" * 14)
    run_well("import", MODELS / "pecos-hinge", "-o", out, "--counts", counts, "--rows", 50)
    assert ll.load(out).label_counts_.tolist() == [3] * 14
    counts.write_text("3\nx\n")
    said = complaint("import", MODELS / "pecos-hinge", "-o", out, "--force", "--counts", counts, "--rows", 5)
    assert "line 2: a count must be" in said


def test_without_counts_evaluation_leaves_propensities_out(data, tmp_path):
    out = tmp_path / "model.ll"
    done = run("import", MODELS / "pecos-hinge", "-o", out, "--from", "pecos")
    assert done.status == 0
    assert "counts are unknown" in done.stderr
    said = run_well("evaluate", out, data)
    assert "precision" in said
    assert "propensity" not in said
    report = json.loads(run_well("evaluate", out, data, "--json"))
    assert (report["frequency"], report["unseen"]) == ([], None)
    assert "f1@5" in report
    assert "imported without them" in complaint("evaluate", out, data, "--tail", "1")
    assert "labels_trained   14" in run_well("info", out)


def test_a_refused_import_leaves_nothing(tmp_path):
    out = tmp_path / "model.ll"
    assert "settings.json" in complaint("import", MODELS / "pecos-hinge", "-o", out, "--from", "omikuji")
    assert "must have the files of a model of" in complaint("import", tmp_path, "-o", out)
    assert "got no folder" in complaint("import", tmp_path / "absent", "-o", out)
    assert "--counts and --rows" in complaint("import", MODELS / "pecos-hinge", "-o", out, "--rows", 3)
    broken = tmp_path / "broken"
    shutil.copytree(MODELS / "napkinxc-log", broken)
    (broken / "weights.bin").write_bytes((broken / "weights.bin").read_bytes()[:-1])
    assert "weights.bin is damaged" in complaint("import", broken, "-o", out)
    assert [path.name for path in tmp_path.iterdir()] == ["broken"]
    out.mkdir()
    assert "already exists" in complaint("import", MODELS / "pecos-hinge", "-o", out)
