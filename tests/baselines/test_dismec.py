"""DiSMEC and PW-DiSMEC solve their published problems; LIBLINEAR is the reference."""

import numpy as np
import pytest
from sklearn.base import clone

import longleaf as ll
from tests import reference
from tests.helpers import handmade
from tests.helpers.training import TIGHT, WHOLE, liblinear, texts, unit_rows

N_LABELS = 6
SETTINGS = {"random_state": 1, "n_jobs": 1, **TIGHT, **WHOLE}


def problems(model, X, rows):
    """Give label, dense unit rows, sides, weights and bias of every label."""
    tree, weights = model.trees_[0], model.weights_[0]
    W, x = handmade.decode(weights, X.shape[1]), unit_rows(X)
    for node, label in enumerate(tree.label):
        if label >= 0:
            y = np.array([1.0 if label in row else -1.0 for row in rows])
            yield int(label), x, y, W[:, node].astype(float), float(weights["bias"][node])


def test_dismec_is_one_squared_hinge_classifier_per_label():
    X, rows = texts(n_labels=N_LABELS)
    model = ll.BR.dismec(**SETTINGS).fit(X, rows)
    for label, x, y, w, bias in problems(model, X, rows):
        ours = reference.objective("squared-hinge", x, y, w, bias, 1.0)
        theirs = reference.objective("squared-hinge", x, y, *liblinear("squared-hinge", x, y, 1.0), 1.0)
        assert ours == pytest.approx(theirs, rel=1e-4), label


def test_dismec_drops_weights_below_a_hundredth_and_no_others():
    X, rows = texts(n_labels=N_LABELS)
    whole = ll.BR.dismec(**SETTINGS).fit(X, rows)
    pruned = ll.BR.dismec(**(SETTINGS | {"threshold": 0.01})).fit(X, rows)
    assert ll.BR.dismec().threshold == 0.01
    before, after = (handmade.decode(model.weights_[0], X.shape[1]) for model in (whole, pruned))
    assert 0 < np.count_nonzero(after) < np.count_nonzero(before)
    np.testing.assert_array_equal(after, np.where(np.abs(before) < 0.01, 0, before))


@pytest.mark.parametrize("class_balanced", [False, True])
@pytest.mark.parametrize("constants", [(0.55, 1.5), (0.6, 2.6)])
def test_pw_dismec_weighs_the_positive_rows_of_each_label_by_its_propensity(constants, class_balanced):
    X, rows = texts(n_labels=N_LABELS)
    model = ll.BR.pw_dismec(class_balanced=class_balanced, propensity=constants, **SETTINGS).fit(X, rows)
    a, b = constants
    c = (np.log(len(rows)) - 1) * (b + 1) ** a
    seen = set()
    for _, x, y, w, bias in problems(model, X, rows):
        count = np.sum(y > 0)
        p = 1 / (1 + c * (count + b) ** -a)
        weight = (2 / p - 1) * ((1 - 0.9) / (1 - 0.9**count) if class_balanced else 1)
        assert_weighted_minimum(x, y, w, bias, weight)
        seen.add(weight)
    assert len(seen) == N_LABELS


def test_inverse_prior_weighs_by_all_rows_over_those_of_the_label():
    X, rows = texts(n_labels=N_LABELS)
    model = ll.BR.dismec(positive_weight="inverse-prior", **SETTINGS).fit(X, rows)
    for _, x, y, w, bias in problems(model, X, rows):
        assert_weighted_minimum(x, y, w, bias, len(y) / np.sum(y > 0))


def assert_weighted_minimum(x, y, w, bias, weight):
    """Check that a classifier is as good as LIBLINEAR's, with positive rows of this weight."""
    cost = np.where(y > 0, weight, 1.0)
    theirs = liblinear("squared-hinge", x, y, 1.0, f"-B 1 -w1 {weight}")
    assert reference.objective("squared-hinge", x, y, w, bias, cost) == pytest.approx(
        reference.objective("squared-hinge", x, y, *theirs, cost), rel=1e-4
    )


@pytest.mark.parametrize(("class_balanced", "name"), [(False, "propensity"), (True, "propensity-balanced")])
def test_pw_dismec_is_saved_cloned_and_favours_rare_labels(tmp_path, class_balanced, name):
    X, rows = texts(n_rows=400, n_labels=11)
    exactly = {"tolerance": 1e-3, "random_state": 1}  # propensities alone move few rows
    plain = ll.BR.dismec(**exactly).fit(X, rows)
    weighted = ll.BR.pw_dismec(class_balanced=class_balanced, **exactly).fit(X, rows)
    assert clone(weighted).positive_weight == name
    weighted.save(tmp_path / "model.ll")
    again = ll.load(tmp_path / "model.ll")
    assert again.positive_weight == name
    np.testing.assert_array_equal(again.top_k(X, 3).labels, weighted.top_k(X, 3).labels)
    counts = weighted.label_counts_
    rarity = [np.mean(1 / counts[model.top_k(X, 1).labels[:, 0]]) for model in (plain, weighted)]
    assert rarity[1] > rarity[0]


def test_an_unknown_positive_weight_is_refused():
    X, rows = texts(n_labels=N_LABELS)
    known = 'a number above 0, "propensity", "propensity-balanced" or "inverse-prior"'
    with pytest.raises(ValueError, match=f"must be {known}; got 'inverse'"):
        ll.BR(positive_weight="inverse").fit(X, rows)
    with pytest.raises(ValueError, match='positive_weight must be a number above 0 or "propensity"; got'):
        ll.ProXML(positive_weight="inverse-prior").fit(X, rows)
