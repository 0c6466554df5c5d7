from __future__ import annotations

import io
import json
import math
import tracemalloc

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import longleaf as ll
from longleaf.datasets import load_sample
from longleaf.io.tables import read_table
from tests.helpers.tagging import TAGS, TEXTS, THINGS, make_tagger, small, tags_of


@pytest.fixture(scope="module")
def tagger():
    return make_tagger()


# ------------------------------------------------------------ fitting and suggesting


def test_a_tagger_is_its_vectorizer_and_its_estimator(tagger):
    X = ll.TextVectorizer.for_tags().fit_transform(TEXTS)
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
    with pytest.raises(ValueError, match="tag must name tags of the model; 'cheese'"):
        tagger.explain("a", tag="cheese")


# ------------------------------------------------------------ what callers get wrong


def test_wrong_input_is_named():
    model = ll.Tagger(small())
    with pytest.raises(TypeError, match=r"tags\[1\] must be a list of strings; got str"):
        model.fit(["a b", "c d"], [["x"], "y"])
    with pytest.raises(TypeError, match=r"tags\[0\] must hold strings; got int"):
        model.fit(["a b"], [[1]])
    with pytest.raises(TypeError, match="tags must be an iterable of lists of strings; got NoneType"):
        model.fit(["a b"], None)
    with pytest.raises(ValueError, match="texts and tags must have the same length; got 2 and 1"):
        model.fit(["ab cd", "ef gh"], [["x"]])
    with pytest.raises(TypeError, match="texts must be an iterable of strings; got a single str"):
        model.fit("ab", [["x"]])
    with pytest.raises(TypeError, match="estimator must be a PLT or BR; got TfidfVectorizer"):
        ll.Tagger(TfidfVectorizer()).fit(["ab"], [["x"]])
    with pytest.raises(ValueError, match="not fitted"):
        model.suggest(["a"])


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_tag_is_refused_as_new_and_as_renamed(empty):
    with pytest.raises(ValueError, match=rf"tags\[1\] must hold no empty tag; got '{empty}'"):
        ll.Tagger(small()).fit(["ab cd", "ef gh"], [["x"], ["y", empty]])
    tagger = ll.Tagger(small()).fit(TEXTS, TAGS)
    with pytest.raises(ValueError, match=r"labels must hold no empty tag"):
        tagger.add_labels([empty])
    with pytest.raises(ValueError, match=r"names must hold no empty tag"):
        tagger.rename_labels({"oil": empty})


@pytest.mark.parametrize("estimator", [small(), ll.BR()])
@pytest.mark.parametrize(
    ("names", "error", "says"),
    [
        ("iso.tsv", TypeError, "names must map tags to names, as longleaf.read_names returns them"),
        (["oil"], TypeError, "names must map tags to names, .*; got list"),
        ({"oil": 1}, TypeError, "names must map strings to strings; got 'oil': 1"),
        ({"oil": ""}, ValueError, "names must hold no empty tag or name; got 'oil': ''"),
        ({"": "oil"}, ValueError, "names must hold no empty tag or name; got '': 'oil'"),
    ],
)
def test_what_are_no_names_is_refused_by_fit(estimator, names, error, says):
    with pytest.raises(error, match=says):
        ll.Tagger(estimator, names=names).fit(TEXTS, TAGS)


def test_what_are_no_names_or_no_tag_is_refused_after_fit():
    tagger = ll.Tagger(small()).fit(TEXTS, TAGS)
    with pytest.raises(TypeError, match="tag must be a string; got NoneType"):
        tagger.explain("oil", None)
    tagger.names = "iso.tsv"
    with pytest.raises(TypeError, match="names must map tags to names"):
        tagger.suggest(TEXTS[:1])


def test_a_limit_needs_auto(tagger):
    with pytest.raises(ValueError, match="max_k needs k='auto'; got k=3"):
        tagger.suggest(TEXTS[:1], k=3, max_k=2)
    with pytest.raises(ValueError, match="max_k must be at least 1"):
        tagger.suggest(TEXTS[:1], k="auto", max_k=0)


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
