"""``longleaf update``: a model learns the rows of a file."""

import json

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.commands import complaint, fill, run_well


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("update"))


def test_a_model_of_features_learns_new_rows_and_labels(folder):
    run_well("update", folder / "model.ll", folder / "test.txt", "-o", folder / "newer.ll", "--threads", 1)
    before, after = ll.load(folder / "model.ll"), ll.load(folder / "newer.ll")
    assert (before.n_rows_, after.n_rows_) == (120, 150)
    assert 8 in after.trees_[0].labels
    assert 8 not in before.trees_[0].labels
    facts = json.loads(run_well("info", folder / "newer.ll", "--json"))
    assert [update["rows"] for update in facts["origin"]["updates"]] == [30]


def test_a_model_of_texts_learns_new_tags(folder):
    rows = [{"text": f"olive oil {n}", "tags": ["oil"]} for n in range(4)]
    rows += [{"text": f"red wine {n}", "tags": ["wine"]} for n in range(4)]
    (folder / "old.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (folder / "new.jsonl").write_text(json.dumps({"text": "red olive", "tags": ["paint"]}))
    run_well("train", folder / "old.jsonl", "-o", folder / "t.ll", "--trees", 1, "--threads", 1)
    run_well(
        "update", folder / "t.ll", folder / "new.jsonl", "-o", folder / "t.ll", "--force", "--threads", 1
    )
    tagger = ll.load(folder / "t.ll")
    assert list(tagger.classes_) == ["oil", "wine", "paint"]
    np.testing.assert_array_equal(tagger.estimator_.label_counts_, [4, 4, 1])


def test_what_cannot_learn_is_refused(folder):
    run_well("train", folder / "train.txt", "-o", folder / "br.ll", "--model", "br", "--threads", 1)
    refused = complaint("update", folder / "br.ll", folder / "test.txt", "-o", folder / "x.ll")
    assert "must be a model of label trees to be updated; got a br" in refused
    assert "exists" in complaint("update", folder / "model.ll", folder / "test.txt", "-o", folder / "br.ll")
