"""How far a weight of 8 bits is from the one that was trained: what the documentation says."""

import math

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.handmade import decode, encode

pytestmark = pytest.mark.native

N_LABELS = 192


def stored(weights):
    """Pack the weights of a family, a feature each, and read them back."""
    tree = ll.LabelTree.flat(range(N_LABELS))
    W = np.zeros((len(weights), tree.n_nodes), np.float32)
    places = np.arange(len(weights)), 1 + np.arange(len(weights)) % N_LABELS
    W[places] = weights
    return decode(encode(tree, W, np.zeros(tree.n_nodes), weight_bits=8), len(weights))[places]


def drawn(ratio, smallest, seed):
    """Draw weights of both signs, the largest so many times the smallest."""
    random = np.random.default_rng(seed)
    magnitude = smallest * ratio ** np.append(random.random(5000), [0, 1])
    return (magnitude * random.choice([-1, 1], len(magnitude))).astype(np.float32)


@pytest.mark.parametrize("ratio", [1, 1.5, 10, 100, 200, 1000, 9999])
@pytest.mark.parametrize("smallest", [0.1, 1e-4, 0.0625, 0.0624999, 0.999])
def test_a_weight_is_off_by_no_more_than_the_ratio_of_largest_and_smallest_says(ratio, smallest):
    weights = drawn(ratio, smallest, seed=1)
    off = np.abs(stored(weights) / weights.astype(np.float64) - 1).max()
    assert off <= (0.1 + math.log2(ratio)) / 252
    assert ratio < 10 or off > 0.8 * math.log2(ratio) / 252, "the documents could promise more"


def test_the_table_of_the_documents_is_right():
    for ratio, percent in ((10, 1.4), (100, 2.7), (200, 3.1), (1000, 4.0), (10_000, 5.4)):
        assert percent - 0.1 < 100 * (0.1 + math.log2(ratio)) / 252 <= percent


def test_weights_far_below_the_largest_are_off_by_a_ten_thousandth_of_it():
    weights = drawn(1e9, 1e-8, seed=2)
    off = np.abs(stored(weights) - weights.astype(np.float64))
    assert off[np.abs(weights) < 1e-3].max() <= 1.001e-4 * np.abs(weights).max()
    large = np.abs(weights) >= 1e-3
    assert (off[large] / np.abs(weights[large])).max() <= (0.1 + math.log2(10_000)) / 252
