"""Predicting, evaluating and looking at a model from the command line."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longleaf as ll
from longleaf.propensity import inverse_propensity_from_counts
from tests.helpers.commands import COMMAND, complaint, fill, run_well
from tests.helpers.serving import wait_for


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("cli"))


# ------------------------------------------------------------ predict


def predictions(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_predict_writes_what_top_k_finds(folder: Path) -> None:
    X, _ = ll.load_xmlc(folder / "test.txt")
    top = ll.load(folder / "model.ll").top_k(X, 3)
    rows = predictions(run_well("predict", folder / "model.ll", folder / "test.txt", "-k", 3))
    assert [row["row"] for row in rows] == list(range(30))
    assert all(set(row) == {"row", "id", "labels"} for row in rows)
    assert [[one["label"] for one in row["labels"]] for row in rows] == top.labels.tolist()
    scores = [[one["score"] for one in row["labels"]] for row in rows]
    np.testing.assert_allclose(scores, top.scores, rtol=1e-6)
    assert all(one["score"] == one["probability"] for row in rows for one in row["labels"])


@pytest.mark.parametrize("dial", ["tail", "gain"])
def test_probability_is_score_over_gain_for_every_label(folder: Path, tmp_path: Path, dial: str) -> None:
    model = ll.load(folder / "model.ll")
    if dial == "tail":
        gain = inverse_propensity_from_counts(model.label_counts_, 120, 0.6, 2.0) ** 0.5
        options = ["--tail", "0.5", "--propensity", "0.6,2"]
    else:
        gain = np.array([0.0, 1e-30, 2, 3, 1e30, 0.5, 7, 8, 9])
        (tmp_path / "gain.txt").write_text("\n".join(map(str, gain)) + "\n")
        options = ["--gain", str(tmp_path / "gain.txt")]
    rows = predictions(
        run_well("predict", folder / "model.ll", folder / "test.txt", "-k", 9, "--threads", 1, *options)
    )
    found = [one for row in rows for one in row["labels"]]
    assert len(found) == 30 * (8 if dial == "tail" else 7)  # not 8, never seen; not 0 if worth nothing
    for one in found:
        assert one["score"] == pytest.approx(one["probability"] * gain[one["label"]], rel=1e-4)
        assert 0 <= one["probability"] <= 1


def test_a_wide_beam_predicts_the_same_as_exact_search(folder: Path) -> None:
    exact = run_well("predict", folder / "model.ll", folder / "test.txt")
    beam = run_well("predict", folder / "model.ll", folder / "test.txt", "--search", "beam", "--beam", 100)
    labels = [[[one["label"] for one in row["labels"]] for row in predictions(t)] for t in (exact, beam)]
    assert labels[0] == labels[1]


def test_predict_writes_a_file_once_and_again_with_force(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    printed = run_well("predict", folder / "model.ll", folder / "test.txt")
    assert run_well("predict", folder / "model.ll", folder / "test.txt", "-o", out) == ""
    assert out.read_text() == printed
    assert "--force" in complaint("predict", folder / "model.ll", folder / "test.txt", "-o", out)
    run_well("predict", folder / "model.ll", folder / "test.txt", "-o", out, "-k", 1, "--force")
    assert len(out.read_text()) < len(printed)
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("order", [("--search", "beam", "--beam", 2), ("--beam", 2, "--search", "beam")])
def test_a_beam_may_stand_before_or_after_its_search(folder: Path, order: tuple[object, ...]) -> None:
    both = (folder / "model.ll", folder / "test.txt")
    X, _ = ll.load_xmlc(folder / "test.txt")
    top = ll.load(folder / "model.ll").top_k(X, 5, search="beam", beam=2)
    rows = predictions(run_well("predict", *both, *order))
    want = [[label for label in row if label >= 0] for row in top.labels.tolist()]
    assert [[one["label"] for one in row["labels"]] for row in rows] == want
    run_well("evaluate", *both, *order)
    run_well("evaluate", *both, "--search", "beam")
    run_well("evaluate", *both, "--search", "exact", "--beam", 10)  # one line of options for both searches


def test_predict_does_not_replace_what_it_reads(folder: Path, tmp_path: Path) -> None:
    data, gain = tmp_path / "data.txt", tmp_path / "gain.txt"
    data.write_bytes((folder / "test.txt").read_bytes())
    gain.write_text("1\n" * 9)
    (tmp_path / "link.txt").symlink_to(data)
    for out in (data, tmp_path / "link.txt", gain):
        command = ("predict", folder / "model.ll", data, "--gain", gain, "-o", out)
        for force in ((), ("--force",)):
            assert f"{out} is an input of this command" in complaint(*command, *force)
    assert data.read_bytes() == (folder / "test.txt").read_bytes()


def test_predict_refuses_a_device_and_a_missing_folder(folder: Path, tmp_path: Path) -> None:
    both = folder / "model.ll", folder / "test.txt"
    assert "/dev/null" in complaint("predict", *both, "-o", "/dev/null", "--force")
    assert "folder" in complaint("predict", *both, "-o", tmp_path / "no" / "out")


def test_a_reader_that_leaves_early_is_no_error(folder: Path) -> None:
    X, Y = ll.load_xmlc(folder / "test.txt")
    many = folder / "many.txt"
    ll.save_xmlc(many, X[np.arange(6000) % 30], Y[np.arange(6000) % 30])
    process = subprocess.Popen(
        [*COMMAND, "predict", str(folder / "model.ll"), str(many)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["row"] == 0
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0
    process.stderr.close()


def test_a_terminated_command_leaves_no_file(folder: Path, tmp_path: Path) -> None:
    rows = [{"text": f"olive oil {number}", "tags": ["oil", "fish"][number % 2]} for number in range(20)]
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run_well("train", table, "--trees", 1, "-o", tmp_path / "m.ll")
    out = tmp_path / "new" / "out.csv"
    out.parent.mkdir()
    process = subprocess.Popen(
        [*COMMAND, "predict", str(tmp_path / "m.ll"), "-", "-o", str(out)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    wait_for(lambda: any(path.name != out.name for path in out.parent.iterdir()))
    time.sleep(0.3)  # the first file only tries whether one can be written
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143
    assert list(out.parent.iterdir()) == []
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


@pytest.mark.parametrize(
    ("text", "must_say"),
    [
        ("1\n2\n", "9 lines"),
        ("1\n" * 10, "9 lines"),
        ("", "9 lines"),
        ("1\n1\nx\n" + "1\n" * 6, "line 3"),
        ("-1\n" + "1\n" * 8, "line 1"),
        ("1\nnan\n" + "1\n" * 7, "line 2"),
        ("1\ninf\n" + "1\n" * 7, "line 2"),
        ("1\n\n" + "1\n" * 7, "line 2"),
    ],
)
def test_a_bad_gain_file_is_named_with_line(folder: Path, tmp_path: Path, text: str, must_say: str) -> None:
    (tmp_path / "gain.txt").write_text(text)
    said = complaint("predict", folder / "model.ll", folder / "test.txt", "--gain", tmp_path / "gain.txt")
    assert "gain.txt" in said
    assert must_say in said


# ------------------------------------------------------------ evaluate


@pytest.mark.parametrize("tail", [0.0, 1.0])
def test_evaluate_agrees_with_the_library_and_counts_unseen_labels(folder: Path, tail: float) -> None:
    options = ("-k", "1,2", "--tail", tail, "--propensity", "0.5,0.4", "--json")
    report = json.loads(run_well("evaluate", folder / "model.ll", folder / "test.txt", *options))
    _, Y = ll.load_xmlc(folder / "train.txt")
    X_test, Y_test = ll.load_xmlc(folder / "test.txt")
    q = ll.inverse_propensity(Y, a=0.5, b=0.4)
    top = ll.load(folder / "model.ll").top_k(X_test, 2, tail=tail, propensity=(0.5, 0.4))
    want = ll.metrics.evaluate(Y_test, top, inverse_propensity=q, k=(1, 2))
    assert {name: report[name] for name in want} == pytest.approx(want)
    assert report["rows"] == 30
    assert report["ms_per_row"] > 0
    unseen = report["frequency"][-1]
    assert (unseen["name"], unseen["labels"], unseen["recall"]) == ("unseen", 1, 0.0)
    assert unseen["share"] > 0
    assert {"f1@1", "f1@2", "precision@2", "recall@2", "ece@2", "brier@1"} <= set(want)
    true = int(Y_test.toarray()[:, np.asarray(Y.sum(axis=0)).ravel() == 0].sum())
    assert report["unseen"] == {"labels": 1, "assignments": true, "recall@1": 0.0, "recall@2": 0.0}
    assert unseen["assignments"] == true


def test_evaluate_takes_the_gains_that_predict_takes(folder: Path, tmp_path: Path) -> None:
    gain = np.array([0, 1e-3, 2, 3, 1e3, 0.5, 7, 8, 9])
    (tmp_path / "gain.txt").write_text("\n".join(map(str, gain)) + "\n")
    both = folder / "model.ll", folder / "test.txt"
    report = json.loads(run_well("evaluate", *both, "--gain", tmp_path / "gain.txt", "-k", 2, "--json"))
    X_test, Y_test = ll.load_xmlc(folder / "test.txt")
    want = ll.metrics.evaluate(Y_test, ll.load(folder / "model.ll").top_k(X_test, 2, gain=gain), k=(2,))
    assert {name: report[name] for name in want} == pytest.approx(want)
    assert report["p@2"] != json.loads(run_well("evaluate", *both, "-k", 2, "--json"))["p@2"]
    assert "together" in complaint("evaluate", *both, "--gain", tmp_path / "gain.txt", "--tail", 1)
    assert "9 lines" in complaint("evaluate", *both, "--gain", "-", stdin=b"1\n")
    assert "Only one of" in complaint("evaluate", folder / "model.ll", "-", "--gain", "-")


@pytest.mark.parametrize("dial", [(), ("--tail", 1)])
def test_predict_leaves_out_what_is_less_likely_than_wished(folder: Path, dial: tuple[object, ...]) -> None:
    both = folder / "model.ll", folder / "test.txt", "-k", 9, *dial
    every = predictions(run_well("predict", *both))
    likely = predictions(run_well("predict", *both, "--min-probability", 0.2))
    assert [row["labels"] for row in likely] == [
        [one for one in row["labels"] if one["probability"] >= 0.2] for row in every
    ]
    assert sum(len(row["labels"]) for row in likely) < sum(len(row["labels"]) for row in every)
    assert "--min-probability" in complaint("predict", *both, "--min-probability", 1.5)


def test_evaluate_prints_a_table_that_reads_well_when_piped(folder: Path) -> None:
    said = run_well("evaluate", folder / "model.ll", "-", stdin=(folder / "test.txt").read_bytes())
    for words in ("psp", "f1", "ece", "@5", "head", "torso", "tail", "unseen", "30 rows"):
        assert words in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("header", "must_say"), [("1 13 9", "12 features"), ("1 12 10", "9 labels"), ("0 12 9", "one row")]
)
def test_evaluate_refuses_other_sizes(folder: Path, tmp_path: Path, header: str, must_say: str) -> None:
    other = tmp_path / "other.txt"
    other.write_text(header + ("\n0 1:1\n" if header.startswith("1") else "\n"))
    said = complaint("evaluate", folder / "model.ll", other)
    assert must_say in said
    assert "other.txt" in said


# ------------------------------------------------------------ info


def test_info_says_what_the_model_is_and_where_it_came_from(folder: Path) -> None:
    facts = json.loads(run_well("info", folder / "model.ll", "--json", "--verify"))
    model = ll.load(folder / "model.ll")
    assert (facts["labels"], facts["features"], facts["trees"]) == (9, 12, 3)
    assert facts["nodes"] == sum(tree.n_nodes for tree in model.trees_)
    assert facts["weights"] > 0
    assert facts["bytes"] == sum(f.stat().st_size for f in (folder / "model.ll").rglob("*") if f.is_file())
    assert facts["origin"]["data"] == str(folder / "train.txt")
    assert facts["origin"]["data_digest"].startswith("sha256:")
    assert facts["origin"]["settings"]["max_leaf"] == 2
    assert facts["origin"]["longleaf"] == ll.__version__
    assert "sha256:" in run_well("info", folder / "model.ll")


def test_info_verify_notices_an_altered_byte(folder: Path, tmp_path: Path) -> None:
    run_well("train", folder / "train.txt", "-o", tmp_path / "m.ll", "--trees", 1)
    victim = tmp_path / "m.ll" / "label_counts.npy"
    raw = bytearray(victim.read_bytes())
    raw[-1] ^= 1
    victim.write_bytes(raw)
    assert "label_counts.npy" in complaint("info", tmp_path / "m.ll", "--verify")
