"""What the paper's theory says, where the truth is known; every margin is a statistical one."""

import numpy as np
import pytest

import longleaf as ll
from benchmarks.truth import runs
from benchmarks.truth.lookup import least_evaluations, lookup_model, one_by_one

DIALS = (0.0, 0.5, 1.0, 2.0)
DRAWS = 600


@pytest.fixture(scope="module")
def cases():
    return [runs.make_case(seed, n_rows=800, n_labels=120, n_test=200) for seed in range(1, 9)]


@pytest.fixture(scope="module")
def case(cases):
    return cases[0]


@pytest.fixture(scope="module")
def hits(case):
    """What each of a rule's first five labels gained in each draw of labels: complete ones, and noted ones.

    Two arrays [draws, places] for every rule, in percent of the rows; a noted label counts its gain.
    """
    random = np.random.default_rng(5)
    eta, p = case.truth.eta_test, case.propensity
    tops = {name: runs.ranked(scores, 5) for name, scores in runs.rules(case).items()}
    gained = {name: (np.empty((DRAWS, 5)), np.empty((DRAWS, 5))) for name in tops}
    for draw in range(DRAWS):
        complete = random.random(eta.shape) < eta
        noted = complete & (random.random(eta.shape) < p)
        for name, top in tops.items():
            for labels, worth, out in zip(
                (complete, noted), (np.ones_like(p), 1 / p), gained[name], strict=True
            ):
                out[draw] = 100 * (np.take_along_axis(labels, top, axis=1) * worth[top]).mean(axis=0)
    return gained


def at(gained, k):
    """Give precision at k, or propensity-scored precision, of every draw."""
    return gained[:, :k].mean(axis=1)


def sure(values, errors):
    """Give the mean of independent values, and so many of its standard errors."""
    return np.mean(values), errors * np.std(values, ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize("k", [1, 3, 5])
def test_psp_of_noted_labels_is_precision_of_complete_ones_for_every_rule(case, hits, k):
    for complete, noted in hits.values():
        mean, margin = sure(at(noted, k) - at(complete, k), errors=4)
        assert abs(mean) < margin


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_plug_in_rule_has_the_highest_psp_and_the_highest_complete_precision(hits, k):
    best = hits["q η̃"]
    for other in hits.keys() - {"q η̃"}:
        for of_best, of_other in zip(best, hits[other], strict=True):
            mean, margin = sure(at(of_best, k) - at(of_other, k), errors=3)
            assert mean > margin


def test_these_are_the_metrics_of_the_library(case):
    top = runs.ranked(runs.rules(case)["q η̃"], 5)
    q = 1 / case.propensity
    found = ll.metrics.evaluate(case.noted_test, top, q, k=5, normalize=False)["psp@5"]
    noted = np.take_along_axis(case.noted_test.toarray(), top, axis=1)
    assert found == pytest.approx(100 * (noted * q[top]).mean())


def test_the_plug_in_rule_is_the_best_ranking_by_the_complete_probabilities(case):
    eta = case.truth.eta_test
    best = -np.sort(-eta, axis=1)[:, :5]
    chosen = np.take_along_axis(eta, runs.ranked(runs.rules(case)["q η̃"], 5), axis=1)
    np.testing.assert_allclose(chosen, best)


def test_a_tree_that_knows_the_noted_probabilities_finds_the_plug_in_rules_labels(case):
    eta = case.truth.eta_test
    tree = ll.LabelTree.complete(np.arange(eta.shape[1]), max_leaf=10)
    model, rows = lookup_model(eta * case.propensity, [tree])
    top = model.top_k(rows, k=5, gain=1 / case.propensity)
    np.testing.assert_allclose(top.scores, -np.sort(-eta, axis=1)[:, :5], rtol=1e-3)
    np.testing.assert_allclose(np.take_along_axis(eta, top.labels, axis=1), top.scores, rtol=1e-3)


def test_a_star_evaluates_the_nodes_it_has_to_and_no_more(case):
    eta = case.truth.eta_test * case.propensity
    tree = ll.LabelTree.complete(np.arange(eta.shape[1]), max_leaf=10)
    model, rows = lookup_model(eta, [tree])
    for dial in DIALS:
        gain = case.propensity**-dial
        found = one_by_one(model, rows, k=5, gain=gain).evaluations
        informed, blind = (least_evaluations(eta, tree, gain, 5, informed) for informed in (True, False))
        assert (found == informed).mean() > 0.98  # the others: scores that rounding cannot tell apart
        assert (informed <= blind).all()
        if dial == 0:
            np.testing.assert_array_equal(informed, blind)


def clearly_positive(values):
    mean, margin = sure(values, errors=3)
    return mean > margin


def test_as_gains_spread_a_star_evaluates_more_and_the_beam_loses_more(cases):
    found = [runs.search_costs(case, DIALS, beam=5) for case in cases]
    a_star, blind, beam, regret = (
        np.array([[getattr(one, name) for one in of] for of in found])  # [cases, dials]
        for name in ("a_star", "uniform_cost", "beam", "regret")
    )
    assert all(of[0].a_star == of[0].uniform_cost == of[0].plain for of in found)
    for dial in range(1, len(DIALS)):
        assert clearly_positive(a_star[:, dial] - a_star[:, dial - 1])
        assert clearly_positive(blind[:, dial] - a_star[:, dial])
    # a beam's cost hardly depends on gains: it rises by less than a fifth of what A*'s does
    assert clearly_positive(0.2 * np.ptp(a_star, axis=1) - np.ptp(beam, axis=1))
    assert clearly_positive(regret[:, -1] - 2 * regret[:, :-1].max(axis=1))


def test_a_beam_as_wide_as_the_tree_regrets_nothing(case):
    assert all(abs(one.regret) < 1e-6 for one in runs.search_costs(case, DIALS, beam=200))


def test_the_exact_ensemble_loses_nothing_that_the_union_rule_may(case):
    eta = case.truth.eta_test * case.propensity
    gain = 1 / case.propensity
    trees = [
        ll.LabelTree.random(np.arange(eta.shape[1]), np.random.RandomState(t), max_leaf=10) for t in (1, 2, 3)
    ]
    model, rows = lookup_model(eta, trees, noise=1.5)
    pairs = np.indices(eta.shape).reshape(2, -1)
    scores = model.probability(rows, *pairs).reshape(eta.shape) * gain
    best = -np.sort(-scores, axis=1)[:, :5]
    exact, union = (model.top_k(rows, k=5, gain=gain, ensemble=rule) for rule in ("mean", "union"))
    np.testing.assert_allclose(exact.scores, best, rtol=1e-4)
    assert (union.scores.sum(axis=1) <= best.sum(axis=1) * (1 + 1e-4)).all()


def test_the_more_trees_disagree_the_more_the_union_rule_loses(cases):
    found = np.array([runs.union_losses(case, (0.0, 0.5, 1.5)) for case in cases])  # noise, rows, score
    np.testing.assert_allclose(found[:, 0, 1:], 0.0, atol=0.01)
    for measured in (1, 2):
        for noise in (1, 2):
            assert clearly_positive(found[:, noise, measured] - found[:, noise - 1, measured])
