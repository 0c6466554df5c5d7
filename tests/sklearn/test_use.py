"""The estimators inside scikit-learn: pipelines, searches, cross-validation, scorers, names of columns."""

import io
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

import longleaf as ll
from longleaf.metrics import evaluate, make_scorer
from longleaf.metrics._scorer import METRICS
from tests.helpers.searching import same
from tests.helpers.training import texts

N_LABELS = 9
X, ROWS = texts(n_rows=90, n_labels=N_LABELS)
Y = np.zeros((90, N_LABELS), np.float32)
for _row, _labels in enumerate(ROWS):
    Y[_row, _labels] = 1

WORDS = [" ".join(f"word{column}" for column in X[[row]].indices) for row in range(90)]
TAGS = [[f"tag{label}" for label in labels] for labels in ROWS]


def plt(**params):
    return ll.PLT(**{"n_trees": 1, "max_leaf": 3, "max_epochs": 10, "random_state": 1, "n_jobs": 1, **params})


def br(**params):
    return ll.BR(**{"max_epochs": 10, "random_state": 1, "n_jobs": 1, **params})


def lower(words):
    return [word.lower() for word in words]


VECTORIZERS = [None, TfidfVectorizer(), make_pipeline(FunctionTransformer(lower), TfidfVectorizer())]

LABEL_FORMS = {
    "csr_matrix": sp.csr_matrix(Y),
    "csr_array": sp.csr_array(Y),
    "dense": Y,
    "lists": ROWS,
    "rows of a lil_array": sp.lil_array(Y).rows,
}


@pytest.mark.parametrize("form", LABEL_FORMS)
def test_k_fold_splits_any_form_of_labels(form):
    labels, scorer = LABEL_FORMS[form], make_scorer("p@3")
    expected = []
    for train, test in KFold(3).split(X, labels):
        top = plt().fit(X[train], Y[train]).top_k(X[test], k=3)
        expected.append(evaluate(Y[test], top, k=3)["p@3"])
    grid = GridSearchCV(plt(), {}, cv=3, scoring=scorer, error_score="raise").fit(X, labels)
    np.testing.assert_allclose(
        [grid.cv_results_[f"split{fold}_test_score"][0] for fold in range(3)], expected
    )
    if not sp.issparse(labels):
        found = cross_val_score(plt(), X, labels, cv=3, scoring=scorer, error_score="raise")
        np.testing.assert_allclose(found, expected)
        assert cross_val_score(br(), X, labels, cv=3, error_score="raise").min() > 0.3  # by its own score


def test_scikit_learns_cross_val_score_itself_refuses_sparse_labels():
    """Should this fail one day, docs/guide/scikit-learn.md has a detour too many."""
    with pytest.raises(
        ValueError, match="The 'y' parameter of cross_val_score must be an array-like or None"
    ):
        cross_val_score(plt(), X, sp.csr_array(Y))


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_a_scorer_whose_propensities_come_from_training(metric):
    train, test = slice(0, 60), slice(60, 90)
    model = plt().fit(X[train], Y[train])
    worth = ll.inverse_propensity(Y[train], a=0.5, b=0.4)
    expected = evaluate(Y[test], model.top_k(X[test], 2, tail=1.0, propensity=(0.5, 0.4)), worth, k=2)
    scorer = make_scorer(f"{metric}@2", tail=1.0, propensity=(0.5, 0.4))
    assert scorer(model, X[test], Y[test]) == expected[f"{metric}@2"]
    assert {name.split("@")[0] for name in expected} == {*METRICS, "ece", "brier"}, "errors are no scores"


def test_the_scorers_dial_and_search_reach_the_model():
    model = plt(arity=2, max_leaf=1).fit(X, Y)
    beam = make_scorer("psp@3", tail=2.0, search="beam", beam=1)(model, X, Y)
    top = model.top_k(X, 3, tail=2.0, search="beam", beam=1)
    assert beam == evaluate(Y, top, ll.inverse_propensity(Y), k=3)["psp@3"]
    assert beam != make_scorer("psp@3", tail=2.0)(model, X, Y)
    assert beam != make_scorer("psp@3", search="beam", beam=1)(model, X, Y)


def test_labels_that_training_never_saw_count_against_the_score():
    model = plt().fit(X[:60], [labels or [0] for labels in ROWS[:60]])
    unseen = [[model.n_labels_ + 2]] * 30
    assert make_scorer("p@1")(model, X[60:], unseen) == 0.0
    assert model.score(X[60:], unseen) == 0.0
    both = [[*labels, N_LABELS + 2] for labels in ROWS[60:]]
    assert make_scorer("recall@3")(model, X[60:], both) < make_scorer("recall@3")(model, X[60:], ROWS[60:])
    assert len(model.inverse_propensity(n_labels=20)) == 20
    assert model.inverse_propensity(n_labels=20)[-1] == model.inverse_propensity(n_labels=20).max()


@pytest.mark.parametrize("metric", ["p", "p@0", "p@x", "map@5", "ece@5", "", "p@-1"])
def test_an_unknown_metric_is_refused(metric):
    with pytest.raises(
        ValueError, match=r"metric must be one of p, precision, recall, f1, .*, then @ and k; got '"
    ):
        make_scorer(metric)


def test_a_scorer_refuses_what_has_no_ranked_labels():
    other = LogisticRegression().fit(X, Y[:, 0])
    with pytest.raises(TypeError, match="estimator must be a PLT, BR or Tagger, or end in one; got Logistic"):
        make_scorer("p@1")(other, X, Y)
    with pytest.raises(ValueError, match="y must have 9 labels, as in fit; got 8"):
        make_scorer("p@1")(plt().fit(X, Y), X, Y[:, :8])
    with pytest.raises(ValueError, match="X and y must have the same number of rows; got 90 and 89"):
        make_scorer("p@1")(plt().fit(X, Y), X, Y[:89])


@pytest.mark.parametrize("model", [plt(), br()], ids=["plt", "br"])
def test_a_grid_search_over_a_pipeline_finds_the_better_setting(model):
    pipeline = Pipeline([("scale", MaxAbsScaler()), ("model", model)])
    scorers = {name: make_scorer(name, tail=1.0) for name in ("p@1", "psp@5")}
    grid = GridSearchCV(
        pipeline, {"model__C": [1e-4, 4.0]}, cv=3, scoring=scorers, refit="psp@5", error_score="raise"
    )
    grid.fit(X, sp.csr_matrix(Y))
    assert grid.best_params_ == {"model__C": 4.0}
    best = grid.best_estimator_
    assert scorers["p@1"](grid, X, Y) == scorers["p@1"](best, X, Y)
    assert scorers["p@1"](best, X, Y) == scorers["p@1"](best[-1], best[:-1].transform(X), Y)
    assert scorers["p@1"](make_pipeline(best[-1]), X, Y) == scorers["p@1"](best[-1], X, Y)


def test_a_search_in_other_processes_gives_the_same():
    settings = {"cv": 2, "scoring": make_scorer("psp@3", propensity=(0.5, 0.4)), "error_score": "raise"}
    here, there = (
        GridSearchCV(plt(), {"C": [0.1, 1.0]}, n_jobs=jobs, **settings).fit(X, Y) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(here.cv_results_["mean_test_score"], there.cv_results_["mean_test_score"])


@pytest.mark.parametrize("vectorizer", VECTORIZERS)
def test_a_tagger_is_cross_validated_searched_and_put_into_a_pipeline(vectorizer):
    tagger = ll.Tagger(plt(), vectorizer)
    scores = cross_validate(tagger, WORDS, TAGS, cv=3, scoring={"p": make_scorer("p@1")}, error_score="raise")
    assert scores["test_p"].min() > 30
    expected = [tagger.fit(WORDS[30:], TAGS[30:]).score(WORDS[:30], TAGS[:30])]
    np.testing.assert_allclose(scores["test_p"][:1], np.multiply(expected, 100))
    grid = GridSearchCV(tagger, {"estimator__C": [1e-4, 4.0]}, cv=3, error_score="raise").fit(WORDS, TAGS)
    assert grid.best_params_ == {"estimator__C": 4.0}
    pipeline = make_pipeline(FunctionTransformer(lower), tagger).fit(WORDS, TAGS)
    assert [len(row) for row in pipeline.predict(WORDS)] == [min(pipeline[-1].estimator_.k, N_LABELS)] * 90
    assert make_scorer("p@1")(pipeline, WORDS, TAGS) == pytest.approx(100 * pipeline.score(WORDS, TAGS))


@pytest.mark.parametrize("vectorizer", VECTORIZERS)
def test_a_tagger_is_cloned_pickled_and_dumped_whatever_its_vectorizer(vectorizer, tmp_path):
    tagger = ll.Tagger(plt(), vectorizer, names={"tag1": "one"}).fit(WORDS, TAGS)
    expected = tagger.suggest(WORDS[:9], tail=0.5)
    again = clone(tagger)
    assert not hasattr(again, "estimator_")
    assert again.fit(WORDS, TAGS).suggest(WORDS[:9], tail=0.5) == expected
    assert pickle.loads(pickle.dumps(tagger)).suggest(WORDS[:9], tail=0.5) == expected
    joblib.dump(tagger, tmp_path / "tagger.joblib")
    assert joblib.load(tmp_path / "tagger.joblib").suggest(WORDS[:9], tail=0.5) == expected
    assert pickle.loads(pickle.dumps(make_scorer("p@1", tail=0.5))) == make_scorer("p@1", tail=0.5)


@pytest.mark.parametrize("model", [plt(), br()], ids=["plt", "br"])
def test_a_dumped_model_may_be_memory_mapped(model, tmp_path):
    model.fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    same(model.top_k(X, 4, tail=1.0), mapped.top_k(X, 4, tail=1.0))
    file = io.BytesIO()
    joblib.dump(make_pipeline(MaxAbsScaler(), model).fit(X, Y), file)
    assert joblib.load(io.BytesIO(file.getvalue())).predict(X).nnz > 0


def test_only_longleafs_own_vectorizer_is_saved_and_the_error_says_so(tmp_path):
    tagger = ll.Tagger(plt(), make_pipeline(TfidfVectorizer())).fit(WORDS, TAGS)
    with pytest.raises(
        ll.ModelError, match="vectorizer must be longleaf's TextVectorizer to be saved; got Pipe"
    ):
        tagger.save(tmp_path / "tagger.ll")
    assert not (tmp_path / "tagger.ll").exists()


def test_tables_with_names_pass_through_a_pipeline_and_are_remembered(tmp_path):
    pandas = pytest.importorskip("pandas", reason="set_output gives pandas tables")
    names = [f"word{column}" for column in range(X.shape[1])]
    table = pandas.DataFrame(X.toarray(), columns=names)
    pipeline = make_pipeline(StandardScaler(), plt()).set_output(transform="pandas").fit(table, Y)
    model = pipeline[-1]
    assert model.feature_names_in_.tolist() == names
    same(
        plt().fit(StandardScaler().fit_transform(table), Y).top_k(table.to_numpy(), 3), model.top_k(table, 3)
    )
    model.save(tmp_path / "model.ll")
    for other in (model, ll.load(tmp_path / "model.ll"), pickle.loads(pickle.dumps(model))):
        with pytest.raises(
            ValueError, match="The feature names should match those that were passed during fit"
        ):
            other.predict(table[names[::-1]])
        with pytest.warns(UserWarning, match="X does not have valid feature names, but PLT was fitted with"):
            other.predict(table.to_numpy())
    assert not hasattr(clone(model).fit(X, Y), "feature_names_in_")
    assert not hasattr(model, "set_output")  # it transforms nothing: predict is always sparse
