"""The estimators take any matrix, change nothing, behave like scikit-learn's and repeat themselves."""

import io
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import longleaf as ll
from tests import reference
from tests.helpers import handmade
from tests.helpers.searching import check_top, same
from tests.helpers.training import texts, unit_rows

X, ROWS = texts(n_rows=120, n_labels=9)
N_LABELS = 9
Y = np.zeros((120, N_LABELS), np.float32)
for _row, _labels in enumerate(ROWS):
    Y[_row, _labels] = 1


def plt(**params):
    return ll.PLT(**{"n_trees": 2, "max_leaf": 3, "random_state": 1, "n_jobs": 1, **params})


def wide(matrix):
    """Give the matrix with 64-bit indices."""
    matrix = sp.csr_array(matrix)
    return sp.csr_array(
        (matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)), matrix.shape
    )


def unsorted(matrix):
    """Give the matrix with every row's entries the other way round, and the first entry in two halves."""
    matrix = sp.csr_array(matrix)
    indices, data, indptr = [], [], [0]
    for row in range(matrix.shape[0]):
        at = slice(matrix.indptr[row], matrix.indptr[row + 1])
        i, d = matrix.indices[at][::-1].tolist(), matrix.data[at][::-1].tolist()
        if d:
            i, d = [*i, i[0]], [d[0] / 2, *d[1:], d[0] / 2]
        indices, data = indices + i, data + d
        indptr.append(len(indices))
    return sp.csr_array((np.array(data, matrix.dtype), indices, indptr), matrix.shape)


FORMS = {
    "csr_matrix": sp.csr_matrix,
    "64-bit indices": wide,
    "float64": lambda m: sp.csr_array(m).astype(np.float64),
    "csc": lambda m: sp.csc_array(m),
    "coo": lambda m: sp.coo_array(m),
    "lil": lambda m: sp.lil_array(m),
    "unsorted with duplicates": unsorted,
    "dense": lambda m: sp.csr_array(m).toarray(),
    "dense float64": lambda m: sp.csr_array(m).toarray().astype(np.float64),
    "Fortran order": lambda m: np.asfortranarray(sp.csr_array(m).toarray()),
    "lists": lambda m: sp.csr_array(m).toarray().tolist(),
    "read-only": lambda m: _read_only(sp.csr_array(m).copy()),
}


def _read_only(matrix):
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
    return matrix


def frozen(matrix):
    """Remember all that a matrix holds."""
    if sp.issparse(matrix):
        parts = {
            name: getattr(matrix, name)
            for name in ("data", "indices", "indptr", "coords", "rows")
            if hasattr(matrix, name)
        }
        return {
            name: (np.array(part, copy=True), getattr(part, "dtype", None)) for name, part in parts.items()
        }
    return {"": (np.array(matrix, copy=True), getattr(matrix, "dtype", None))}


def check_unchanged(matrix, before):
    for name, (values, dtype) in frozen(matrix).items():
        np.testing.assert_array_equal(values, before[name][0])
        assert dtype == before[name][1]


@pytest.mark.parametrize("form", FORMS)
def test_any_form_of_rows_gives_the_same_model_and_is_left_alone(form):
    given = FORMS[form](X)
    before = frozen(given)
    model = plt().fit(given, ROWS)
    same(plt().fit(X, ROWS).top_k(X, k=3), model.top_k(given, k=3))
    model.probability(given, [0], [0])
    check_unchanged(given, before)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int32, np.uint16, np.int64, np.float32, np.float64])
def test_any_dtype_is_accepted(dtype):
    counts = (X.toarray() > 0).astype(dtype)
    same(
        plt().fit(sp.csr_array(counts), ROWS).top_k(counts, k=3),
        plt().fit(counts.astype(np.float32), ROWS).top_k(counts.astype(np.float32), k=3),
    )


LABEL_FORMS = {
    "lists": lambda: [list(row) for row in ROWS],
    "tuples, unsorted and repeated": lambda: tuple(tuple(reversed(row)) + tuple(row[:1]) for row in ROWS),
    "csr": lambda: sp.csr_array(Y),
    "csr with values": lambda: sp.csr_matrix(Y * 7.5),
    "csr with stored zeros": lambda: _with_stored_zeros(),
    "csc": lambda: sp.csc_array(Y),
    "64-bit indices": lambda: wide(Y),
    "dense bool": lambda: Y > 0,
    "dense int": lambda: Y.astype(int),
}


def _with_stored_zeros():
    matrix = sp.csr_array(np.ones_like(Y))
    matrix.data[:] = Y.ravel()
    return matrix


@pytest.mark.parametrize("form", LABEL_FORMS)
def test_any_form_of_labels_gives_the_same_model_and_is_left_alone(form):
    given = LABEL_FORMS[form]()
    before = frozen(given) if hasattr(given, "dtype") else pickle.dumps(given)
    model = plt().fit(X, given)
    if hasattr(given, "dtype"):
        check_unchanged(given, before)
    else:
        assert pickle.dumps(given) == before
    same(plt().fit(X, Y).top_k(X, k=3), model.top_k(X, k=3))
    assert model.label_counts_.tolist() == Y.sum(axis=0).tolist()


@pytest.mark.parametrize("estimator", [plt(), ll.BR(random_state=1)])
def test_clone_and_parameters_follow_scikit_learn(estimator):
    other = clone(estimator.set_params(C=3.0))
    assert other.get_params() == estimator.get_params()
    assert other.get_params()["C"] == 3.0
    with pytest.raises(NotFittedError):
        other.top_k(X)
    assert other.fit(X, ROWS) is other


@pytest.mark.parametrize("estimator", [plt(), ll.BR(random_state=1)])
def test_pickle_and_joblib_keep_every_bit(estimator):
    model = clone(estimator).fit(X, ROWS)
    top = model.top_k(X, k=4, tail=1.0)
    same(top, pickle.loads(pickle.dumps(model)).top_k(X, k=4, tail=1.0))
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    same(top, joblib.load(file).top_k(X, k=4, tail=1.0))


def test_pipelines_and_grid_searches_work():
    pipeline = make_pipeline(MaxAbsScaler(), plt(max_epochs=5))
    assert 0.5 < pipeline.fit(X, sp.csr_matrix(Y)).score(X, Y) <= 1
    assert pipeline.predict(X).shape == Y.shape
    grid = GridSearchCV(plt(max_epochs=5), {"C": [0.001, 4.0], "loss": ["log"]}, cv=3, error_score="raise")
    grid.fit(X, sp.csr_matrix(Y))
    assert grid.best_params_["C"] == 4.0


def test_predict_marks_the_top_k_and_score_is_precision_at_one():
    model = plt(k=3).fit(X, ROWS)
    predicted = model.predict(X)
    assert sp.issparse(predicted)
    assert predicted.format == "csr"
    top = model.top_k(X).labels
    assert top.shape[1] == 3
    for row in range(len(top)):
        assert sorted(predicted[[row]].indices) == sorted(top[row])
    expected = np.mean([top[row, 0] in labels for row, labels in enumerate(ROWS)])
    assert model.score(X, ROWS) == pytest.approx(expected)
    assert model.score(X, sp.csr_array(Y)) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["kmeans", "merged", "unbalanced", "random", "huffman"])
def test_the_same_seed_gives_the_same_bits_with_any_number_of_threads(name):
    data, rows = texts(n_rows=400, n_labels=60, seed=3)
    arrays = []
    for n_jobs in (1, 2, 3, 1):
        model = plt(tree=name, arity=4, n_jobs=n_jobs).fit(data, rows)
        trees = [a for tree in model.trees_ for a in (tree.first_child, tree.label)]
        arrays.append(trees + [a for weights in model.weights_ for a in weights.values()])
    for other in arrays[1:]:
        for a, b in zip(arrays[0], other, strict=True):
            assert a.tobytes() == b.tobytes()
    different = plt(tree="random", random_state=2).fit(data, rows)
    assert not np.array_equal(different.trees_[0].label, plt(tree="random").fit(data, rows).trees_[0].label)


@pytest.mark.parametrize("estimator", [plt(weight_bits=8), plt(weight_bits=32), ll.BR(random_state=1)])
def test_saving_and_loading_keep_every_bit(estimator, tmp_path):
    model = clone(estimator).fit(X, ROWS)
    model.save(tmp_path / "model.ll")
    for verify in (False, True):
        loaded = ll.load(tmp_path / "model.ll", verify=verify)
        assert type(loaded) is type(model)
        assert loaded.get_params() == model.get_params()
        same(model.top_k(X, k=4, tail=0.5), loaded.top_k(X, k=4, tail=0.5))
    same(model.top_k(X, k=4), pickle.loads(pickle.dumps(loaded)).top_k(X, k=4))
    loaded.fit(X, ROWS)  # read-only arrays are no hindrance
    with pytest.raises(ll.ModelError, match="already exists"):
        model.save(tmp_path / "model.ll")
    model.save(tmp_path / "model.ll", force=True)


def test_a_model_with_a_tree_of_the_users_own_can_be_loaded_and_trained_again(tmp_path):
    tree = ll.LabelTree.complete(range(N_LABELS), arity=3, max_leaf=3)
    model = plt(tree=tree).fit(X, ROWS)
    model.save(tmp_path / "model.ll")
    again = clone(ll.load(tmp_path / "model.ll")).fit(X, ROWS)
    same(model.top_k(X), again.top_k(X))


@pytest.mark.parametrize("link", [reference.LOG, reference.HINGE_2, reference.HINGE_3])
@pytest.mark.parametrize("tail", [None, 1.0])
def test_br_and_ps_br_equal_a_brute_force(link, tail):
    model = ll.BR(**link._asdict(), random_state=1, n_jobs=1).fit(X, ROWS)
    assert model.trees_[0].n_nodes == N_LABELS + 1
    W, bias = handmade.decode(model.weights_[0], X.shape[1]), model.weights_[0]["bias"]
    gain = (
        np.ones(N_LABELS)
        if tail is None
        else np.array(reference.inverse_propensity(ROWS, N_LABELS, 0.55, 1.5))
    )
    scores = [
        reference.label_probabilities(link, [(model.trees_[0], W, bias)], x, N_LABELS)[0] * gain
        for x in unit_rows(X)
    ]
    check_top(model.top_k(X, k=4, tail=tail), np.array(scores), 4)


@pytest.mark.parametrize("power", [1, 2, 3, 10])
def test_a_hinge_margin_becomes_a_probability_by_the_given_power(power):
    model = ll.BR(loss="squared-hinge", hinge_power=power, random_state=1, n_jobs=1).fit(X, ROWS)
    W, bias = handmade.decode(model.weights_[0], X.shape[1]), model.weights_[0]["bias"]
    margin = unit_rows(X)[0] @ W[:, 1:] + bias[1:]
    found = model.probability(X, np.zeros(N_LABELS, int), model.trees_[0].label[1:])
    np.testing.assert_allclose(found, np.exp(-(np.maximum(0, 1 - margin) ** power)), rtol=1e-3, atol=1e-30)


@pytest.mark.parametrize("power", [0, 11, 2.5, "two"])
def test_a_power_out_of_range_is_refused(power):
    with pytest.raises(ValueError, match="hinge_power must be"):
        ll.BR(loss="squared-hinge", hinge_power=power).fit(X, ROWS)


@pytest.mark.parametrize("estimator", [plt(), ll.BR(n_jobs=1)], ids=["plt", "br"])
def test_predict_proba_is_probability_for_every_row_and_given_label(estimator):
    model = estimator.fit(X, Y)
    rows, labels = (grid.ravel() for grid in np.indices((120, N_LABELS)))
    every = model.predict_proba(X)
    assert (every.shape, every.dtype) == ((120, N_LABELS), np.float32)
    np.testing.assert_array_equal(every.ravel(), model.probability(X, rows, labels))
    np.testing.assert_array_equal(model.predict_proba(X, [7, 0, 7]), every[:, [7, 0, 7]])
    assert model.predict_proba(X, []).shape == (120, 0)
    assert model.predict_proba(X[:0]).shape == (0, N_LABELS)
    top = model.top_k(X, 1)
    np.testing.assert_allclose(every.max(axis=1), top.probabilities[:, 0], rtol=1e-5)
    assert (model.classes_.tolist(), model.classes_.dtype) == (list(range(N_LABELS)), np.int64)
    assert not hasattr(clone(estimator), "classes_")
    with pytest.raises(ValueError, match="labels must be at least 0 and below 9; got 9"):
        model.predict_proba(X, [9])


def test_a_row_of_weight_two_gets_the_probabilities_of_a_row_that_comes_twice():
    tight = ll.BR(n_jobs=1, tolerance=1e-8, max_epochs=5000, weight_bits=32)
    twice = tight.fit(sp.vstack([X, X[:40]]), np.vstack([Y, Y[:40]])).predict_proba(X)
    weighted = tight.fit(X, Y, np.repeat([2.0, 1.0], [40, 80])).predict_proba(X)
    np.testing.assert_allclose(weighted, twice, atol=1e-4)
    assert np.abs(tight.fit(X, Y).predict_proba(X) - twice).max() > 0.01


def test_predict_proba_goes_block_by_block_and_refuses_more_cells_than_fit(monkeypatch):
    model = plt().fit(X, Y)
    whole = model.predict_proba(X)
    monkeypatch.setattr("longleaf.estimator.BLOCK_CELLS", 50)
    np.testing.assert_array_equal(model.predict_proba(X), whole)
    monkeypatch.setattr("longleaf.estimator.BLOCK_CELLS", 1)
    np.testing.assert_array_equal(model.predict_proba(X), whole)
    monkeypatch.setattr("longleaf.estimator.MOST_CELLS", 120 * N_LABELS - 1)
    must_say = "labels times the number of rows must be at most 1079; got 9 and 120"
    with pytest.raises(ValueError, match=must_say):
        model.predict_proba(X)
    assert model.predict_proba(X, [0]).shape == (120, 1)


def test_a_series_of_label_lists_is_a_list_of_label_lists():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(ROWS, index=range(300, 180, -1))
    model, other = plt().fit(X, ROWS), plt().fit(X, series)
    same(model.top_k(X, 3), other.top_k(X, 3))
    assert other.score(X, series) == model.score(X, ROWS)
    top = model.top_k(X, 3)
    assert ll.metrics.evaluate(series, top) == ll.metrics.evaluate(ROWS, top)
    assert (ll.split_rows(series) == ll.split_rows(ROWS)).all()
    assert (ll.inverse_propensity(series) == ll.inverse_propensity(ROWS)).all()
    other.partial_fit(X[:5], series[:5])
    assert other.n_rows_ == 125
    arrays = pandas.Series([np.array(row) for row in ROWS])  # as Parquet files are read
    same(plt().fit(X, arrays).top_k(X, 3), top)
    grid = GridSearchCV(plt(), {"C": [1.0, 16.0]}, cv=3).fit(X, series)
    assert grid.best_estimator_.n_rows_ == 120
    with pytest.raises(ValueError, match="y must hold a list of label numbers for every row; row 0 is 3"):
        plt().fit(X, pandas.Series([3] * 120))


def test_rows_without_labels_and_labels_without_rows_are_fine():
    model = plt().fit(X, [*ROWS[:-1], [N_LABELS + 5]])
    assert model.n_labels_ == N_LABELS + 6
    top = model.top_k(X, k=50)
    assert top.labels.max() == N_LABELS + 5
    assert not np.isin(top.labels, np.arange(N_LABELS, N_LABELS + 5)).any()
    assert model.probability(X, [0], [N_LABELS]).tolist() == [0.0]
