"""``longleaf calibrate``: a model's probabilities are fitted on the rows of a file."""

import json

import pytest

import longleaf as ll
from longleaf.datasets import make_hierarchy
from tests.helpers.commands import complaint, run, run_well


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("calibrate")
    X, Y = make_hierarchy(1500, 200, 50, random_state=1)
    for name, rows in (("train", slice(0, 800)), ("dev", slice(800, 1200)), ("test", slice(1200, None))):
        ll.save_xmlc(path / f"{name}.txt", X[rows], Y[rows])
        records = [
            {"text": " ".join(f"w{i}" for i in X[i].indices), "tags": [f"t{i}" for i in Y[i].indices]}
            for i in range(*rows.indices(1500))
        ]
        (path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    ll.PLT(refine=False, n_trees=1, random_state=1, n_jobs=1).fit(X[:800], Y[:800]).save(path / "m.ll")
    run_well("train", path / "train.jsonl", "-o", path / "t.ll", "--preset", "paper", "--threads", 1)
    return path


@pytest.mark.parametrize(("model", "suffix"), [("m.ll", "txt"), ("t.ll", "jsonl")])
def test_a_model_is_calibrated_on_a_file(folder, model, suffix):
    out = folder / f"calibrated-{model}"
    command = ("calibrate", folder / model, folder / f"dev.{suffix}", "-o", out, "--threads", 1)
    assert "calibrated in" in run_well(*command)
    assert "already exists" in complaint(*command)
    run_well(*command, "--force")
    before, after = (
        json.loads(run_well("evaluate", one, folder / f"test.{suffix}", "--json"))
        for one in (folder / model, out)
    )
    assert after["p@5"] == pytest.approx(before["p@5"], abs=0.2)
    assert after["ece@5"] < before["ece@5"]
    held_out = json.loads(run_well("info", out, "--json"))["origin"]["calibrated"]
    assert held_out["data"].endswith(f"dev.{suffix}")
    assert "data_digest" in held_out
    run_well("report", out, folder / f"test.{suffix}", "-o", folder / f"{model}.html")


def test_a_model_may_be_replaced_by_itself(folder):
    run_well("calibrate", folder / "m.ll", folder / "dev.txt", "-o", folder / "same.ll")
    run_well("calibrate", folder / "same.ll", folder / "dev.txt", "-o", folder / "same.ll", "--force")
    assert ll.load(folder / "same.ll", verify=True).calibration_ is not None


def test_what_cannot_be_calibrated_is_refused(folder):
    out = folder / "never.ll"
    (folder / "empty.txt").write_text("0 200 50\n")
    assert "empty.txt must have at least one row" in complaint(
        "calibrate", folder / "m.ll", folder / "empty.txt", "-o", out
    )
    (folder / "none.txt").write_text("1 200 9\n3 1:0.5\n")
    assert "must have 50 labels" in complaint("calibrate", folder / "m.ll", folder / "none.txt", "-o", out)
    (folder / "other.jsonl").write_text(json.dumps({"text": "w1 w2", "tags": ["other"]}))
    taught_nothing = run("calibrate", folder / "t.ll", folder / "other.jsonl", "-o", out)
    assert taught_nothing.status == 2
    assert "other.jsonl must hold labels that the model ranks high" in taught_nothing.stderr
    assert "must hold texts" in complaint("calibrate", folder / "t.ll", folder / "dev.txt", "-o", out)
    assert "must be an XMLC file" in complaint("calibrate", folder / "m.ll", folder / "dev.jsonl", "-o", out)
    (folder / "names.json").write_text(json.dumps({f"t{i}": f"w{i}" for i in range(50)}))
    named = folder / "named.ll"
    run_well("train", folder / "train.jsonl", "-o", named, "--names", folder / "names.json", "--threads", 1)
    refused = complaint("calibrate", named, folder / "dev.jsonl", "-o", out)
    assert "must be a model without names: with them, it was calibrated in training" in refused
    assert not out.exists()
