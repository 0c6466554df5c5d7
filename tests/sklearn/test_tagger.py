"""A tagger is a scikit-learn estimator, and comes back from a file as it was."""

import io
import math
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import longleaf as ll
from tests.helpers.tagging import TAGS, TEXTS, THINGS, make_tagger, small, tags_of


@pytest.fixture(scope="module")
def tagger():
    return make_tagger()


def test_predict_returns_the_tags_that_suggest_does(tagger):
    predicted = tagger.predict(TEXTS)
    assert predicted == tags_of(tagger.suggest(TEXTS, k=tagger.estimator_.k))
    assert {type(tag) for row in predicted for tag in row} == {str}
    assert tagger.predict([]) == []


def test_transform_tags_has_the_columns_of_the_classes(tagger):
    truth = tagger.transform_tags(TAGS)
    assert truth.shape == tagger.transform_tags(tagger.predict(TEXTS)).shape == (len(TEXTS), len(THINGS))
    assert [sorted(tagger.classes_[truth[[i]].indices]) for i in range(5)] == [sorted(t) for t in TAGS[:5]]
    best = [row[0] for row in tags_of(tagger.suggest(TEXTS, k=1))]
    hits = [tag in tags for tag, tags in zip(best, TAGS, strict=True)]
    assert tagger.score(TEXTS, TAGS) == pytest.approx(np.mean(hits))
    assert tagger.score(TEXTS, TAGS) > 0.9


def test_predict_proba_has_a_column_per_given_tag(tagger):
    every = tagger.predict_proba(TEXTS)
    assert every.shape == (len(TEXTS), len(THINGS))
    some = tagger.predict_proba(TEXTS, ["wine", "Olive oil"])  # also by readable name
    columns = [tagger.classes_.tolist().index(tag) for tag in ("wine", "oil")]
    np.testing.assert_array_equal(some, every[:, columns])
    best = tagger.suggest(TEXTS[:5], k=1)
    assert every[:5].max(axis=1) == pytest.approx([row[0].probability for row in best])
    with pytest.raises(ValueError, match="'milk'"):
        tagger.predict_proba(TEXTS, ["milk"])


def test_a_series_of_texts_and_one_of_tag_lists_are_texts_and_tags(tagger):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"text": TEXTS, "tags": TAGS}, index=range(200, 200 - len(TEXTS), -1))
    texts, tags = table["text"], table["tags"]
    found = ll.Tagger(small()).fit(texts, tags)
    assert found.suggest(texts) == ll.Tagger(small()).fit(TEXTS, TAGS).suggest(TEXTS)
    assert found.predict(texts) == tagger.predict(TEXTS)
    assert found.score(texts, tags) == tagger.score(TEXTS, TAGS)
    assert (found.transform_tags(tags) != tagger.transform_tags(TAGS)).nnz == 0
    assert found.predict_proba(texts, pandas.Series(["wine"])).shape == (len(TEXTS), 1)
    assert found.partial_fit(texts[:3], tags[:3]).refit(texts, tags).estimator_.n_rows_ == len(TEXTS)
    assert cross_val_score(ll.Tagger(small()), texts, tags, cv=3).shape == (3,)
    assert ll.TextVectorizer().fit_transform(texts).shape[0] == len(TEXTS)
    assert ll.tune(texts, tags, ll.Tagger(small()), metric="f1@2", candidates=2).value > 0
    with pytest.raises(TypeError, match=r"tags\[1\] must be a list of strings; got float"):
        found.transform_tags(pandas.Series([["oil"], float("nan")]))
    with pytest.raises(TypeError, match=r"texts\[1\] must be a string or a record of fields; got float"):
        found.suggest(pandas.Series(["oil", float("nan")]))


def test_unseen_tags_are_ignored_added_or_refused(tagger):
    rows = [["oil", "cheese"], ["milk", "cheese"]]
    assert tagger.transform_tags(rows).sum() == 1
    added = tagger.transform_tags(rows, unseen="add")
    assert added.shape == (2, len(THINGS) + 2)
    assert added.sum(axis=1).tolist() == [2, 2]
    with pytest.raises(ValueError, match="tags must be tags of the model; got 2 that are not"):
        tagger.transform_tags(rows, unseen="error")
    assert tagger.score(["olive oil", "olive"], rows) == 0.5


def test_it_clones_pickles_and_works_in_pipelines_and_searches(tagger):
    assert clone(tagger).get_params()["estimator__n_trees"] == 2
    for copy in (pickle.loads(pickle.dumps(tagger)), _through_joblib(tagger)):
        assert copy.suggest(TEXTS[:3]) == tagger.suggest(TEXTS[:3])
    upper = FunctionTransformer(lambda texts: [text.upper() for text in texts])
    pipeline = Pipeline([("upper", upper), ("tagger", ll.Tagger(small()))]).fit(TEXTS, TAGS)
    assert pipeline.predict(TEXTS) == tagger.predict(TEXTS)
    assert (pipeline.predict_proba(TEXTS) == tagger.predict_proba(TEXTS)).all()
    grid = {"estimator__C": [0.01, 16.0], "vectorizer": [None, ll.TextVectorizer(ngram_range=(1, 2))]}
    search = GridSearchCV(ll.Tagger(small()), grid, cv=2).fit(TEXTS, TAGS)
    assert search.best_params_["estimator__C"] == 16.0
    assert cross_val_score(ll.Tagger(small()), TEXTS, TAGS, cv=3).shape == (3,)


def test_parts_that_were_left_out_are_made_when_a_search_sets_their_parameters():
    grid = {"estimator__C": [0.01, 16.0], "vectorizer__min_df": [1, 2]}
    found = GridSearchCV(ll.Tagger(), grid, cv=2).fit(TEXTS, TAGS).best_estimator_
    assert found.estimator.C == found.estimator_.C == 16.0
    assert clone(found).get_params()["vectorizer__min_df"] == found.vectorizer_.min_df
    one = ll.Tagger().set_params(vectorizer__min_df=2, estimator=ll.BR(n_jobs=3))
    assert (one.vectorizer.n_jobs, one.vectorizer.min_df) == (3, 2)
    assert ll.Tagger().set_params(estimator__n_trees=1).vectorizer is None
    assert ll.Tagger().set_params(names={"a": "b"}).get_params() == {
        "estimator": None,
        "vectorizer": None,
        "names": {"a": "b"},
        "keep_records": False,
        "encoder": None,
        "encoder_weight": 0.5,
        "encoder_dimensions": 128,
    }
    with pytest.raises(ValueError, match="Invalid parameter 'D' for estimator PLT"):
        ll.Tagger().set_params(estimator__D=1)


def _through_joblib(model):
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


@pytest.mark.parametrize(
    "vectorizer",
    [TfidfVectorizer(), make_pipeline(TfidfVectorizer(), TruncatedSVD(10, random_state=0))],
    ids=["sparse", "dense"],
)
def test_another_vectorizer_may_take_its_place_but_is_not_saved(vectorizer, tmp_path):
    model = ll.Tagger(small(), vectorizer).fit(iter(TEXTS), TAGS)
    assert model.score(iter(TEXTS), TAGS) > 0.8
    explanation = model.explain("olive oil", tag="oil")
    gained = math.log(explanation.probability) - math.log(explanation.baseline)
    assert sum(value for _, value in explanation.contributions) == pytest.approx(gained, abs=1e-4)
    with pytest.raises(ll.ModelError, match="vectorizer must be longleaf's TextVectorizer to be saved"):
        model.save(tmp_path / "m.ll")


# ------------------------------------------------------------ saving


@pytest.mark.parametrize("estimator", [small(), ll.BR(random_state=1, n_jobs=1)], ids=["plt", "br"])
def test_a_saved_tagger_answers_bit_for_bit(tmp_path, estimator):
    names = {"oil": "Öl \ud800", "unknown": "kept too"}
    model = ll.Tagger(estimator, ll.TextVectorizer(ngram_range=(1, 2)), names).fit(TEXTS, TAGS)
    model.fields_ = {"text": ["title", "text"], "tags": "tags"}
    model.save(tmp_path / "m.ll")
    loaded = ll.load(tmp_path / "m.ll", verify=True)
    assert isinstance(loaded, ll.Tagger)
    assert loaded.suggest(TEXTS, tail=0.5, explain=True) == model.suggest(TEXTS, tail=0.5, explain=True)
    assert loaded.fields_ == model.fields_
    assert loaded.names == names
    assert loaded.origin_ == model.origin_
    assert loaded.get_params()["vectorizer__ngram_range"] == (1, 2)
    assert clone(loaded).fit(TEXTS, TAGS).suggest(TEXTS) == model.suggest(TEXTS)
    assert pickle.loads(pickle.dumps(loaded)).suggest(TEXTS[:2]) == model.suggest(TEXTS[:2])
    with pytest.raises(ll.ModelError, match="already exists"):
        loaded.save(tmp_path / "m.ll")
    loaded.save(tmp_path / "m.ll", force=True)


def test_parts_that_do_not_fit_together_are_not_loaded(tmp_path):
    mixed = ll.Tagger(small()).fit(TEXTS, TAGS)
    mixed.vectorizer_ = ll.TextVectorizer().fit(["a few words"])
    mixed.save(tmp_path / "m.ll")
    with pytest.raises(ll.ModelError, match="is not a complete model"):
        ll.load(tmp_path / "m.ll")
