"""``longleaf fit-sets`` and ``longleaf predict --coverage``: sets of labels with a promise."""

import json

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.commands import complaint, fill, run_well
from tests.helpers.training import texts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = fill(tmp_path_factory.mktemp("sets"))
    X, rows = texts(900, seed=3)
    for name, own in (("train", slice(300)), ("held-out", slice(300, 600)), ("new", slice(600, 900))):
        Y = np.array([[float(label in row) for label in range(11)] for row in rows[own]])
        ll.save_xmlc(folder / f"{name}.txt", X[own], Y)
    run_well("train", folder / "train.txt", "-o", folder / "plain.ll", "--seed", 1, "--threads", 1)
    options = ("-o", folder / "sets.ll", "--max-size", 9, "--threads", 1)
    (folder / "said.txt").write_text(
        run_well("fit-sets", folder / "plain.ll", folder / "held-out.txt", *options)
    )
    return folder


def test_sets_are_fitted_to_held_out_rows_and_written_with_the_model(folder):
    control = ll.load(folder / "sets.ll").risk_control_
    said = (folder / "said.txt").read_text()
    assert said == (
        f"{folder / 'sets.ll'}: coverage of up to {control.largest:g}, by {control.n_rows} rows with labels "
        "and sets of at most 9\n"
    )
    for name, most in (("sets", control.largest), ("plain", None)):
        assert json.loads(run_well("info", folder / f"{name}.ll", "--json"))["coverage"] == most
    assert ll.load(folder / "sets.ll").n_jobs == ll.load(folder / "plain.ll").n_jobs
    X, Y = ll.load_xmlc(folder / "held-out.txt")
    want = ll.load(folder / "plain.ll").fit_sets(X, Y, max_size=9).risk_control_
    np.testing.assert_array_equal(control.recall, want.recall)
    assert control.threshold(0.7) == want.threshold(0.7)


def test_predict_writes_the_sets_of_a_coverage(folder):
    printed = run_well("predict", folder / "sets.ll", folder / "new.txt", "--coverage", 0.7, "--threads", 1)
    rows = [json.loads(line)["labels"] for line in printed.splitlines()]
    X, Y = ll.load_xmlc(folder / "new.txt")
    want = ll.load(folder / "sets.ll").predict_set(X, 0.7).labels
    assert [[one["label"] for one in row] for row in rows] == [row[row >= 0].tolist() for row in want]
    found = [
        np.mean(np.isin(Y[[row]].indices, want[row])) for row in range(Y.shape[0]) if Y[[row]].indices.size
    ]
    assert np.mean(found) > 0.65


def test_a_model_of_texts_has_sets_of_tags(folder):
    def records(start, n):
        words = ("olive", "wine", "wheat", "cod")
        rows = [{"text": f"{words[i % 4]} market {i}", "tags": [words[i % 4]]} for i in range(start, n)]
        return "\n".join(json.dumps(row) for row in rows)

    for name, place in (("old", (0, 80)), ("held", (80, 200))):
        (folder / f"{name}.jsonl").write_text(records(*place))
    one = ("--threads", 1)
    run_well("train", folder / "old.jsonl", "-o", folder / "t.ll", "--trees", 1, *one)
    run_well("fit-sets", folder / "t.ll", folder / "held.jsonl", "-o", folder / "t.ll", "--force", *one)
    printed = run_well("predict", folder / "t.ll", folder / "held.jsonl", "--coverage", "0.9", *one)
    tags = [[one["tag"] for one in json.loads(line)["labels"]] for line in printed.splitlines()]
    assert np.mean(["olive" in own for own in tags[::4]]) >= 0.9


def test_a_coverage_stands_alone(folder):
    command = ("predict", folder / "sets.ll", folder / "new.txt")
    for option, value in (("-k", 5), ("--min-probability", 0.5), ("--tail", 1), ("--search", "beam")):
        for order in (
            ("--coverage", 0.9, option, value),
            (option, value, "--coverage", 0.9),
        ):
            assert f"--coverage and {option} cannot be given together." in complaint(*command, *order)


@pytest.mark.parametrize("coverage", [0, 1, 2, "nan"])
def test_a_coverage_out_of_range_is_refused_before_reading(coverage):
    said = complaint("predict", "no.ll", "no.txt", "--coverage", coverage)
    assert f"--coverage must be above 0 and below 1; got {coverage}." in said


def test_what_has_no_sets_or_too_small_ones_is_refused_in_one_sentence(folder):
    said = complaint("predict", folder / "plain.ll", folder / "new.txt", "--coverage", 0.9)
    assert "plain.ll has no sets for --coverage: fit them with longleaf fit-sets." in said
    said = complaint("predict", folder / "sets.ll", folder / "new.txt", "--coverage", 0.9999)
    assert "coverage must be at most" in said
    said = complaint("fit-sets", folder / "plain.ll", folder / "held-out.txt", "-o", folder / "sets.ll")
    assert "sets.ll already exists" in said
    said = complaint("fit-sets", folder / "model.ll", folder / "held-out.txt", "-o", folder / "x.ll")
    assert "must have 12 features" in said
