"""A function of the user's as an encoder."""

import numpy as np
import pytest

import longleaf as ll


def lengths(texts):
    return np.array([[len(text), 1.0] for text in texts])


class Model:
    fingerprint = "model 1"

    def __call__(self, texts):
        return lengths(texts).astype(np.float16)


def test_its_rows_are_scaled_and_rounded():
    encoder = ll.encoders.load(lengths)
    assert encoder.embed(["abc", "", "abcd"]).tolist() == [
        np.float32(np.float16(np.array([3, 1]) / 10**0.5)).tolist(),
        [0, 0],
        np.float32(np.float16(np.array([4, 1]) / 17**0.5)).tolist(),
    ]
    assert (encoder.dimensions, encoder.max_tokens) == (2, None)
    assert encoder.name == "tests.encoders.test_function.lengths"


def test_many_texts_come_in_batches():
    shares = []
    texts = ["a" * (1 + number % 7) for number in range(600)]
    vectors = ll.encoders.load(lengths).embed(texts, progress=shares.append)
    assert (vectors[:7] == vectors[7:14]).all()
    assert shares == [256 / 600, 512 / 600, 1, 1]


def test_its_fingerprint_is_its_attribute_or_its_name():
    first, second = Model(), Model()
    second.fingerprint = "model 2"
    known = {ll.encoders.load(one).fingerprint for one in (first, second, lengths)}
    assert len(known) == 3
    assert ll.encoders.load(lengths).fingerprint in known
    assert all(len(one) == 64 for one in known)
    assert [ll.encoders.load(one).keeps for one in (first, lengths)] == [True, False]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda texts: np.ones(len(texts)), "one row of numbers per text; got float64 of shape (1,) for 1"),
        (lambda texts: np.ones((2, 2)), "one row of numbers per text; got float64 of shape (2, 2) for 1"),
        (lambda texts: [["a"]], "one row of numbers per text; got <U1 of shape (1, 1) for 1 texts."),
        (lambda texts: [[np.nan]], "must return finite numbers; got NaN or infinity."),
    ],
)
def test_what_it_returns_is_checked(function, sentence):
    with pytest.raises(ll.DataError) as caught:
        ll.encoders.load(function).embed(["a"])
    assert sentence in str(caught.value)


def test_its_dimensions_must_stay_the_same():
    widths = iter([2, 3])
    with pytest.raises(ll.DataError, match="must return 2 dimensions, as for other texts; got 3"):
        ll.encoders.load(lambda texts: np.ones((len(texts), next(widths)))).embed(["a"])
