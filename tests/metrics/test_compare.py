"""Comparing two rankings: the metrics are those of evaluate, the intervals those of resampling by hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from longleaf.metrics import Difference, compare, evaluate, frequency_table

N_LABELS = 12


def problem(n_rows: int, seed: int = 0) -> tuple[sp.csr_array, np.ndarray, np.ndarray, np.ndarray]:
    """Give true labels, two rankings of which the second is better, and labels' counts in training."""
    random = np.random.RandomState(seed)
    Y = sp.csr_array((random.rand(n_rows, N_LABELS) < 0.2).astype(np.float32))
    noise = random.rand(2, n_rows, N_LABELS)
    tops = [
        np.argsort(-(noise[i] + weight * Y.toarray()), axis=1)[:, :5] for i, weight in enumerate((0.3, 0.6))
    ]
    tops[0][::7, 3:] = -1  # some rows have fewer answers
    return Y, tops[0], tops[1], np.arange(N_LABELS) ** 2


def test_both_sides_are_what_evaluate_and_the_frequency_table_say() -> None:
    Y, a, b, counts = problem(40)
    worth = 1 + np.arange(N_LABELS) / 3
    found = compare(Y, a, b, worth, counts, k=(1, 3, 7), n_samples=5)
    for side, top in (("a", a), ("b", b)):
        want = evaluate(Y, top, worth, k=(1, 3, 7))
        for at in (1, 3, 7):
            for name in (f"p@{at}", f"f1@{at}", f"ndcg@{at}", f"psp@{at}"):
                assert getattr(found[name], side) == pytest.approx(want[name], abs=1e-9)
        for one in frequency_table(Y, top, counts, k=7):
            assert getattr(found[f"{one.name}_recall@7"], side) == pytest.approx(one.recall, abs=1e-9)
    assert all(one.difference == pytest.approx(one.b - one.a) for one in found.values())


def test_intervals_are_those_of_judging_the_drawn_rows_one_draw_after_the_other() -> None:
    Y, a, b, counts = problem(30)
    worth = 1 + np.arange(N_LABELS) / 3
    found = compare(Y, a, b, worth, counts, k=(1, 5), n_samples=40, confidence=0.8, random_state=3)
    random = np.random.RandomState(3)
    differences: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(40):
        rows = random.randint(30, size=30)
        judged = []
        for top in (a[rows], b[rows]):
            values = evaluate(Y[rows], top, worth, k=(1, 5))
            bins = frequency_table(Y[rows], top, counts, k=5)
            judged.append(values | {f"{one.name}_recall@5": one.recall for one in bins})
        for name, own in differences.items():
            own.append(judged[1][name] - judged[0][name])
    for name, own in differences.items():
        low, high = np.percentile(own, [10, 90])
        assert (found[name].low, found[name].high) == pytest.approx((low, high), abs=1e-9)


def test_the_same_ranking_twice_differs_by_nothing_and_a_better_one_clearly() -> None:
    Y, a, b, _ = problem(400)
    same = compare(Y, a, a, k=3)["p@3"]
    assert (same.difference, same.low, same.high, same.is_clear) == (0, 0, 0, False)
    better, worse = compare(Y, a, b, k=3)["p@3"], compare(Y, b, a, k=3)["p@3"]
    assert 0 < better.low < better.difference < better.high
    assert better.is_clear
    assert worse.difference == -better.difference
    assert (worse.low, worse.high) == pytest.approx((-better.high, -better.low))


def test_more_confidence_and_fewer_rows_make_wider_intervals() -> None:
    Y, a, b, _ = problem(400)

    def width(found: Difference) -> float:
        return found.high - found.low

    usual = width(compare(Y, a, b, k=3)["p@3"])
    assert width(compare(Y, a, b, k=3, confidence=0.99)["p@3"]) > usual
    assert width(compare(Y[:100], a[:100], b[:100], k=3)["p@3"]) > 1.5 * usual


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(100):
        random = np.random.RandomState(seed)
        right = random.rand(2, 150) < [[0.5], [0.6]]  # a hits half of the rows, b six in ten
        top_a, top_b = (np.where(one, 0, 1)[:, None] for one in right)
        found = compare([[0]] * 150, top_a, top_b, k=1, n_samples=300, confidence=0.9)["p@1"]
        covered += found.low <= 10 <= found.high
    assert 80 <= covered <= 98


def test_the_seed_alone_decides_the_draw() -> None:
    Y, a, b, _ = problem(60)
    assert compare(Y, a, b) == compare(Y, a, b)
    assert compare(Y, a, b) != compare(Y, a, b, random_state=2)


@pytest.mark.parametrize(
    ("change", "must_say"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"confidence": 1.0}, "confidence must be above 0 and below 1"),
        ({"k": 0}, "k must"),
        ({"inverse_propensity": [1.0]}, "inverse_propensity"),
        ({"counts": [1.0] * 11}, "counts"),
        ({"top_b": [[0]]}, "rows"),
    ],
)
def test_what_cannot_be_compared_is_refused(change: dict[str, object], must_say: str) -> None:
    Y, a, b, _ = problem(10)
    with pytest.raises(ValueError, match=must_say):
        compare(**({"Y_true": Y, "top_a": a, "top_b": b} | change))


def test_lists_of_labels_reach_as_far_as_either_ranking() -> None:
    found = compare([[0], [1]], [[0], [0]], [[7], [1]], k=1)["p@1"]
    assert isinstance(found, Difference)
    assert (found.a, found.b) == (50, 50)
