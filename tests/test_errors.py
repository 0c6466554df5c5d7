"""What a caller can get wrong is one clear sentence; what is extreme but allowed is no crash."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import longleaf as ll

X = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
Y = [[0], [1], [0, 1], [2]]


@pytest.fixture(scope="module")
def model():
    return ll.PLT(random_state=1).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_trees": 0}, "n_trees must be at least 1"),
        ({"n_trees": 1.5}, "n_trees must be a whole number; got 1.5"),
        ({"loss": "hinge"}, "loss must be one of log, squared-hinge; got 'hinge'"),
        ({"C": 0}, r"C must be above 0 and at most 1e\+10; got 0"),
        ({"C": float("nan")}, "C must be a finite number; got nan"),
        ({"C": "16"}, "C must be a finite number; got '16'"),
        ({"C": 1e39}, r"C must be above 0 and at most 1e\+10; got 1e\+39"),
        ({"positive_weight": 1e300}, r"positive_weight must be above 0 and at most 1e\+10; got 1e\+300"),
        ({"tolerance": 1.5}, "tolerance must be above 0 and at most 1; got 1.5"),
        ({"threshold": 1e300}, r"threshold must be at least 0 and at most 1e\+15; got 1e\+300"),
        ({"bias": 1e300}, r"bias must be at least -10 and at most 10; got 1e\+300"),
        ({"n_jobs": 10**6}, "n_jobs must be at most 1024; got 1000000"),
        ({"C": 10**400}, "C must be a finite number; got 1000"),
        ({"max_epochs": 10**7}, "max_epochs must be at least 1 and at most 1000000; got"),
        ({"arity": 1}, "arity must be at least 2"),
        ({"max_leaf": 0}, "max_leaf must be at least 1"),
        ({"tree": "oak"}, "tree must be one of"),
        ({"tree": None}, "tree must be a name, a LabelTree or a list"),
        ({"tolerance": 0}, "tolerance must be above 0"),
        ({"max_epochs": 0}, "max_epochs must be at least 1"),
        ({"threshold": -0.1}, "threshold must be at least 0"),
        ({"bias": float("inf")}, "bias must be a finite number"),
        ({"positive_weight": 0}, "positive_weight must be above 0"),
        (
            {"positive_weight": "propensty"},
            'must be a number above 0, "propensity" or "inverse-prior"; got \'propensty\'',
        ),
        ({"C_scale": "square"}, "C_scale must be one of"),
        ({"weight_bits": 16}, "weight_bits must be 8 or 32; got 16"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"k": 0}, "k must be at least 1"),
        ({"k": 10**7}, "k must be at least 1 and at most 1000000"),
        ({"propensity": (1e308, 1e308)}, r"A of propensity must be at least 0 and at most 100; got 1e\+308"),
        ({"propensity": (0.5, 1e10)}, r"B of propensity must be above 0 and at most 1e\+09; got 1"),
        ({"propensity": "0.5"}, r"propensity must be a pair \(A, B\); got '0.5'"),
    ],
)
def test_a_wrong_parameter_is_named(params, message):
    with pytest.raises(ValueError, match=message):
        ll.PLT(**params).fit(X, Y)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (X[:3], Y, "X and y must have the same number of rows; got 3 and 4"),
        (X, Y[:3], "X and y must have the same number of rows; got 4 and 3"),
        (X[0], Y, "X must be a 2-D matrix of numbers; got 1-D"),
        (X.astype(str), Y, "X must be a 2-D matrix of numbers"),
        (X * np.nan, Y, "X must hold finite numbers"),
        (np.where(X > 1, np.inf, X), Y, "row 1 does not"),
        (np.where(X > 1, 1e300, X), Y, "row 1 does not"),
        (X, [[], [], [], []], "y must have at least one label"),
        (X, np.zeros((4, 3)), "y must have at least one label"),
        (X[:0], [], "y must have at least one label"),
        (X, [[0], [-1], [0], [1]], "got -1 in row 1"),
        (X, [["a"], ["b"], [], []], "label numbers"),
        (X, [0, 1, 2, 3], "a list of label numbers for every row"),
        (X, np.full((4, 2), np.nan), "y must hold finite numbers"),
        (X, np.arange(4), "y must be a 2-D matrix of numbers or a list of label lists; got 1-D of int"),
        (X, np.array([["a"], ["b"], ["c"], ["d"]], object), "y must hold numbers; could not convert"),
        (X, None, "requires y to be passed, but the target y is None"),
        (X[:, :0], Y, r"X must have features; got 0 feature\(s\)"),
        (X * 1j, Y, "X must hold real numbers; got complex128"),
    ],
)
def test_wrong_training_data_are_named(rows, labels, message):
    for estimator in (ll.PLT(), ll.BR()):
        with pytest.raises(ValueError, match=message):
            estimator.fit(rows, labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be at least 1"),
        ({"k": 2.0}, "k must be a whole number"),
        ({"tail": -1}, "tail must be at least 0"),
        ({"tail": 1e6}, "tail must"),
        ({"tail": "1"}, "tail must be a finite number"),
        ({"tail": 1, "gain": [1, 1, 1]}, "tail and gain must not be given together"),
        ({"gain": [1, 1]}, "gain must have 3 numbers, one per label; got 2"),
        ({"gain": [1, -1, 1]}, "got -1.0 for label 1"),
        ({"gain": [1, np.inf, 1]}, "got inf for label 1"),
        ({"tail": 1.0, "propensity": 0.5}, r"propensity must be a pair \(A, B\)"),
        ({"tail": 1.0, "propensity": (0.5,)}, r"propensity must be a pair \(A, B\)"),
        ({"tail": 1.0, "propensity": (1e308, 1e308)}, "A of propensity must be at least 0 and at most 100"),
        ({"tail": 1.0, "propensity": (0.5, -1)}, "B of propensity must be above 0"),
        ({"search": "depth"}, "search must be one of exact, beam"),
        ({"search": "beam", "beam": 0}, "beam must be at least 1"),
        ({"ensemble": "product"}, "ensemble must be one of mean, union"),
        ({"threshold": -1}, "threshold must be at least 0"),
        ({"threshold": [0.1]}, "threshold must have 3 numbers"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_a_wrong_question_is_named(model, options, message):
    with pytest.raises(ValueError, match=message):
        model.top_k(X, **options)


def test_rows_of_another_width_are_named(model):
    for wrong in (X[:, :2], sp.csr_array(X[:, :2])):
        with pytest.raises(ValueError, match="X must have 3 features, as in fit; got 2"):
            model.top_k(wrong)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        ([0], [3], "labels must be at least 0 and below 3; got 3"),
        ([4], [0], "rows must be at least 0 and below 4; got 4"),
        ([-1], [0], "got -1"),
        ([0.5], [0], "rows must be a 1-D array of whole numbers"),
        ([0, 1], [0], "rows and labels must have the same length; got 2 and 1"),
        ([[0]], [[0]], "rows must be a 1-D array"),
    ],
)
def test_wrong_pairs_are_named(model, rows, labels, message):
    with pytest.raises(ValueError, match=message):
        model.probability(X, rows, labels)


@pytest.mark.parametrize("weight", [[1, 1, 1], [1, 1, 1, -1], [1, 1, 1, np.nan], [[1], [1], [1], [1]]])
def test_wrong_sample_weights_are_named(weight):
    with pytest.raises(ValueError, match="sample_weight must be 4 finite numbers of at least 0"):
        ll.PLT().fit(X, Y, sample_weight=weight)
    with pytest.raises(
        ValueError, match="sample_weight must be above 0 for at least one row; got only zeros"
    ):
        ll.PLT().fit(X, Y, sample_weight=[0, 0, 0, 0])


def test_a_broken_csr_matrix_is_refused():
    broken = sp.csr_array(X)
    broken.indices = broken.indices + 2
    with pytest.raises(ValueError, match="X must have features below 3; got"):
        ll.PLT().fit(broken, Y)


def test_an_interrupted_fit_leaves_no_half_model():
    model = ll.PLT(random_state=1).fit(X, Y)

    def fail(done):
        raise RuntimeError("enough")

    rng = np.random.default_rng(0)
    big, labels = rng.random((3000, 400)), rng.integers(0, 50, (3000, 2)).tolist()
    with pytest.raises(RuntimeError, match="enough"):
        model.set_params(tolerance=1e-7, max_epochs=1000).fit(big, labels, progress=fail)
    with pytest.raises(NotFittedError):
        model.top_k(X)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("value", [1e-44, 1e-38, 1e-20, 1e15])
@pytest.mark.parametrize("tree", ["kmeans", "unbalanced"])
def test_tiny_and_huge_features_give_finite_answers(normalize, value, tree):
    rows = X.astype(np.float32) * np.float32(value)
    for arity in (2, 3):
        model = ll.PLT(normalize=normalize, tree=tree, arity=arity, max_leaf=1, random_state=1, max_epochs=20)
        top = model.fit(rows, Y).top_k(rows, k=3)
        assert np.isfinite(top.scores).all()
        assert (top.labels >= 0).all()


def test_rows_too_long_to_square_are_refused_unless_scaled():
    rows = X.astype(np.float32) * np.float32(1e38)
    assert np.isfinite(ll.PLT(random_state=1).fit(rows, Y).top_k(rows, k=3).scores).all()
    with pytest.raises(ValueError, match=r"X must have rows no longer than 1e\+18; row 0 is"):
        ll.PLT(normalize=False).fit(rows, Y)


def test_too_few_epochs_are_said_in_the_log(caplog):
    rng = np.random.default_rng(0)
    with caplog.at_level(logging.WARNING, "longleaf"):
        ll.PLT(n_trees=1, max_epochs=1, tolerance=1e-6).fit(
            rng.random((50, 9)), rng.integers(0, 9, (50, 2)).tolist()
        )
    assert "stopped at max_epochs=1" in caplog.text


def test_a_k_that_no_memory_could_hold_is_refused_at_once(model):
    with pytest.raises(ValueError, match=r"k times the number of rows must be at most 2147483647; got"):
        model.top_k(X, k=10**9)
