"""As many labels as are likely: the set of the largest expected F1."""

import numpy as np
import pytest

import longleaf as ll
from longleaf.search.auto_k import SEARCHED, best_labels, cut, n_searched
from longleaf.suggest import Suggester
from tests.helpers.tagging import TAGS, TEXTS, corpus, small


def sizes(*rows, most=20):
    return best_labels(np.array(rows, np.float32), most=most).sum(axis=1).tolist()


def found(*rows):
    """Give an answer with these probabilities by row, which are the scores too, and labels 0, 1, ….."""
    p = np.array(rows, np.float32)
    labels = np.where(p > 0, np.arange(p.shape[1]), -1).astype(np.int32)
    return ll.TopK(labels, p, p, np.zeros(len(p), np.int64))


# ------------------------------------------------------------ hand-worked


def test_hand_worked_sizes():
    # 1.8 labels expected: F1 is 1.8 / 2.8 = 0.643 with one, 3.4 / 3.8 = 0.895 with two, 3.6 / 4.8 with three.
    assert sizes([0.9, 0.8, 0.1]) == [2]
    # 1.3 expected: 1.8 / 2.3 = 0.783 with one, 2.2 / 3.3 = 0.667 with two, 2.6 / 4.3 = 0.605 with three.
    assert sizes([0.9, 0.2, 0.2]) == [1]
    # The same second label is worth it where more labels are expected: 1.8 / 2.7, 2.6 / 3.7, 3.4 / 4.7.
    assert sizes([0.9, 0.4, 0.4]) == [3]


def test_as_many_as_are_certain():
    assert sizes([1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1]) == [3, 1, 5]


def test_none_where_a_record_without_labels_is_likelier_than_f1_is_large():
    # One of 0.4 is expected: F1 is 0.8 / 1.4 = 0.571, no label has at most 0.6. With 0.5: 0.667 against 0.5.
    assert sizes([0.4, 0.0], [0.5, 0.0]) == [0, 1]
    assert sizes([0.001, 0.001], [0.0, 0.0]) == [0, 0]


def test_one_of_many_that_exclude_each_other_is_returned():
    # The product of 1 - p is 0.34, more than the F1 of 0.24, but with 1 label expected a row is not without.
    row = np.full(20, 0.05)
    row[0] = 0.15
    assert np.prod(1 - row) > 2 * row.sum() / (20 + row.sum())
    assert sizes(row) != [0]


def test_the_cap_holds_and_the_labels_beyond_it_still_count():
    assert sizes([0.9] * 30) == [20]
    assert sizes([0.9] * 30, most=4) == [4]
    # Of two labels alone the first is better (0.8 against 0.77); with 4 expected, both are (0.36, 0.45).
    few, many = [0.9, 0.35, 0, 0, 0], [0.9, 0.35, 0.35, 0.35, 0.35]
    assert sizes(few, many, most=2) == [1, 2]


def test_a_larger_limit_changes_only_rows_that_reached_the_smaller_one():
    rng = np.random.default_rng(1)
    p = some_probabilities(rng, 400, n_labels=2000)
    p[:50, :300] = np.maximum(p[:50, :300], 0.6)  # records with hundreds of labels
    p[200:] *= rng.uniform(0, 0.2, (200, 1)).astype(np.float32)
    shuffled = rng.permuted(p, axis=1)  # as in an order by gain
    for rows in (-np.sort(-p), shuffled):
        limits = (1, 5, 20, 50, 60, 61, 200, 1000, 2000)
        chosen = [best_labels(rows[:, : n_searched(most)], most=most).sum(axis=1) for most in limits]
        for most, now, more in zip(limits, chosen, chosen[1:], strict=False):
            assert (more == now)[now < most].all()
            assert (more >= now).all()
        assert (chosen[0] == 0).any()
        assert chosen[-1].max() > 100


def test_many_labels_near_0_do_not_make_a_row_one_with_labels():
    row = np.full(2000, 0.001)
    assert sizes(row, most=20) == sizes(row, most=2000) == [0]
    row[:2] = 0.6
    assert sizes(row, most=20) == sizes(row, most=2000) == [2]


def test_a_row_has_as_many_labels_as_are_likely_beyond_those_searched_at_first():
    row = np.pad(np.full(150, 0.9), (0, 90))
    assert sizes(row, most=100) == [100]
    assert sizes(row, most=200) == [150]


def test_pads_do_not_matter():
    rows = np.random.default_rng(0).random((50, 6)) ** 2
    assert sizes(*rows) == sizes(*np.pad(rows, ((0, 0), (0, 30))))


def test_probabilities_need_not_descend():
    # By score the rare 0.3 comes first. 3 expected: 0.6 / 4, 2.4 / 5, 4.2 / 6, 6 / 7: it does not stop there.
    assert sizes([0.3, 0.9, 0.9, 0.9]) == [4]
    assert sizes([0.3, 0.9, 0.05, 0.05]) == [2]


# ------------------------------------------------------------ the answer


def test_what_is_dropped_becomes_padding():
    top = cut(found([0.9, 0.8, 0.1], [0.1, 0.05, 0.02], [0.9, 0.2, 0.1]))
    assert top.labels.tolist() == [[0, 1, -1], [-1, -1, -1], [0, -1, -1]]
    for numbers in (top.scores, top.probabilities):
        assert numbers.dtype == np.float32
        assert numbers.tolist() == np.float32([[0.9, 0.8, 0], [0, 0, 0], [0.9, 0, 0]]).tolist()


def test_the_answer_is_as_wide_as_the_cap():
    top = cut(found(np.full(60, 0.9)), most=4)
    assert top.labels.tolist() == [[0, 1, 2, 3]]
    assert cut(found(np.full(3, 0.9)), most=20).labels.shape == (1, 3)


def test_a_threshold_leaves_labels_out_but_not_their_part_of_the_expected_number():
    row = [0.25, 0.24, *[0.1] * 20]
    assert cut(found(row)).labels[0, :3].tolist() == [0, 1, -1]
    assert cut(found(row), threshold=0.2).labels[0, :3].tolist() == [0, 1, -1], "with 0.49 expected: none"
    assert cut(found(row), threshold=0.245).labels[0, :3].tolist() == [0, -1, -1]
    assert cut(found(row), threshold=0.3).labels[0, :3].tolist() == [-1, -1, -1]
    assert cut(found([0.2]), threshold=0.2).labels.tolist() == cut(found([0.2])).labels.tolist()


def test_only_the_best_label_of_each_group_is_returned_and_the_others_are_expected_too():
    groups = np.array([0, 0, 1, 2, 2])
    top = found([0.9, 0.8, 0.7, 0.1, 0.0], [0.9, 0.35, 0.35, 0.35, 0.3])
    assert cut(top, groups=groups).labels[:, :3].tolist() == [[0, 2, -1], [0, 2, 3]]
    assert cut(top, most=1, groups=groups).labels.tolist() == [[0], [0]]
    likely = cut(found([0.5, 0.9]), threshold=[0.6, 0.6], groups=np.array([0, 0]))
    assert likely.labels.tolist() == [[1, -1]], "the best label of a group that may be returned"


def test_labels_below_a_threshold_of_their_own_leave_no_gap():
    top = found([0.9, 0.8, 0.7])
    assert cut(top, threshold=[0.5, 0.81, 0.5]).labels.tolist() == [[0, 2, -1]]
    assert cut(top, threshold=[0.5, 0.81, 0.5], most=1).labels.tolist() == [[0]]


# ------------------------------------------------------------ the best by simulation


def expected_f1(truth, most):
    """Give the mean F1 of the first 0, 1, …, most labels, for simulated truths [draws, rows, labels]."""
    n_true = truth.sum(axis=2)
    sums = np.zeros((truth.shape[1], most + 1))
    sums[:, 0] = (n_true == 0).mean(axis=0)  # nothing returned, and nothing to find
    hits = truth[:, :, :most].cumsum(axis=2)
    sums[:, 1:] = (2 * hits / np.maximum(np.arange(1, most + 1) + n_true[:, :, None], 1)).mean(axis=0)
    return sums


def some_probabilities(rng, n_rows, n_labels=80):
    """Give rows of a few likely and many unlikely labels, most probable first."""
    p = np.minimum(rng.pareto(1.2, (n_rows, n_labels)) * rng.uniform(0.005, 0.08, (n_rows, 1)), 0.98)
    return -np.sort(-p.astype(np.float32))


def independent(rng, p, draws=400):
    return rng.random((draws, *p.shape)) < p


def exclusive(rng, p, draws=400):
    """Draw exactly one true label per row; probabilities must sum to 1."""
    drawn = rng.random((draws, len(p), 1)) < p.cumsum(axis=1)
    return drawn & ~np.pad(drawn, ((0, 0), (0, 0), (1, 0)))[:, :, :-1]


@pytest.mark.parametrize("most", [2, 5, 20])
def test_the_choice_is_nearly_the_best_of_all_sizes(most):
    rng = np.random.default_rng(3)
    p = some_probabilities(rng, 300)
    kept = best_labels(p[:, :SEARCHED], most=most).sum(axis=1)
    value = expected_f1(independent(rng, p), most)
    reached = value[np.arange(len(p)), kept].mean()
    assert kept.min() == 0
    assert kept.max() == min(most, 17)
    assert reached > value.max(axis=1).mean() - 0.005
    assert reached > max(value.mean(axis=0)) + (0 if most == 2 else 0.01), "better than any fixed size"


def test_the_choice_is_nearly_the_best_in_an_order_by_gain():
    rng = np.random.default_rng(4)
    p = some_probabilities(rng, 300)
    order = np.argsort(-p * rng.uniform(1, 3, p.shape), axis=1)
    p = np.take_along_axis(p, order, axis=1)
    kept = best_labels(p[:, :SEARCHED]).sum(axis=1)
    value = expected_f1(independent(rng, p), 20)
    assert value[np.arange(len(p)), kept].mean() > value.max(axis=1).mean() - 0.005


def test_the_choice_is_nearly_the_best_where_labels_exclude_each_other():
    rng = np.random.default_rng(5)
    p = some_probabilities(rng, 300, n_labels=40)
    p = (p / p.sum(axis=1, keepdims=True)).astype(np.float32)
    kept = best_labels(p).sum(axis=1)
    value = expected_f1(exclusive(rng, p), 20)
    assert kept.min() > 0
    assert value[np.arange(len(p)), kept].mean() > value.max(axis=1).mean() - 0.02


def test_searching_only_the_cap_would_be_worse_where_more_labels_are_expected():
    rng = np.random.default_rng(6)
    p = some_probabilities(rng, 300)
    p = p[p.sum(axis=1) > 3]
    value = expected_f1(independent(rng, p), 3)
    reached = [
        value[np.arange(len(p)), best_labels(p[:, :searched], most=3).sum(axis=1)].mean()
        for searched in (3, SEARCHED)
    ]
    assert reached[1] > reached[0] + 0.002
    assert reached[1] > value.max(axis=1).mean() - 0.001


# ------------------------------------------------------------ from texts


@pytest.fixture(scope="module")
def tagger():
    return ll.Tagger(small()).fit(TEXTS, TAGS)


def test_every_text_gets_the_prefix_of_its_tags_that_the_rule_says(tagger):
    texts, _ = corpus(40, seed=1)
    every = tagger.suggest(texts, k=6)
    chosen = tagger.suggest(texts, k="auto")
    p = np.array([[one.probability for one in row] for row in every], np.float32)
    assert [len(row) for row in chosen] == best_labels(p).sum(axis=1).tolist()
    assert all(own == row[: len(own)] for own, row in zip(chosen, every, strict=True))
    assert len({len(row) for row in chosen}) > 1


def test_a_text_about_nothing_gets_no_tag(tagger):
    rows = tagger.suggest(["zzz", "olive oil pressed"], k="auto")
    assert rows[1][0].tag == "oil"
    p = [one.probability for one in tagger.suggest(["zzz"], k=6)[0]]
    assert bool(rows[0]) == (2 * max(np.cumsum(p) / (np.arange(1, 7) + sum(p))) > 1 - sum(p))


def test_a_small_cap_does_not_change_how_many_labels_are_expected(tagger):
    texts, _ = corpus(40, seed=2)
    one, many = (tagger.suggest(texts, k="auto", max_k=k) for k in (1, 20))
    assert one == [row[:1] for row in many]


def test_the_search_is_wider_than_the_cap(tagger, monkeypatch):
    asked = []

    def watch(X, k, **options):
        asked.append((k, options["threshold"]))
        return top_k(X, k, **options)

    suggester = Suggester(tagger.estimator_)
    top_k = suggester.model.top_k
    monkeypatch.setattr(suggester.model, "top_k", watch)
    monkeypatch.setattr("longleaf.search.auto_k.SEARCHED", 4)
    X = tagger.vectorizer_.transform(TEXTS[:3])
    assert suggester.top_k(X, suggester.query("auto", max_k=2, threshold=0.3)).labels.shape == (3, 2)
    suggester.top_k(X, suggester.query("auto", max_k=5))
    assert asked == [(4, None), (6, None)], "and without a threshold, which `cut` applies"


@pytest.mark.parametrize("options", [{"tail": 1.0}, {"gain": {"duty": 5.0}}, {"never": ["oil"]}, {}])
def test_a_smallest_probability_only_drops_labels(tagger, options):
    texts, _ = corpus(40, seed=3)
    every = tagger.suggest(texts, k="auto", **options)
    likely = tagger.suggest(texts, k="auto", min_probability=0.3, **options)
    assert any(map(len, likely))
    for one, row in zip(likely, every, strict=True):
        assert all(suggestion.probability >= 0.3 for suggestion in one)
        assert {suggestion.tag for suggestion in row if suggestion.probability >= 0.3} <= {s.tag for s in one}


def test_only_filtered_tags_and_one_of_a_group_are_counted(tagger):
    texts, _ = corpus(40, seed=3)
    only = tagger.suggest(texts, k="auto", only=["oil", "wine"])
    assert {one.tag for row in only for one in row} == {"oil", "wine"}
    groups = dict.fromkeys(["oil", "wine", "cereals", "fish"], "goods")
    for row in tagger.suggest(texts, k="auto", groups=groups):
        assert sum(one.tag in groups for one in row) <= 1


def test_the_same_records_get_the_same_labels_alone_and_with_other_threads(tagger):
    texts, _ = corpus(40, seed=4)
    together = tagger.suggest(texts, k="auto")
    assert tagger.suggest(texts, k="auto", n_jobs=2) == together
    assert [tagger.suggest([text], k="auto")[0] for text in texts] == together
