"""Words of features that nearly all siblings have weights of: packed, searched, damaged and saved."""

import shutil
from copy import copy
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf import _core
from longleaf.weights.layout import WORD_NUMBERS, chunk_features
from tests.helpers import handmade
from tests.helpers.storage import replace_array

pytestmark = pytest.mark.native

WORD, PAGE = _core.WORD_FEATURES, _core.PAGE_FEATURES
N_FEATURES = PAGE + 3 * WORD + 10


def model_of(width, seed, weight_bits, fill):
    """Make a family of so many siblings; `fill` says how much of which features is there."""
    random = np.random.default_rng(seed)
    tree = ll.LabelTree.flat(range(width))
    share = np.full(N_FEATURES, 0.02)
    for begin, end, full in fill:
        share[begin:end] = full
    W = random.normal(size=(N_FEATURES, tree.n_nodes)) * (
        random.random((N_FEATURES, tree.n_nodes)) < share[:, None]
    )
    W[:, 0] = 0
    bias = random.normal(size=tree.n_nodes).astype(np.float32)
    model = handmade.estimator([(tree, W.astype(np.float32), bias)], width, normalize=False)
    model.weights_ = [handmade.encode(tree, W.astype(np.float32), bias, weight_bits)]
    return model, W.astype(np.float32)


FILLS = {
    "full words": [(WORD, 3 * WORD, 1.0)],
    "partly full": [(WORD + 7, 3 * WORD - 9, 0.7)],
    "across pages": [(PAGE - WORD - 5, PAGE + WORD + 5, 0.8)],
    "to the last feature": [(N_FEATURES - 100, N_FEATURES, 0.9)],
    "with gaps": [(WORD, 2 * WORD, 0.6), (WORD + 10, WORD + 12, 0.0), (WORD + 40, WORD + 41, 0.0)],
    "none": [],
}


def rows_over(fill, random):
    """Draw rows with all of the features that are filled, some of them, single ones, and long runs."""
    rows = np.where(random.random((12, N_FEATURES)) < 0.01, random.normal(size=(12, N_FEATURES)), 0)
    for begin, end, _ in fill:
        rows[:6, begin:end] = random.normal(size=(6, end - begin))
        rows[4, begin + 20 : begin + 23] = 0
        rows[5, begin:end:2] = 0
    for row, (begin, size) in enumerate([(3, 7), (WORD - 4, 8), (0, N_FEATURES), (PAGE - 8, 16)], 6):
        rows[row, begin : begin + size] = random.normal(size=min(size, N_FEATURES - begin))
    rows[10] = 0
    return rows.astype(np.float32)


@pytest.mark.parametrize("weight_bits", [8, 32])
@pytest.mark.parametrize("width", [1, 2, 5, 8, 9, 40, 63, 64, 65, 130, 192, 200])
@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
def test_margins_are_sums_over_features_whatever_the_layout(fill, width, weight_bits):
    model, W = model_of(width, width, weight_bits, fill)
    stored = handmade.decode(model.weights_[0], N_FEATURES)
    np.testing.assert_array_equal(stored != 0, W != 0)
    np.testing.assert_allclose(stored, W, rtol=0 if weight_bits == 32 else 0.06, atol=1e-3)
    X = rows_over(fill, np.random.default_rng(1))
    margins = X.astype(float) @ stored.astype(float)[:, 1:] + model.weights_[0]["bias"][1:].astype(float)
    scale = np.abs(X).astype(float) @ np.abs(stored[:, 1:]).astype(float) + 1
    expected = 1 / (1 + np.exp(-margins))
    sparse = sp.csr_array(X)
    rows, labels = np.repeat(np.arange(len(X)), width), np.tile(np.arange(width), len(X))
    found = model.probability(sparse, rows, labels).reshape(len(X), width)
    np.testing.assert_array_less(np.abs(found - expected), 2e-6 * scale + 1e-6)
    k = min(5, width)
    together = model.top_k(sparse, k=k)
    alone = handmade.one_by_one(model, sparse, k=k)
    np.testing.assert_array_equal(together.labels, alone.labels)
    np.testing.assert_array_equal(together.scores, alone.scores)


@pytest.mark.parametrize("weight_bits", [8, 32])
def test_a_word_is_dense_where_much_of_it_is_there(weight_bits):
    fill = [(WORD, 2 * WORD, 1.0), (2 * WORD, 3 * WORD, 0.2)]
    model, _ = model_of(100, 3, weight_bits, fill)
    weights = model.weights_[0]
    dense = weights["words"].reshape(-1, WORD_NUMBERS)[:, 2] >= _core.DENSE_WORD
    assert dense[1]
    assert not dense[2]
    assert not dense[0]
    features = chunk_features(weights, 0)
    np.testing.assert_array_equal(features, np.flatnonzero(handmade.decode(weights, N_FEATURES).any(axis=1)))


@pytest.mark.parametrize("weight_bits", [8, 32])
def test_what_is_packed_again_is_the_same(weight_bits):
    model, _ = model_of(150, 4, weight_bits, FILLS["across pages"])
    tree, weights = model.trees_[0], model.weights_[0]
    forest = _core.Forest([tree.first_child], [tree.label], [weights], N_FEATURES, 150, 0)
    feature, child, value = forest.chunk_entries(0, 0)
    W = handmade.decode(weights, N_FEATURES)[:, 1:]
    np.testing.assert_array_equal(np.stack([feature, child]), np.stack(np.nonzero(W)))
    np.testing.assert_array_equal(value, W[feature, child])


def searched(model, weights):
    model = copy(model)  # what is ready to be searched belongs to the object
    model.weights_ = [weights]
    return model.top_k(sp.csr_array(np.ones((1, N_FEATURES), np.float32)), k=3)


@pytest.mark.parametrize("weight_bits", [8, 32])
def test_a_damaged_dense_word_is_refused(weight_bits):
    model, _ = model_of(40, 5, weight_bits, FILLS["full words"])
    whole = model.weights_[0]
    searched(model, whole)
    word = int(np.flatnonzero(whole["words"][2::WORD_NUMBERS] >= _core.DENSE_WORD)[0])

    def changed(place, value):
        words = whole["words"].copy()
        words[WORD_NUMBERS * word + place] = value(int(words[WORD_NUMBERS * word + place]))
        return whole | {"words": words}

    damages = {
        "not marked": changed(2, lambda block: block - _core.DENSE_WORD),
        "elsewhere": changed(2, lambda block: block + 1),
        "fewer features": changed(0, lambda bits: bits >> 1),
        "no features": changed(0, lambda bits: 0),
        "bytes cut": whole
        | {
            "bytes": whole["bytes"][:-64],
            "byte": np.array([0, len(whole["bytes"]) - 64 - _core.SPARE_BYTES]),
        },
        "sparse word marked": whole
        | {
            "words": whole["words"]
            | np.array([0, 0, _core.DENSE_WORD] * (len(whole["words"]) // 3), np.uint32)
        },
    }
    for name, damaged in damages.items():
        if name == "no features":
            damaged["words"][WORD_NUMBERS * word + 1] = 0
        with pytest.raises(ValueError, match=r"weight chunk 0 (points outside itself|has a weight)"):
            searched(model, damaged)


def test_a_dense_weight_that_is_no_number_is_refused():
    model, _ = model_of(40, 6, 32, FILLS["full words"])
    weights = model.weights_[0]
    words = weights["words"].reshape(-1, WORD_NUMBERS)
    first = int(words[words[:, 2] >= _core.DENSE_WORD][0, 2]) - _core.DENSE_WORD
    damaged = weights["bytes"].copy()
    damaged[first : first + 4] = np.float32([np.nan]).view(np.uint8)
    with pytest.raises(ValueError, match="no number"):
        searched(model, weights | {"bytes": damaged})


FORMAT_1 = Path(__file__).parent / "format_1"
"""A model with dense chunks and others, and what it answered, by the library that wrote it."""


def test_a_model_of_format_1_gives_the_same_answers():
    model, answers = ll.load(FORMAT_1 / "model.ll", verify=True), np.load(FORMAT_1 / "answers.npz")
    dense = np.load(FORMAT_1 / "model.ll" / "tree0" / "dense.npy")
    assert 0 < dense.sum() < len(dense)
    top = model.top_k(answers["X"], k=5, tail=0.5)
    np.testing.assert_array_equal(top.labels, answers["labels"])
    np.testing.assert_allclose(top.scores, answers["scores"], rtol=1e-5)


def test_a_model_of_format_1_is_saved_and_goes_on_learning_as_one_of_format_2(tmp_path):
    model, X = ll.load(FORMAT_1 / "model.ll"), np.load(FORMAT_1 / "answers.npz")["X"]
    top = model.top_k(X, k=5)
    model.save(tmp_path / "model.ll")
    assert not (tmp_path / "model.ll" / "tree0" / "dense.npy").exists()
    again = ll.load(tmp_path / "model.ll", verify=True)
    np.testing.assert_array_equal(again.top_k(X, k=5).scores, top.scores)
    again.partial_fit(X, [[int(labels[0])] for labels in top.labels])


@pytest.mark.parametrize(
    ("name", "value"),
    [("dense", np.ones(1, np.uint8)), ("word", [0, -1]), ("word", [2**60, 0]), ("dense", [[1]])],
)
def test_a_damaged_model_of_format_1_is_refused(tmp_path, name, value):
    path = tmp_path / "model.ll"
    shutil.copytree(FORMAT_1 / "model.ll", path)
    array = np.load(path / "tree0" / f"{name}.npy")
    value = np.array(value, array.dtype)
    replace_array(path, f"tree0/{name}", np.append(array[:-2], value) if name == "word" else value)
    with pytest.raises(ll.ModelError, match=rf"{name}\.npy|words of each chunk"):
        ll.load(path)
