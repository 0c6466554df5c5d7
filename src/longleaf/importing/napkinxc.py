"""Models of napkinXC's PLT (0.7): ``args.bin``, and ``tree.bin`` and ``weights.bin`` per tree.

All numbers are little-endian; int is 4 bytes, size 8, real a 32-bit float, bool one byte.

    args.bin     version, bias (real), norm (bool), hash (int), features threshold (real), model type
                 (int), its name, ensemble (int); a string is its size and its bytes
    tree.bin     labels, nodes (ints); per node its index and its label, -1 for none (ints); the root
                 (int); per node its parent, -1 at the root (int)
    weights.bin  nodes (int); per node: classes, first class, loss (ints); with 2 classes also the vector's
                 sizes (2 sizes), the vector, whether gradients follow (bool) and these, another vector
    vector       length, stored numbers (sizes), whether it is sparse (bool); (index int, value real) pairs,
                 or `length` reals

An ensemble's trees are in ``member_0`` and so on. Of a weight vector, place 1 is the bias and place i + 2 is
feature i. If the first class is 0, the sign of the margin is flipped; a node that never saw both classes has
the margin 10 or -10. Even the root has a classifier, for whether a row has any label. Rows are scaled to unit
length if ``norm``, excluding the bias; loss 1 is squared hinge, ``exp(-max(0, 1 - m)**2)``, all others
logistic.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import ModelError
from longleaf.importing._assemble import Source, SourceTree, no_weights
from longleaf.importing._files import Records
from longleaf.training.solver import LOGISTIC_LINK

INT, SIZE, REAL, BOOL = "<i4", "<i8", "<f4", "?"
PAIR = np.dtype([("index", INT), ("value", REAL)])
VERSION = "0.7."
MODEL = "plt"
SQUARED_HINGE, LOSSES, HINGE_POWER = 1, range(5), 2
BIAS, FIRST_FEATURE = 1, 2
MARGIN_OF_CONSTANT = 10.0
MOST_FEATURES = 2**31 - 2


def is_napkinxc(folder: Path) -> bool:
    """Return whether a folder has the files of a model of napkinXC."""
    return (folder / "args.bin").is_file()


def read_napkinxc(folder: Path) -> Source:
    """Read a PLT of napkinXC, or an ensemble of them."""
    bias, norm, ensemble = _read_settings(Records(folder / "args.bin"))
    folders = [folder / f"member_{m}" for m in range(ensemble)] if ensemble > 1 else [folder]
    nodes = [_Nodes(member / "weights.bin", bias) for member in folders]
    losses = {loss for one in nodes for loss in one.losses}
    if len(losses) > 1:
        raise ModelError(f"{folder} must have one loss in all nodes; got {sorted(losses)}.")
    link = HINGE_POWER if SQUARED_HINGE in losses else LOGISTIC_LINK
    trees = [_read_tree(member / "tree.bin", one, link) for member, one in zip(folders, nodes, strict=True)]
    n_features = max(max(one.length - FIRST_FEATURE - 1, one.n_features) for one in nodes)
    n_labels = 1 + max(int(tree.label.max()) for tree in trees)
    return Source("napkinxc", trees, link, max(n_features, 1), n_labels, normalize=norm, bias=bias)


def _read_settings(records: Records) -> tuple[float, bool, int]:
    """Return bias, norm and the number of trees; reject settings that longleaf does not support."""
    path, version = records.path, records.text()
    if not version.startswith(VERSION):
        raise ModelError(f"{path} must be of napkinXC {VERSION}x; got version {version[:20]!r}.")
    bias, norm, hashing = records.number(REAL), records.number(BOOL), records.number(INT)
    threshold, _, name = records.number(REAL), records.number(INT), records.text()
    ensemble = records.number(INT)
    records.finish()
    if name != MODEL:
        raise ModelError(f"{path} must be of a PLT; got a model of type {name[:20]!r}.")
    if hashing or threshold:
        raise ModelError(
            f"{path} must be of a model without hashed or dropped features; got hash={hashing} and "
            f"features_threshold={threshold:g}."
        )
    if not math.isfinite(bias) or not 0 <= ensemble <= 10**6:
        raise ModelError(f"{path} is damaged: it has bias={bias} and ensemble={ensemble}.")
    return bias, norm, ensemble


class _Nodes:
    """The classifiers of ``weights.bin``, by their nodes' numbers."""

    def __init__(self, path: Path, bias: float) -> None:
        self.bias_value, self.length, self.n_features = bias, 0, 0
        self.losses: set[int] = set()  # of the trained nodes
        self.constant: dict[int, tuple[float, int]] = {}  # margin and loss of the other nodes
        self._features: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)]
        self._values: list[npt.NDArray[np.float32]] = [np.zeros(0, np.float32)]
        records = Records(path)
        count = records.number(INT)
        self.bias: list[float] = []
        sizes = []
        for node in range(count):
            sizes.append(self._read_node(records, node))
        records.finish()
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        features = np.concatenate(self._features)
        self.n_features = int(features.max(initial=-1)) + 1
        arrays = (np.concatenate(self._values), features, indptr)
        self.weights = sp.csr_array(arrays, shape=(count, self.n_features))

    def _read_node(self, records: Records, node: int) -> int:
        """Read one node; return its number of weights."""
        classes, first_class, loss = records.array(INT, 3).tolist()
        if classes not in (0, 1, 2) or first_class not in (0, 1) or loss not in LOSSES:
            raise ModelError(
                f"{records.path} is damaged: node {node} has {classes} classes, the first {first_class}, "
                f"and loss {loss}."
            )
        sign = 1.0 if first_class == 1 else -1.0
        if classes < 2:
            self.constant[node] = (sign * MARGIN_OF_CONSTANT, loss)
            self.bias.append(0.0)
            return 0
        self.losses.add(loss)
        records.array(SIZE, 2)
        index, value = self._read_vector(records)
        if records.number(BOOL):
            self._read_vector(records)  # gradients, from incremental training
        is_bias, is_feature = index == BIAS, index >= FIRST_FEATURE
        self.bias.append(sign * self.bias_value * float(value[is_bias].sum()))
        self._features.append(index[is_feature].astype(np.int64) - FIRST_FEATURE)
        self._values.append(np.float32(sign) * value[is_feature])
        return int(is_feature.sum())

    def _read_vector(self, records: Records) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        length, stored = records.array(SIZE, 2).tolist()
        self.length = max(self.length, length)
        if records.number(BOOL):
            pairs = records.array(PAIR, stored)
            index, value = pairs["index"], pairs["value"]
        else:
            value = records.array(REAL, length)
            index = np.flatnonzero(value)
            value = value[index]
        if not 0 <= length <= MOST_FEATURES or (len(index) and not 0 <= index.min() <= index.max() < length):
            raise ModelError(
                f"{records.path} is damaged: a vector must name places below its length {length}."
            )
        if not np.isfinite(value).all():
            raise ModelError(f"{records.path} is damaged: weights must be finite numbers.")
        return index, value


def _read_tree(path: Path, nodes: _Nodes, link: int) -> SourceTree:
    """Put the tree below an additional root, because its own root has a classifier."""
    records = Records(path)
    n_labels, count = records.array(INT, 2).tolist()
    named = records.array(INT, 2 * count).reshape(-1, 2)
    root = records.number(INT)
    parent = records.array(INT, count).astype(np.int64)
    records.finish()
    if count != nodes.weights.shape[0]:
        raise ModelError(f"{path} must have {nodes.weights.shape[0]} nodes, as weights.bin; got {count}.")
    is_root = np.flatnonzero(parent == -1).tolist()
    if not np.array_equal(named[:, 0], np.arange(count)) or is_root != [root] or parent.min() < -1:
        raise ModelError(
            f"{path} is damaged: its nodes must be numbered in order, below the one root {root}."
        )
    if (named[:, 1] >= 0).sum() != n_labels or named[:, 1].min() < -1:
        raise ModelError(f"{path} is damaged: it must name {n_labels} labels.")
    bias = np.array([0.0, *nodes.bias])
    for node, (margin, loss) in nodes.constant.items():
        bias[1 + node] = _same_probability(margin, loss, link)
    return SourceTree(
        str(path.parent),
        np.concatenate([[-1], np.where(parent == -1, 0, parent + 1)]),
        np.concatenate([[-1], named[:, 1]]).astype(np.int64),
        sp.csr_array(sp.vstack([no_weights(nodes.weights.shape[1]), nodes.weights], format="csr")),
        bias,
    )


def _same_probability(margin: float, loss: int, link: int) -> float:
    """Return the margin for the model's link with the same probability as the margin for the node's loss.

    If the solver was chosen by name, untrained nodes have the loss of the settings, not of the solver.
    """
    if (loss == SQUARED_HINGE) == (link != LOGISTIC_LINK):
        return margin
    if link != LOGISTIC_LINK:  # exp(-(1 - m)**2) = 1 / (1 + exp(-margin))
        return 1.0 - math.sqrt(math.log1p(math.exp(-margin)))
    log_probability = -(max(0.0, 1.0 - margin) ** 2)  # certain, or nearly impossible
    return MARGIN_OF_CONSTANT**2 if log_probability == 0 else log_probability
