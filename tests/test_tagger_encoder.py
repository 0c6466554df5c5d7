"""A tagger with an encoder: what texts mean, as dense columns beside their words."""

import json
import math
import pickle
import shutil
import zlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import longleaf as ll
from longleaf._validation import DataError, ModelError
from longleaf.encoders.components import Components
from longleaf.io.tables import read_table
from tests.helpers import encoders as helper
from tests.helpers.tagging import TAGS, TEXTS, corpus, small

WIDTH = 24
RECORDS = [{"title": text[:9], "text": text} for text in TEXTS]
TAG = "oil"


def trigrams(texts):
    """Return counts of hashed character trigrams: a tiny encoder that never changes."""
    rows = np.zeros((len(texts), WIDTH), np.float32)
    for row, text in enumerate(texts):
        padded = f"  {text.lower()} "
        for start in range(len(padded) - 2):
            rows[row, zlib.crc32(padded[start : start + 3].encode()) % WIDTH] += 1
    return rows


trigrams.fingerprint = "trigrams 1"


def pairs(texts):
    """Another one."""
    return trigrams([text[::2] for text in texts])


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("LONGLEAF_CACHE", str(folder))
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    helper.require_extra()
    words = sorted({word for text in TEXTS for word in text.lower().split()})
    return helper.save_bert(tmp_path_factory.mktemp("encoder") / "bert", words=[*helper.WORDS, *words])


def make(encoder=trigrams, **params):
    return ll.Tagger(small(), **({"encoder": encoder, "encoder_dimensions": 8} | params))


@pytest.fixture(scope="module")
def tagger():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGLEAF_CACHE", "/nonexistent")  # nothing is kept
        return make().fit(TEXTS, TAGS)


def answers(tagger, texts=TEXTS, **options):
    found = tagger.suggest(texts, **({"k": 4} | options))
    return [[(one.tag, one.score, one.probability) for one in row] for row in found]


# --- what it is -----------------------------------------------------------------------------------------


def test_columns_of_meaning_follow_those_of_words(tagger):
    words = ll.Tagger(small()).fit(TEXTS, TAGS)
    n_words = words.estimator_.n_features_in_
    X = tagger._matrix(TEXTS)
    assert X.shape[1] == tagger.estimator_.n_features_in_ == n_words + 8
    np.testing.assert_allclose(X[:, :n_words].toarray(), words._matrix(TEXTS).toarray(), rtol=1e-6)
    lengths = np.sqrt(np.square(X[:, n_words:].toarray()).sum(axis=1))
    np.testing.assert_allclose(lengths, 0.5, rtol=1e-5)
    assert answers(words) != answers(tagger)


def test_columns_are_principal_components():
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(500, 6)) * [5, 4, 3, 2, 1, 0.5]
    embeddings = (embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)).astype(np.float32)
    columns = Components.fit(embeddings, 2.0, 3).columns(embeddings)
    centred = embeddings - embeddings.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ directions[:3].T
    expected *= 2 / np.linalg.norm(expected, axis=1, keepdims=True)
    signs = np.sign((columns * expected).sum(axis=0))
    np.testing.assert_allclose(columns * signs, expected, atol=0.02)


def test_a_weight_of_0_is_no_meaning():
    words = ll.Tagger(small(refine=False)).fit(TEXTS, TAGS)
    none = ll.Tagger(small(refine=False), encoder=trigrams, encoder_weight=0.0).fit(TEXTS, TAGS)
    for row, other in zip(answers(words), answers(none), strict=True):
        assert [tag for tag, *_ in row] == [tag for tag, *_ in other]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"encoder_weight": -1}, "encoder_weight must be"),
        ({"encoder_weight": math.nan}, "encoder_weight must be"),
        ({"encoder_dimensions": 0}, "encoder_dimensions must be"),
        ({"encoder": "nothing there"}, "encoder must be 'minilm', the folder"),
        ({"encoder": 3}, "encoder must be 'minilm', the folder"),
    ],
)
def test_parameters_that_cannot_be_are_refused(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**params).fit(TEXTS, TAGS)


def test_an_encoder_that_fails_says_so():
    with pytest.raises(DataError, match="must return one row of numbers per text"):
        make(lambda texts: [[1.0]]).fit(TEXTS, TAGS)


# --- the same bits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["function", "folder"])
def test_a_saved_tagger_says_the_same(tagger, bert, tmp_path, source):
    trained = tagger if source == "function" else make(bert).fit(TEXTS, TAGS)
    trained.save(tmp_path / "model.ll")
    loaded = ll.load(tmp_path / "model.ll", **({"encoder": trigrams} if source == "function" else {}))
    assert answers(loaded) == answers(trained)
    assert loaded.meaning_.facts == trained.meaning_.facts
    loaded.save(tmp_path / "again.ll")
    again = ll.load(
        tmp_path / "again.ll", verify=True, **({"encoder": trigrams} if source == "function" else {})
    )
    assert answers(again) == answers(trained)
    assert again.explain(TEXTS[0], TAG).contributions == trained.explain(TEXTS[0], TAG).contributions


@pytest.mark.parametrize("source", ["function", "folder"])
def test_a_text_has_the_same_answer_alone_together_and_with_threads(tagger, bert, source):
    trained = tagger if source == "function" else make(bert).fit(TEXTS, TAGS)
    together = answers(trained)
    assert [answers(trained, [text])[0] for text in TEXTS] == together
    assert answers(trained, TEXTS[::-1]) == together[::-1]
    threads = clone(trained).set_params(estimator__n_jobs=2).fit(TEXTS, TAGS)
    assert answers(threads) == together


def test_what_is_kept_on_disk_changes_nothing(bert, cache_folder):
    first = make(bert).fit(TEXTS, TAGS)
    assert list(cache_folder.rglob("*.sqlite"))
    again = make(bert).fit(TEXTS, TAGS)
    ll.encoders.clear_cache()
    fresh = make(bert).fit(TEXTS, TAGS)
    assert answers(first) == answers(again) == answers(fresh)


def test_texts_of_a_generator_are_read_once(tagger):
    trained = make().fit((text for text in TEXTS), (tags for tags in TAGS))
    assert answers(trained, (text for text in TEXTS)) == answers(tagger)


def test_more_texts_than_a_batch():
    texts, tags = corpus(1100)
    trained = make().fit(iter(texts), tags)
    assert answers(trained, iter(texts))[-3:] == answers(trained, texts[-3:])


# --- records ------------------------------------------------------------------------------------------


def test_an_encoder_reads_the_fields_of_records_as_sentences():
    read = []

    def listening(texts):
        read.extend(texts)
        return trigrams(texts)

    vectorizer = ll.TextVectorizer(fields={"title": 2.0, "text": 1.0})
    trained = make(listening, vectorizer=vectorizer).fit(RECORDS, TAGS)
    assert f"{RECORDS[0]['title']}. {RECORDS[0]['text']}" in read
    frame = pd.DataFrame(RECORDS)
    assert answers(trained, frame) == answers(trained, RECORDS)
    assert answers(make(vectorizer=vectorizer).fit(frame, TAGS), frame) == answers(trained, RECORDS)
    assert answers(trained, [{"title": None, "text": TEXTS[0]}]) == answers(trained, [TEXTS[0]])


def test_an_encoder_and_names_go_together(tmp_path):
    texts, tags = corpus(700)
    names = {tag: f"{tag} name" for tag in {one for row in tags for one in row}} | {"new": "saffron threads"}
    trained = make(names=names).fit(texts, tags)
    assert trained.fusion_ is not None
    assert "new" in trained.classes_
    trained.save(tmp_path / "model.ll")
    asked = ["saffron threads and oil", *texts[:5]]
    assert answers(ll.load(tmp_path / "model.ll", encoder=trigrams), asked) == answers(trained, asked)
    found = trained.explain("oil name of olives", TAG)
    assert summed(found) == pytest.approx(math.log(found.probability / found.baseline), abs=1e-4)


@pytest.mark.parametrize("texts", [[""], ["   "], [" \n"], [{"title": "", "text": None}]])
def test_an_empty_text_has_no_meaning(tagger, texts):
    n_words = tagger._suggester.n_words
    assert tagger._matrix(texts)[:, n_words:].nnz == 0
    assert len(answers(tagger, texts)[0]) == 4


def test_empty_texts_in_training_are_rows_without_meaning():
    trained = make().fit([*TEXTS, "", " "], [*TAGS, ["oil"], []])
    assert np.isfinite(trained._matrix(["olive oil"]).data).all()


def test_texts_that_all_mean_the_same_have_no_columns_of_meaning():
    assert make().fit(["olive oil"] * 3, [["a"], ["b"], ["b"]]).meaning_.n_columns == 0


# --- records that bring their embeddings ---------------------------------------------------------------


def with_vectors(n=80, width=6, seed=0):
    rng = np.random.default_rng(seed)
    return [{"text": text, "vector": rng.normal(size=width).tolist()} for text in TEXTS[:n]]


@pytest.fixture(scope="module")
def column_tagger():
    return ll.Tagger(small(), encoder="column:vector").fit(with_vectors(), TAGS)


def test_records_may_bring_their_embeddings(column_tagger, tmp_path):
    records = with_vectors()
    assert list(column_tagger.vectorizer_.field_weights_) == ["text"]
    assert column_tagger.meaning_.n_columns == 6
    column_tagger.save(tmp_path / "model.ll")
    loaded = ll.load(tmp_path / "model.ll")
    assert answers(loaded, records) == answers(column_tagger, records)
    assert answers(loaded, pd.DataFrame(records)) == answers(column_tagger, records)
    assert [answers(loaded, [record])[0] for record in records] == answers(column_tagger, records)
    found = loaded.explain(records[0], TAG)
    assert found.meaning != 0
    assert summed(found) == pytest.approx(math.log(found.probability / found.baseline), abs=1e-4)


@pytest.mark.parametrize("written", ["[1, 2, 3, 4, 5, 6]", "1 2 3 4 5 6", "1,2,3,4,5,6", np.arange(1, 7)])
def test_an_embedding_may_be_written_in_several_ways(column_tagger, written):
    given, plain = ({"text": TEXTS[0], "vector": one} for one in (written, [1, 2, 3, 4, 5, 6]))
    assert answers(column_tagger, [given]) == answers(column_tagger, [plain])


@pytest.mark.parametrize("record", [TEXTS[0], {"text": TEXTS[0]}, {"text": TEXTS[0], "vector": ""}])
def test_a_record_without_embedding_is_its_words(column_tagger, tmp_path, record):
    column_tagger.save(tmp_path / "model.ll")
    for one in (column_tagger, ll.load(tmp_path / "model.ll")):
        assert answers(one, [record]) == answers(column_tagger, [TEXTS[0]])


@pytest.mark.parametrize(
    ("vector", "sentence"),
    [
        ([1.0, 2.0], r"texts\[1\]\['vector'\] must be 6 numbers, as others are; got 2\."),
        ([1.0, math.nan], r"texts\[1\]\['vector'\] must be a list of finite numbers"),
        ("olive", r"texts\[1\]\['vector'\] must be a list of finite numbers; got 'olive'\."),
        ([[1.0]], r"texts\[1\]\['vector'\] must be a list of finite numbers"),
        ({"a": 1}, r"texts\[1\]\['vector'\] must be a list of finite numbers"),
    ],
)
def test_what_is_no_embedding_is_refused(column_tagger, tmp_path, vector, sentence):
    records = [*with_vectors(1), {"text": "olive", "vector": vector}]
    column_tagger.save(tmp_path / "model.ll")
    for one in (column_tagger, ll.load(tmp_path / "model.ll")):
        with pytest.raises(DataError, match=sentence):
            one.suggest(records)
    with pytest.raises(DataError, match=sentence):
        ll.Tagger(small(), encoder="column:vector").fit(records, TAGS[:2])


@pytest.mark.parametrize("texts", [TEXTS, RECORDS])
def test_a_column_that_no_record_has_is_refused(texts):
    with pytest.raises(DataError, match="texts must bring embeddings for encoder column:vector; none of"):
        ll.Tagger(small(), encoder="column:vector").fit(texts, TAGS)


def test_a_column_has_no_words_to_divide_its_meaning_among(column_tagger):
    with pytest.raises(ValueError, match="needs an encoder that reads words; got column:vector"):
        column_tagger.explain(with_vectors()[0], TAG, meaning_by_word=True)


# --- models and their encoders --------------------------------------------------------------------------


def test_another_encoder_is_refused(tagger, tmp_path):
    tagger.save(tmp_path / "model.ll")
    with pytest.raises(
        ModelError, match=r"was trained with encoder .*trigrams \(\w{12}\); encoder .*pairs is"
    ):
        ll.load(tmp_path / "model.ll", encoder=pairs)


def test_a_function_must_be_passed_again(tagger, tmp_path):
    tagger.save(tmp_path / "model.ll")
    loaded = ll.load(tmp_path / "model.ll")
    with pytest.raises(
        ModelError, match=r"it cannot load by itself: pass it as longleaf.load\(path, encoder"
    ):
        loaded.suggest(["olive oil"])


def test_a_model_without_encoder_takes_none(tmp_path):
    ll.Tagger(small()).fit(TEXTS, TAGS).save(tmp_path / "model.ll")
    with pytest.raises(ValueError, match=r"encoder must be omitted: .* was trained without one"):
        ll.load(tmp_path / "model.ll", encoder=trigrams)


def test_an_encoder_moves_with_its_model(bert, tmp_path):
    before = tmp_path / "before"
    shutil.copytree(bert, before / "bert")
    trained = make(before / "bert").fit(TEXTS, TAGS)
    trained.save(before / "model.ll")
    expected = answers(trained)
    before.rename(tmp_path / "after")
    moved = ll.load(tmp_path / "after" / "model.ll")
    assert answers(moved) == expected
    shutil.rmtree(tmp_path / "after" / "bert")
    lost = ll.load(tmp_path / "after" / "model.ll")
    with pytest.raises(
        ModelError, match=r"the model needs encoder bert, but .* does not exist: put the encoder beside"
    ):
        lost.suggest(["olive oil"])
    assert answers(ll.load(tmp_path / "after" / "model.ll", encoder=bert)) == expected
    assert lost.transform_tags([["oil"]]).shape == (1, len(lost.classes_))


def test_an_encoder_is_loaded_when_it_is_first_used(tagger, tmp_path, bert, monkeypatch):
    make(bert).fit(TEXTS, TAGS).save(tmp_path / "model.ll")
    loads = []
    monkeypatch.setattr(
        "longleaf.text.meaning.load", lambda source: loads.append(source) or ll.encoders.load(source)
    )
    loaded = ll.load(tmp_path / "model.ll")
    assert loads == []
    loaded.suggest(["a"])
    loaded.suggest(["b"])
    assert loads == [str(bert)]


def damaged(folder, change):
    """Change the arrays of the encoder in a saved model, and write it again with right checksums."""
    from longleaf.io import storage

    found = storage.load_folder(folder)
    arrays = {name: np.array(array) for name, array in found.arrays.items()}
    meta = json.loads(json.dumps(found.meta))
    change(arrays, meta)
    storage.save_folder(folder, found.kind, meta, arrays, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("encoder/mean", lambda old: old[:-1]),
        ("encoder/mean", lambda old: old.astype(np.int64)),
        ("encoder/mean", lambda old: old + 2**13),
        ("encoder/directions", lambda old: old[:, :-1]),
        ("encoder/directions", lambda old: old.ravel()),
        ("encoder/weight", lambda old: old * np.nan),
        ("encoder/weight", lambda old: -old),
        ("encoder/weight", lambda old: np.repeat(old, 2)),
        ("encoder/weight", None),
        ("encoder/mean", None),
    ],
)
def test_damaged_arrays_are_refused(tagger, tmp_path, name, value):
    tagger.save(tmp_path / "model.ll")

    def change(arrays, meta):
        old = arrays.pop(name)
        if value is not None:
            arrays[name] = value(old)

    damaged(tmp_path / "model.ll", change)
    with pytest.raises(ModelError, match="is not a complete model"):
        ll.load(tmp_path / "model.ll", encoder=trigrams)


@pytest.mark.parametrize(
    ("name", "value"), [("name", 3), ("fingerprint", None), ("source", 1.5), ("more", "x"), (None, None)]
)
def test_a_damaged_description_is_refused(tagger, tmp_path, name, value):
    tagger.save(tmp_path / "model.ll")

    def change(arrays, meta):
        if name is None:
            del meta["encoder"]
        else:
            meta["encoder"][name] = value

    damaged(tmp_path / "model.ll", change)
    with pytest.raises(ModelError, match=r"model\.ll"):
        ll.load(tmp_path / "model.ll")


# --- an estimator of scikit-learn ----------------------------------------------------------------------


def test_parameters_are_set_cloned_and_pickled(tagger):
    params = tagger.get_params()
    assert params["encoder"] is trigrams
    assert (params["encoder_weight"], params["encoder_dimensions"]) == (0.5, 8)
    changed = clone(tagger).set_params(encoder_weight=2.0, encoder_dimensions=3)
    changed.fit(TEXTS, TAGS)
    assert changed.meaning_.facts["columns"] == 3
    assert changed.meaning_.weight == 2.0
    copy = pickle.loads(pickle.dumps(tagger))
    assert answers(copy) == answers(tagger)
    assert answers(clone(copy).fit(TEXTS, TAGS)) == answers(tagger)


def test_a_loaded_tagger_is_pickled_by_the_name_of_its_encoder(bert, tmp_path):
    trained = make(bert).fit(TEXTS, TAGS)
    trained.save(tmp_path / "model.ll")
    loaded = ll.load(tmp_path / "model.ll")
    expected = answers(loaded)
    assert answers(pickle.loads(pickle.dumps(loaded))) == expected
    assert len(pickle.dumps(loaded.meaning_)) < 100_000


def test_other_vectorizers_and_estimators_have_meaning_beside_them():
    from sklearn.feature_extraction.text import CountVectorizer

    trained = ll.Tagger(ll.BR(), CountVectorizer(), encoder=trigrams).fit(TEXTS, TAGS)
    assert (
        trained.estimator_.n_features_in_ == len(trained.vectorizer_.vocabulary_) + trained.meaning_.n_columns
    )
    found = trained.explain(TEXTS[0], TAG)
    assert summed(found) == pytest.approx(math.log(found.probability / found.baseline), abs=1e-4)


# --- learning on ---------------------------------------------------------------------------------------


def test_a_tagger_with_an_encoder_goes_on_learning(tmp_path):
    trained = make(keep_records=True).fit(TEXTS[:60], TAGS[:60])
    columns = trained.meaning_.components
    trained.partial_fit(TEXTS[60:], [[*tags, "late"] for tags in TAGS[60:]])
    assert trained.meaning_.components is columns
    assert "late" in trained.classes_
    trained.add_labels(["later"], TEXTS[:5], [["later"]] * 5)
    trained.refit(TEXTS, TAGS)
    trained.remove_labels(["wine"])
    trained.rename_labels({"fish": "fishes"})
    assert len(trained.records_) == len(TEXTS)
    trained.save(tmp_path / "model.ll")
    loaded = ll.load(tmp_path / "model.ll", encoder=trigrams)
    assert answers(loaded) == answers(trained)
    records = trained.explain(TEXTS[0], TAGS[0][0].replace("fish", "fishes")).records
    assert loaded.explain(TEXTS[0], TAGS[0][0].replace("fish", "fishes")).records == records
    assert records


def test_a_loaded_tagger_goes_on_learning_as_one_that_never_was_saved(tagger, tmp_path):
    first, second = make().fit(TEXTS[:60], TAGS[:60]), make().fit(TEXTS[:60], TAGS[:60])
    first.save(tmp_path / "model.ll")
    loaded = ll.load(tmp_path / "model.ll", encoder=trigrams)
    assert answers(loaded.partial_fit(TEXTS[60:], TAGS[60:])) == answers(
        second.partial_fit(TEXTS[60:], TAGS[60:])
    )


def test_probabilities_are_calibrated_and_sets_fitted_with_an_encoder(tmp_path):
    trained = make().fit(TEXTS, TAGS)
    texts, tags = corpus(200, seed=1)
    trained.calibrate(texts, tags)
    trained.fit_sets(texts, tags, max_size=6)
    trained.save(tmp_path / "model.ll")
    loaded = ll.load(tmp_path / "model.ll", encoder=trigrams)
    sets = [[one.tag for one in row] for row in trained.suggest_set(TEXTS[:9], 0.6)]
    assert [[one.tag for one in row] for row in loaded.suggest_set(TEXTS[:9], 0.6)] == sets
    assert 0 < loaded.score(texts, tags) <= 1


def test_records_are_similar_by_words_and_meaning():
    trained = make(keep_records=True).fit(TEXTS, TAGS)
    (best, *_) = trained.similar(TEXTS[3], TAGS[3][0], n=1)
    assert best.similarity > 0


# --- explanations ---------------------------------------------------------------------------------------


def summed(found):
    name = 0.0 if found.match is None else found.match.value
    return math.fsum([*(value for _, value in found.contributions), name, found.meaning or 0.0])


@pytest.mark.parametrize("text", [TEXTS[0], TEXTS[7], "unknown words only", "olive", "", RECORDS[2]])
@pytest.mark.parametrize("by_word", [False, True])
def test_an_explanation_sums_to_the_change_of_the_log_probability(tagger, text, by_word):
    for tag in ("oil", "wine"):
        found = tagger.explain(text, tag, meaning_by_word=by_word)
        (probability,) = tagger.predict_proba([text], [tag])[0]
        assert found.probability == pytest.approx(float(probability), rel=1e-4)
        assert summed(found) == pytest.approx(math.log(found.probability / found.baseline), abs=1e-4)


def test_by_word_a_share_is_what_goes_with_the_word(tagger):
    text = "olive oil pressed in Crete"
    whole, divided = (tagger.explain(text, TAG, meaning_by_word=one) for one in (False, True))
    words, shares = dict(whole.contributions), dict(divided.contributions)
    assert set(shares) >= {"olive", "oil", "pressed", "in", "crete"}
    given = sum(shares.values()) - sum(words.values())
    assert given == pytest.approx(whole.meaning - divided.meaning, abs=1e-9)
    assert "the meaning of the text" in whole.to_text()


def test_only_an_encoder_has_meaning_to_divide():
    plain = ll.Tagger(small()).fit(TEXTS, TAGS)
    assert plain.explain(TEXTS[0], TAG).meaning is None
    with pytest.raises(ValueError, match="meaning_by_word needs a model with an encoder; this one has none"):
        plain.explain(TEXTS[0], TAG, meaning_by_word=True)


def test_suggestions_name_words_alone(tagger):
    for one in tagger.suggest(TEXTS[:3], explain=True)[0]:
        assert all(isinstance(word, str) and not word.startswith("feature") for word, _ in one.words)


# --- matrices -------------------------------------------------------------------------------------------


def test_embeddings_that_are_known_are_not_computed_again(tagger):
    suggester = tagger._suggester
    embeddings = suggester.embeddings(TEXTS)
    assert embeddings.shape == (len(TEXTS), WIDTH)
    expected = sp.csr_array(suggester.matrix(TEXTS))
    assert abs(sp.csr_array(suggester.matrix(TEXTS, embeddings)) - expected).nnz == 0
    turned = sp.csr_array(suggester.matrix(TEXTS, embeddings[::-1]))
    assert abs(turned - expected).nnz > 0


def test_a_tag_that_is_not_in_training_is_found_by_what_its_name_means():
    """The encoder knows synonyms, which no text and name have in common."""
    random = np.random.default_rng(1)
    meanings = {
        "ship": 0,
        "vessel": 0,
        "bread": 1,
        "loaf": 1,
        "wine": 2,
        "claret": 2,
        "gold": 3,
        "bullion": 3,
    }
    spoken = ["ship", "bread", "wine", "gold"]

    def encode(texts):
        rows = np.full((len(texts), 16), 0.05)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                if word in meanings:
                    rows[row, meanings[word]] += 1
        return rows

    tags = ["t-vessel", "t-loaf", "t-claret", "t-bullion"]
    names = {tag: tag.removeprefix("t-") for tag in tags}
    chosen = random.integers(0, 4, 2400)
    texts = [f"{spoken[one]} item {row % 97}" for row, one in enumerate(chosen)]
    known = [[tags[one]] if one < 3 or row % 40 == 0 else ["other"] for row, one in enumerate(chosen)]
    tagger = ll.Tagger(ll.PLT(n_trees=1, random_state=1), names=names, encoder=encode).fit(texts, known)
    assert tagger.fusion_.near is not None
    assert len(tagger.fusion_.near.labels) == 4
    assert tagger.suggest(["ship"], k=1)[0][0].tag == "t-vessel"
    explained = tagger.explain("ship", "t-vessel")
    total = sum(value for _, value in explained.contributions) + explained.meaning
    assert np.isclose(total, np.log(explained.probability) - np.log(explained.baseline), atol=1e-4)


def test_texts_without_letters_or_digits_mean_nothing():
    encoder = ll.encoders.load(lambda texts: np.ones((len(texts), 4)))
    assert encoder.embed(["!!!", "—", " ", "1", "a"]).any(axis=1).tolist() == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_embeddings_that_cannot_be_used_are_refused_or_reported_in_a_sentence(tmp_path):
    huge = ll.encoders.load(lambda texts: np.full((len(texts), 4), 1e300)).embed(["a"])
    assert np.allclose(huge, 0.5)
    ragged = ll.encoders.load(lambda texts: [[1.0], [1.0, 2.0]][: len(texts)])
    with pytest.raises(ValueError, match="must return one row of numbers per text"):
        ragged.embed(["a", "b"])
    with pytest.raises(ValueError, match="must name a field"):
        ll.encoders.load("column:")
    table = tmp_path / "table.jsonl"
    rows = [[1, 2], None, "1 2", [1], [1, float("nan")], "x", [10**400, 1]]
    table.write_text("".join(json.dumps({"text": "a", "tags": ["b"], "vec": row}) + "\n" for row in rows))
    reader = read_table(table, embedding="vec")
    assert [record.embedding[1] for record in reader] == [[1, 2], None, [1, 2], None, None, None, None]
    assert reader.report.counts == {"no embedding": 5}
    assert (
        "line 4: must have 2 numbers, as other rows in 'vec'; got 1."
        in reader.report.first["no embedding"][1]
    )
