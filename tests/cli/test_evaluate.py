"""``longleaf evaluate``: fixed numbers of labels, and as many as are likely."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longleaf as ll
from longleaf.suggest import Suggester
from tests.helpers.commands import complaint, fill, run_well
from tests.helpers.tables import fill_texts, records_of, table

SETS = ("precision", "recall", "f1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_texts(fill(tmp_path_factory.mktemp("evaluate")))


def evaluated(folder: Path, *options: object, texts: bool = False) -> Any:
    pair = ("tagger.ll", "test.jsonl") if texts else ("model.ll", "test.txt")
    return json.loads(run_well("evaluate", *(folder / name for name in pair), *options, "--json"))


def mean_f1(truth: list[list[str]], found: list[list[str]]) -> float:
    pairs = zip(truth, found, strict=True)
    each = [2 * len({*true} & {*own}) / (len(true) + len(own)) if own or true else 0 for true, own in pairs]
    return float(100 * np.mean(each))


def test_documents_are_averaged_at_every_rank_that_is_asked_for(folder: Path) -> None:
    found = evaluated(folder, "-k", "5,10,15,20")
    X, Y = ll.load_xmlc(folder / "test.txt")
    model = ll.load(folder / "model.ll")
    want = ll.metrics.evaluate(Y, model.top_k(X, 8), model.inverse_propensity(), k=(5, 10, 15, 20))
    keys = [f"{name}@{k}" for name in (*SETS, "ndcg", "p", "psp", "psndcg", "ece") for k in (5, 10, 15, 20)]
    assert {key: found[key] for key in keys} == pytest.approx({key: want[key] for key in keys})
    assert "f1@auto" not in found
    assert "labels@5" not in found


def test_labels_that_training_never_saw_are_a_group_of_their_own(folder: Path) -> None:
    found = evaluated(folder, "-k", "1,3,auto", texts=True)
    last = found["frequency"][-1]
    assert (last["name"], last["labels"], last["assignments"], last["recall"]) == ("unseen", 1, 10, 0)
    assert found["unseen"] == {
        "labels": 1, "assignments": 10, "recall@1": 0, "recall@3": 0, "recall@auto": 0,
    }  # fmt: skip


def test_as_many_as_are_likely_stand_beside_the_fixed_numbers(folder: Path) -> None:
    found = evaluated(folder, "-k", "1,auto,3", texts=True)
    rows = table(30, new_tag=True)
    truth = [row["subjects"] for row in rows]
    tagger = ll.load(folder / "tagger.ll")
    for k in ("1", "3", "auto"):
        asked = k if k == "auto" else int(k)
        tags = [[one.tag for one in row] for row in tagger.suggest(records_of(rows), k=asked)]
        assert found[f"f1@{k}"] == pytest.approx(mean_f1(truth, tags))
        assert found[f"labels@{k}"] == pytest.approx(np.mean([len(row) for row in tags]))
        assert found[f"none@{k}"] == 100 * np.mean([not row for row in tags])
        hits = [len({*own} & {*true}) for own, true in zip(tags, truth, strict=True)]
        shares = [hit / max(len(own), 1) for hit, own in zip(hits, tags, strict=True)]
        assert found[f"precision@{k}"] == pytest.approx(100 * np.mean(shares))
        shares = [hit / len(true) for hit, true in zip(hits, truth, strict=True)]
        assert found[f"recall@{k}"] == pytest.approx(100 * np.mean(shares))
    assert {key for key in found if key.endswith("@auto")} == {
        f"{name}@auto" for name in (*SETS, "labels", "none")
    }


def test_a_fixed_number_is_judged_the_same_with_and_without_auto(folder: Path) -> None:
    alone, beside = evaluated(folder, "-k", "1,5"), evaluated(folder, "-k", "1,5,auto")
    for one in (alone, beside):
        one.pop("ms_per_row")
        one.pop("unseen")
    assert {key: beside[key] for key in alone} == alone


def test_auto_alone_is_judged_by_frequency_too(folder: Path) -> None:
    found = evaluated(folder, "-k", "auto", "--max-k", 2)
    X, Y = ll.load_xmlc(folder / "test.txt")
    model = ll.load(folder / "model.ll")
    suggester = Suggester(model)
    top = suggester.top_k(X, suggester.query("auto", max_k=2))
    bins = ll.metrics.frequency_table(Y, top, model.label_counts_, k=2)
    assert [one["recall"] for one in found["frequency"]] == pytest.approx([one.recall for one in bins])
    assert found["f1@auto"] == pytest.approx(ll.metrics.evaluate(Y, top, k=2)["f1@2"])
    assert found["rows"] == 30
    assert found["ms_per_row"] > 0
    assert not [key for key in found if key.startswith(("p@", "ndcg@", "psp@"))]


def test_the_maximum_and_the_filters_hold_for_auto(folder: Path, tmp_path: Path) -> None:
    most = [evaluated(folder, "-k", "auto", "--max-k", k, texts=True)["labels@auto"] for k in (1, 20)]
    assert most[0] <= 1 < most[1]
    (tmp_path / "only.txt").write_text("oil\n")
    found = evaluated(folder, "-k", "3,auto", "--only", tmp_path / "only.txt", texts=True)
    assert found["labels@3"] == 1
    assert found["none@3"] == 0
    assert found["labels@auto"] == pytest.approx(1 - found["none@auto"] / 100)
    assert found["none@auto"] > 20, "half of the records are not about oil"
    assert found["precision@auto"] / found["labels@auto"] > found["precision@3"]


def test_the_table_has_a_column_for_auto_with_gaps_where_a_metric_needs_a_rank(folder: Path) -> None:
    said = run_well("evaluate", folder / "tagger.ll", folder / "test.jsonl", "-k", "1,3,auto")
    lines: dict[str, list[str]] = {}
    for line in filter(str.strip, said.splitlines()):
        lines.setdefault(line.split()[0], line.split())  # the second table also has labels
    assert lines["metric"] == ["metric", "@1", "@3", "@auto"]
    found = evaluated(folder, "-k", "1,3,auto", texts=True)
    for name in ("f1", "labels", "none"):
        assert lines[name][-3:] == [f"{found[f'{name}@{k}']:.2f}" for k in ("1", "3", "auto")]
    assert lines["ndcg"][-2:] == [f"{found[f'ndcg@{k}']:.2f}" for k in ("1", "3")]
    assert "30 rows" in said
    assert "recall@3" in said, "labels by frequency are judged at the largest number"


def test_one_row_is_not_one_rows(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text((folder / "test.jsonl").read_text().splitlines()[0] + "\n")
    said = run_well("evaluate", folder / "tagger.ll", tmp_path / "one.jsonl")
    assert "\n1 row, " in said


@pytest.mark.parametrize(
    ("options", "must_say"),
    [
        (
            ("-k", "5,automatic"),
            "whole numbers from 1 to 1000000, or auto, as in 1,3,5,auto; got '5,automatic'",
        ),
        (("-k", "auto,0"), "got 'auto,0'"),
        (("-k", ""), "-k must be"),
        (("--max-k", 3), "--max-k needs auto in -k"),
        (("-k", "auto", "--max-k", 0), "--max-k"),
    ],
)
def test_bad_usage_is_one_sentence(folder: Path, options: tuple[object, ...], must_say: str) -> None:
    assert must_say in complaint("evaluate", folder / "model.ll", folder / "test.txt", *options)
