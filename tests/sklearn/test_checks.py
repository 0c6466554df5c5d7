"""scikit-learn's own checks of estimators, and the few that do not apply, each with its reason."""

import os
import subprocess
import sys

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import longleaf as ll

LABEL_MODELS = (ll.PLT(n_jobs=1), ll.BR(n_jobs=1))

# These fail because predict_proba is not that of a classifier with one class per row.
_BIT_FOR_BIT = "weighting a row equals repeating it up to the solver's tolerance, which probabilities show"
_ONE_COLUMN = "predict_proba has a column per label, and the check wants two for a single label"
EXPECTED_FAILED_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": _BIT_FOR_BIT,
    "check_sample_weight_equivalence_on_sparse_data": _BIT_FOR_BIT,
    "check_estimator_sparse_array": _ONE_COLUMN,
    "check_estimator_sparse_matrix": _ONE_COLUMN,
}

# check_estimator leaves these out, since PLT and BR are not tagged as classifiers (one class per row).
EXPECTED_FAILURES = {
    "check_classifiers_multilabel_output_format_predict": "predict gives a sparse indicator: "
    "a dense one of a million labels would not fit into memory",
    "check_classifiers_multilabel_representation_invariance": "a list of lists holds label numbers, "
    "not zeros and ones; and the answer is sparse",
}

# The others fit matrices of numbers, which a Tagger does not take.
CHECKS_WITHOUT_ROWS = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimators_unfitted",
)

RUN_ALL = f"""
expected = {EXPECTED_FAILED_CHECKS!r}
import longleaf as ll
from sklearn.utils.estimator_checks import check_estimator
for model in (ll.PLT(n_jobs=1), ll.BR(n_jobs=1)):
    results = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert len(results) > 40, len(results)
    bad = {{one["check_name"]: one["status"] for one in results if one["status"] != "passed"}}
    assert bad == dict.fromkeys(expected, "xfail"), bad
"""


@parametrize_with_checks(list(LABEL_MODELS), expected_failed_checks=lambda estimator: EXPECTED_FAILED_CHECKS)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def test_no_check_is_failed_or_skipped_when_scipy_lets_all_of_them_run():
    """SciPy reads the variable as it is imported, so one of the checks above is skipped without it."""
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    child = subprocess.run([sys.executable, "-c", RUN_ALL], env=environment, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr


@pytest.mark.parametrize("model", LABEL_MODELS, ids=lambda model: model.kind)
def test_names_of_columns_are_noted_and_checked_as_scikit_learn_does(model):
    pytest.importorskip("pandas", reason="the names are those of a pandas table")
    estimator_checks.check_dataframe_column_names_consistency(type(model).__name__, model)


@pytest.mark.parametrize("model", LABEL_MODELS, ids=lambda model: model.kind)
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, marks=pytest.mark.xfail(reason=reason, strict=True))
        for check, reason in EXPECTED_FAILURES.items()
    ],
)
def test_checks_of_dense_multilabel_classifiers_do_not_apply(model, check):
    getattr(estimator_checks, check)(type(model).__name__, model)


@pytest.mark.parametrize("tagger", [ll.Tagger(), ll.Tagger(ll.BR(), ll.TextVectorizer())], ids=["", "parts"])
@pytest.mark.parametrize("check", CHECKS_WITHOUT_ROWS)
def test_a_tagger_passes_the_checks_that_need_no_matrix(tagger, check):
    getattr(estimator_checks, check)("Tagger", tagger)
