"""Sets of labels with a promise: conformal risk control, by hand, by brute force and over many splits."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import longleaf as ll
from longleaf.conformal import RiskControl, cut, expected_recall, fit_risk
from longleaf.search.top_k import TopK
from tests.helpers.training import texts

SETTINGS = {"n_trees": 2, "max_leaf": 3, "random_state": 1, "n_jobs": 1}


def top_of(labels, probabilities):
    labels, probabilities = np.array(labels, np.int32), np.array(probabilities, np.float32)
    return TopK(labels, probabilities, probabilities, np.zeros(len(labels), np.int64))


def indicator(rows, n_labels=10):
    return sp.csr_array([[float(label in row) for label in range(n_labels)] for row in rows])


def pool(n_rows=1200):
    """Make rows of a noisy problem, and what a model that was trained on others returns for them."""
    X, rows = texts(n_rows + 600, seed=3)
    model = ll.PLT(**SETTINGS).fit(X[:600], rows[:600])
    return model, X[600:], rows[600:]


@pytest.fixture(scope="module")
def problem():
    return pool()


@pytest.fixture
def fitted(problem):
    model, X, rows = problem
    return pickle.loads(pickle.dumps(model)).fit_sets(X[:600], rows[:600])


def recalls(top, rows, threshold=0.0):
    """Return the recall of each row that has labels."""
    return np.array(
        [
            np.mean(np.isin(row, labels[labels >= 0]))
            for labels, row in zip(cut(top, threshold).labels, rows, strict=True)
            if row
        ]
    )


# ------------------------------------------------------------ the curve


def test_a_curve_worked_by_hand():
    top = top_of(
        [[0, 1, 2], [3, 4, -1], [5, 6, 7], [8, 0, 1]],
        [[0.75, 0.5, 0.25], [0.5, 0.25, 0], [1.0, 0.5, 0.5], [0.99, 0.9, 0.8]],
    )
    # expected numbers of labels: 1.5, 0.75 (which is less than one, so one counts) and 2
    expected = [[1 / 2, 1 / 3, 1 / 6], [1 / 2, 1 / 4, 0], [1 / 2, 1 / 4, 1 / 4]]
    np.testing.assert_allclose(expected_recall(top)[:3], expected, rtol=1e-6)
    # 0 at 1/2 and 2 at 1/6 of two; 4 at 1/4 of one; 5 at 1/2 and 7 at 1/4 of four; none
    control = fit_risk(top, indicator([[0, 2], [4], [5, 7, 8, 9], []]), 3)
    assert (control.n_rows, control.max_size) == (3, 3), "a row without labels does not count"
    np.testing.assert_allclose(control.thresholds, [1 / 2, 1 / 4, 1 / 6], rtol=1e-6)
    np.testing.assert_allclose(control.recall, [0.75, 2, 2.5])
    # with one more row that loses everything: a quarter of these sums
    assert control.threshold(0.1875) == 0.5
    assert control.threshold(0.2) == 0.25
    assert control.threshold(0.5) == 0.25
    assert control.threshold(0.51) == np.float32(1 / 6)
    assert control.threshold(0.625) == np.float32(1 / 6)
    assert control.most == 0.625


def test_a_set_is_all_labels_down_to_the_threshold():
    top = top_of([[0, 1, 2], [3, 4, -1], [5, 6, 7]], [[0.75, 0.5, 0.25], [0.5, 0.25, 0], [1, 0.5, 0.5]])
    found = cut(top, 0.5)
    np.testing.assert_array_equal(found.labels, [[0], [3], [5]])
    found = cut(top, 0.25)
    np.testing.assert_array_equal(found.labels, [[0, 1, -1], [3, 4, -1], [5, 6, 7]])
    np.testing.assert_array_equal(
        found.probabilities, np.float32([[0.75, 0.5, 0], [0.5, 0.25, 0], [1, 0.5, 0.5]])
    )
    assert (cut(top, 0.9).labels == -1).all()


def test_labels_of_the_same_probability_enter_sets_together():
    top = top_of([[0, 1], [0, 1]], [[0.5, 0.5], [0.5, 0.25]])
    control = fit_risk(top, indicator([[0, 1], [0, 1]]), 2)
    np.testing.assert_array_equal(control.thresholds, np.float32([0.5, 0.25]))
    np.testing.assert_array_equal(control.recall, [1.5, 2.0])


def test_the_threshold_is_the_largest_that_the_rule_of_the_paper_allows(problem):
    model, X, rows = problem
    top = model.top_k(X[:200], 5)
    control = fit_risk(top, indicator(rows[:200], 11), 5)
    candidates = np.unique(expected_recall(top)[top.labels >= 0])
    for coverage in (0.2, 0.5, 0.7):
        n = control.n_rows
        allowed = [
            t
            for t in candidates
            if n / (n + 1) * np.mean(1 - recalls(top, rows[:200], t)) + 1 / (n + 1) <= 1 - coverage
        ]
        assert control.threshold(coverage) == max(allowed)


def test_a_sum_that_rounding_makes_a_little_smaller_still_counts():
    control = fit_risk(top_of([[0, 1, 2]] * 9, [[0.9, 0.8, 0.7]] * 9), indicator([[0, 1, 2]] * 9), 3)
    assert control.recall[-1] == pytest.approx(9)
    assert control.threshold(0.9) == control.thresholds[-1]


def test_a_coverage_out_of_reach_is_an_error_that_says_what_can_be_reached():
    control = RiskControl(99, 5, np.float32([0.5, 0.25]), np.array([50.0, 87.65432]))
    with pytest.raises(ValueError, match=r"at most 0\.8765 with sets of at most 5 labels and 99 held-out"):
        control.threshold(0.9)
    assert control.threshold(0.8765) == 0.25


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 2.0])
def test_a_coverage_is_above_0_and_below_1(fitted, coverage):
    with pytest.raises(ValueError, match=rf"coverage must be above 0 and below 1; got {coverage:g}\."):
        fitted.predict_set(np.zeros((1, 120)), coverage)


@pytest.mark.parametrize("coverage", [np.nan, "much", None])
def test_a_coverage_is_a_number(fitted, coverage):
    with pytest.raises(ValueError, match="coverage must be a"):
        fitted.predict_set(np.zeros((1, 120)), coverage)


# ------------------------------------------------------------ the promise


@pytest.mark.parametrize("coverage", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("n", [30, 300])
def test_sets_hold_what_is_promised_on_average_over_many_splits(problem, coverage, n):
    model, X, rows = problem
    known = [row for row in range(len(rows)) if rows[row]]
    rows = [rows[row] for row in known]
    top = model.top_k(X[known], 11)
    Y = indicator(rows, 11)
    random, means = np.random.default_rng(1), []
    for _ in range(200):
        order = random.permutation(len(rows))
        chosen, rest = order[:n], order[n:]
        cut = TopK(*(getattr(top, name)[chosen] for name in vars(top)))
        threshold = fit_risk(cut, Y[chosen], 11).threshold(coverage)
        other = TopK(*(getattr(top, name)[rest] for name in vars(top)))
        means.append(recalls(other, [rows[row] for row in rest], threshold).mean())
    error = np.std(means) / np.sqrt(len(means))
    assert np.mean(means) >= coverage - 3 * error
    assert np.mean(means) <= coverage + 2 / (n + 1) + 3 * error, "no more than the paper's upper bound"


def test_the_sets_of_a_model_are_its_labels_down_to_the_threshold(problem, fitted):
    _, X, _ = problem
    least = fitted.risk_control_.threshold(0.8)
    found, all_labels = fitted.predict_set(X[600:], 0.8), fitted.top_k(X[600:], 11)
    assert found.labels.shape[1] == (found.labels >= 0).sum(axis=1).max()
    for row in range(len(found.labels)):
        own = found.labels[row] >= 0
        want = expected_recall(all_labels)[row] >= np.float32(least)
        np.testing.assert_array_equal(found.labels[row, own], all_labels.labels[row, want])
        np.testing.assert_array_equal(found.probabilities[row, own], all_labels.probabilities[row, want])


def test_sets_are_never_larger_than_max_size_and_grow_with_coverage(problem):
    model, X, rows = problem
    model = pickle.loads(pickle.dumps(model)).fit_sets(X[:600], rows[:600], max_size=3)
    sizes = [
        (model.predict_set(X[600:], c).labels >= 0).sum(axis=1)
        for c in np.linspace(0.1, model.risk_control_.most - 1e-6, 6)
    ]
    assert sizes[-1].max() == 3
    assert all((larger >= smaller).all() for smaller, larger in pairwise(sizes))


def test_labels_that_the_model_lacks_count_as_missed(problem):
    model, X, rows = problem
    model = pickle.loads(pickle.dumps(model))
    most = model.fit_sets(X[:600], rows[:600]).risk_control_.most
    more = [[*row, 11, 12] if row else [] for row in rows[:600]]
    assert model.fit_sets(X[:600], more).risk_control_.most < most


def test_rows_without_labels_change_nothing(problem, fitted):
    _, X, rows = problem
    with_labels = [row for row in range(600) if rows[row]]
    assert len(with_labels) < 600
    same = pickle.loads(pickle.dumps(fitted)).fit_sets(X[with_labels], [rows[row] for row in with_labels])
    assert same.risk_control_.threshold(0.7) == fitted.risk_control_.threshold(0.7)


def test_no_rows_get_no_sets(fitted):
    assert fitted.predict_set(np.zeros((0, 120))).labels.shape[0] == 0


# ------------------------------------------------------------ keeping it


def test_sets_are_saved_pickled_and_copied_with_their_model_and_a_clone_has_none(problem, fitted, tmp_path):
    _, X, _ = problem
    fitted.save(tmp_path / "m.ll")
    want = fitted.predict_set(X[600:], 0.8)
    for model in (ll.load(tmp_path / "m.ll", verify=True), pickle.loads(pickle.dumps(fitted))):
        found = model.predict_set(X[600:], 0.8)
        np.testing.assert_array_equal(found.labels, want.labels)
        np.testing.assert_array_equal(found.probabilities, want.probabilities)
    assert clone(fitted).risk_control_ is None


@pytest.mark.parametrize(
    "learn",
    [
        lambda model, X, y: model.partial_fit(X, y),
        lambda model, X, y: model.refit(X, y),
        lambda model, X, y: model.add_labels(2),
        lambda model, X, y: model.remove_labels([3]),
        lambda model, X, y: model.fit(X, y),
        lambda model, X, y: model.refine_labels(X, y, X, y),
    ],
)
def test_a_model_that_learns_promises_nothing_any_more(problem, fitted, learn, tmp_path):
    _, X, rows = problem
    learn(fitted, X[:600], rows[:600])
    with pytest.raises(NotFittedError, match=r"predict_set needs held-out rows: call fit_sets\(X, y\) first"):
        fitted.predict_set(X)
    fitted.save(tmp_path / "m.ll")
    assert ll.load(tmp_path / "m.ll").risk_control_ is None


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("sizes", np.array([600], np.int64), "must have 2 numbers; got 1"),
        ("sizes", np.array([0, 100], np.int64), "must hold numbers from 1 to"),
        ("sizes", np.array([600, 0], np.int64), "must hold numbers from 1 to"),
        ("sizes", np.array([1, 100], np.int64), "recall.npy must hold numbers from 0 to 1"),
        ("sizes", np.array([600.0, 100.0]), "must be a list of int64; got float64"),
        ("thresholds", np.zeros(0, np.float32), "must have the same length, at least 1; got 0 and"),
        ("thresholds", None, "must hold numbers from 0 to 1; got nan"),
        ("recall", None, "must hold numbers from 0 to"),
    ],
)
def test_a_damaged_file_is_named_in_one_sentence(fitted, tmp_path, name, value, said):
    if value is None:
        value = getattr(fitted.risk_control_, name).copy()
        value[3] = np.nan
    state = fitted.risk_control_.state() | {name: value}
    with pytest.raises(ValueError, match=said):
        RiskControl.from_state(state, "sets/", 10**6)
    kept = fitted.risk_control_
    fitted.risk_control_ = type("Lying", (), {"state": lambda self: state})()
    fitted.save(tmp_path / "m.ll")
    fitted.risk_control_ = kept
    with pytest.raises(ll.ModelError, match=f"sets/.*{said}"):
        ll.load(tmp_path / "m.ll")


@pytest.mark.parametrize("name", ["thresholds", "recall"])
def test_a_curve_that_turns_is_an_error(fitted, name):
    state = fitted.risk_control_.state()
    with pytest.raises(ValueError, match=r"sets/thresholds\.npy must fall, and recall\.npy must rise"):
        RiskControl.from_state(state | {name: state[name][::-1]}, "sets/", 10**6)


# ------------------------------------------------------------ what is refused


def test_rows_that_teach_nothing_are_refused(problem):
    model, X, rows = problem
    model = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="at least one row with labels to fit sets on; got none"):
        model.fit_sets(X[:2], [[], []])
    with pytest.raises(ValueError, match="y must have labels that the model finds"):
        model.fit_sets(X[:2], [[11], [12]])
    with pytest.raises(ValueError, match="X and y must have the same number of rows"):
        model.fit_sets(X[:3], rows[:2])
    with pytest.raises(ValueError, match="max_size must be at least 1"):
        model.fit_sets(X[:2], rows[:2], max_size=0)
    assert model.risk_control_ is None


def test_a_model_that_is_not_trained_says_so_first():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ll.PLT().predict_set(np.zeros((1, 3)))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ll.PLT().fit_sets(np.zeros((1, 3)), [[0]])
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ll.Tagger().suggest_set(["x"])


def test_one_classifier_per_label_has_sets_too(problem):
    _, X, rows = problem
    model = ll.BR(random_state=1, n_jobs=1).fit(X[:600], rows[:600]).fit_sets(X[600:], rows[600:])
    found = model.predict_set(X[600:], 0.7)
    assert recalls(found, rows[600:]).mean() >= 0.7
