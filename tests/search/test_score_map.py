"""Search by mapped probabilities finds the top k of a brute force over all labels, overrides included."""

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

import longleaf as ll
from longleaf import _core
from longleaf.search import Overrides, ScoreMap, TopK
from longleaf.search.rows import RecordRows
from tests import reference
from tests.helpers import handmade
from tests.helpers.searching import GAINS, check_top, make_gain, problems, same, twins

pytestmark = pytest.mark.native

SEEDS = st.integers(0, 2**32)
KS = st.sampled_from([1, 2, 5, 10, 1000])
MAPS = st.sampled_from(["plain", "plain", "same", "steep", "none"])
RTOL = 5e-4  # where a probability is almost 1, a small error of a margin is a larger one of the odds


def search(model, X, *args, score_map=None, overrides=None, **options):
    """Ask a model with this map, and rows with these overrides."""
    with mapping(model, score_map):
        return model.top_k(X if overrides is None else RecordRows(X, overrides), *args, **options)


def probability(model, X, rows, labels, score_map=None, overrides=None):
    with mapping(model, score_map):
        return model.probability(X if overrides is None else RecordRows(X, overrides), rows, labels)


@contextmanager
def mapping(model, score_map):
    model.score_map_ = score_map
    try:
        yield
    finally:
        model.score_map_ = None


@dataclass
class Fused:
    """A problem with maps and overrides, and the mapped probability of every label by brute force."""

    problem: handmade.Problem
    score_map: ScoreMap | None
    overrides: Overrides | None
    mapped: np.ndarray  # [rows, labels]; 0 for what is never returned

    @property
    def maps(self):
        return {"score_map": self.score_map, "overrides": self.overrides}

    def search(self, **options):
        return search(self.problem.model, self.problem.X, **options, **self.maps)

    def one_by_one(self, **options):
        X, overrides = self.problem.X, self.overrides
        alone = [
            search(
                self.problem.model,
                X[[row]],
                **options,
                score_map=self.score_map,
                overrides=None if overrides is None else overrides.take([row]),
            )
            for row in range(X.shape[0])
        ]
        return TopK.concatenate(alone)

    def scores(self, gain):
        return self.mapped * (np.ones(self.problem.n_labels) if gain is None else gain)


def make_map(rng, kind, n_labels):
    """Make a score map of a named kind; None for none."""
    if kind == "none":
        return None
    if kind == "same":  # most labels are below the clip, and tie
        return ScoreMap(np.full(n_labels, 0.5, np.float32), np.full(n_labels, -1, np.float32))
    if kind == "steep":
        return ScoreMap(10.0 ** rng.uniform(-6, 1.6, n_labels), rng.uniform(-30, 30, n_labels))
    return ScoreMap(rng.uniform(0.2, 2, n_labels), rng.uniform(-4, 3, n_labels))


def make_overrides(rng, n_rows, n_labels, kind="some"):
    """Make overrides: none for some rows, slopes of 0, now and then every label."""
    if kind == "none":
        return None
    chosen = rng.random((n_rows, n_labels)) < rng.choice(
        [0, 0.05, 0.3, 1], (n_rows, 1), p=[0.2, 0.4, 0.35, 0.05]
    )
    labels = np.nonzero(chosen)[1]
    slope = rng.uniform(0, 1.5, len(labels)) * (rng.random(len(labels)) < 0.8)
    offset = rng.uniform(-6, 4, len(labels))
    return Overrides(np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]), labels, slope, offset)


def fuse(problem, seed, kind="plain", overriding="some"):
    """Give a problem maps and overrides, and score every label by brute force."""
    rng = np.random.default_rng(seed)
    score_map = make_map(rng, kind, problem.n_labels)
    overrides = make_overrides(rng, problem.X.shape[0], problem.n_labels, overriding)
    probability = problem.label_probabilities().mean(axis=1)
    mapped = probability.copy()
    if score_map is not None:
        mapped = reference.search.mapped(probability, *map(np.float64, (score_map.slope, score_map.offset)))
        mapped[probability == 0] = 0
    if overrides is not None:
        row = np.repeat(np.arange(len(mapped)), np.diff(overrides.indptr))
        at = row, overrides.labels
        own = map(np.float64, (overrides.slope, overrides.offset))
        mapped[at] = reference.search.mapped(probability[at], *own)
    return Fused(problem, score_map, overrides, mapped)


@st.composite
def fused(draw, most_trees=3, of=problems, overriding=("some", "some", "none")):
    problem = draw(of(most_trees=most_trees))
    return fuse(problem, draw(SEEDS), draw(MAPS), draw(st.sampled_from(overriding)))


@given(fused(), GAINS, KS, st.integers(0, 99))
def test_the_top_k_equal_a_brute_force_over_all_labels(fused, kind, k, seed):
    gain = make_gain(kind, seed, fused.problem.n_labels)
    check_top(fused.search(k=k, gain=gain), fused.scores(gain), k, RTOL)


@given(fused(), GAINS, KS, st.integers(0, 99))
def test_a_row_by_itself_gets_the_top_k_of_a_brute_force_too(fused, kind, k, seed):
    gain = make_gain(kind, seed, fused.problem.n_labels)
    check_top(fused.one_by_one(k=k, gain=gain), fused.scores(gain), k, RTOL)


@given(fused(), st.sampled_from([0.5, 1.0, 3.0]))
def test_the_tail_dial_multiplies_mapped_probabilities(fused, tail):
    model = fused.problem.model
    rng = np.random.default_rng(1)
    model.label_counts_ = rng.integers(0, 1000, fused.problem.n_labels)
    gain = model.inverse_propensity() ** tail
    for _ in range(2):  # the second time what is remembered
        top = fused.search(k=5, tail=tail)
        check_top(top, fused.scores(gain), 5, RTOL)
    same(top, fused.search(k=5, gain=gain))
    model.label_counts_ = model.label_counts_[::-1]


@given(fused(), GAINS, KS, st.integers(0, 99), st.booleans())
def test_rows_together_get_the_bits_of_rows_alone(fused, kind, k, seed, with_threshold):
    fused = Fused(twins(fused.problem), fused.score_map, fused.overrides, fused.mapped)
    options = {"k": k, "gain": make_gain(kind, seed, fused.problem.n_labels)}
    if with_threshold:
        options["threshold"] = float(np.median(fused.search(**options).scores))
    for search in ({}, {"search": "beam", "beam": 2}, {"search": "beam", "beam": 7}, {"ensemble": "union"}):
        together, alone = fused.search(**options, **search), fused.one_by_one(**options, **search)
        np.testing.assert_array_equal(together.labels, alone.labels)
        for name in ("scores", "probabilities"):
            a, b = getattr(together, name), getattr(alone, name)
            np.testing.assert_array_equal(a.view(np.int32), b.view(np.int32))


@given(fused(), GAINS, st.integers(0, 99), st.booleans())
def test_thresholds_leave_out_what_scores_less(fused, kind, seed, per_label):
    gain = make_gain(kind, seed, fused.problem.n_labels)
    scores = fused.scores(gain)
    rng = np.random.default_rng(seed)
    shape = fused.problem.n_labels if per_label else None
    threshold = np.quantile(scores, rng.uniform(0.3, 1.0, shape)) * (rng.random(shape) < 0.8)
    near = np.isclose(scores, threshold, rtol=1e-3, atol=0) & (scores > 0)
    assume(not near.any())  # rounding decides there
    expected = np.where(scores >= threshold, scores, 0.0)
    check_top(fused.search(k=4, gain=gain, threshold=threshold), expected, 4, RTOL)
    check_top(fused.one_by_one(k=4, gain=gain, threshold=threshold), expected, 4, RTOL)


@given(problems(most_trees=2), SEEDS)
def test_a_threshold_keeps_the_score_that_it_equals_and_nothing_less(problem, seed):
    fused = fuse(problem, seed)
    top = fused.search(k=3)
    for row, (label, score) in enumerate(zip(top.labels[:, 0], top.scores[:, 0], strict=True)):
        assume(score > 1e-37)
        options = {"score_map": fused.score_map, "overrides": fused.overrides.take([row]), "k": 1}
        for threshold, kept in ((score, label), (np.nextafter(score, np.float32(np.inf)), -1)):
            found = search(problem.model, problem.X[[row]], threshold=float(threshold), **options)
            assert found.labels[0, 0] == kept


@given(fused(), GAINS, st.sampled_from([1, 4, 1000]), st.integers(0, 99))
def test_a_beam_as_wide_as_the_tree_is_exact(fused, kind, k, seed):
    gain = make_gain(kind, seed, fused.problem.n_labels)
    top = fused.search(k=k, gain=gain, search="beam", beam=2000)
    check_top(top, fused.scores(gain), k, RTOL)


@given(fused(), GAINS, st.integers(1, 5), st.booleans())
def test_a_beam_scores_what_it_finds_and_all_overrides(fused, kind, beam, union):
    gain = make_gain(kind, 1, fused.problem.n_labels)
    rule = {"ensemble": "union"} if union else {"search": "beam", "beam": beam}
    top, scores = fused.search(k=3, gain=gain, **rule), fused.scores(gain)
    for row, labels in enumerate(top.labels):
        found = labels[labels >= 0]
        assert len(set(found)) == len(found)
        np.testing.assert_allclose(top.scores[row][: len(found)], scores[row][found], rtol=RTOL, atol=1e-37)
        if fused.overrides is None:
            continue
        own = fused.overrides.take([row]).labels
        least = scores[row][found[-1]] if len(found) == 3 else 0.0
        better = own[scores[row][own] > least * (1 + RTOL)]
        assert set(better) <= set(found)


@given(problems(most_trees=3), SEEDS, GAINS, st.sampled_from([1, 3]))
def test_the_union_rule_takes_each_trees_own_best_mapped_labels(problem, seed, kind, k):
    fused = fuse(problem, seed, overriding="none")
    gain = make_gain(kind, 1, problem.n_labels)
    weight = np.ones(problem.n_labels) if gain is None else gain
    slope, offset = np.float64(fused.score_map.slope), np.float64(fused.score_map.offset)
    probabilities = problem.label_probabilities()
    by_tree = reference.search.mapped(probabilities, slope, offset) * (probabilities > 0) * weight
    ordered = np.sort(by_tree, axis=2)[:, :, ::-1]
    if problem.n_labels > k:  # a tree's k-th and next label must be told apart
        clear = (ordered[:, :, k] == 0) | (ordered[:, :, k] < ordered[:, :, k - 1] * (1 - 2 * RTOL))
        assume(clear.all())
    top = fused.search(k=k, gain=gain, ensemble="union")
    for row, scores in enumerate(fused.scores(gain)):
        union = {label for tree in by_tree[row] for label in reference.search.best(tree, k)}
        among = [score if label in union else 0.0 for label, score in enumerate(scores)]
        found = top.labels[row][top.labels[row] >= 0]
        expected = reference.search.best(among, k)
        assert len(found) == len(expected)
        np.testing.assert_allclose(scores[found], scores[expected], rtol=RTOL, atol=1e-37)


@given(problems(), KS)
def test_the_identity_leaves_ranking_and_probabilities_as_they_are(problem, k):
    identity = ScoreMap.identity(problem.n_labels)
    plain, top = (
        problem.model.top_k(problem.X, k=k),
        search(problem.model, problem.X, k=k, score_map=identity),
    )
    np.testing.assert_allclose(top.scores, plain.scores, rtol=1e-4, atol=1.1e-6)
    np.testing.assert_array_equal(top.labels >= 0, plain.labels >= 0)
    gap = np.abs(np.diff(plain.scores, axis=1, append=0)) > 1e-5
    clear = (gap & np.roll(gap, 1, axis=1) & (plain.scores > 1e-5) & (plain.scores < 1 - 1e-5))[:, 1:]
    np.testing.assert_array_equal(top.labels[:, 1:][clear], plain.labels[:, 1:][clear])


@given(fused(), st.integers(0, 99))
def test_maps_leave_no_state_behind(fused, seed):
    model, X = fused.problem.model, fused.problem.X
    before = model.top_k(X, k=3), model.top_k(X, k=3, tail=0.5)
    fused.search(k=3)
    fused.search(k=3, tail=0.5)
    same(before[0], model.top_k(X, k=3))
    same(before[1], model.top_k(X, k=3, tail=0.5))


@given(fused(), st.integers(0, 99))
def test_probability_equals_a_brute_force_for_any_pairs(fused, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, fused.problem.X.shape[0], 30)
    labels = rng.integers(0, fused.problem.n_labels, 30)
    found = probability(fused.problem.model, fused.problem.X, rows, labels, **fused.maps)
    np.testing.assert_allclose(found, fused.mapped[rows, labels], rtol=RTOL, atol=1e-37)


@given(fused(), GAINS)
def test_an_answer_has_the_mapped_probabilities_of_its_labels(fused, kind):
    top = fused.search(k=4, gain=make_gain(kind, 1, fused.problem.n_labels))
    row, place = np.nonzero(top.labels >= 0)
    labels = top.labels[row, place]
    found = probability(fused.problem.model, fused.problem.X, row, labels, **fused.maps)
    np.testing.assert_allclose(top.probabilities[row, place], found, rtol=1e-4, atol=1e-37)


@pytest.mark.parametrize("n_trees", [1, 3])
@pytest.mark.parametrize("options", [{}, {"search": "beam", "beam": 2}, {"ensemble": "union"}])
def test_two_threads_give_the_bits_of_one(n_trees, options):
    fused = fuse(handmade.random_problem(3, ["balanced"] * n_trees, 200, n_rows=700), 5)
    same(fused.search(k=5, n_jobs=1, **options), fused.search(k=5, n_jobs=2, **options))


@pytest.mark.parametrize("n_trees", [1, 3])
def test_many_rows_of_many_labels_get_the_top_k_of_a_brute_force(n_trees):
    fused = fuse(handmade.random_problem(9, ["balanced"] * n_trees, 900, n_rows=150), 5)
    check_top(fused.search(k=5), fused.mapped, 5, RTOL)
    same(fused.search(k=5, n_jobs=2), fused.search(k=5))


@given(SEEDS, st.sampled_from(["balanced", "unbalanced"]), MAPS, GAINS)
def test_no_label_scores_more_than_the_bounds_of_the_nodes_above_it(seed, shape, kind, gains):
    assume(kind != "none")
    problem = handmade.random_problem(seed, [shape], 30)
    tree, rng = problem.parts[0][0], np.random.default_rng(seed)
    score_map = make_map(rng, kind, 30)
    with np.errstate(divide="ignore"):
        logs = np.log(np.ones(30) if gains is None else make_gain(gains, seed, 30)).astype(np.float32)
    bounds = problem.model._prepare().forest.score_bounds(logs, score_map.slope, score_map.offset)
    inner = np.flatnonzero(tree.label < 0)  # no family is wider than a chunk here
    bounds = bounds.reshape(len(inner), -1)
    assert (bounds[:, 1:] >= bounds[:, :-1]).all()
    most = np.log(1e6 - 1)
    odds = np.concatenate([np.linspace(-most, most, bounds.shape[1]), rng.uniform(-most, most, 300)])
    scores = logs + np.minimum(
        -np.logaddexp(0, -(score_map.slope * odds[:, None] + score_map.offset.astype(float))), 0
    )
    parent = reference.search.parents(tree)
    finite = np.isfinite(bounds)
    for node in np.flatnonzero(tree.label >= 0):
        score, above = scores[:, tree.label[node]], parent[node]
        while above >= 0 and np.isfinite(score).all():
            row = np.searchsorted(inner, above)
            assert finite[row].all()
            bound = np.interp(odds, np.linspace(-most, most, bounds.shape[1]), bounds[row])
            assert (bound >= score).all()
            above = parent[above]


def test_the_search_need_not_look_at_everything():
    problem = handmade.random_problem(1, ["balanced"] * 3, 600, n_rows=50, scale=8.0)
    rng = np.random.default_rng(1)
    score_map = ScoreMap(rng.uniform(0.7, 1.1, 600), rng.uniform(-1, 1, 600))
    nodes = sum(tree.n_nodes - 1 for tree, _, _ in problem.parts)
    for overrides in (None, make_overrides(rng, 50, 600)):
        top = search(problem.model, problem.X, k=1, score_map=score_map, overrides=overrides)
        assert top.evaluations.mean() < 0.7 * nodes


def flat_model(probabilities, n_trees=1):
    """Make a model whose labels have the given probabilities in every row; the last one has no leaf."""
    P = np.asarray(probabilities, float)
    tree = ll.LabelTree.from_parents([-1] + [0] * len(P), [-1, *range(len(P))])
    part = (tree, np.zeros((1, len(P) + 1), np.float32), np.concatenate([[0], np.log(P / (1 - P))]))
    return handmade.estimator([part] * n_trees, len(P) + 1)


X3 = sp.csr_array((3, 1), dtype=np.float32)


@pytest.mark.parametrize("n_trees", [1, 2])
@pytest.mark.parametrize("options", [{}, {"search": "beam"}, {"ensemble": "union"}])
def test_scores_worked_by_hand(n_trees, options):
    model = flat_model([0.5, 0.2, 0.8], n_trees)
    score_map = ScoreMap([1, 2, 1, 1], [np.log(4), np.log(16), -np.log(8), 9])  # odds 4, 1/16 * 16, 4 / 8
    top = search(model, X3, 4, score_map=score_map, gain=[1, 3, 2, 1], **options)
    assert top.labels.tolist() == [[1, 0, 2, -1]] * 3
    np.testing.assert_allclose(top.scores, [[1.5, 0.8, 2 / 3, 0]] * 3, rtol=1e-6)
    np.testing.assert_allclose(top.probabilities, [[0.5, 0.8, 1 / 3, 0]] * 3, rtol=1e-6)
    overrides = Overrides([0, 0, 2, 3], [0, 3, 3], [1, 0, 1], [np.log(3), -1, most_log_odds() + np.log(9)])
    top = search(model, X3, 2, score_map=score_map, overrides=overrides, **options)
    assert top.labels.tolist() == [[0, 1], [0, 1], [3, 0]]
    np.testing.assert_allclose(top.scores, [[0.8, 0.5], [0.75, 0.5], [0.9, 0.8]], rtol=1e-6)


def most_log_odds():
    return np.log(1e6 - 1)


@pytest.mark.parametrize("n_trees", [1, 3])
@pytest.mark.parametrize("method", ["exact", "beam"])
def test_of_equal_scores_the_lower_label_comes_first(n_trees, method):
    model = flat_model(np.linspace(1e-9, 1e-7, 40), n_trees)  # all of them below the clip
    score_map = ScoreMap.identity(41)
    for X in (X3, X3[[0]]):
        top = search(model, X, 5, score_map=score_map, search=method)
        assert top.labels.tolist() == [[0, 1, 2, 3, 4]] * X.shape[0]
        ties = Overrides([0, *[2] * X.shape[0]], [1, 40], [1, 1], [0, 0])
        top = search(model, X, 50, score_map=score_map, overrides=ties, search=method)
        assert top.labels[0].tolist() == [*range(41), *[-1] * 9]


def test_a_label_without_a_leaf_is_returned_where_it_is_overridden():
    problem = handmade.random_problem(0, ["balanced", "chain"], 10)
    model = handmade.estimator(problem.parts, 12)  # labels 10 and 11 have no leaf
    overrides = Overrides([0, 1, 1, 3, 3], [11, 10, 11], [0, 0, 0], [9, 9, 10])
    for maps in ({}, {"score_map": ScoreMap.identity(12)}):
        top = search(model, problem.X, 3, overrides=overrides, **maps)
        found = [sorted({10, 11} & set(labels)) for labels in top.labels.tolist()]
        assert found == [[11], [], [10, 11], []]
        none = search(model, problem.X, 12, overrides=overrides, gain=np.zeros(12), **maps)
        assert (none.labels == -1).all()


BAD_MAPS = [
    ({"slope": [1.0, 0.0]}, "slope must be above 0 and at most 1000; got 0.0."),
    ({"slope": [1.0, 2000.0]}, "slope must be above 0 and at most 1000; got 2000.0."),
    ({"slope": [1.0, np.nan]}, "slope must be above 0 and at most 1000; got nan."),
    ({"offset": [-np.inf, 0.0]}, "offset must be at least -1000 and at most 1000; got -inf."),
    ({"offset": [0.0]}, "slope and offset must have the same length; got 2, 1."),
    ({"offset": [[0.0, 1.0]]}, "offset must be 1-D; got 2-D."),
    ({"slope": "steep"}, "slope must hold numbers; got 'steep'."),
]


@pytest.mark.parametrize(("bad", "message"), BAD_MAPS)
def test_a_damaged_map_is_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        ScoreMap(**({"slope": [1.0, 1.0], "offset": [0.0, 0.0]} | bad))


BAD_OVERRIDES = [
    ({"indptr": [0, 1]}, "indptr must rise from 0 to the number of overrides, 3."),
    ({"indptr": [0, 3, 2, 3]}, "indptr must rise from 0"),
    ({"indptr": []}, "indptr must rise from 0"),
    ({"indptr": [0.0, 3.0]}, "indptr must be a 1-D array of whole numbers; got 1-D of float64."),
    ({"labels": [2, 1, 1]}, "labels must ascend within a row; those of row 0 do not."),
    ({"indptr": [0, 1, 3], "labels": [2, 1, 1]}, "labels must ascend within a row; those of row 1 do not."),
    ({"labels": [-1, 1, 2]}, "labels must be at least 0"),
    ({"labels": [0, 1, 2**40]}, "labels must be at least 0 and fit 32 bits"),
    ({"labels": [0, 1]}, "labels and slope and offset must have the same length; got 2, 3, 3."),
    ({"slope": [0, 1, -1]}, "slope must be at least 0 and at most 1000; got -1.0."),
    ({"offset": [0, 1, np.nan]}, "offset must be at least -1000 and at most 1000; got nan."),
]


@pytest.mark.parametrize(("bad", "message"), BAD_OVERRIDES)
def test_damaged_overrides_are_refused(bad, message):
    good = {"indptr": [0, 3], "labels": [0, 1, 2], "slope": [1, 1, 0], "offset": [0, 1, 2]}
    assert Overrides(**good).take([0, 0]).indptr.tolist() == [0, 3, 6]
    with pytest.raises(ValueError, match=message):
        Overrides(**(good | bad))


def test_maps_and_overrides_of_other_sizes_are_refused():
    model = flat_model([0.5, 0.2])
    for use in (
        lambda X, **maps: search(model, X, **maps),
        lambda X, **maps: probability(model, X, [0], [0], **maps),
    ):
        with pytest.raises(ValueError, match=r"score_map must have 3 slopes, one per label; got 2."):
            use(X3, score_map=ScoreMap.identity(2))
        with pytest.raises(ValueError, match=r"overrides must be for 3 rows, as X has; got 1."):
            use(X3, overrides=Overrides([0, 0], [], [], []))
        with pytest.raises(ValueError, match=r"overrides must hold labels below 3; got 3."):
            use(X3, overrides=Overrides([0, 1, 1, 1], [3], [1], [0]))


def native_maps(model):
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    bounds = model._prepare().forest.score_bounds(zeros, ones, zeros)
    return {"map_slope": ones, "map_offset": zeros, "map_bounds": bounds} | {
        "override_indptr": np.array([0, 0, 2, 3]),
        "override_labels": np.array([0, 2, 1], np.int32),
        "override_slope": np.ones(3, np.float32),
        "override_offset": np.zeros(3, np.float32),
    }


BAD_ARRAYS = {
    "map_slope": (None, [1, 0, 1], [1, np.nan, 1], [1, np.inf, 1], [1, 1]),
    "map_offset": (None, [0, np.nan, 0], [0, 0, -np.inf], [0, 0]),
    "map_bounds": (None, [0, 0]),
    "override_indptr": (
        None,
        [0, 2, 0, 3],
        [0, 0, 2, 4],
        [0, 0, 2, 2],
        [0, 0, 3],
        [0, 3, 3, 3],
        [-1, 0, 2, 3],
    ),
    "override_labels": (None, [0, 0, 1], [2, 0, 1], [0, 3, 1], [0, -1, 1], [0, 2]),
    "override_slope": (None, [1, -1, 1], [1, np.nan, 1], [1, 1]),
    "override_offset": (None, [0, np.nan, 0], [0, 0]),
}


@pytest.mark.parametrize(("name", "bad"), [(name, bad) for name in BAD_ARRAYS for bad in BAD_ARRAYS[name]])
def test_native_code_refuses_damaged_arrays_itself(name, bad):
    model = flat_model([0.5, 0.2])
    good = native_maps(model)
    value = None if bad is None else np.array(bad, good[name].dtype)
    rows = np.zeros(4, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), np.ones(3, np.float32)
    none, forest = np.zeros(0, np.float32), model._prepare().forest
    options = {
        "k": 2,
        "beam": 0,
        "union_rule": False,
        "log_threshold": none,
        "log_floor": -np.inf,
        "threads": 1,
    }
    options |= {"log_gain": none, "log_bounds": none}
    pairs = np.zeros(1, np.int64), np.zeros(1, np.int32), 1
    forest.top_k(*rows, **options, **good)
    with pytest.raises(ValueError, match=r"map|override"):
        forest.top_k(*rows, **options, **(good | {name: value}))
    if name == "map_bounds":
        return
    del good["map_bounds"]
    forest.probabilities(*rows, *pairs, **good)
    with pytest.raises(ValueError, match=r"map|override"):
        forest.probabilities(*rows, *pairs, **(good | {name: value}))


def test_native_code_refuses_a_map_of_other_labels():
    forest, ones = flat_model([0.5, 0.2])._prepare().forest, np.ones(3, np.float32)
    for bad in ((ones[:2], ones, ones), (ones, ones[:2], ones), (ones, ones, ones[:2]), (ones, -ones, ones)):
        with pytest.raises(ValueError, match="must"):
            forest.score_bounds(*bad)
    assert len(forest.score_bounds(ones, ones, ones)) % _core.CHUNK_WIDTH
