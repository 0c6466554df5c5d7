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


def test_new_texts_may_have_other_fields_than_the_old_ones(folder):
    old = [
        {"title": f"{one} oil {n}", "text": one, "tags": [one]} for n in range(4) for one in ("olive", "palm")
    ]
    new = [{"heading": row["title"], "body": row["text"], "subjects": ["new", *row["tags"]]} for row in old]
    for name, rows in (("old", old), ("new", new)):
        (folder / f"{name}-fields.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    options = ("--trees", 1, "--threads", 1)
    run_well("train", folder / "old-fields.jsonl", "-o", folder / "fields.ll", *options)
    fields = ("--text", "heading", "--text", "body", "--tags", "subjects")
    command = ("update", folder / "fields.ll", folder / "new-fields.jsonl", "--threads", 1)
    run_well(*command, *fields, "-o", folder / "updated.ll")
    want = ll.load(folder / "fields.ll")
    records = [{"title": row["title"], "text": row["text"]} for row in old]
    want.estimator_.set_params(n_jobs=1)
    want.partial_fit(records, [row["subjects"] for row in new])
    found = ll.load(folder / "updated.ll")
    assert found.suggest(records) == want.suggest(records)
    assert "must name one field, or 2" in complaint(*command, *fields, "--text", "id", "-o", folder / "x.ll")


def test_what_cannot_learn_is_refused(folder):
    run_well("train", folder / "train.txt", "-o", folder / "br.ll", "--model", "br", "--threads", 1)
    refused = complaint("update", folder / "br.ll", folder / "test.txt", "-o", folder / "x.ll")
    assert "must be a model of label trees to be updated; got a br" in refused
    assert "exists" in complaint("update", folder / "model.ll", folder / "test.txt", "-o", folder / "br.ll")
