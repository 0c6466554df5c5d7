import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longleaf.metrics import FrequencyBin, evaluate, frequency_table
from longleaf.metrics._frequency import frequency_bins
from longleaf.metrics._sums import RankingSums
from tests import reference

N_LABELS = 8


@st.composite
def problems(draw):
    """Some rows of labels, empty ones too, and ranked predictions with pads at the end."""
    label_set = st.lists(st.integers(0, N_LABELS - 1), unique=True)
    rows = draw(st.lists(label_set, min_size=1, max_size=8))
    width = draw(st.integers(0, 6))
    guesses = [draw(st.permutations(range(N_LABELS)))[: draw(st.integers(0, width))] for _ in rows]
    top = np.full((len(rows), width), -1, np.int32)
    for line, labels in zip(top, guesses, strict=True):
        line[: len(labels)] = labels
    return rows, top


def per_label(elements):
    return st.lists(elements, min_size=N_LABELS, max_size=N_LABELS)


def indicator(rows):
    matrix = np.zeros((len(rows), N_LABELS), np.float32)
    for number, row in enumerate(rows):
        matrix[number, row] = 1
    return matrix


@given(problem=problems(), q=per_label(st.floats(1, 50)), normalize=st.booleans())
def test_all_metrics_agree_with_the_slow_reference(problem, q, normalize):
    rows, top = problem
    found = evaluate(sp.csr_matrix(indicator(rows)), top, q, k=(1, 2, 5), normalize=normalize)
    assert found == pytest.approx(reference.evaluate(rows, top.tolist(), q, (1, 2, 5), normalize))


@given(problem=problems(), counts=per_label(st.integers(0, 12)), k=st.integers(1, 6))
def test_the_frequency_table_agrees_with_the_slow_reference(problem, counts, k):
    rows, top = problem
    found = frequency_table(indicator(rows), top, counts, k)
    expected = reference.frequency_table(rows, top.tolist(), counts, k)
    for row, (name, *figures) in zip(found, expected, strict=True):
        assert row.name == name
        numbers = [getattr(row, field) for field in FrequencyBin.__dataclass_fields__ if field != "name"]
        assert numbers == pytest.approx(figures)


@given(problem=problems())
def test_with_unit_propensities_the_unnormalised_scored_metrics_are_the_plain_ones(problem):
    rows, top = problem
    found = evaluate(indicator(rows), top, np.ones(N_LABELS), normalize=False)
    for name in ("p", "recall", "ndcg"):
        for k in (1, 3, 5):
            assert found[f"ps{name}@{k}"] == pytest.approx(found[f"{name}@{k}"])


@given(problem=problems(), q=per_label(st.floats(1, 50)), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter_and_normalised_metrics_stay_within_100(problem, q, seed):
    rows, top = problem
    order = np.random.default_rng(seed).permutation(len(rows))
    found = evaluate(indicator(rows), top, q)
    assert evaluate(indicator(rows)[order], top[order], q) == pytest.approx(found)
    assert all(0 <= value <= 100 + 1e-9 for value in found.values())


def test_hand_worked_ranking_metrics():
    # Row 0 has labels 0, 2 and gets 2 (a hit), 1. Row 1 has label 1 and gets 0, 1 (a hit). Row 2 has none.
    found = evaluate([[0, 2], [1], []], [[2, 1], [0, 1], [0, 2]], [1.0, 2.0, 4.0], k=(1, 2))
    second = 1 / math.log2(3)
    assert found["p@1"] == pytest.approx(100 * 1 / 3)
    assert found["p@2"] == pytest.approx(100 * (1 / 2 + 1 / 2) / 3)
    assert found["recall@1"] == pytest.approx(100 * (1 / 2) / 3)
    assert found["recall@2"] == pytest.approx(100 * (1 / 2 + 1) / 3)
    assert found["ndcg@2"] == pytest.approx(100 * (1 / (1 + second) + second) / 3)
    assert found["psp@1"] == pytest.approx(100 * 4 / (4 + 2))
    assert found["psp@2"] == pytest.approx(100 * (4 + 2) / (4 + 1 + 2))
    assert found["psrecall@2"] == pytest.approx(100 * (4 / 2 + 2) / (5 / 2 + 2))
    best = (4 + 1 * second) / (1 + second) + 2
    assert found["psndcg@2"] == pytest.approx(100 * (4 / (1 + second) + 2 * second) / best)


def test_hand_worked_averages_over_documents():
    # Row 0 has three labels and gets two, one a hit; row 1 has one and gets it alone; row 2 gets nothing.
    found = evaluate([[0, 2, 3], [1], [4]], [[2, 1, -1], [1, -1, -1], [-1, -1, -1]], k=(1, 3))
    assert found["precision@3"] == pytest.approx(100 * (1 / 2 + 1 + 0) / 3)
    assert found["recall@3"] == pytest.approx(100 * (1 / 3 + 1 + 0) / 3)
    assert found["f1@3"] == pytest.approx(100 * (2 * 1 / (2 + 3) + 2 * 1 / (1 + 1) + 0) / 3)
    assert found["p@3"] == pytest.approx(100 * (1 / 3 + 1 / 3 + 0) / 3), "p@k divides by k"
    assert found["f1@1"] == pytest.approx(100 * (2 / (1 + 3) + 1 + 0) / 3)


def test_precision_is_p_where_every_row_gets_k_labels():
    found = evaluate([[0, 2], [1], []], [[2, 1], [0, 1], [0, 2]], k=(1, 2))
    assert [found["precision@1"], found["precision@2"]] == [found["p@1"], found["p@2"]]


def annif_problem(more=()):
    """The rows that Annif judged, and its figures by limit."""
    stored = json.loads((Path(__file__).parent / "annif.json").read_text())
    true, top = stored["true"] + [[] for _ in more], stored["top"] + list(more)
    width = max(map(len, top))
    return true, [[*row, *[-1] * (width - len(row))] for row in top], stored


def test_averages_over_documents_are_those_of_annif():
    # The numbers are Annif's own; tests/metrics/annif.json says how they were made.
    true, top, stored = annif_problem()
    names = {"precision": "Precision (doc avg)", "recall": "Recall (doc avg)", "f1": "F1 score (doc avg)"}
    for k, want in stored["annif_by_limit"].items():
        found = evaluate(true, top, k=int(k))
        for own, annif in names.items():
            assert found[f"{own}@{k}"] == pytest.approx(100 * want[annif]), (own, k)
    found = evaluate(true, top, k=(5, 10))
    want = stored["annif_by_limit"]["8"]  # no row has more suggestions
    assert found["f1@5"] == pytest.approx(100 * want["F1@5"])
    assert found["ndcg@5"] == pytest.approx(100 * want["NDCG@5"], rel=1e-6)  # Annif keeps 32 bits
    assert found["ndcg@10"] == pytest.approx(100 * want["NDCG@10"], rel=1e-6)


def test_annif_gives_rows_without_labels_an_ndcg_of_one_and_here_it_is_zero():
    true, top, stored = annif_problem(more=[[9, 5, 3, 2], []])
    want = stored["annif_at_limit_5_with_two_more_rows_without_labels"]
    found = evaluate(true, top, k=5)
    assert found["f1@5"] == pytest.approx(100 * want["F1@5"])
    assert found["precision@5"] == pytest.approx(100 * want["Precision (doc avg)"])
    assert found["ndcg@5"] == pytest.approx(100 * (want["NDCG@5"] - 2 / 12), rel=1e-6)


def test_hand_worked_label_metrics():
    # At 2: label 0 is true once, predicted twice, never hit; 1: once, twice, hit; 2: once, twice, hit.
    found = evaluate([[0, 2], [1], []], [[2, 1], [0, 1], [0, 2]], k=2)
    assert found["coverage@2"] == pytest.approx(100 * 2 / 3)
    assert found["macro_precision@2"] == pytest.approx(100 * (0 + 1 / 2 + 1 / 2) / 3)
    assert found["macro_recall@2"] == pytest.approx(100 * (0 + 1 + 1) / 3)
    assert found["macro_f1@2"] == pytest.approx(100 * (0 + 2 / 3 + 2 / 3) / 3)


def test_hand_worked_unnormalised_form_can_exceed_100():
    found = evaluate([[0, 2], [1]], [[2, 0], [0, 1]], [1.0, 2.0, 4.0], k=(1, 2), normalize=False)
    assert found["psp@1"] == pytest.approx(100 * 4 / 2)
    assert found["psp@2"] == pytest.approx(100 * (5 / 2 + 2 / 2) / 2)


def test_a_perfect_ranking_reaches_100_where_rows_have_enough_labels():
    q = [3.0, 2.0, 1.0]
    found = evaluate([[2, 0, 1]] * 4, np.tile([0, 1, 2], (4, 1)), q, k=(1, 3))
    for name in ("p", "ndcg", "psp", "psrecall", "psndcg"):
        assert found[f"{name}@1"] == pytest.approx(100)
        assert found[f"{name}@3"] == pytest.approx(100)
    assert found["recall@1"] == pytest.approx(100 / 3)


def test_a_label_that_is_never_predicted_still_counts_in_denominators():
    with_it = evaluate([[0, 1]], [[0]], [1.0, 9.0], k=1)
    without = evaluate([[0]], [[0]], [1.0, 9.0], k=1)
    assert without["psp@1"] == without["coverage@1"] == 100
    assert with_it["psp@1"] == pytest.approx(100 / 9)
    assert with_it["coverage@1"] == 50


def test_k_beyond_the_predictions_counts_misses():
    wide = evaluate([[0, 1]], [[0, 1, -1, -1, -1]], [1.0, 2.0], k=5)
    assert evaluate([[0, 1]], [[0, 1]], [1.0, 2.0], k=5) == wide
    assert wide["p@5"] == pytest.approx(40)
    assert wide["psp@5"] == pytest.approx(100)


def test_nothing_true_or_nothing_predicted_gives_zeros():
    assert set(evaluate([[], []], [[0], [1]], [1.0, 1.0], k=1).values()) == {0.0}
    assert set(evaluate([[0], [1]], [[-1], [-1]], [1.0, 1.0], k=1).values()) == {0.0}
    assert set(evaluate(np.zeros((2, 0)), np.full((2, 3), -1), [], k=3).values()) == {0.0}


def test_every_form_of_the_same_labels_gives_the_same_answer():
    lists = [[2, 0], [], [1], [3]]
    dense = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    top = np.array([[0, 1], [2, 3], [1, -1], [2, 3]], np.int32)
    q = [1.0, 2.0, 3.0, 4.0]
    expected = evaluate(lists, top, q)
    objects = np.empty(4, dtype=object)
    objects[:] = lists
    wide = sp.csr_matrix(dense.astype(np.float64))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for form in (
        dense,
        dense.astype(bool),
        wide,
        sp.csc_array(dense),
        sp.lil_matrix(dense),
        tuple(lists),
        objects,
    ):
        assert evaluate(form, SimpleNamespace(labels=top), q) == expected


def test_lists_without_propensities_reach_as_far_as_the_largest_label():
    found = evaluate([[0], [1]], [[7], [1]], k=1)
    assert found["p@1"] == 50
    assert found["macro_precision@1"] == 50
    assert not any(key.startswith("ps") for key in found)


def test_keys_are_those_of_the_contract():
    names = ("p", "recall", "ndcg", "precision", "f1", "psp", "psrecall", "psndcg")
    names += ("coverage", "macro_precision", "macro_recall", "macro_f1")
    found = evaluate([[0]], [[0]], [1.0])
    assert list(found) == [f"{name}@{k}" for name in names for k in (1, 3, 5)]
    assert all(type(value) is float for value in found.values())


def test_hand_worked_frequency_table():
    # Ten assignments in training: label 0 has half of them, 0 and 1 have 80 %, 2 and 3 the rest, 4 none.
    counts = [5, 3, 1, 1, 0]
    head, torso, tail, unseen = frequency_table([[0, 2], [0, 1], [4]], [[0, 2], [1, 2], [0, 3]], counts, k=2)
    assert head == FrequencyBin("head", 1, 5, 5, 2, 40.0, 50.0, 50.0, 100.0)
    assert torso == FrequencyBin("torso", 1, 3, 3, 1, 20.0, 100.0, 100.0, 100.0)
    assert tail == FrequencyBin("tail", 2, 1, 1, 1, 20.0, 100.0, pytest.approx(100 / 3), 100.0)
    assert unseen == FrequencyBin("unseen", 1, 0, 0, 1, 20.0, 0.0, 0.0, 0.0)


def test_a_bin_is_judged_only_if_a_row_has_one_of_its_labels():
    found = frequency_table([[0], [0, 1]], [[0], [2]], [5, 3, 1, 1, 0], k=1)
    assert [one.is_judged for one in found] == [True, True, False, False]
    assert [one.recall for one in found if not one.is_judged] == [0.0, 0.0], "numbers stay numbers"


def test_labels_of_the_same_frequency_stay_together():
    assert [row.labels for row in frequency_table([[0]], [[0]], [2, 2, 2, 2])] == [4, 0, 0, 0]
    assert [row.labels for row in frequency_table([[0]], [[0]], [0, 0])] == [0, 0, 0, 2]


def test_ties_do_not_empty_the_groups_of_a_small_catalogue():
    for counts, groups in (
        ([3, 2] + [1] * 20, [1, 1, 20]),  # half of all assignments, and 80 % of them, end among the ones
        ([5, 4, 3, 2] + [1] * 50, [3, 1, 50]),
        ([9] + [2] * 30 + [1] * 5, [1, 30, 5]),
        ([9, 8] + [3] * 2 + [2, 1], [2, 2, 2]),  # where no tie is in the way, 50 % and 80 % as ever
        ([100, 3, 2, 1], [1, 1, 2]),  # the head alone has 80 %: the torso is the next count
        ([2, 2, 1, 1, 1], [2, 0, 3]),
        ([2, 2, 2], [3, 0, 0]),
    ):
        found = frequency_table([[0]], [[0]], counts)
        assert [row.labels for row in found] == [*groups, 0]


@given(counts=st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_three_counts_fill_three_groups_and_no_count_is_in_two(counts):
    bins = frequency_bins(np.array(counts, np.float64))
    seen = [count for count in counts if count]
    assert len({(count, number) for count, number in zip(counts, bins, strict=True)}) == len(set(counts))
    assert np.all((bins == 3) == (np.array(counts) == 0))
    if len(set(seen)) >= 3:
        assert {0, 1, 2} <= set(bins)
    order = np.argsort(counts)[::-1]
    assert np.all(np.diff(bins[order]) >= 0), "the rarer, the further down"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top": [[0], [1]]}, "top must have 3 rows, as Y_true has; got 2"),
        ({"top": [[0.5], [1], [1]]}, "top must be a 2-D array of integers; got 2-D of float64"),
        ({"top": [0, 1, 1]}, "top must be a 2-D array of integers; got 1-D of int64"),
        ({"top": [[0], [2], [1]]}, "top must hold labels below 2; got 2"),
        ({"top": [[0], [-2], [1]]}, "top must hold labels, or -1 for none; got -2"),
        ({"top": [[0, 1], [-1, -1], [1, 1]]}, "top must name a label only once per row; row 2 repeats 1"),
        ({"inverse_propensity": [1.0]}, "inverse_propensity must have 2 numbers, one per label; got 1"),
        ({"inverse_propensity": [1.0, np.nan]}, "inverse_propensity must hold finite .* got nan for label 1"),
        (
            {"Y_true": np.zeros((0, 2)), "top": np.zeros((0, 1), int)},
            "Y_true must have at least one row; got 0",
        ),
        ({"Y_true": [[0], [1], [2]], "inverse_propensity": [1, 1]}, "from 0 to 1; got 2 in row 2"),
        ({"k": 0}, "k must be whole numbers of at least 1; got 0"),
        ({"k": ()}, "k must be whole numbers"),
        ({"k": (1, 2.5)}, "k must be whole numbers"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    good = {"Y_true": np.eye(3, 2), "top": [[0], [1], [1]]}
    with pytest.raises(ValueError, match=message):
        evaluate(**good | arguments)


def test_the_callers_arrays_are_not_changed():
    Y = sp.csr_matrix(([0.0, 3.0, 3.0], [2, 1, 1], [0, 3]), shape=(1, 3))
    top, q = np.array([[1, 2]], np.int32), np.array([1.0, 2.0, 3.0])
    assert evaluate(Y, top, q, k=1)["p@1"] == 100
    assert (Y.data.tolist(), Y.indices.tolist()) == ([0, 3, 3], [2, 1, 1])
    assert (top.tolist(), q.tolist()) == ([[1, 2]], [1, 2, 3])


def test_sums_of_partitions_add_up_to_those_of_all_rows():
    rng = np.random.default_rng(2)
    Y = sp.csr_array(rng.random((240, N_LABELS)) < 0.2, dtype=np.float32)
    top = np.stack([rng.permutation(N_LABELS)[:4] for _ in range(240)])
    worth = rng.uniform(1, 9, N_LABELS)
    top[rng.random(240) < 0.3, 2:] = -1
    chance = rng.random(top.shape)
    whole = RankingSums.of(Y, top, [1, 4], worth, True, chance)
    first, second = (
        RankingSums.of(sp.csr_array(Y[part]), top[part], [1, 4], worth, True, chance[part])
        for part in (slice(0, 100), slice(100, None))
    )
    assert {"f1@4", "precision@4", "ece@1", "brier@4"} <= set(whole.figures())
    assert (first + second).figures() == pytest.approx(whole.figures(), rel=1e-12)
