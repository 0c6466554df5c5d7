"""A fine-tuned encoder remembers which texts it was not trained on, and a tagger is calibrated on these."""

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf._validation import ModelError
from longleaf.encoders.encoder import Encoder, unit
from longleaf.encoders.held_out import HELD_OUT, hashes, read_held_out, write_held_out
from longleaf.reading import TaggedRows
from longleaf.text.meaning import embedded_text
from longleaf.training.data import held_out_rows


class Letters(Encoder):
    """Counts letters."""

    name, max_tokens, fingerprint, dimensions = "letters", None, "letters", 26

    def _embed(self, texts, threads, progress):
        return np.array([unit([text.count(chr(97 + i)) for i in range(26)]) for text in texts])


def records(n):
    random = np.random.default_rng(1)
    words = [["olive oil", "wheat flour", "fresh milk"][i] for i in random.integers(0, 3, n)]
    texts = [{"title": word, "text": f"{word} number {row}"} for row, word in enumerate(words)]
    return texts, [[word.split()[0]] for word in words]


def test_texts_are_remembered_in_the_folder(tmp_path):
    assert read_held_out(tmp_path) is None
    write_held_out(tmp_path, ["one", "two", "one"])
    assert np.array_equal(read_held_out(tmp_path), np.unique(hashes(["one", "two"])))
    (tmp_path / HELD_OUT).write_bytes(b"nonsense")
    with pytest.raises(ModelError, match=r"held_out\.npy is damaged"):
        read_held_out(tmp_path)


def test_rows_to_calibrate_on_are_among_the_fresh_ones():
    Y = sp.csr_array(np.ones((1000, 1), np.float32))
    fresh = np.zeros(1000, bool)
    fresh[::10] = True
    held = held_out_rows(Y, 1, fresh=fresh)
    assert held.sum() == 100
    assert not (held & ~fresh).any()
    fresh[40:] = False  # too few
    assert np.array_equal(held_out_rows(Y, 1, fresh=fresh), held_out_rows(Y, 1))


@pytest.mark.parametrize("names", [None, {"olive": "olive oil", "wheat": "wheat", "rye": "rye"}])
def test_a_tagger_is_calibrated_on_texts_that_its_encoder_has_not_learned_from(names, monkeypatch):
    texts, tags = records(800)
    encoder = Letters()
    unseen = [embedded_text(text, ["title", "text"]) for text in texts[100:300]]
    encoder.held_out = np.unique(hashes(unseen))
    read: list[TaggedRows] = []
    kept = []

    def watched(Y, *arguments, **options):
        held = held_out_rows(Y, *arguments, **options)
        kept.append(np.flatnonzero(held))
        return held

    original = TaggedRows.read.__func__
    monkeypatch.setattr(
        TaggedRows, "read", classmethod(lambda cls, *a, **k: read.append(original(cls, *a, **k)) or read[-1])
    )
    monkeypatch.setattr("longleaf.estimator.held_out_rows", watched)
    monkeypatch.setattr("longleaf.fusion.training.held_out_rows", watched)
    tagger = ll.Tagger(ll.PLT(n_trees=1, random_state=1), names=names, encoder=encoder)
    tagger.fit(texts, tags)
    assert np.flatnonzero(read[0].fresh).tolist() == list(range(100, 300))
    assert len(kept) == 1
    assert set(kept[0]) <= set(range(100, 300))
    assert tagger.suggest(["olive oil"], k=1)[0][0].tag == "olive"
