"""Data sets in the XMLC repository's forms, on tiny files made here."""

import dataclasses
import gzip

import numpy as np
import pytest

import longleaf as ll
from longleaf import datasets
from longleaf.datasets import OFFICIAL, load_official, load_repository, official
from tests.helpers.data import shared

TRAIN = "3 4 5\n1,2 0:1.5 3:2\n4 1:0.5\n0 2:1 3:1\n"
TEST = "2 4 5\n0,4 0:1\n1 3:0.25\n"
ALL = "5 4 5\n" + TRAIN.partition("\n")[2] + TEST.partition("\n")[2]
APART = {
    "trn_X_Xf.txt": "3 4\n0:1.5 3:2\n1:0.5\n2:1 3:1\n",
    "trn_X_Y.txt": "3 5\n1:1 2:1\n4:1\n0:1\n",
    "tst_X_Xf.txt": "2 4\n0:1\n3:0.25\n",
    "tst_X_Y.txt": "2 5\n0:1 4:1\n1:1\n",
}
OLDER = {"X_Xf": "ft_mat", "X_Y": "lbl_mat"}
SPLIT = {
    "tiny_data.txt": ALL,
    "tiny_trSplit.txt": "5 1\n4 2\n1 3\n",
    "tiny_tstSplit.txt": "2 4\n3 5\n",
}
TINY = official.Official("EURLex-4K", 4, 5, 3, 2, 1.4)


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        if name.endswith(".gz"):
            (folder / name).write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    return folder


def older_names(files):
    for new, old in OLDER.items():
        files = {name.replace(new, old): text for name, text in files.items()}
    return files


def assert_is_the_tiny_set(splits):
    np.testing.assert_array_equal(splits.X_train.toarray(), [[1.5, 0, 0, 2], [0, 0.5, 0, 0], [0, 0, 1, 1]])
    np.testing.assert_array_equal(
        splits.Y_train.toarray(), [[0, 1, 1, 0, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(splits.X_test.toarray(), [[1, 0, 0, 0], [0, 0, 0, 0.25]])
    np.testing.assert_array_equal(splits.Y_test.toarray(), [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0]])


@pytest.mark.parametrize(
    "files",
    [
        {"eurlex_train.txt": TRAIN, "eurlex_test.txt": TEST, "readme.md": "train test"},
        {"train.txt.gz": TRAIN, "test.txt": TEST},
        APART,
        older_names(APART),
    ],
    ids=["one file a split", "compressed", "apart", "apart, older names"],
)
def test_every_form_gives_the_same_data(tmp_path, files):
    assert_is_the_tiny_set(load_repository(write(tmp_path, files)))


def test_split_files_choose_rows_by_column_in_their_order(tmp_path):
    folder = write(tmp_path, SPLIT)
    assert_is_the_tiny_set(load_repository(folder, fold=1))
    first = load_repository(folder)
    X, _ = ll.load_xmlc(folder / "tiny_data.txt")
    np.testing.assert_array_equal(first.X_train.toarray(), X.toarray()[[4, 3, 0]])
    np.testing.assert_array_equal(first.X_test.toarray(), X.toarray()[[1, 2]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiny_trSplit.txt": "1 6\n"}, r"tiny_trSplit.txt, line 1: rows must be from 1 to 5; got 6."),
        ({"tiny_trSplit.txt": "1 x\n"}, r"line 1: must be row numbers; got 'x'."),
        ({"tiny_trSplit.txt": "1 2\n\n3\n"}, r"line 3: fold must be below the 1 columns; got 1."),
        ({"tiny_trSplit.txt": "1 4\n"}, r"must have no row in both splits; row 4 is."),
        (
            {"tiny_trSplit.txt": "1 2\n3 2\n"},
            r"tiny_trSplit.txt must name a row once; row 2 occurs again.",
        ),
        ({"tiny_trSplit.txt": "\n"}, r"tiny_trSplit.txt must name at least one row; got none."),
    ],
)
def test_a_faulty_split_file_is_named_with_its_line(tmp_path, change, message):
    with pytest.raises(ll.DataError, match=message):
        load_repository(write(tmp_path, SPLIT | change), fold=1)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "must hold NAME_train.txt and NAME_test.txt; or trn_X_Xf.txt"),
        ({"a_train.txt": TRAIN}, "must hold NAME_train.txt and NAME_test.txt together"),
        ({"a_train.txt": TRAIN, "b_train.txt": TRAIN}, "one file of each kind; got a_train.txt and b_train"),
        ({"a.txt": TRAIN, "a.txt.gz": TRAIN}, "must hold a.txt once"),
        ({k: v for k, v in APART.items() if k != "tst_X_Y.txt"}, "must also hold tst_X_Y.txt"),
        (APART | {"trn_X_Y.txt": "1 5\n1:1\n"}, "of train must have the same number of rows; got 3 and 1"),
        ({"train.txt": TRAIN, "test.txt": "1 9 5\n0 0:1\n"}, "same number of features; got 4 and 9"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(tmp_path, files, message):
    with pytest.raises(ll.DataError, match=message):
        load_repository(write(tmp_path, files))


def test_files_with_other_names_do_not_matter(tmp_path):
    files = {"a_train.txt": TRAIN, "a_test.txt": TEST}
    others = dict.fromkeys(("filter_labels_test.txt", "train_labels.txt", "Y.txt", "latest.txt"), "nothing")
    plain, crowded = (
        load_repository(write(tmp_path / "a", files)),
        load_repository(write(tmp_path / "b", files | others)),
    )
    np.testing.assert_array_equal(plain.X_test.toarray(), crowded.X_test.toarray())


def test_what_is_no_name_or_no_path_is_said():
    with pytest.raises(ValueError, match=r"name must be one of EURLex-4K, .*; got None."):
        official.load_official(None)
    with pytest.raises(ValueError, match=r"root must be a path; got 5."):
        official.load_official("EURLex-4K", root=5)
    with pytest.raises(ValueError, match=r"folder must be a path; got None."):
        load_repository(None)


def test_an_official_set_is_found_by_its_archives_name_and_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(official, "OFFICIAL", {"EURLex-4K": TINY})
    write(tmp_path / "Eurlex", {"eurlex_train.txt": TRAIN, "eurlex_test.txt": TEST})
    assert_is_the_tiny_set(load_official("eurlex 4k", tmp_path))
    monkeypatch.setenv("LONGLEAF_DATA", str(tmp_path))
    assert_is_the_tiny_set(load_official("EURLex-4K"))


def test_a_set_of_other_size_is_refused_with_every_difference(tmp_path, monkeypatch):
    write(tmp_path / "EURLex-4K", {"train.txt": TRAIN, "test.txt": TEST})
    with pytest.raises(
        ll.DataError, match=r"training rows must be 15539, got 3; .*labels must be 3993, got 5"
    ):
        load_official("EURLex-4K", tmp_path)
    assert_is_the_tiny_set(load_official("EURLex-4K", tmp_path, check=False))
    denser = dataclasses.replace(TINY, labels_per_row=1.5)
    monkeypatch.setattr(official, "OFFICIAL", {"EURLex-4K": denser})
    with pytest.raises(ll.DataError, match=r"labels per row must be about 1.50, got 1.40"):
        load_official("EURLex-4K", tmp_path)


def test_a_missing_set_says_where_its_files_belong(tmp_path):
    with pytest.raises(
        ll.DataError, match=r"Amazon-670K was not found: download .* put them into .*Amazon-670K"
    ):
        load_official("amazon-670k", tmp_path)
    with pytest.raises(ValueError, match="name must be one of EURLex-4K, AmazonCat-13K"):
        load_official("imagenet", tmp_path)


def test_the_papers_table_has_its_six_sets_and_their_constants():
    assert [known.n_labels for known in OFFICIAL.values()] == [3993, 13330, 30938, 325056, 501070, 670091]
    assert OFFICIAL["Amazon-670K"].constants == (0.6, 2.6)


def test_the_official_labels_of_eurlex_have_the_papers_size():
    Y = datasets._repository.load_sparse(shared("eurlex4k-propensity/trn_X_Y.txt.xz"))
    known = OFFICIAL["EURLex-4K"]
    assert Y.shape == (known.n_train, known.n_labels)
    assert Y.nnz / Y.shape[0] == pytest.approx(known.labels_per_row, rel=0.02)


def test_bibtex_is_read_as_it_lies():
    splits = load_repository(shared("bibtex"))
    assert splits.X_train.shape == (4880, 1836)
    assert splits.Y_test.shape == (2515, 159)
