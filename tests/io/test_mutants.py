"""Whatever a model folder says, it is refused in a sentence or works: no crash, no hang, no end of memory."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import settings

import longleaf as ll
from longleaf import _core
from longleaf.explain import explain_row
from tests.helpers.data import ROOT
from tests.helpers.mutants import TEXTS, save_models
from tests.helpers.storage import edit_manifest, replace_array

pytestmark = pytest.mark.native
MUTANTS = 6 * settings.default.max_examples


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mutants")
    save_models(folder)
    return folder


@pytest.fixture
def forge(originals, tmp_path):
    """Copy a model, with arrays or metadata changed and all checksums right."""

    def forged(name, change=None, **arrays):
        path = tmp_path / "forged"
        model = ll.load(originals / name)
        model.save(path, force=True)
        for array, value in arrays.items():
            replace_array(path, array, value)
        if change is not None:
            edit_manifest(path, lambda body: change(body["meta"]))
        return path

    return forged


def test_whatever_is_changed_in_a_folder_it_is_refused_or_works(originals):
    command = [sys.executable, "-W", "ignore", "-m", "tests.helpers.mutants", originals, str(MUTANTS), "7"]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert child.returncode == 0, child.stderr[-2000:]
    *bad, counts = child.stdout.splitlines()
    assert not bad
    assert "'answers'" in counts
    assert "'load refused'" in counts


@pytest.mark.parametrize("value", [-3e38, 3e38, np.inf, np.nan, -1e16])
def test_biases_that_no_answer_can_be_made_of_are_refused(originals, forge, value):
    bias = np.array(ll.load(originals / "plt").weights_[1]["bias"])
    bias[-1] = value
    with pytest.raises(ll.ModelError, match="in tree1, every bias must be a number from -1e15 to 1e15"):
        ll.load(forge("plt", **{"tree1/bias": bias}))


def test_verifying_reads_the_weights_which_loading_leaves_for_later(originals, forge):
    weights = ll.load(originals / "plt32").weights_[0]
    first_words = weights["words"].reshape(-1, _core.WORD_NUMBERS)[weights["word"][:-1]]
    chunk = int(np.flatnonzero(first_words[:, 2] >= _core.DENSE_WORD)[0])
    damaged = np.array(weights["bytes"])
    at = int(weights["byte"][chunk])
    damaged[at : at + 4] = np.frombuffer(np.float32(3e38).tobytes(), np.uint8)
    path = forge("plt32", **{"tree0/bytes": damaged})
    ll.load(path)
    with pytest.raises(ll.ModelError, match=f"chunk {chunk} has a weight that is no number or too large"):
        ll.load(path, verify=True)


def test_tags_that_are_not_what_a_tagger_needs_are_refused(originals, forge):
    data, offsets = (np.array([ord(letter) for letter in "aabcdefg"], np.uint8), np.arange(9))
    with pytest.raises(ll.ModelError, match="tags must be distinct"):
        ll.load(forge("tagger", **{"tags/bytes": data, "tags/offsets": offsets}))
    with pytest.raises(ll.ModelError, match="names/tags must be distinct"):
        ll.load(forge("named", **{"names/tags/bytes": data, "names/tags/offsets": offsets}))


def test_words_that_are_no_vocabulary_are_refused_when_they_are_needed_and_by_verifying(originals, forge):
    terms = np.array(ll.load(originals / "tagger").vectorizer_.term_bytes_)
    for value, message in ((0xFF, "must be UTF-8"), (ord("a"), "must be distinct")):
        path = forge("tagger", **{"vectorizer/term_bytes": np.full_like(terms, value)})
        with pytest.raises(ll.ModelError, match=message):
            ll.load(path, verify=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"idf": np.float32(np.nan)}, "idf must hold numbers from 0 to 1e.06; got nan"),
        ({"idf": np.float32(-1)}, "idf must hold numbers from 0 to 1e.06; got -1"),
    ],
)
def test_weights_of_words_must_be_numbers(originals, forge, change, message):
    idf = np.full_like(ll.load(originals / "tagger").vectorizer_.idf_, change["idf"])
    with pytest.raises(ll.ModelError, match=message):
        ll.load(forge("tagger", **{"vectorizer/idf": idf}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda meta: meta.update(vectorizer=[]),
            r"model\.json's meta\.vectorizer must be an object; got \[\]",
        ),
        (
            lambda meta: meta["vectorizer"].update(n_jobs=10**9),
            "vectorizer is damaged: n_jobs must be at most",
        ),
        (lambda meta: meta["vectorizer"].update(lowercase="x"), "lowercase must be true or false; got 'x'"),
        (lambda meta: meta["vectorizer"].update(bark=1), "must have no fields but .* got 'bark'"),
        (lambda meta: meta["fields"].update(text="t"), r"meta\.fields\.text must be a list; got 't'"),
        (lambda meta: meta["fields"].update(bark="t"), r"meta\.fields must have no fields but text"),
        (lambda meta: meta["estimator"].update(kind=[]), r"meta\.estimator\.kind must be one of plt, br"),
        (
            lambda meta: meta["estimator"]["meta"]["params"].update(k=0),
            r"model\.json's meta\.estimator\.meta\.params\.k must be at least 1",
        ),
    ],
)
def test_a_taggers_settings_are_checked_as_if_they_were_given(forge, change, message):
    with pytest.raises(ll.ModelError, match=message):
        ll.load(forge("tagger", change))


@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
def test_ngrams_longer_than_any_text_take_no_time(analyzer):
    rows = [
        ll.TextVectorizer(analyzer=analyzer, ngram_range=(1, longest)).fit_transform(TEXTS)
        for longest in (100, 2**31 - 1)
    ]
    assert (rows[0] != rows[1]).nnz == 0


def test_a_label_without_a_leaf_cannot_be_explained(originals):
    model, without = (ll.load(originals / "plt") for _ in range(2))
    without.remove_labels([0])
    without.label_counts_[0] = 1
    with pytest.raises(
        ValueError, match="label must occur in training to have a probability to explain; got 0"
    ):
        explain_row(without, np.ones((1, without.n_features_in_)), 0)
    model.trees_[1], model.weights_[1] = without.trees_[1], without.weights_[1]
    with pytest.raises(ValueError, match="label must have a leaf in every tree to be explained; got 0"):
        explain_row(model, np.ones((1, model.n_features_in_)), 0)


def test_a_model_that_could_not_be_read_back_is_not_written(originals, tmp_path):
    model = ll.load(originals / "tagger")
    model.estimator_.k = 0
    with pytest.raises(
        ll.ModelError, match=r"A model must be valid to be saved: meta\.params\.k must be at least 1"
    ):
        model.save(tmp_path / "never")
    assert not (tmp_path / "never").exists()
