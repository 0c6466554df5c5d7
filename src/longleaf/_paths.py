"""The weights along a label's paths, decoded for the features of one row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.tree import LabelTree

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelPath:
    """A label's nodes in one tree from below the root down to its leaf, as one row sees them.

    Attributes
    ----------
    bias : float64 array [nodes]
        The margin of each node's classifier for the empty row.
    products : float64 array [nodes, features of the row]
        What each feature adds to it: weight times value.
    """

    bias: Doubles
    products: Doubles

    @property
    def margin(self) -> Doubles:
        """What all features together add to the margin of each node."""
        return np.asarray(self.products.sum(axis=1), np.float64)


def label_path(
    tree: LabelTree, weights: _core.WeightArrays, label: int, features: Ints, values: Doubles
) -> LabelPath:
    """Decode what `features`, sorted, with `values` add along the path to `label`.

    Parameters
    ----------
    tree : LabelTree
    weights : dict of arrays
        The tree's chunked weights; `ChunkView` in ``native/core.h`` says what each array holds.
    label : int
        It must have a leaf in the tree.
    features, values : arrays [features of the row]
        The row, as it is scored.
    """
    nodes = path_nodes(tree, label)
    products = np.zeros((len(nodes), len(features)))
    for i, node in enumerate(nodes):
        products[i] = node_weights(weights, node, features) * values
    return LabelPath(np.asarray(weights["bias"], np.float64)[nodes], products)


def path_nodes(tree: LabelTree, label: int) -> Ints:
    """List the nodes from below the root down to the leaf of `label`."""
    node = int(np.flatnonzero(tree.label == label)[0])
    nodes = []
    while node > 0:
        nodes.append(node)
        # first_child never falls, so the parent is the last node whose children begin here or before
        node = int(np.searchsorted(tree.first_child, node, side="right")) - 1
    return np.array(nodes[::-1], np.int64)


def node_weights(weights: _core.WeightArrays, node: int, features: Ints) -> Doubles:
    """Look up one node's weights of `features`; 0 where it has none.

    A chunk finds a feature by its bucket (the high bits), then by the key (the low bits) among the bucket's
    slots; a slot lists children and weights, beginning where the entries of the slots before it end.
    """
    chunk = int(np.searchsorted(weights["node"], node, side="right")) - 1
    child = node - int(weights["node"][chunk])
    shift = int(weights["shift"][chunk])
    buckets = weights["bucket"].reshape(-1, 2)[weights["bucket_range"][chunk] :]
    first, last = weights["slot"][chunk], weights["slot"][chunk + 1]
    key, count = weights["key"][first:last], weights["count"][first:last]

    bucket = buckets[features >> shift].astype(np.int64)
    owner, slot = _expand(bucket[:, 0], buckets[(features >> shift) + 1, 0].astype(np.int64))
    size = count[slot].astype(np.int64) + 1
    before = np.cumsum(size) - size
    before -= before[np.searchsorted(owner, owner)]  # counted from the bucket's own first slot
    begin = weights["entry"][chunk] + bucket[owner, 1] + before
    match = key[slot] == (features & ((1 << shift) - 1))[owner]

    inner, entry = _expand(begin[match], (begin + size)[match])
    owner = owner[match]
    match = weights["child"][entry] == child
    owner, entry = owner[inner[match]], entry[match]
    result = np.zeros(len(features))
    coded = weights["codes"].size > 0
    result[owner] = weights["codebook"][weights["codes"][entry]] if coded else weights["values"][entry]
    return result


def _expand(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """List the numbers of all ranges, and which range each belongs to."""
    size = end - begin
    owner = np.repeat(np.arange(len(size)), size)
    start = np.cumsum(size) - size
    return owner, np.arange(size.sum()) - start[owner] + begin[owner]
