from __future__ import annotations

import io
import json
import math
import pickle
import tracemalloc

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
from longleaf.datasets import load_sample
from longleaf.io.tables import read_table

THINGS = {
    "oil": "olive oil pressed from olives in Crete",
    "wine": "red wine from grapes and old barrels",
    "cereals": "wheat and barley flour for bread",
    "fish": "cod and herring from the cold sea",
    "duty": "import duty and customs tariff",
    "quota": "annual quota and licence for the import",
}


def corpus(rows=80, seed=0):
    random = np.random.RandomState(seed)
    texts, tags = [], []
    for _ in range(rows):
        chosen = random.choice(list(THINGS), random.randint(1, 4), replace=False)
        words = " ".join(THINGS[tag] for tag in chosen).split()
        texts.append(" ".join(random.choice(words, 8)))
        tags.append([str(tag) for tag in chosen])
    return texts, tags


TEXTS, TAGS = corpus()


def small(**params):
    return ll.PLT(**({"n_trees": 2, "max_leaf": 2, "random_state": 1, "n_jobs": 1} | params))


@pytest.fixture(scope="module")
def tagger():
    return ll.Tagger(small(), names={"oil": "Olive oil"}).fit(TEXTS, TAGS)


def tags_of(suggestions):
    return [[suggestion.tag for suggestion in row] for row in suggestions]


# ------------------------------------------------------------ fitting and suggesting


def test_a_tagger_is_its_vectorizer_and_its_estimator(tagger):
    X = ll.TextVectorizer().fit_transform(TEXTS)
    order = sorted(THINGS)
    Y = [[order.index(tag) for tag in row] for row in TAGS]
    model = small().fit(X, Y)
    top = model.top_k(X, k=3, tail=0.5)
    assert tagger.classes_.tolist() == order
    assert tags_of(tagger.suggest(TEXTS, k=3, tail=0.5)) == [[order[j] for j in row] for row in top.labels]
    for row, suggestions in enumerate(tagger.suggest(TEXTS, k=3, tail=0.5)):
        assert [s.score for s in suggestions] == pytest.approx(top.scores[row].tolist())
        labels = [order.index(s.tag) for s in suggestions]
        expected = model.probability(X[[row]], [0] * 3, labels)
        assert [s.probability for s in suggestions] == pytest.approx(expected.tolist(), rel=1e-5)


def test_generators_and_tables_train_the_same_model(tagger):
    streamed = ll.Tagger(small()).fit((t for t in TEXTS), (tuple(t) for t in TAGS))
    rows = [{"body": text, "subjects": tags} for text, tags in zip(TEXTS, TAGS, strict=True)]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    reader = read_table(io.BytesIO(content), text="body", tags="subjects")
    from_table = ll.Tagger(small()).fit_records(reader)
    for other in (streamed, from_table):
        assert other.suggest(TEXTS, k=1)[0][0].score == tagger.suggest(TEXTS, k=1)[0][0].score
        for a, b in zip(other.estimator_.weights_, tagger.estimator_.weights_, strict=True):
            np.testing.assert_array_equal(a["bytes"], b["bytes"])
    assert from_table.fields_ == {"text": ["body"], "tags": "subjects", "id": "id", "separator": None}


def test_suggestions_have_readable_names(tagger):
    named = {s.tag: s.name for row in tagger.suggest(TEXTS[:20]) for s in row}
    assert named["oil"] == "Olive oil"
    assert named["wine"] == "wine"


def test_more_tags_than_there_are_gives_them_all(tagger):
    assert [sorted(row) for row in tags_of(tagger.suggest(["olive oil"], k=99))] == [sorted(THINGS)]


def test_no_texts_get_no_suggestions(tagger):
    assert tagger.suggest([]) == []
    assert tagger.suggest(iter(()), groups={"oil": 1}, explain=True) == []


def test_beam_and_threshold_reach_the_search(tagger):
    wide = tagger.suggest(TEXTS, k=3, search="beam", beam=100)
    assert tags_of(wide) == tags_of(tagger.suggest(TEXTS, k=3))
    sure = tagger.suggest(TEXTS, k=6, threshold=0.5)
    assert all(s.score >= 0.5 for row in sure for s in row)
    assert 0 < sum(map(len, sure)) < 6 * len(TEXTS)


# ------------------------------------------------------------ filters


def test_only_and_never_are_the_best_of_what_is_left(tagger):
    everything = tagger.suggest(TEXTS, k=6, tail=1.0)
    only = tagger.suggest(TEXTS, k=2, tail=1.0, only=["fish", "oil", "wine"], never=["wine"])
    never = tagger.suggest(TEXTS, k=3, tail=1.0, never=iter(["duty", "fish"]))
    for row, full in enumerate(everything):
        assert [s.tag for s in only[row]] == [s.tag for s in full if s.tag in ("fish", "oil")]
        assert [s.tag for s in never[row]] == [s.tag for s in full if s.tag not in ("duty", "fish")][:3]


def test_gains_by_tag_multiply_the_probability(tagger):
    plain = {s.tag: s.probability for s in tagger.suggest(TEXTS[:1], k=6)[0]}
    boosted = tagger.suggest(TEXTS[:1], k=6, gain={"quota": 1000.0, "oil": 0.0})[0]
    assert boosted[0].tag == "quota"
    assert boosted[0].score == pytest.approx(1000 * plain["quota"], rel=1e-4)
    assert boosted[0].probability == pytest.approx(plain["quota"], rel=1e-4)
    assert "oil" not in [s.tag for s in boosted]
    with pytest.raises(ValueError, match="tail and gain must not be given together"):
        tagger.suggest(TEXTS[:1], gain={"oil": 1.0}, tail=1.0)
    with pytest.raises(ValueError, match="A of propensity must be at least 0 and at most 100; got 1e"):
        tagger.suggest(TEXTS[:1], only=["oil"], tail=1.0, propensity=(1e308, 1e308))


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_of_a_group_only_the_best_tag_is_suggested(tagger, k):
    groups = {"oil": "food", "wine": "food", "fish": "food", "duty": 1, "quota": 1}
    for full, chosen in zip(
        tagger.suggest(TEXTS, k=6), tagger.suggest(TEXTS, k=k, groups=groups), strict=True
    ):
        seen, expected = set(), []
        for suggestion in full:
            group = groups.get(suggestion.tag, suggestion.tag)
            if group not in seen:
                seen.add(group)
                expected.append(suggestion)
        assert [s.tag for s in chosen] == [s.tag for s in expected[:k]]


def test_groups_are_exact_among_many_tags():
    random = np.random.RandomState(3)
    texts = [" ".join(f"w{j}" for j in random.randint(0, 60, 12)) for _ in range(300)]
    tags = [
        sorted({f"t{int(word[1:]) * 3 + i}" for word in text.split()[:2] for i in range(3)}) for text in texts
    ]
    model = ll.Tagger(small(n_trees=3, max_leaf=5)).fit(texts, tags)
    groups = {tag: int(tag[1:]) // 40 for tag in model.classes_}
    for full, chosen in zip(
        model.suggest(texts[:40], k=len(groups), tail=0.5),
        model.suggest(texts[:40], k=4, tail=0.5, groups=groups),
        strict=True,
    ):
        firsts = {groups[s.tag]: s for s in reversed(full)}
        expected = sorted(firsts.values(), key=lambda s: -s.score)[:4]
        assert [s.score for s in chosen] == pytest.approx([s.score for s in expected])


@pytest.mark.parametrize("argument", ["only", "never", "gain", "groups"])
def test_a_filter_must_name_known_tags(tagger, argument):
    value = {"oil": 1, "cheese": 2} if argument in ("gain", "groups") else ["oil", "cheese"]
    with pytest.raises(ValueError, match=f"{argument} must name tags that occur in training; 'cheese'"):
        tagger.suggest(["a"], **{argument: value})
    with pytest.raises(TypeError, match=r"only must be a list of tags; got a single str"):
        tagger.suggest(["a"], only="oil")


# ------------------------------------------------------------ explaining


def test_the_words_of_a_tag_speak_for_it(tagger):
    explanation = tagger.explain("Olive oil and cod from the sea", tag="oil")
    assert explanation
    assert explanation.name == "Olive oil"
    best = [word for word, _ in explanation.words_for[:2]]
    assert set(best) == {"olive", "oil"}
    against = [word for word, value in explanation.contributions if value < 0]
    assert {"cod", "sea"} <= set(against)
    magnitudes = [abs(value) for _, value in explanation.contributions]
    assert magnitudes == sorted(magnitudes, reverse=True)
    gained = math.log(explanation.probability) - math.log(explanation.baseline)
    assert sum(value for _, value in explanation.contributions) == pytest.approx(gained, abs=1e-4)
    assert sum(span.value for span in explanation.spans("Olive oil and cod from the sea")) == pytest.approx(
        gained
    )


def test_suggest_names_the_words_on_demand(tagger):
    assert all(s.words == () for row in tagger.suggest(TEXTS[:5]) for s in row)
    for text, row in zip(
        TEXTS[:5], tagger.suggest(iter(TEXTS[:5]), k=2, tail=1.0, explain=True), strict=True
    ):
        for suggestion in row:
            assert suggestion.words == tagger.explain(text, suggestion.tag).words_for[:5]
            assert all(value > 0 for _, value in suggestion.words)


def test_an_empty_text_is_its_own_baseline(tagger):
    explanation = tagger.explain("", tag="oil")
    assert explanation.contributions == []
    assert explanation.probability == pytest.approx(explanation.baseline)
    with pytest.raises(ValueError, match="tag must name tags that occur in training; 'cheese'"):
        tagger.explain("a", tag="cheese")


# ------------------------------------------------------------ scikit-learn


def test_predict_and_transform_tags_share_their_columns(tagger):
    predicted = tagger.predict(TEXTS)
    truth = tagger.transform_tags(TAGS)
    assert predicted.shape == truth.shape == (len(TEXTS), len(THINGS))
    assert [sorted(tagger.classes_[truth[[i]].indices]) for i in range(5)] == [sorted(t) for t in TAGS[:5]]
    best = [row[0] for row in tags_of(tagger.suggest(TEXTS, k=1))]
    hits = [tag in tags for tag, tags in zip(best, TAGS, strict=True)]
    assert tagger.score(TEXTS, TAGS) == pytest.approx(np.mean(hits))
    assert tagger.score(TEXTS, TAGS) > 0.9


def test_unseen_tags_are_ignored_added_or_refused(tagger):
    rows = [["oil", "cheese"], ["milk", "cheese"]]
    assert tagger.transform_tags(rows).sum() == 1
    added = tagger.transform_tags(rows, unseen="add")
    assert added.shape == (2, len(THINGS) + 2)
    assert added.sum(axis=1).tolist() == [2, 2]
    with pytest.raises(ValueError, match="tags must occur in training; 2 do not"):
        tagger.transform_tags(rows, unseen="error")
    assert tagger.score(["olive oil", "olive"], rows) == 0.5


def test_it_clones_pickles_and_works_in_pipelines_and_searches(tagger):
    assert clone(tagger).get_params()["estimator__n_trees"] == 2
    for copy in (pickle.loads(pickle.dumps(tagger)), _through_joblib(tagger)):
        assert copy.suggest(TEXTS[:3]) == tagger.suggest(TEXTS[:3])
    upper = FunctionTransformer(lambda texts: [text.upper() for text in texts])
    pipeline = Pipeline([("upper", upper), ("tagger", ll.Tagger(small()))]).fit(TEXTS, TAGS)
    assert (pipeline.predict(TEXTS) != tagger.predict(TEXTS)).nnz == 0
    grid = {"estimator__C": [0.01, 16.0], "vectorizer": [None, ll.TextVectorizer(ngram_range=(1, 2))]}
    search = GridSearchCV(ll.Tagger(small()), grid, cv=2).fit(TEXTS, TAGS)
    assert search.best_params_["estimator__C"] == 16.0
    assert cross_val_score(ll.Tagger(small()), TEXTS, TAGS, cv=3).shape == (3,)


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
    with pytest.raises(ll.ModelError, match="exists already"):
        loaded.save(tmp_path / "m.ll")
    loaded.save(tmp_path / "m.ll", force=True)


def test_parts_that_do_not_fit_together_are_not_loaded(tmp_path):
    mixed = ll.Tagger(small()).fit(TEXTS, TAGS)
    mixed.vectorizer_ = ll.TextVectorizer().fit(["a few words"])
    mixed.save(tmp_path / "m.ll")
    with pytest.raises(ll.ModelError, match="is not a whole model"):
        ll.load(tmp_path / "m.ll")


# ------------------------------------------------------------ what callers get wrong


def test_wrong_input_is_named():
    model = ll.Tagger(small())
    with pytest.raises(TypeError, match=r"tags\[1\] must be a list of strings; got str"):
        model.fit(["a b", "c d"], [["x"], "y"])
    with pytest.raises(TypeError, match=r"tags\[0\] must hold strings; got int"):
        model.fit(["a b"], [[1]])
    with pytest.raises(TypeError, match="tags must be an iterable of lists of strings; got NoneType"):
        model.fit(["a b"], None)
    with pytest.raises(ValueError, match="texts and tags must have one length; got 2 and 1"):
        model.fit(["ab cd", "ef gh"], [["x"]])
    with pytest.raises(TypeError, match="texts must be an iterable of strings; got a single str"):
        model.fit("ab", [["x"]])
    with pytest.raises(TypeError, match="estimator must be a PLT or BR; got TfidfVectorizer"):
        ll.Tagger(TfidfVectorizer()).fit(["ab"], [["x"]])
    with pytest.raises(ValueError, match="not fitted"):
        model.suggest(["a"])


# ------------------------------------------------------------ real text


def test_memory_grows_with_the_matrix_and_not_with_the_text():
    def texts(n):
        for i in range(n):
            yield (f"w{i % 7}" + " the same words again and again") * 500

    def peak(n):
        tracemalloc.start()
        ll.Tagger(small(n_trees=1)).fit(texts(n), (["x", "y"][i % 2 :] for i in range(n)))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(10)
    assert peak(6000) < peak(3000) + 3_000_000  # 100 MB of text against 50; a batch has 16


def test_laws_get_concepts_that_a_reader_would_nod_at():
    laws = load_sample()
    model = ll.Tagger(ll.PLT(n_trees=1, random_state=1)).fit(laws.texts_train, laws.tags_train)
    assert model.score(laws.texts_test, laws.tags_test) > 0.7
    assert len(model.suggest(["fruit and vegetables"], k=3)[0]) == 3
    suggestion = model.suggest(["export refunds on cereals"], k=1, explain=True)[0][0]
    assert {"refunds", "export", "cereals"} & {word for word, _ in suggestion.words}
