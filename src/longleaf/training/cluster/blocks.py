"""What tasks do with partitions of rows: count, choose and put together, always in the order of the rows."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from dask.sizeof import sizeof

from longleaf._validation import Rows
from longleaf.training.data import TrainingData, feature_mass
from longleaf.training.solver import node_rows
from longleaf.trees.label_tree import LabelTree

Ints = npt.NDArray[np.int64]
NodeIndex = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
"""A partition's rows of each node, as `longleaf.training.solver.node_rows` returns them."""


class Sizes(NamedTuple):
    """How much a partition holds."""

    rows: int
    features: int
    labels: int
    entries: int  # of the features
    label_entries: int


def sizes(data: TrainingData) -> Sizes:
    """Say how much there is."""
    n_rows, n_labels = data.labels.shape
    return Sizes(n_rows, data.rows.n_features, n_labels, len(data.rows.data), int(data.labels.nnz))


def count_labels(data: TrainingData) -> Ints:
    """Count the rows of each label."""
    return np.bincount(data.labels.indices, minlength=data.labels.shape[1]).astype(np.int64)


def weigh_features(data: TrainingData) -> Ints:
    """Say how much of the rows each feature makes up."""
    return feature_mass(data.rows)


def add(*counts: Ints) -> Ints:
    """Sum whole numbers; the order cannot matter. Shorter arrays lack labels that their rows do not have."""
    total = np.zeros((*counts[0].shape[:-1], max(one.shape[-1] for one in counts)), np.int64)
    for one in counts:
        total[..., : one.shape[-1]] += one
    return total


def index_nodes(data: TrainingData, tree: LabelTree) -> NodeIndex:
    """List a partition's rows of each node."""
    return node_rows(tree, data.labels)


def size_nodes(data: TrainingData, index: NodeIndex) -> Ints:
    """Count the rows of each node, and their entries: [2, nodes]."""
    indptr, rows = index
    entries = np.append(np.int64(0), np.cumsum(np.diff(data.rows.indptr)[rows]))
    return np.stack([np.diff(indptr), np.diff(entries[indptr])])


def rows_of_labels(data: TrainingData, first: int, last: int) -> TrainingData:
    """Return the rows with a label from ``first`` to before ``last``."""
    held = (data.labels.indices >= first) & (data.labels.indices < last)
    row_of = np.repeat(np.arange(data.rows.n_rows), np.diff(data.labels.indptr))
    return take(data, np.unique(row_of[held]))


def rows_of_nodes(data: TrainingData, index: NodeIndex, nodes: Ints) -> TrainingData:
    """Return the rows of some nodes."""
    indptr, rows = index
    if 0 in nodes:
        return data
    held = [rows[indptr[node] : indptr[node + 1]] for node in nodes]
    return take(data, np.unique(np.concatenate(held)))


def take(data: TrainingData, which: npt.NDArray[Any]) -> TrainingData:
    """Return some rows, in rising order."""
    rows = data.rows
    if len(which) == rows.n_rows:
        return data
    chosen = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))[which]
    weight = None if data.row_weight is None else data.row_weight[which]
    return TrainingData(
        Rows(
            chosen.indptr.astype(np.int64),
            chosen.indices.astype(np.int32),
            chosen.data,
            rows.n_features,
            rows.scale[which],
        ),
        data.labels[which],
        weight,
    )


def stack(blocks: tuple[TrainingData, ...]) -> TrainingData:
    """Put blocks one after another."""
    if len(blocks) == 1:
        return blocks[0]
    rows = [block.rows for block in blocks]
    weights = [block.row_weight for block in blocks if block.row_weight is not None]
    width = max(block.labels.shape[1] for block in blocks)
    labels = sp.csr_array(
        (
            np.concatenate([block.labels.data for block in blocks]),
            np.concatenate([block.labels.indices for block in blocks]),
            join_indptr([block.labels.indptr for block in blocks]),
        ),
        shape=(sum(one.n_rows for one in rows), width),
    )
    return TrainingData(
        Rows(
            join_indptr([one.indptr for one in rows]),
            np.concatenate([one.indices for one in rows]),
            np.concatenate([one.data for one in rows]),
            rows[0].n_features,
            np.concatenate([one.scale for one in rows]),
        ),
        labels,
        np.concatenate(weights) if weights else None,
    )


def join_indptr(indptrs: list[npt.NDArray[Any]]) -> Ints:
    """Return the row pointers of matrices joined one after another."""
    counts = np.concatenate([np.diff(indptr) for indptr in indptrs])
    return np.append(np.int64(0), np.cumsum(counts, dtype=np.int64))


def with_weight(data: TrainingData, weight: npt.NDArray[np.float32]) -> TrainingData:
    """Return the rows their weights."""
    return TrainingData(data.rows, data.labels, weight)


def with_labels(
    data: TrainingData, labels: sp.csr_array, weight: npt.NDArray[np.float32] | None
) -> TrainingData:
    """Return the rows with other labels and weights."""
    return TrainingData(data.rows, labels, weight)


def _size_of_data(data: TrainingData) -> int:
    """Say how many bytes there are, so that Dask knows what moving and keeping them costs."""
    rows, labels = data.rows, data.labels
    arrays = (*rows.csr, rows.scale, labels.data, labels.indices, labels.indptr)
    weight = 0 if data.row_weight is None else data.row_weight.nbytes
    return sys.getsizeof(data) + sum(int(array.nbytes) for array in arrays) + weight


def _size_of_tree(tree: LabelTree) -> int:
    return sys.getsizeof(tree) + tree.first_child.nbytes + tree.label.nbytes


sizeof.register(TrainingData, _size_of_data)
sizeof.register(LabelTree, _size_of_tree)
