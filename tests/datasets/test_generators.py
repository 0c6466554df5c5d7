"""Generated data: sizes, a long tail, hidden structure, and the same for the same seed."""

from itertools import pairwise

import numpy as np
import pytest

from longleaf.datasets import make_hierarchy, make_topics
from longleaf.datasets._drawing import draw_in_range
from longleaf.datasets.generators import _nested_groups

ROWS, FEATURES, LABELS = 3000, 8000, 4000
GENERATORS = (make_hierarchy, make_topics)


@pytest.fixture(scope="module", params=GENERATORS, ids=lambda generator: generator.__name__)
def generated(request):
    return request.param(ROWS, FEATURES, LABELS, labels_per_row=5.45, features_per_row=60.0, random_state=7)


def same(left, right):
    return left.nnz == right.nnz and not (left != right).nnz


def test_the_matrices_have_the_sizes_asked_for(generated):
    X, Y = generated
    assert (X.shape, Y.shape) == ((ROWS, FEATURES), (ROWS, LABELS))
    assert (X.format, Y.format, X.dtype, Y.dtype) == ("csr", "csr", np.float32, np.float32)
    assert X.has_canonical_format
    assert Y.has_canonical_format
    assert set(Y.data) == {1.0}


def test_rows_have_as_many_labels_and_words_as_asked_for_on_average(generated):
    X, Y = generated
    assert Y.nnz / ROWS == pytest.approx(5.45, rel=0.02)
    assert X.nnz / ROWS == pytest.approx(60.0, rel=0.03)
    assert np.diff(Y.indptr).min() >= 1
    assert np.diff(X.indptr).min() >= 1


def test_rows_have_unit_length_and_positive_values(generated):
    X, _ = generated
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0, rtol=1e-5)
    assert X.data.min() > 0


def test_every_label_occurs_and_the_tail_is_long(generated):
    counts = np.bincount(generated[1].indices, minlength=LABELS)
    assert counts.min() == 1
    assert (counts <= 5).mean() > 0.75
    head = np.sort(counts)[::-1][: LABELS // 100].sum() / counts.sum()
    assert 0.15 < head < 0.45


@pytest.mark.parametrize("generator", GENERATORS)
def test_every_label_occurs_before_the_test_rows(generator):
    X, Y = generator(400, 900, 500, n_test=1600, random_state=6)
    assert X.shape[0] == Y.shape[0] == 2000
    assert np.bincount(Y[:400].indices, minlength=500).min() == 1
    assert np.bincount(Y[400:].indices, minlength=500).min() == 0


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_same_seed_gives_the_same_data_and_another_one_does_not(generator):
    first, again, other = (generator(400, 900, 500, random_state=seed) for seed in (3, 3, 4))
    assert all(same(*pair) for pair in zip(first, again, strict=True))
    assert not any(same(*pair) for pair in zip(first, other, strict=True))


@pytest.mark.parametrize("generator", GENERATORS)
def test_rows_that_share_a_label_share_words_unless_all_is_noise(generator):
    def overlap(noise):
        X, Y = generator(2000, 20_000, 2000, noise=noise, features_per_row=40.0, random_state=5)
        similarity, shared = (X @ X.T).toarray(), (Y @ Y.T).toarray() > 0
        np.fill_diagonal(shared, False)
        apart = ~shared
        np.fill_diagonal(apart, False)
        return similarity[shared].mean() / similarity[apart].mean()

    assert overlap(noise=0.3) > 2
    assert overlap(noise=1.0) == pytest.approx(1.0, abs=0.05)


def test_labels_of_a_row_lie_closer_in_the_hierarchy_than_by_chance():
    _, Y = make_hierarchy(ROWS, FEATURES, LABELS, random_state=2)
    pairs = np.array(
        [Y.indices[b : b + 2] for b, e in zip(Y.indptr, Y.indptr[1:], strict=False) if e - b > 1]
    )
    distance = np.abs(pairs[:, 0] - pairs[:, 1])
    shuffled = np.random.default_rng(0).permutation(pairs[:, 1])
    assert np.median(distance) < 0.2 * np.median(np.abs(pairs[:, 0] - shuffled))


def test_groups_are_nested_ranges_from_single_labels_to_all_of_them():
    group_of, begin = _nested_groups(300, np.random.default_rng(1))
    np.testing.assert_array_equal(group_of[0], np.arange(300))
    assert len(set(group_of[-1])) == 1
    for fine, coarse in pairwise(group_of):
        assert len(set(zip(fine, coarse, strict=True))) == len(set(fine))
    for level in group_of:
        for group in set(level):
            end = begin[group + 1] or 300
            np.testing.assert_array_equal(np.flatnonzero(level == group), np.arange(begin[group], end))


def test_a_draw_stays_in_its_range_and_follows_the_weights():
    cumulative = np.array([0.0, 5.0, 6.0, 9.0, 9.0, 20.0])
    begin, end = np.full(20_000, 1), np.full(20_000, 4)
    drawn = draw_in_range(cumulative, begin, end, np.random.default_rng(1))
    share = np.bincount(drawn, minlength=5) / len(drawn)
    np.testing.assert_allclose(share, [0, 0.25, 0.75, 0, 0], atol=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_rows": 0}, "n_rows must be at least 1; got 0"),
        ({"n_rows": 10}, r"n_rows \* labels_per_row must be at least 1.1 times n_labels=500"),
        ({"labels_per_row": 300.0}, "labels_per_row must be at most half of n_labels=500; got 300"),
        ({"features_per_row": 800.0}, "features_per_row must be at most half of n_features=900; got 800"),
        ({"noise": 1.5}, "noise must be at least 0 and at most 1; got 1.5"),
    ],
)
def test_impossible_sizes_are_refused(change, message):
    sizes = {"n_rows": 400, "n_features": 900, "n_labels": 500} | change
    with pytest.raises(ValueError, match=message):
        make_topics(**sizes)
