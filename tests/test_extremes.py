"""Settings, rows and targets at the ends of what numbers can be."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf._validation import check_features, check_labels
from longleaf.datasets import make_hierarchy
from tests.helpers.commands import complaint

X, Y = make_hierarchy(200, 100, 12, features_per_row=8.0, random_state=1)


@pytest.mark.parametrize("estimator", [ll.PLT, ll.BR, ll.ProXML, ll.PfastreXML])
@pytest.mark.parametrize("value", [1e300, -1e300, 1e9, 10.1])
def test_a_bias_beside_which_rows_count_for_nothing_is_refused(estimator, value):
    with pytest.raises(ValueError, match="bias must be at least -10 and at most 10; got"):
        estimator(bias=value).fit(X, Y)


@pytest.mark.parametrize("estimator", [ll.PLT, ll.BR, ll.ProXML, ll.PfastreXML])
def test_a_cost_beyond_the_solver_is_refused(estimator):
    with pytest.raises(ValueError, match=r"C must be above 0 and at most 1e\+10; got 1e\+300"):
        estimator(C=1e300).fit(X, Y)


def test_a_weight_of_rows_beyond_the_solver_is_refused():
    for weight in (1e11, 1e38):
        with pytest.raises(ValueError, match=r"sample_weight must be at most 1e\+10; got"):
            ll.PLT().fit(X, Y, sample_weight=np.full(200, weight))
    with pytest.raises(ValueError, match="sample_weight must be 200 finite numbers"):
        ll.PLT().fit(X, Y, sample_weight=np.full(200, 1e300))


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("-C", "1e300", "-C must be above 0 and at most 1e+10; got 1e+300"),
        ("--threshold", "1e300", "--threshold must be at least 0 and at most 1e+15; got 1e+300"),
        ("--positive-weight", "1e300", "--positive-weight must be above 0 and at most 1e+10; got 1e+300"),
        ("--threads", "1000000", "should be less than or equal to 1024"),
    ],
)
def test_the_command_line_refuses_the_same_before_any_work(option, value, said, tmp_path):
    assert said in complaint("train", tmp_path / "nothing.txt", option, value, "-o", tmp_path / "model")


def test_a_threshold_above_all_weights_is_warned_of(caplog):
    ll.PLT(random_state=1).fit(X, Y)
    assert not caplog.records
    ll.PLT(threshold=1e5, random_state=1).fit(X, Y)
    assert caplog.messages == ["tree 1: no weight reached threshold=100000, so all rows get the same answer"]


@pytest.mark.parametrize("use", [ll.PLT, ll.BR, ll.PfastreXML, ll.TextVectorizer])
def test_more_threads_than_a_machine_can_have_are_refused(use):
    given = (["some text"],) if use is ll.TextVectorizer else (X, Y)
    with pytest.raises(ValueError, match="n_jobs must be at most 1024; got 1000000"):
        use(n_jobs=10**6).fit(*given)


SCARCE = """
import resource, sys
import numpy as np
import longleaf as ll
from longleaf.datasets import make_hierarchy

X, Y = make_hierarchy(200, 100, 60, features_per_row=8.0, random_state=1)
texts = ["olive oil " * 4000] * 64
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
models = [ll.PLT(max_leaf=4, arity=2, n_jobs=n, random_state=1).fit(X, Y) for n in (1, 1024)]
np.testing.assert_array_equal(*(model.top_k(X).scores for model in models))
rows = [ll.TextVectorizer(n_jobs=n).fit_transform(texts) for n in (1, 1024)]
assert rows[0].shape == (64, 2) and (rows[0] != rows[1]).nnz == 0
"""


def test_a_system_that_has_no_more_threads_uses_those_that_it_has():
    resource = pytest.importorskip("resource")

    def give_large_stacks() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 30, most))

    done = subprocess.run(
        [sys.executable, "-c", SCARCE],
        preexec_fn=give_large_stacks,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("value", ["zzz", "AVX2"])
def test_kernels_that_there_are_not_are_refused(value):
    code = "import longleaf as ll; ll.PLT().fit([[1.0, 0.0], [0.0, 1.0]], [[0], [1]])"
    done = [
        subprocess.run(
            [sys.executable, *arguments],
            env=os.environ | {"LONGLEAF_SIMD": value},
            capture_output=True,
            text=True,
            timeout=60,
        )
        for arguments in (("-m", "longleaf.cli", "info", "nowhere"), ("-c", code))
    ]
    assert done[0].returncode == 2
    assert re.fullmatch(rf"longleaf: LONGLEAF_SIMD must be baseline.*; got '{value}'\.\n", done[0].stderr)
    assert "ValueError: LONGLEAF_SIMD must be baseline" in done[1].stderr


def test_a_row_of_the_least_numbers_is_brought_to_unit_length():
    plain = np.array([[3.0, 4.0, 0.0]])
    for size in (1.0, 1e-30, 1e-37, 1e30):
        rows = check_features(plain * size)
        np.testing.assert_allclose(rows.scale[0] * rows.data, [0.6, 0.8], rtol=1e-4)


@pytest.mark.parametrize("size", [1e-39, 1e-40, 1e-45, 1e-300])
def test_a_row_below_what_32_bits_hold_is_brought_to_unit_length_too(size):
    model = ll.PLT(random_state=1).fit(X, Y)
    scaled = X.toarray().astype(np.float64) * size
    scaled[0] = 0
    tiny = sp.csr_matrix(scaled)
    want, found = model.top_k(X), model.top_k(tiny)
    np.testing.assert_array_equal(found.labels[1:], want.labels[1:])
    np.testing.assert_allclose(found.scores[1:], want.scores[1:], rtol=1e-4)
    assert check_features(tiny).scale[0] == 0, "an empty row stays empty"
    again = ll.PLT(random_state=1).fit(tiny[1:], Y[1:]).top_k(X[1:])
    np.testing.assert_array_equal(again.labels, ll.PLT(random_state=1).fit(X[1:], Y[1:]).top_k(X[1:]).labels)


def test_a_continuous_target_is_refused_as_one():
    random = np.random.default_rng(1)
    for target in (random.random((200, 5)), random.random((200, 5)).astype(object), 7.5 * np.eye(200)):
        with pytest.raises(
            ValueError, match=r"whole numbers where it is dense, .* Unknown label type: continuous"
        ):
            ll.PLT().fit(X, target)
    for lists in (random.random(200).tolist(), [*[[1]] * 199, 2.5]):
        with pytest.raises(ValueError, match=r"y must hold a list of label numbers for every row; row .* is"):
            ll.PLT().fit(X, lists)
    with pytest.raises(
        ValueError, match="y must hold a list of label numbers for every row; got lists of float64"
    ):
        ll.PLT().fit(X, random.random((200, 5)).tolist())


def test_counts_are_labels_and_so_are_the_weights_of_a_sparse_matrix():
    dense = np.array([[0, 1, 3], [2, 0, 0]])
    expected = (dense > 0).astype(np.float32)
    for form in (
        dense,
        dense.astype(float),
        dense.astype(object),
        sp.csr_matrix(dense * 0.37),
        expected.astype(bool),
    ):
        np.testing.assert_array_equal(check_labels(form).toarray(), expected)
