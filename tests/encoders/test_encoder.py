"""What every encoder promises: the same bits for the same text, whatever else there is."""

import copy

import numpy as np
import pytest

import longleaf as ll
from longleaf.encoders.encoder import unit
from tests.helpers.encoders import TEXTS, WORDS, require_extra, save_bert

require_extra()

MANY = [" ".join(np.random.default_rng(seed).choice(WORDS, 1 + seed % 30)) for seed in range(60)]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGLEAF_CACHE", str(tmp_path_factory.mktemp("cache")))
        return ll.encoders.load(save_bert(tmp_path_factory.mktemp("model")))


@pytest.mark.parametrize("threads", [1, 2, 5, None])
def test_the_number_of_threads_changes_no_bit(encoder, threads):
    assert (encoder.embed(MANY, threads=threads) == encoder.embed(MANY, threads=1)).all()


def test_a_text_alone_has_the_same_bits_as_among_others(encoder):
    alone = np.concatenate([encoder.embed([text]) for text in MANY])
    assert (alone == encoder.embed(MANY)).all()


def test_the_order_changes_no_bit(encoder):
    order = np.random.default_rng(0).permutation(len(MANY))
    assert (encoder.embed([MANY[place] for place in order]) == encoder.embed(MANY)[order]).all()


def test_loading_again_changes_no_bit(encoder, tmp_path):
    again = ll.encoders.load(save_bert(tmp_path / "model"))
    assert (again.embed(MANY) == encoder.embed(MANY)).all()
    assert again.fingerprint == encoder.fingerprint


def test_rows_have_unit_length_and_fit_in_float16(encoder):
    vectors = encoder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dimensions) == (6, 32)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert (vectors.astype(np.float16) == vectors).all()


def test_an_empty_text_has_a_row_of_zeros(encoder):
    vectors = encoder.embed(["", "a cat", " \n\t", "\N{NO-BREAK SPACE}"])
    assert (np.abs(vectors).sum(axis=1) > 0).tolist() == [False, True, False, False]
    assert (vectors[1] == encoder.embed(["a cat"])[0]).all()


def test_no_text_has_no_row(encoder):
    assert encoder.embed([]).shape == (0, 32)


def test_half_of_a_surrogate_pair_is_read_as_a_question_mark(encoder):
    assert (encoder.embed(["a \ud800 cat"]) == encoder.embed(["a ? cat"])).all()


def test_progress_rises_to_one(encoder):
    shares = []
    encoder.embed(MANY, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert min(shares) >= 0


def test_what_progress_raises_ends_the_work(encoder):
    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encoder.embed(MANY, progress=stop)
    assert (encoder.embed(["a cat"]) != 0).any()  # the next call is not affected


def test_long_texts_are_cut(encoder):
    long = "the cat " * 10000
    assert (encoder.embed([long]) == encoder.embed([long[:400]])).all()
    assert encoder.max_tokens == 40


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ("a cat", "texts must be a sequence of strings; got a single str."),
        (3, "texts must be a sequence of strings; got a single int."),
        (["a", None], "texts must be strings; row 1 is None."),
    ],
)
def test_what_is_no_sequence_of_strings_is_refused(encoder, texts, sentence):
    with pytest.raises(TypeError) as caught:
        encoder.embed(texts)
    assert str(caught.value) == sentence


def test_threads_are_checked(encoder):
    with pytest.raises(ValueError, match="threads must be a whole number other than 0, or None; got 0"):
        encoder.embed(["a"], threads=0)


def test_a_copy_is_the_encoder_itself(encoder):
    assert copy.deepcopy({"encoder": encoder})["encoder"] is encoder


def test_zeros_stay_zeros():
    assert unit(np.zeros(3)).tolist() == [0, 0, 0]
