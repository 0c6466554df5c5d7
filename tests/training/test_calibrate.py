"""Calibrating a model that is there, on rows that it was not trained on."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf.datasets import make_hierarchy
from longleaf.explain import explain_row
from longleaf.metrics import calibration, evaluate
from longleaf.propensity._model import UNKNOWN_COUNT

X, Y = make_hierarchy(4500, 800, 300, random_state=1)
TRAIN, HELD_OUT, TEST = slice(0, 2500), slice(2500, 3500), slice(3500, None)
PLAIN = {
    "trees": lambda: ll.PLT(n_trees=2, max_leaf=20, arity=4, refine=False, random_state=1, n_jobs=1),
    "the paper's": lambda: ll.PLT.paper(n_trees=1, random_state=1, n_jobs=1),
    "one classifier per label": lambda: ll.BR(random_state=1, n_jobs=1),
    "weighted by propensity": lambda: ll.PLT(
        n_trees=1, positive_weight="propensity", refine=False, random_state=1, n_jobs=1
    ),
}


def trained(name="trees"):
    return PLAIN[name]().fit(X[TRAIN], Y[TRAIN])


def calibrated(name="trees"):
    return trained(name).calibrate(X[HELD_OUT], Y[HELD_OUT])


@pytest.fixture(scope="module")
def model():
    return calibrated()


def same(one, other):
    for tail in (0.0, 0.5):
        a, b = (model.top_k(X[TEST], 5, tail=tail) for model in (one, other))
        np.testing.assert_array_equal(a.labels, b.labels)
        np.testing.assert_array_equal(a.scores, b.scores)


@pytest.mark.parametrize("name", PLAIN)
def test_probabilities_can_be_believed_and_the_order_stays(name):
    model = trained(name)
    before = model.top_k(X[TEST], 5)
    assert model.calibrate(X[HELD_OUT], Y[HELD_OUT]) is model
    after = model.top_k(X[TEST], 5)
    same_order = (before.labels == after.labels).all(axis=1)
    assert (before.scores[~same_order, 0] > 1 - 2e-6).all()  # those are as good as certain, and all alike
    assert same_order.mean() > 0.99
    eces = [calibration(Y[TEST], top, k=5).ece for top in (before, after)]
    assert eces[1] < min(4.0, eces[0])


def test_gains_multiply_the_calibrated_probabilities(model):
    q = model.inverse_propensity()
    scores = model.predict_proba(X[TEST][:50]) * q
    top = model.top_k(X[TEST][:50], 5, tail=1.0)
    np.testing.assert_allclose(top.scores, -np.sort(-scores, axis=1)[:, :5], rtol=1e-4)


def test_gains_are_worth_more_with_calibrated_probabilities(model):
    q = ll.inverse_propensity(Y[TRAIN])
    tops = [one.top_k(X[TEST], 5, tail=0.5) for one in (trained(), model)]
    psp = [evaluate(Y[TEST], top, inverse_propensity=q, k=5)["psp@5"] for top in tops]
    assert psp[1] > psp[0] - 0.5


def test_calibrating_again_forgets_the_first_calibration(model):
    other = calibrated().calibrate(X[TEST], Y[TEST])
    assert other.calibration_.slope != model.calibration_.slope
    same(other.calibrate(X[HELD_OUT], Y[HELD_OUT]), model)


def test_a_model_without_label_counts_is_calibrated_as_well(model):
    imported = trained()
    imported._note_data(np.full(300, UNKNOWN_COUNT, np.int64), 0)
    imported.calibrate(X[HELD_OUT], Y[HELD_OUT])
    np.testing.assert_array_equal(imported.top_k(X[TEST], 5).scores, model.top_k(X[TEST], 5).scores)


def test_a_refined_model_is_calibrated_again():
    model = ll.PLT(n_trees=2, max_leaf=20, arity=4, random_state=1, n_jobs=1).fit(X[TRAIN], Y[TRAIN])
    before = model.calibration_, model.refined_
    model.calibrate(X[HELD_OUT], Y[HELD_OUT])
    assert model.calibration_ is not before[0]
    assert model.refined_ is before[1]
    assert model.calibration_.refined > 0
    assert calibration(Y[TEST], model.top_k(X[TEST], 5), k=5).ece < 4


def test_saving_and_pickling_keep_the_calibration(model, tmp_path):
    model.save(tmp_path / "m.ll")
    loaded = ll.load(tmp_path / "m.ll", verify=True)
    same(model, loaded)
    same(model, pickle.loads(pickle.dumps(model)))
    before = pickle.dumps(loaded)
    loaded.top_k(X[TEST], 2)
    assert pickle.dumps(loaded) == before
    same(loaded.calibrate(X[HELD_OUT], Y[HELD_OUT]), model)


def test_the_calibration_stays_while_a_model_learns():
    model = calibrated()
    kept = model.calibration_
    labels = sp.csr_array(Y[TEST])
    ones = sp.csr_array(np.ones((labels.shape[0], 1), np.float32))
    model.partial_fit(X[TEST], sp.hstack([labels, ones]).tocsr())
    assert (model.top_k(X[TEST], 5).labels == 300).any()
    model.remove_labels([300, 5])
    assert not np.isin(model.top_k(X[TEST], 20).labels, [300, 5]).any()
    assert model.add_labels(1).tolist() == [301]
    wide = sp.csr_array(Y[TRAIN])
    wide.resize(wide.shape[0], 302)
    model.refit(X[TRAIN], wide)
    assert model.calibration_ is kept
    assert model.predict_proba(X[TEST][:2]).shape == (2, 302)
    model.fit(X[TRAIN], Y[TRAIN])
    assert model.calibration_ is None


def test_an_explanation_adds_up_to_the_calibrated_probability(model):
    rows = X[TEST][:10]
    top = model.top_k(rows, 3)
    for row in range(10):
        for label, probability in zip(top.labels[row], top.probabilities[row], strict=True):
            found = explain_row(model, rows, int(label), row)
            assert math.exp(found.log_probability) == pytest.approx(probability, rel=1e-3)
            change = found.log_probability - found.log_baseline
            assert found.contributions.sum() == pytest.approx(change, abs=1e-4)


def test_label_lists_and_labels_that_training_never_saw_are_taken(model):
    lists = [row.indices.tolist() for row in sp.csr_array(Y[HELD_OUT])]
    same(trained().calibrate(X[HELD_OUT], lists), model)
    lists[0] = [*lists[0], 555]
    same(trained().calibrate(X[HELD_OUT], lists), model)


@pytest.mark.parametrize(
    ("rows", "labels", "said"),
    [
        (X[HELD_OUT][:, :5], Y[HELD_OUT], "^X_held_out must have 800 features"),
        (X[HELD_OUT], Y[HELD_OUT][:, :5], "^y_held_out must have 300 labels"),
        (X[HELD_OUT], Y[TEST][:7], "X_held_out and y_held_out must have the same number of rows"),
        (X[:0], Y[:0], "^X_held_out must have at least one row"),
        (X[HELD_OUT], [[]] * 1000, "^y_held_out must hold labels that the model ranks high"),
        (X[HELD_OUT], "no", "^y_held_out must"),
    ],
)
def test_a_call_that_fails_leaves_the_model_as_it_was(rows, labels, said):
    for one in (trained(), calibrated()):
        before = pickle.dumps(one), dict(vars(one))
        with pytest.raises(ValueError, match=said):
            one.calibrate(rows, labels)
        assert (pickle.dumps(one), vars(one)) == before


def test_what_has_no_probabilities_to_calibrate_is_refused():
    with pytest.raises(ValueError, match="not fitted"):
        PLAIN["trees"]().calibrate(X[HELD_OUT], Y[HELD_OUT])


def texts(rows):
    X_rows = sp.csr_array(X[rows])
    return [" ".join(f"w{word}" for word in row.indices) for row in X_rows]


def tags(rows):
    return [[f"t{label}" for label in row.indices] for row in sp.csr_array(Y[rows])]


def test_a_tagger_is_calibrated_on_texts(tmp_path):
    tagger = ll.Tagger(PLAIN["trees"]()).fit(texts(TRAIN), tags(TRAIN))
    X_test, Y_test = tagger._matrix(texts(TEST)), tagger.transform_tags(tags(TEST))
    before = calibration(Y_test, tagger.estimator_.top_k(X_test), k=5)
    assert tagger.calibrate(texts(HELD_OUT), [*tags(HELD_OUT)[:-1], ["unknown"]]) is tagger
    after = calibration(Y_test, tagger.estimator_.top_k(X_test), k=5)
    assert after.ece < before.ece
    assert "unknown" not in tagger.classes_
    tagger.save(tmp_path / "t.ll")
    loaded, three = ll.load(tmp_path / "t.ll"), texts(TEST)[:3]
    assert loaded.suggest(three, k="auto") == tagger.suggest(three, k="auto")
    best = tagger.suggest(three[:1], k=1)[0][0]
    found = tagger.explain(three[0], best.tag)
    assert found.probability == pytest.approx(best.probability, rel=1e-3)
    with pytest.raises(ValueError, match="same number of rows"):
        tagger.calibrate(texts(HELD_OUT), tags(TEST)[:3])


def test_a_tagger_with_names_is_not_calibrated_again():
    names = {f"t{label}": f"w{label}" for label in range(300)}
    tagger = ll.Tagger(PLAIN["trees"](), names=names).fit(texts(TRAIN), tags(TRAIN))
    with pytest.raises(ValueError, match="fusion_ must be None to calibrate"):
        tagger.calibrate(texts(HELD_OUT), tags(HELD_OUT))
    with pytest.raises(ValueError, match="score_map_ must be None to calibrate"):
        tagger.estimator_.calibrate(tagger._matrix(texts(HELD_OUT)), tagger.transform_tags(tags(HELD_OUT)))


def test_sets_that_were_fitted_before_are_dropped_unless_the_call_fails():
    model = trained().fit_sets(X[TEST], Y[TEST])
    with pytest.raises(ValueError, match="X_held_out"):
        model.calibrate(X[:0], Y[:0])
    with pytest.raises(ValueError, match="ranks high"):
        model.calibrate(X[HELD_OUT], [[]] * 1000)
    assert model.risk_control_ is not None
    assert model.calibrate(X[HELD_OUT], Y[HELD_OUT]).risk_control_ is None
    assert len(model.fit_sets(X[TEST], Y[TEST]).predict_set(X[TEST], 0.5).labels) == X[TEST].shape[0]
