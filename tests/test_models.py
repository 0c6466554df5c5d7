"""A damaged model is a clear error or a safe answer: whatever its arrays hold, nothing crashes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.storage import edit_manifest, replace_array
from tests.helpers.training import texts

pytestmark = pytest.mark.native

X, ROWS = texts(n_rows=80, n_features=60, n_labels=20)


@pytest.fixture(scope="module", params=[8, 32])
def saved(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.ll"
    settings = {"n_trees": 2, "max_leaf": 4, "random_state": 1, "n_jobs": 1}
    ll.PLT(weight_bits=request.param, **settings).fit(X, ROWS).save(path)
    np.save(path.parent / "X.npy", X.toarray())
    return path


def array_files(model):
    return sorted(model.rglob("*.npy"))


def test_every_truncated_file_is_a_clear_error(saved, tmp_path):
    for file in array_files(saved):
        copy = tmp_path / "cut.ll"
        shutil.copytree(saved, copy)
        target = copy / file.relative_to(saved)
        target.write_bytes(target.read_bytes()[:-1])
        with pytest.raises(ll.ModelError, match=file.stem):
            ll.load(copy)
        shutil.rmtree(copy)


def test_a_missing_array_is_a_clear_error(saved, tmp_path):
    for file in array_files(saved):
        copy = tmp_path / "gap.ll"
        shutil.copytree(saved, copy)
        (copy / file.relative_to(saved)).unlink()
        with pytest.raises(ll.ModelError, match=file.stem):
            ll.load(copy)
        shutil.rmtree(copy)


def change_meta(**changes):
    return lambda body: body["meta"].update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda body: body.update(format_version=99), "newer longleaf"),
        (lambda body: body.update(kind="oak"), "kind 'oak'"),
        (change_meta(trees=0), r"model\.json's meta\.trees must be at least 1; got 0\."),
        (change_meta(trees=3), r"tree2/first_child\.npy must exist; got no such array\."),
        (change_meta(trees=10**12), r"model\.json's meta\.trees must be at least 1 and at most"),
        (change_meta(trees="two"), r"meta\.trees must be a whole number; got 'two'\."),
        (change_meta(params={"bark": 1}), r"meta\.params must have no fields but .* got 'bark'\."),
        (change_meta(params=[]), r"meta\.params must be an object; got \[\]\."),
        (change_meta(params={"loss": "hinge"}), r"meta\.params\.loss must be one of log, squared-hinge; got"),
        (change_meta(params={"C": 10**400}), r"meta\.params\.C must be a finite number; got 1000"),
        (change_meta(params={"n_jobs": 10**6}), r"meta\.params\.n_jobs must be at most 1024; got 1000000\."),
        (change_meta(params={"random_state": "x"}), r"meta\.params\.random_state must be a whole number"),
        (
            change_meta(params={"positive_weight": []}),
            r"meta\.params\.positive_weight must be a finite number",
        ),
        (change_meta(features=-1), r"meta\.features must be at least 0"),
        (change_meta(features="many"), r"meta\.features must be a whole number"),
        (change_meta(features=2**31 - 1), r"feature_mass\.npy must have 2147483647 numbers; got 60"),
        (change_meta(rows="many"), r"meta\.rows must be a whole number"),
        (change_meta(rows=3), r"label_counts\.npy must hold numbers from -1 to 3; got"),
        (change_meta(origin="here"), r"meta\.origin must be an object; got 'here'\."),
        (change_meta(origin={"settings": 1}), r"meta\.origin\.settings must be an object; got 1\."),
        (change_meta(feature_names=["a"]), r"meta\.feature_names must have 60 names; got 1\."),
        (change_meta(feature_names=[1]), r"meta\.feature_names\[0\] must be a string; got 1\."),
        (change_meta(deep=json.loads("[" * 40 + "]" * 40)), "must be nested at most 32 deep"),
        (
            lambda body: body["meta"].pop("origin"),
            r"model\.json's meta must have the field origin; got none",
        ),
    ],
)
def test_a_forged_manifest_is_a_clear_error(saved, tmp_path, change, message):
    copy = tmp_path / "forged.ll"
    shutil.copytree(saved, copy)
    edit_manifest(copy, change)
    with pytest.raises(ll.ModelError, match=message):
        ll.load(copy)


def test_arrays_of_another_dtype_or_size_are_a_clear_error(saved, tmp_path):
    for file in array_files(saved):
        name = file.relative_to(saved).with_suffix("").as_posix()
        array = np.load(file)
        if not array.size:
            continue
        for other in (array.astype(np.float64), array[:-1], np.concatenate([array, array]), array[None]):
            copy = tmp_path / "other.ll"
            shutil.copytree(saved, copy)
            replace_array(copy, name, other)
            try:
                model = ll.load(copy)
                model.top_k(X, k=3, tail=1.0)
            except ValueError:  # ModelError is one
                pass
            else:
                assert name == "label_counts", (name, other.dtype, other.shape)
            shutil.rmtree(copy)


FLIP = """
import sys
from pathlib import Path

import numpy as np
import longleaf as ll

model, rows, bits = Path(sys.argv[1]), np.load(sys.argv[2]), np.random.default_rng(int(sys.argv[3]))
outcomes = {"error": 0, "answer": 0}
for file in sorted(model.rglob("*.npy")):
    content = file.read_bytes()
    size = len(content) - 128
    if size <= 0:
        continue
    for trial in range(int(sys.argv[4])):
        damaged = bytearray(content)
        for _ in range(bits.integers(1, 4)):
            at = 128 + int(bits.integers(size))
            damaged[at] = [damaged[at] ^ (1 << int(bits.integers(8))), 0xFF, 0x7F, 0x80][trial % 4]
        file.write_bytes(bytes(damaged))
        print(file, trial, flush=True)
        try:
            loaded = ll.load(model)
            for options in ({}, {"tail": 1.0}, {"search": "beam", "beam": 2}, {"ensemble": "union"}):
                top = loaded.top_k(rows, k=5, **options)
                assert top.labels.max() < loaded.n_labels_ and top.labels.min() >= -1
            loaded.probability(rows, np.zeros(loaded.n_labels_, int), np.arange(loaded.n_labels_))
            outcomes["answer"] += 1
        except ValueError as error:
            assert str(error), "an error without a word"
            outcomes["error"] += 1
    file.write_bytes(content)
print(outcomes["error"], outcomes["answer"])
"""


def test_flipped_bytes_are_an_error_or_a_safe_answer(saved, tmp_path):
    copy = tmp_path / "flipped.ll"
    shutil.copytree(saved, copy)
    command = [sys.executable, "-c", FLIP, copy, saved.parent / "X.npy", "1", "24"]
    child = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert child.returncode == 0, child.stdout.splitlines()[-1:] + child.stderr.splitlines()[-20:]
    errors, answers = map(int, child.stdout.splitlines()[-1].split())
    assert errors > 100
    assert answers > 50


def test_verifying_notices_a_flipped_byte(saved, tmp_path):
    copy = tmp_path / "flipped.ll"
    shutil.copytree(saved, copy)
    file = next(file for file in array_files(copy) if file.stem == "bias")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    ll.load(copy)
    with pytest.raises(ll.ModelError, match="bias"):
        ll.load(copy, verify=True)


def test_nothing_in_a_model_is_pickled(saved):
    for file in array_files(saved):
        np.load(file, allow_pickle=False)
    json.loads(Path(saved / "model.json").read_text())
