"""Rows on disk: converted as they are read, mapped as they were, trained on without a copy."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf import _core
from longleaf._validation import check_features, check_labels
from longleaf.datasets import make_hierarchy
from longleaf.io import store as store_files
from tests.helpers.commands import complaint, run, run_well
from tests.helpers.data import LAWS
from tests.helpers.same import same_arrays


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    X, Y = make_hierarchy(300, 500, 40, random_state=1)
    ll.save_xmlc(folder / "all.txt", X, Y)
    ll.save_xmlc(folder / "a.txt.xz", X[:120], Y[:120])
    ll.save_xmlc(folder / "b.txt", X[120:], Y[120:])
    return folder


def assert_same(got: ll.Store, X: object, Y: object) -> None:
    for mine, given in ((got.X, X), (got.Y, Y)):
        assert mine.shape == given.shape
        assert (mine != given).nnz == 0
        assert mine.dtype == given.dtype


def test_a_parser_gives_its_rows_piece_by_piece_as_it_would_at_once(rows: Path) -> None:
    text = (rows / "all.txt").read_bytes()
    whole, pieces = _core.XmlcParser(True), _core.XmlcParser(True)
    whole.feed(text)
    taken = [pieces.take()]  # before the header there is nothing
    for start in range(0, len(text), 1000):
        pieces.feed(text[start : start + 1000])
        taken.append(pieces.take())
    taken.append(pieces.finish())
    want = whole.finish()
    assert sum(len(part[1][1:]) for part in taken) == len(want[1]) - 1
    for place in (2, 3, 5):
        np.testing.assert_array_equal(np.concatenate([part[place] for part in taken]), want[place])


def test_a_converted_file_is_the_file(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_files, "BLOCK_BYTES", 4096)  # many blocks
    said = run_well("convert", rows / "all.txt", "-o", tmp_path / "store")
    assert "300 rows, 500 features, 40 labels" in said
    assert_same(ll.load_store(tmp_path / "store", verify=True), *ll.load_xmlc(rows / "all.txt"))


def test_files_are_joined_compressed_or_not(rows: Path, tmp_path: Path) -> None:
    run_well("convert", rows / "a.txt.xz", rows / "b.txt", "-o", tmp_path / "store")
    assert_same(ll.load_store(tmp_path / "store"), *ll.load_xmlc(rows / "all.txt"))


def test_standard_input_is_converted(rows: Path, tmp_path: Path) -> None:
    run_well("convert", "-", "-o", tmp_path / "store", stdin=(rows / "all.txt").read_bytes())
    assert_same(ll.load_store(tmp_path / "store"), *ll.load_xmlc(rows / "all.txt"))


def test_faults_name_file_and_line_and_leave_nothing(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_files, "BLOCK_BYTES", 1)
    bad = tmp_path / "bad.txt"
    bad.write_text("3 5 4\n0 0:1\n1 9:1\n2 1:1\n")
    with pytest.raises(ll.DataError) as want:
        ll.load_xmlc(bad)
    assert str(want.value) in complaint("convert", bad, "-o", tmp_path / "store")
    other = tmp_path / "other.txt"
    other.write_text("1 7 40\n0 0:1\n")
    said = complaint("convert", rows / "a.txt.xz", other, "-o", tmp_path / "store")
    assert "must have 500 features and 40 labels, as the files before it; got 7 and 40" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "other.txt"]


def test_blocks_of_rows_become_a_store(tmp_path: Path) -> None:
    X, Y = make_hierarchy(100, 200, 20, random_state=1)
    ll.save_store(tmp_path / "store", ((X[i : i + 30], Y[i : i + 30]) for i in range(0, 100, 30)))
    assert_same(ll.load_store(tmp_path / "store"), X, Y)
    with pytest.raises(ValueError, match="X of block 1 must have 200 features"):
        ll.save_store(tmp_path / "other", [(X, Y), (X[:, :50], Y)])
    with pytest.raises(ll.DataError, match="at least one pair"):
        ll.save_store(tmp_path / "other", [])
    assert not (tmp_path / "other").exists()


def test_training_takes_the_mapped_arrays_as_they_are(rows: Path, tmp_path: Path) -> None:
    run_well("convert", rows / "all.txt", "-o", tmp_path / "store")
    store = ll.load_store(tmp_path / "store")
    checked, labels = check_features(store.X), check_labels(store.Y)
    assert checked.data is store.X.data
    assert checked.indices is store.X.indices
    assert not checked.data.flags.writeable
    assert np.shares_memory(labels.indices, store.Y.indices)


def test_labels_that_need_no_copy_are_checked_all_the_same() -> None:
    _, Y = make_hierarchy(50, 200, 20, random_state=1)
    assert np.shares_memory(check_labels(Y).indices, Y.indices)
    doubled = Y * 2
    assert check_labels(doubled).data.max() == 1
    assert doubled.data.max() == 2
    with pytest.raises(ValueError, match="19"):
        check_labels(Y, 19)
    Y.indices[0] = 99
    with pytest.raises(ValueError, match=r"99|index"):
        check_labels(Y)


def test_a_store_trains_to_the_same_bits_as_its_file(rows: Path, tmp_path: Path) -> None:
    run_well("convert", rows / "all.txt", "-o", tmp_path / "store")
    for data, out in ((rows / "all.txt", "file.ll"), (tmp_path / "store", "store.ll")):
        run_well("train", data, "-o", tmp_path / out, "--max-leaf", 5, "--arity", 4, "--trees", 1)
    files = sorted((tmp_path / "file.ll").rglob("*.npy"))
    assert files
    for file in files:
        other = tmp_path / "store.ll" / file.relative_to(tmp_path / "file.ll")
        assert file.read_bytes() == other.read_bytes()
    origins = [ll.load(tmp_path / name).origin_ for name in ("file.ll", "store.ll")]
    assert origins[0]["data_digest"] == origins[1]["data_digest"]
    judged = [
        json.loads(run_well("evaluate", tmp_path / "store.ll", data, "--json"))["p@1"]
        for data in (rows / "all.txt", tmp_path / "store")
    ]
    assert judged[0] == judged[1]


@pytest.mark.parametrize(
    "words",
    [
        ("--max-features", 2000),
        ("--text", "title", "--text", "text", "--field", "title=2", "--chars", "none", "--min-df", 2),
        ("--text", "title", "--hash", 4096),
    ],
)
def test_texts_are_converted_with_their_words_and_tags(tmp_path: Path, words: tuple[object, ...]) -> None:
    options = ("--trees", 1, "--arity", 4)
    run_well("convert", LAWS, "-o", tmp_path / "store", *words)
    run_well("train", tmp_path / "store", "-o", tmp_path / "store.ll", *options)
    run_well("train", LAWS, "-o", tmp_path / "table.ll", *words, *options)
    same_arrays(tmp_path / "store.ll", tmp_path / "table.ll")
    mine, want = ll.load(tmp_path / "store.ll"), ll.load(tmp_path / "table.ll")
    texts = ["olive oil from Spain", "air transport", ""]
    assert mine.suggest(texts) == want.suggest(texts)
    assert mine.fields_ == want.fields_
    assert mine.vectorizer_.get_params() == want.vectorizer_.get_params()
    assert mine.origin_["data_digest"] == want.origin_["data_digest"]
    said = complaint("train", tmp_path / "store", "-o", tmp_path / "x.ll", "--text", "title")
    assert "--text needs a table of texts" in said


def test_names_for_a_store_are_displayed_and_that_is_said(tmp_path: Path) -> None:
    rows = [{"text": f"law {n} on oil", "tags": ["a", "b"][n % 2]} for n in range(20)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "names.tsv").write_text("a\tOil\n")
    run_well("convert", tmp_path / "t.jsonl", "-o", tmp_path / "s")
    train = ("train", tmp_path / "s", "--names", tmp_path / "names.tsv", "-o", tmp_path / "m.ll")
    assert "names are only displayed; a store has no texts to find them in" in run(*train).stderr
    tagger = ll.load(tmp_path / "m.ll")
    assert {one.name for one in tagger.suggest(["oil"])[0]} == {"Oil", "b"}
    assert tagger.fusion_ is None


def test_tables_are_converted_as_the_first_of_them_is_read(tmp_path: Path) -> None:
    rows = [{"text": f"law {n}", "tags": ["a", "b"][n % 2]} for n in range(20)]
    for name, some in (("a", rows), ("b", [{"title": "on oil"} | row for row in rows])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    said = run("convert", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "-o", tmp_path / "s").stderr
    assert said.count(f"{tmp_path / 'b.jsonl'}: the text is read from text and not from title") == 1
    assert "oil" not in ll.load_store(tmp_path / "s").vectorizer.get_feature_names_out()


def test_tables_and_files_do_not_mix_and_texts_need_a_file(rows: Path, tmp_path: Path) -> None:
    assert "are both" in complaint("convert", LAWS, rows / "b.txt", "-o", tmp_path / "store")
    said = complaint("convert", "-", "-o", tmp_path / "store", "--text", "title", stdin=b"{}")
    assert "read twice" in said


def test_neither_a_model_nor_a_store_takes_the_others_place(rows: Path, tmp_path: Path) -> None:
    run_well("convert", rows / "b.txt", "-o", tmp_path / "store")
    run_well("train", rows / "b.txt", "-o", tmp_path / "m.ll", "--trees", 1)
    assert "holds a model" in complaint("convert", rows / "b.txt", "-o", tmp_path / "m.ll", "--force")
    assert "holds data" in complaint("train", rows / "b.txt", "-o", tmp_path / "store", "--force")
    assert "already exists" in complaint("convert", rows / "b.txt", "-o", tmp_path / "store")
    run_well("convert", rows / "all.txt", "-o", tmp_path / "store", "--force")
    assert ll.load_store(tmp_path / "store").X.shape[0] == 300
    with pytest.raises(ll.ModelError, match="must be a store"):
        ll.load_store(tmp_path / "m.ll")
    with pytest.raises(ll.ModelError, match="'data'"):
        ll.load(tmp_path / "store")


def test_a_damaged_store_is_refused(rows: Path, tmp_path: Path) -> None:
    run_well("convert", rows / "b.txt", "-o", tmp_path / "store")
    file = tmp_path / "store" / "X" / "data.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ll.ModelError, match="checksum"):
        ll.load_store(tmp_path / "store", verify=True)
    file.write_bytes(content[:-4])
    with pytest.raises(ll.ModelError, match="must have"):
        ll.load_store(tmp_path / "store")


TRAIN_WITHIN_A_LIMIT = """
import resource, sys
import longleaf as ll

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

_, store, room, way = sys.argv
rows = ll.load_store(store)
memory = status("VmRSS") + int(room) if way == "limited" else None
limit = status("VmData") + int(room)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
# without the regression that refined labels need: its buffers alone are larger than the room
model = ll.PLT(n_trees=1, max_leaf=16, max_epochs=3, refine=False, n_jobs=1, random_state=1)
model.fit(rows.X, rows.Y, memory=memory, scratch=f"{store}/..")
print(model.score(rows.X[:100], rows.Y[:100]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts mapped memory on Linux only")
def test_data_larger_than_memory_trains(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    label = np.arange(1000) % 16
    X = sp.random(1000, 2000, 0.15, "csr", np.float32, random).tolil()
    X[np.arange(1000), label] = 9.0
    Y = np.eye(16, dtype=np.float32)[label]
    ll.save_store(tmp_path / "store", [(X.tocsr(), Y)] * 60)
    room = 40_000_000
    size = sum(file.stat().st_size for file in (tmp_path / "store").rglob("*.npy"))
    assert size > 3 * room

    def train(way: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", TRAIN_WITHIN_A_LIMIT, str(tmp_path / "store"), str(room), way]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    limited = train("limited")
    assert limited.returncode == 0, limited.stderr
    assert float(limited.stdout) > 0.9
    plain = train("plain")
    assert plain.returncode != 0
    assert "MemoryError" in plain.stderr
