"""The index of training records, against brute force over all of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from longleaf.explain.compact import compact
from longleaf.explain.records import RecordIndex
from longleaf.explain.titles import RecordNotes, title_of

N_ROWS, N_FEATURES, N_LABELS = 300, 150, 12


def data(seed=0, rows=N_ROWS, density=0.1):
    """Rows, and labels of which the first is on every row and the last on one."""
    random = np.random.RandomState(seed)
    X = sp.random(rows, N_FEATURES, density, "csr", dtype=np.float32, random_state=random)
    Y = random.rand(rows, N_LABELS) < 0.5 ** np.arange(N_LABELS)
    Y[:, -1] = np.arange(rows) == 7
    return X, sp.csr_matrix(Y.astype(np.float32))


def index_of(X, Y):
    return RecordIndex.build(
        X, Y, [f"r{i}" for i in range(X.shape[0])], [f"row {i}" for i in range(X.shape[0])]
    )


def cosines(X, row):
    dense = sp.csr_matrix(X, dtype=np.float64)
    norms = sp.linalg.norm(dense, axis=1)
    x = sp.csr_matrix(row, dtype=np.float64)
    found = np.asarray((dense @ x.T).todense()).ravel()
    return found / np.maximum(norms * sp.linalg.norm(x), 1e-300)


def brute_force(X, Y, row, label, n):
    """Rows and cosines of the most similar compact rows, by a full sort."""
    found = cosines(compact(X), compact(row))
    members = np.flatnonzero(Y.toarray()[:, label])
    order = sorted(members, key=lambda i: (-round(found[i], 12), i))[:n]
    return [(f"r{i}", found[i]) for i in order if found[i] > 0]


@pytest.mark.parametrize("density", [0.02, 0.1, 0.9])
@pytest.mark.parametrize("negative", [False, True])
def test_the_most_similar_records_are_those_of_brute_force(density, negative):
    X, Y = data(density=density)
    X.data -= 0.3 * negative
    index = index_of(X, Y)
    queries, _ = data(seed=1, rows=20, density=density)
    for query, label in [(q, j) for q in range(20) for j in range(N_LABELS)]:
        expected = brute_force(X, Y, queries[[query]], label, 5)
        found = index.similar(queries[[query]], label, 5)
        assert [one.id for one in found] == [identity for identity, _ in expected]
        assert [one.similarity for one in found] == pytest.approx([cosine for _, cosine in expected])


def test_similarities_are_close_to_the_cosines_of_the_rows_themselves():
    X, Y = data()
    assert np.diff(X.indptr).max() <= 64
    index = index_of(X, Y)
    for query in range(0, N_ROWS, 30):
        exact = cosines(X, X[[query]])
        for one in index.similar(X[[query]], 0, 10):
            assert one.similarity == pytest.approx(exact[int(one.id[1:])], abs=0.01)
            assert one.title == f"row {one.id[1:]}"


@pytest.mark.parametrize("density", [0.1, 0.9])
def test_a_record_is_most_similar_to_itself(density):
    X, Y = data(density=density)
    index = index_of(X, Y)
    for row in range(20):
        (first,) = index.similar(X[[row]], 0, 1)
        assert first.id == f"r{row}"
        assert first.similarity == pytest.approx(1.0)
        assert first.similarity <= 1.0


def test_only_records_with_the_label_and_a_feature_in_common_are_similar():
    X = sp.csr_matrix([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]], dtype=np.float32)
    Y = sp.csr_matrix([[1, 0], [1, 0], [1, 1], [1, 1]], dtype=np.float32)
    index = index_of(X, Y)
    assert [one.id for one in index.similar(X[[1]], 0, 9)] == ["r1", "r0"]
    assert index.similar(X[[1]], 1) == ()
    assert index.similar(X[[3]], 0) == ()


def test_of_equally_similar_records_the_first_come_first():
    X = sp.csr_matrix(np.ones((50, 4), np.float32) * np.arange(1, 51)[:, None])
    index = index_of(X, sp.csr_matrix(np.ones((50, 1), np.float32)))
    assert [one.id for one in index.similar(X[[20]], 0, 4)] == ["r0", "r1", "r2", "r3"]


def test_dense_rows_and_unsorted_ones_are_indexed_alike():
    X, Y = data()
    shuffled = X.copy()
    for row in range(N_ROWS):
        inside = slice(X.indptr[row], X.indptr[row + 1])
        shuffled.indices[inside] = X.indices[inside][::-1]
        shuffled.data[inside] = X.data[inside][::-1]
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    first, *others = (index_of(form, Y).state() for form in (X, shuffled, X.toarray()))
    for other in others:
        for name, array in first.items():
            np.testing.assert_array_equal(other[name], array)


def test_rows_added_later_are_indexed_as_if_they_had_been_there():
    X, Y = data()
    Y = Y.tolil()
    Y[:200, 3:5] = 0
    Y = Y.tocsr()
    index = RecordIndex.build(X[:200], Y[:200, :3], [f"r{i}" for i in range(200)], ["ä"] * 200)
    index = index.with_labels(4)
    index = index.extended(X[200:], Y[200:], [f"r{i}" for i in range(200, N_ROWS)], ["ö"] * 100)
    whole = RecordIndex.build(
        X,
        sp.vstack([sp.hstack([Y[:200, :3], sp.csr_matrix((200, N_LABELS - 3))]), Y[200:]]).tocsr(),
        [f"r{i}" for i in range(N_ROWS)],
        ["ä"] * 200 + ["ö"] * 100,
    )
    assert len(index) == N_ROWS
    for name, array in whole.state().items():
        np.testing.assert_array_equal(index.state()[name], array)
        assert index.state()[name].dtype == array.dtype


def test_a_removed_label_has_no_records_and_others_keep_theirs():
    X, Y = data()
    index = index_of(X, Y)
    without = index.without([0, 5])
    assert without.similar(X[[0]], 0) == without.similar(X[[0]], 5) == ()
    for label in (1, 4, 6, N_LABELS - 1):
        assert without.similar(X[[0]], label) == index.similar(X[[0]], label)


# ------------------------------------------------------------ compact rows


def obvious_compact(row, strongest):
    if not np.any(row):
        return np.zeros(len(row), int)
    level = np.rint(np.abs(row.astype(np.float64)) / np.abs(row).max() * 127).astype(int)
    kept = sorted(range(len(row)), key=lambda j: (-level[j], j))[:strongest]
    result = np.zeros(len(row), int)
    result[kept] = np.sign(row[kept]) * level[kept]
    return result


@pytest.mark.parametrize("strongest", [1, 5, 64, 200])
def test_a_compact_row_has_the_strongest_features_in_eight_bits(strongest):
    random = np.random.RandomState(3)
    X = random.randn(40, N_FEATURES).astype(np.float32) * (random.rand(40, N_FEATURES) < 0.6)
    X[5] = 0
    X[6] = 1  # all tied
    X[7] = np.where(np.arange(N_FEATURES) == 9, 1, 1e-9)
    found = compact(sp.csr_matrix(X), strongest)
    assert found.data.dtype == np.int8
    assert found.has_sorted_indices
    assert (found.data != 0).all()
    expected = np.array([obvious_compact(row, strongest) for row in X])
    np.testing.assert_array_equal(found.toarray(), expected)


def test_no_rows_and_no_features_are_compact_too():
    assert compact(sp.csr_matrix((0, 5), dtype=np.float32)).shape == (0, 5)
    assert compact(sp.csr_matrix((3, 5), dtype=np.float32)).nnz == 0
    assert index_of(sp.csr_matrix((0, 5)), sp.csr_matrix((0, 2))).similar(np.ones((1, 5)), 1) == ()


# ------------------------------------------------------------ arrays that are no index


def state():
    return index_of(*data()).state()


def test_an_index_is_its_arrays():
    arrays = state()
    again = RecordIndex.from_state(arrays, N_FEATURES, N_LABELS)
    X, _ = data()
    assert again.similar(X[[3]], 1) == index_of(*data()).similar(X[[3]], 1)
    assert again.n_bytes == sum(array.nbytes for array in arrays.values())


def changed(array, place, value):
    result = array.copy()
    result[place] = value
    return result


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("lengths", lambda a: a[:-1], "rows.npy must hold numbers from 0 to 298; got 299"),
        ("lengths", lambda a: changed(a, 3, -1), "lengths.npy must hold numbers from 0 to .*; got -1"),
        ("lengths", lambda a: a.astype(np.int64), "lengths.npy must be a list of int32"),
        ("features/rows", lambda a: changed(a, 0, N_ROWS), "from 0 to 299; got 300"),
        ("features/rows", lambda a: changed(a, 5, -1), "from 0 to 299; got -1"),
        ("features/rows", lambda a: a[:-1], "as many rows as weights"),
        ("features/offsets", lambda a: a[:-1], "features/offsets.npy must be 151 numbers from 0 to"),
        ("features/offsets", lambda a: changed(a, -1, 5), "features/offsets.npy must be 151 numbers"),
        ("features/offsets", lambda a: changed(a, 5, 0), "features/offsets.npy must rise from 0 to"),
        ("features/weights", lambda a: a.reshape(1, -1), "must be a list of int8"),
        (
            "labels/rows",
            lambda a: changed(a, 0, 2**31 - 1),
            "labels/rows.npy must hold numbers from 0 to 299",
        ),
        (
            "labels/offsets",
            lambda a: a[:0],
            "labels/offsets.npy must be 13 numbers from 0 to .*; got 0 numbers",
        ),
        ("ids/offsets", lambda a: a[1:], "ids/offsets.npy must be 301 numbers from 0 to"),
        ("ids/bytes", lambda a: changed(a, 0, 0xFF), "ids/bytes.npy must be UTF-8"),
        ("titles/bytes", lambda a: np.append(a, a[-1:]), "titles/offsets.npy must be 301 numbers"),
    ],
)
def test_arrays_that_no_index_has_are_refused(name, change, message):
    arrays = state()
    with pytest.raises(ValueError, match=message):
        RecordIndex.from_state(arrays | {name: change(arrays[name])}, N_FEATURES, N_LABELS)


def test_a_missing_array_and_a_divided_character_are_refused():
    arrays = state()
    with pytest.raises(ValueError, match=r"records/lengths\.npy must exist"):
        RecordIndex.from_state({k: v for k, v in arrays.items() if k != "lengths"}, N_FEATURES, N_LABELS)
    X, Y = data(rows=2)
    umlauts = RecordIndex.build(X, Y, ["ä", "ö"], ["", ""]).state()
    umlauts["ids/offsets"] = np.array([0, 1, 4])
    with pytest.raises(ValueError, match="must not divide a character"):
        RecordIndex.from_state(umlauts, N_FEATURES, N_LABELS)


def test_ids_and_titles_must_fit_the_rows():
    X, Y = data(rows=3)
    with pytest.raises(ValueError, match="must have the same length; got 3, 3, 2 and 3"):
        RecordIndex.build(X, Y, ["a", "b"], ["a", "b", "c"])


# ------------------------------------------------------------ titles


def test_a_title_is_the_first_field_or_the_beginning_of_a_text():
    assert title_of("Olive\n oil ") == "Olive oil"
    assert title_of({"title": " ", "abstract": "On olive oil", "text": "x"}) == "On olive oil"
    assert title_of("word " * 100) == ("word " * 20)[:99] + "…"
    assert len(title_of({"title": "word " * 100})) == 200
    assert title_of({}) == title_of(None) == ""


def test_texts_pass_through_the_notes_unchanged():
    notes = RecordNotes(True, start=5)
    assert list(notes.texts(iter(["a b", "c"]))) == ["a b", "c"]
    assert (notes.ids, notes.titles) == (["5", "6"], ["a b", "c"])
    listed = ["a"]
    assert RecordNotes(True).texts(listed) == listed
    off = RecordNotes(False)
    assert off.texts(listed) is listed
    assert off.ids == []
    assert off.index(None, None) is None
