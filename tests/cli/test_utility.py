"""Utilities on the command line, and searches that end early, checked against the library."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longleaf as ll
from longleaf.suggest import Suggestions, short
from tests.helpers.commands import complaint, fill, run, run_well
from tests.helpers.tables import fill_texts, records_of, table

ROWS: dict[str, dict[str, Any]] = {
    "*": {"b": -0.1},
    "oil": {"a": 3, "b": -0.5, "group": "food", "quota": 2},
    "wheat": {"a": 2, "group": "food"},
    "fish": {"b": 0.2, "group": "food"},
    "law": {"allowed": False},
}
TABLE = """\
tag,a,b,allowed,group,quota
*,,-0.1,,,
oil,3,-0.5,,food,2
wheat,2,,,food,
fish,,0.2,,food,
law,,,no,,
"""
LABELS = "label\ta\tb\tallowed\n*\t1\t-0.2\t\n0\t3\t-1\t\n1\t\t\tno\n8\t1\t0.5\t\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = fill_texts(fill(tmp_path_factory.mktemp("utility")))
    (folder / "worth.csv").write_text(TABLE)
    (folder / "worth.json").write_text(json.dumps(ROWS))
    (folder / "labels.tsv").write_text(LABELS)
    (folder / "gain.txt").write_text("1\n" * 9)
    return folder


def predicted(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run_well("predict", *arguments).splitlines()]


def lines_of(found: list[Suggestions]) -> list[list[dict[str, Any]]]:
    return [[{"tag": one.tag} | one.numbers() for one in row] for row in found]


@pytest.mark.parametrize("name", ["worth.csv", "worth.json"])
def test_tags_are_predicted_by_what_a_file_says_they_are_worth(folder: Path, name: str) -> None:
    tagger, texts = ll.load(folder / "tagger.ll"), records_of(table(30, new_tag=True))
    command = (folder / "tagger.ll", folder / "test.jsonl", "--utility", folder / name, "-k", 4)
    lines = predicted(*command)
    assert [line["labels"] for line in lines] == lines_of(tagger.suggest(texts, 4, utility=ROWS))
    assert any(one["score"] < 0 for line in lines for one in line["labels"])
    worthwhile = predicted(*command, "--min-utility", 0)
    assert [line["labels"] for line in worthwhile] == [
        [one for one in line["labels"] if one["score"] >= 0] for line in lines
    ]


def test_labels_of_features_are_called_by_their_numbers(folder: Path) -> None:
    X, _ = ll.load_xmlc(folder / "test.txt")
    a, b, mask = np.ones(9), np.full(9, -0.2), np.arange(9) != 1
    a[0], b[[0, 8]] = 3, (-1, 0.5)
    top = ll.load(folder / "model.ll").top_k(X, 3, utility=ll.Utility(a, b, mask))
    assert 8 in top.labels  # training never saw it, and it is worth the most
    lines = predicted(folder / "model.ll", folder / "test.txt", "--utility", folder / "labels.tsv", "-k", 3)
    assert [[one["label"] for one in line["labels"]] for line in lines] == top.labels.tolist()
    assert [[one["score"] for one in line["labels"]] for line in lines] == [
        list(map(short, row)) for row in top.scores.tolist()
    ]


def test_a_table_has_the_utilities_as_scores(folder: Path, tmp_path: Path) -> None:
    both = (folder / "tagger.ll", folder / "test.jsonl", "--utility", folder / "worth.csv")
    run_well("predict", *both, "-k", 1, "-o", tmp_path / "out.csv")
    head, first = (tmp_path / "out.csv").read_text("utf-8-sig").splitlines()[:2]
    assert head.split(",")[-3:] == ["tag_1", "score_1", "probability_1"]
    assert float(first.split(",")[-2]) == predicted(*both, "-k", 1)[0]["labels"][0]["score"]


def test_evaluate_takes_the_same_file(folder: Path) -> None:
    X, Y = ll.load_xmlc(folder / "test.txt")
    model = ll.load(folder / "model.ll")
    utility = ll.read_utility(folder / "labels.tsv", map(str, range(9)))
    top = model.top_k(X, 3, utility=utility, threshold=0)
    want = ll.metrics.evaluate(Y, top, model.inverse_propensity(), k=(1, 3))
    both = (folder / "model.ll", folder / "test.txt", "-k", "1,3", "--utility", folder / "labels.tsv")
    found = json.loads(run_well("evaluate", *both, "--min-utility", 0, "--json"))
    assert {key: found[key] for key in want} == pytest.approx(want)
    assert "exact" not in found


def test_explain_shows_the_tags_that_are_worth_the_most(folder: Path) -> None:
    common = ("explain", folder / "tagger.ll", "--text", "olive oil", "-k", 1)
    said = run_well(*common, "--utility", folder / "worth.csv")
    assert said.startswith("oil\n")
    assert "with this utility" in said
    assert "--tag already names one" in complaint(*common, "--utility", folder / "worth.csv", "--tag", "oil")


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_what_does_not_go_with_a_utility_is_refused_before_anything_is_written(
    folder: Path, tmp_path: Path, command: str
) -> None:
    common = (command, folder / "model.ll", folder / "test.txt")
    out = ("-o", tmp_path / "out.jsonl") if command == "predict" else ()
    utility = ("--utility", folder / "labels.tsv")
    for options, says in (
        ((*utility, "--tail", 1), "--tail and --utility cannot be given together."),
        ((*utility, "--gain", folder / "gain.txt"), "--gain and --utility cannot be given together."),
        ((*utility, "-k", "auto"), "k must be a whole number with a utility; got 'auto'."),
        (("--min-utility", 0), "--min-utility needs --utility."),
        ((*utility, "--min-utility", "nan"), "--min-utility must be a number from -1e+30 to 1e+30; got nan."),
        (("--utility", ""), "must name a file or folder; got an empty string"),
        (("--utility", tmp_path / "no.csv"), "no.csv does not exist."),
        (("--epsilon", 1), "--epsilon"),
        (("--max-nodes", 0), "--max-nodes"),
        (("--deadline-ms", 0), "--deadline-ms"),
    ):
        assert says in complaint(*common, *options, *out)
    for line, says in (
        ("9,1\n", "worth.csv, line 2 must name tags of the model; '9' is none."),
        ("1,1\n2,much\n", "worth.csv, line 3: a of '2' must be a finite number; got 'much'."),
        ("1,1\n\n1,2\n", "worth.csv, line 4 must name a tag that has no row yet; got '1' again."),
    ):
        (tmp_path / "worth.csv").write_text(f"tag,a\n{line}")
        assert says in complaint(*common, "--utility", tmp_path / "worth.csv", *out)
    assert not (tmp_path / "out.jsonl").exists()


def test_sets_with_a_promise_go_by_probabilities_alone(folder: Path) -> None:
    common = ("predict", folder / "model.ll", folder / "test.txt", "--coverage", 0.9)
    for option, value in (("--utility", folder / "labels.tsv"), ("--epsilon", 0.1), ("--max-nodes", 5)):
        assert f"--coverage and {option} cannot be given together." in complaint(*common, option, value)


def test_a_utility_comes_from_standard_input_or_the_data_do(folder: Path) -> None:
    common = ("predict", folder / "tagger.ll", folder / "test.jsonl", "--utility")
    piped = run(*common, "-", stdin=TABLE.encode())
    assert piped.stdout == run_well(*common, folder / "worth.csv")
    both = complaint("predict", folder / "tagger.ll", "-", "--utility", "-")
    assert "Only one of DATA, --gain, --utility, --only, --never and --groups can be -." in both


def test_predictions_do_not_replace_the_utility(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "worth.jsonl"
    path.write_text('{"tag": "1", "a": 2}\n')
    command = ("predict", folder / "model.ll", folder / "test.txt", "--utility", path, "-o", path, "--force")
    assert "is an input of this command" in complaint(*command)


# ------------------------------------------------------------ searches that end early


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (("--search", "beam", "--beam", 1), {"search": "beam", "beam": 1}),
        (("--max-nodes", 3), {"max_nodes": 3}),
        (("--epsilon", 0.9), {"epsilon": 0.9}),
        (("--search", "auto", "--beam", 1, "--max-nodes", 4), {"search": "auto", "beam": 1, "max_nodes": 4}),
        (("--utility", "labels.tsv", "--max-nodes", 2), {"max_nodes": 2}),
    ],
    ids=str,
)
def test_each_row_of_a_search_that_may_end_early_says_whether_it_is_exact(
    folder: Path, options: tuple[object, ...], settings: dict[str, Any]
) -> None:
    X, _ = ll.load_xmlc(folder / "test.txt")
    if "--utility" in options:
        options = tuple(folder / one if one == "labels.tsv" else one for one in options)
        settings = settings | {"utility": ll.read_utility(folder / "labels.tsv", map(str, range(9)))}
    top = ll.load(folder / "model.ll").top_k(X, 2, n_jobs=1, **settings)
    common = (folder / "model.ll", folder / "test.txt", *options, "--threads", 1)
    lines = predicted(*common, "-k", 2)
    assert [line["exact"] for line in lines] == top.exact.tolist()
    gaps = [short(gap) if np.isfinite(gap) else None for gap in top.gap.tolist()]
    assert [line["gap"] for line in lines] == gaps
    share = f"The labels of {top.exact.sum()} of 30 records are provably the best."
    assert share in run("predict", *common, "-k", 2).stderr
    found = json.loads(run_well("evaluate", *common, "-k", 2, "--json"))
    assert found["exact"] == pytest.approx(100 * top.exact.mean())
    shown = run_well("evaluate", *common, "-k", 2)
    assert f"The labels of {100 * top.exact.mean():.2f} % of the rows are provably the best." in shown


def test_a_search_that_ends_exact_does_not_say_so(folder: Path) -> None:
    common = (folder / "model.ll", folder / "test.txt")
    exact, auto = predicted(*common), predicted(*common, "--search", "auto", "--beam", 1)
    labels = [[[one["label"] for one in line["labels"]] for line in lines] for lines in (exact, auto)]
    assert labels[0] == labels[1]
    assert set(exact[0]) == set(auto[0]) == {"row", "id", "labels"}
    assert "provably" not in run("predict", *common).stderr
    assert "provably" not in run_well("evaluate", *common, "--search", "auto")


def test_a_deadline_that_has_passed_leaves_a_valid_answer(folder: Path) -> None:
    lines = predicted(folder / "model.ll", folder / "test.txt", "--deadline-ms", 0.001)
    assert len(lines) == 30
    assert all(line["exact"] or line["gap"] is None or line["gap"] >= 0 for line in lines)
