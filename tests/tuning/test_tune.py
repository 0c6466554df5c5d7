"""Choosing settings: what is tried, who goes on, what is chosen, and that the seed decides it."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import longleaf as ll
from longleaf.metrics import compare, evaluate
from longleaf.split import DEV, split_rows
from longleaf.tuning.candidates import SPACE, draw, full_space, starting_settings
from longleaf.tuning.halving import Trial, parse_metric, rung_sizes
from tests.helpers.tables import records_of, table

SMALL: dict[str, Any] = {
    "loss": ["log", "squared-hinge"],
    "C": {"log": [0.001, 16.0], "squared-hinge": [1.0]},
    "arity": [2, 4],
    "max_leaf": [2],
    "n_trees": [1],
    "threshold": [0.0],
}
N_LABELS = 10


def data(n_rows: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(seed)
    Y = np.zeros((n_rows, N_LABELS))
    for _ in range(2):
        Y[np.arange(n_rows), np.minimum(random.geometric(0.25, n_rows) - 1, N_LABELS - 1)] = 1
    return Y @ random.rand(N_LABELS, 8) + 0.2 * random.rand(n_rows, 8), Y


def tuned(**changes: Any) -> ll.Tuning:
    X, Y = data()
    settings = {"space": SMALL, "candidates": 6, "min_rows": 20, "metric": "p@2"}
    return ll.tune(X, Y, ll.PLT(n_jobs=1, n_trees=1, max_leaf=2, threshold=0.0), **(settings | changes))


# ------------------------------------------------------------ candidates


def test_the_draw_begins_with_the_start_has_no_twins_and_stays_in_the_space() -> None:
    start = starting_settings(list(SPACE), ll.PLT(loss="log"))
    assert start["C"] == 16.0
    drawn = draw(SPACE, start, 50, seed=3)
    assert drawn[0] == start
    assert len({tuple(one.values()) for one in drawn}) == 50
    for one in drawn[1:]:
        assert list(one) == list(SPACE)
        assert one["C"] in SPACE["C"][one["loss"]]
        assert all(one[name] in SPACE[name] for name in SPACE if name != "C")
    assert drawn == draw(SPACE, start, 50, seed=3)
    assert drawn != draw(SPACE, start, 50, seed=4)


def test_a_space_smaller_than_asked_for_is_tried_as_a_whole() -> None:
    start = starting_settings(list(SMALL), ll.PLT.paper(n_trees=1, max_leaf=2, threshold=0.0))
    drawn = draw(SMALL, start, 100, seed=1)
    assert len(drawn) == 3 * 2  # three pairs of loss and C, two arities; the start is among them
    outside = start | {"C": 5.0}
    assert len(draw(SMALL, outside, 100, seed=1)) == 7
    assert len(draw(SMALL, outside, 1, seed=1)) == 1


def test_the_start_is_moved_to_where_the_caller_wants_it() -> None:
    """Who asks for one tree is not given three because three are the default."""
    names = ["loss", "C", "n_trees", "arity"]
    start = starting_settings(names, ll.PLT.paper(C=5.0), {"n_trees": [1, 2], "arity": [8, 2]})
    assert start == {"loss": "log", "C": 5.0, "n_trees": 1, "arity": 2}
    hinge = {"loss": ["squared-hinge"]}
    assert starting_settings(names, ll.PLT.paper(C=5.0), hinge)["C"] == 1.0
    by_loss = {"C": {"log": [2.0, 4.0], "squared-hinge": [9.0]}}
    assert starting_settings(names, ll.PLT(loss="log"), by_loss)["C"] == 2.0
    assert starting_settings(names, ll.PLT(loss="log"), hinge | by_loss)["C"] == 9.0
    assert {trial.settings["n_trees"] for trial in tuned(space=SMALL | {"n_trees": [2]}).trials} == {2}


def test_a_model_without_trees_has_fewer_settings() -> None:
    assert list(full_space(None, ll.BR())) == ["loss", "C", "threshold"]
    assert starting_settings(["C"], ll.BR()) == {"C": 32.0}


@pytest.mark.parametrize(
    ("space", "must_say"),
    [
        ({"depth": [1]}, "'depth'"),
        ({"arity": []}, "arity"),
        ({"loss": "log"}, "loss"),
        ({"C": {"log": [1.0]}}, "squared-hinge"),
        ({"C": {"log": [], "squared-hinge": [1.0]}}, "C"),
    ],
)
def test_a_bad_space_is_refused(space: dict[str, Any], must_say: str) -> None:
    with pytest.raises(ValueError, match=must_say):
        tuned(space=space)


# ------------------------------------------------------------ rungs


def test_rungs_grow_by_the_factor_to_all_rows() -> None:
    assert rung_sizes(1000, 8, 2, 1) == [125, 250, 500, 1000]
    assert rung_sizes(1000, 7, 2, 1) == [250, 500, 1000]
    assert rung_sizes(1000, 1, 3, 1) == [1000]


def test_the_best_third_and_the_start_go_on() -> None:
    found = tuned(candidates=7, space=SMALL | {"C": [0.001, 0.01, 1.0, 16.0]}, metric="ndcg@2")
    rungs: dict[int, list[Trial]] = {}
    for trial in found.trials:
        rungs.setdefault(trial.rung, []).append(trial)
    assert len(rungs[0]) == 7
    for rung in range(len(rungs) - 1):
        ranked = sorted(rungs[rung], key=lambda trial: (-trial.value, trial.candidate))
        going = {trial.candidate for trial in ranked[: -(-len(ranked) // 3)]} | {0}
        assert {trial.candidate for trial in rungs[rung + 1]} == going
    assert {trial.rows for trial in rungs[len(rungs) - 1]} == {found.rows}
    last = rungs[len(rungs) - 1]
    assert found.value == max(trial.value for trial in last) >= last[0].value
    assert found.settings == next(trial.settings for trial in last if trial.value == found.value)


# ------------------------------------------------------------ what is chosen


@pytest.mark.parametrize(
    ("metric", "tail"), [("p@2", None), ("f1@2", None), ("psp@3", None), ("ndcg@1", 0.5)]
)
def test_values_are_those_of_training_and_judging_by_hand(metric: str, tail: float | None) -> None:
    X, Y = data()
    found = tuned(metric=metric, tail=tail, random_state=5)
    dial = tail if tail is not None else float(metric.startswith("psp"))
    assert found.tail == dial
    held_out = split_rows(Y, 0.1, 0.0, random_state=5) == DEV
    worth = ll.inverse_propensity(Y[~held_out])
    assert found.dev_rows == held_out.sum()
    assert found.rows == (~held_out).sum()
    tops = {}
    for trial in found.trials:
        if trial.rows == found.rows:
            model = ll.PLT(**trial.settings, random_state=5, n_jobs=1).fit(X[~held_out], Y[~held_out])
            top = model.top_k(X[held_out], int(metric[-1]), tail=dial)
            judged = evaluate(Y[held_out], top, worth, k=int(metric[-1]))
            assert trial.value == pytest.approx(judged[metric])
            tops[trial.candidate] = top
            if trial.settings == found.settings:
                best = top
    want = compare(Y[held_out], tops[0], best, worth, k=int(metric[-1]))[metric]
    assert asdict(found.difference) == pytest.approx(asdict(want))


def test_a_hopeless_cost_is_not_chosen_and_the_estimator_has_what_is() -> None:
    X, Y = data()
    found = tuned(space=SMALL | {"loss": ["log"], "C": [1e-6, 16.0]}, metric="ndcg@2")
    assert found.settings["C"] == 16.0
    assert {name: found.estimator.get_params()[name] for name in found.settings} == found.settings
    assert found.estimator.random_state == 1
    assert found.estimator.fit(X, Y).top_k(X, 1).labels.shape == (240, 1)


def test_the_start_is_chosen_where_nothing_is_better() -> None:
    found = tuned(space=SMALL | {"loss": ["log"], "C": [1e-6, 1e-5, 16.0]}, metric="ndcg@2", candidates=4)
    assert found.settings == found.start
    assert found.start["C"] == 16.0
    assert found.difference.difference == 0


def test_the_seed_decides_and_threads_do_not() -> None:
    X, Y = data()
    again = ll.tune(
        X,
        Y,
        ll.PLT(n_jobs=2, n_trees=1, max_leaf=2, threshold=0.0),
        space=SMALL,
        candidates=6,
        min_rows=20,
        metric="p@2",
    )
    assert again == tuned()
    assert again.trials != tuned(random_state=2).trials


def test_rows_to_choose_by_may_be_given_and_unseen_labels_count_against() -> None:
    X_dev, Y_dev = data(60, seed=1)
    unseen = np.hstack([Y_dev, np.ones((60, 1))])
    found = [tuned(dev=(X_dev, one), metric="ndcg@5") for one in (Y_dev, unseen)]
    assert [one.dev_rows for one in found] == [60, 60]
    assert found[0].rows == 240
    assert found[1].value < found[0].value


def test_progress_rises_to_the_end_and_every_trial_is_reported() -> None:
    shares: list[float] = []
    trials: list[Trial] = []
    found = tuned(progress=shares.append, report=trials.append)
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1]
    assert shares[-1] == pytest.approx(1)
    assert tuple(trials) == found.trials


def test_the_result_is_plain_json() -> None:
    found = tuned()
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["settings"] == found.settings
    assert plain["difference"]["low"] == found.difference.low
    assert [Trial(**trial) for trial in plain["trials"]] == list(found.trials)
    assert "estimator" not in plain


# ------------------------------------------------------------ texts and other models


def test_texts_are_vectorized_once_and_give_what_their_matrix_gives() -> None:
    random = np.random.RandomState(0)
    words = ["oil olive", "wheat bread", "fish sea", "court judge"]
    numbers = random.randint(4, size=(120, 2))
    texts = [" ".join(words[n] for n in row) + f" nr{i}" for i, row in enumerate(numbers)]
    tags = [[words[n] for n in set(row.tolist())] for row in numbers]
    estimator = ll.PLT(n_jobs=1, n_trees=1, max_leaf=2)
    options: dict[str, Any] = {"space": SMALL, "candidates": 3, "min_rows": 10, "metric": "p@1"}
    vectorizer = ll.TextVectorizer(min_df=2)
    found = ll.tune(texts, tags, ll.Tagger(estimator, vectorizer), **options)
    X = vectorizer.fit_transform(texts)
    classes = sorted(words)
    Y = [[classes.index(tag) for tag in row] for row in tags]
    assert found == ll.tune(X, Y, estimator, **options)
    assert isinstance(found.estimator, ll.Tagger)
    assert found.settings["C"] == found.estimator.estimator.C
    assert found.estimator.fit(texts, tags).suggest(["olive oil"], 1)[0][0].tag == "oil olive"
    given = ll.tune(
        texts, tags, ll.Tagger(estimator, vectorizer), dev=(texts[:20], [["new"]] * 20), **options
    )
    assert given.value == 0


def test_a_tagger_of_records_with_names_is_tuned_and_then_learns_from_the_names() -> None:
    rows = table(600)
    records, tags = records_of(rows), [row["subjects"] for row in rows]
    tagger = ll.Tagger(ll.PLT(n_jobs=1, n_trees=1, max_leaf=2), names={"oil": "olive oil", "moon": "moon"})
    options: dict[str, Any] = {"space": SMALL, "candidates": 3, "min_rows": 100, "metric": "p@1"}
    found = ll.tune(records, tags, tagger, **options)
    nameless = ll.tune(records, tags, clone(tagger).set_params(names=None), **options)
    assert found.trials == nameless.trials
    assert found.estimator.names == tagger.names
    fitted = found.estimator.fit(records, tags)
    assert found.settings["C"] == fitted.estimator.C
    assert list(fitted.vectorizer_.field_weights_) == ["title", "body"]
    assert fitted.fusion_ is not None
    assert "moon" in fitted.classes_


def test_binary_relevance_is_tuned_as_well() -> None:
    X, Y = data(100)
    found = ll.tune(X, Y, ll.BR(n_jobs=1), candidates=3, metric="p@1")
    assert isinstance(found.estimator, ll.BR)
    assert set(found.settings) == {"loss", "C", "threshold"}


# ------------------------------------------------------------ refusals


@pytest.mark.parametrize("metric", ["p", "p@0", "p@x", "map@3", "psp@5 ", 5, "p@10000"])
def test_an_unknown_metric_is_refused(metric: Any) -> None:
    with pytest.raises(ValueError, match="metric must be p@k, f1@k, ndcg@k or psp@k"):
        parse_metric(metric)


@pytest.mark.parametrize(
    ("change", "must_say"),
    [
        ({"candidates": 0}, "candidates"),
        ({"factor": 1}, "factor"),
        ({"min_rows": 0}, "min_rows"),
        ({"tail": -1.0}, "tail"),
        ({"dev_share": 1.0}, "dev"),
        ({"dev_share": 0.0}, "held out"),
        ({"dev": (np.ones((2, 3)), np.ones((2, 10)))}, "8 features"),
        ({"dev": (np.ones((2, 8)), np.ones((3, 10)))}, "same number of rows"),
        ({"dev": (np.ones((2, 8)), np.zeros((2, 10)))}, "development rows"),
    ],
)
def test_what_cannot_work_is_refused(change: dict[str, Any], must_say: str) -> None:
    with pytest.raises(ValueError, match=must_say):
        tuned(**change)


def test_another_estimator_is_refused() -> None:
    with pytest.raises(TypeError, match="PLT, BR or Tagger"):
        ll.tune([[1.0]], [[0]], object())


def test_weights_of_fields_are_tried_and_the_chosen_estimator_has_the_best() -> None:
    random = np.random.RandomState(3)
    records, tags = [], []
    for _ in range(300):
        topic = int(random.randint(6))
        noise = " ".join(f"word{one}" for one in random.randint(6, size=3))
        records.append({"title": f"word{topic}", "text": noise})  # the title decides, the text misleads
        tags.append([f"t{topic}"])
    space = {"loss": ["squared-hinge"], "C": [0.002], "arity": [2], "max_leaf": [2], "n_trees": [1]}
    start = ll.Tagger(ll.PLT(n_jobs=1, n_trees=1, max_leaf=2, C=0.002))
    found = ll.tune(records, tags, start, space=space | {"threshold": [0.0]}, metric="p@1", candidates=3)
    tried = {json.dumps(trial.settings["fields"]) for trial in found.trials}
    assert tried == {json.dumps({"title": one, "text": 1.0}) for one in (0.5, 1.0, 2.0)}
    values = {trial.settings["fields"]["title"]: trial.value for trial in found.trials}
    assert values[2.0] > values[1.0] > values[0.5]
    assert found.settings["fields"] == {"title": 2.0, "text": 1.0}
    fitted = found.estimator.fit(records, tags)
    assert fitted.vectorizer_.field_weights_ == {"title": 2.0, "text": 1.0}
    assert json.loads(json.dumps(found.to_dict()))["settings"]["fields"] == {"title": 2.0, "text": 1.0}
