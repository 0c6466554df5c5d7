"""Models of PECOS XR-Linear (libpecos 1.x): ``ranker/`` with a folder ``d.model`` per level of the tree.

A level has ``param.json`` and two SciPy matrices: ``W.npz`` [features and bias, nodes], whose columns are the
nodes' weights, and ``C.npz`` [nodes, nodes of the level above], which gives the parent of each node. The last
level's nodes are the labels. Rows are used unchanged; if ``bias`` is above 0, it is the value of an
additional feature. The post-processor of ``param.json`` turns a margin m into ``exp(-max(0, 1 - m)**p)``
("lp-hinge") or ``1 / (1 + exp(-m))`` ("sigmoid"); these multiply along the path. With the prefix "log-" it
gives the logarithm.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longleaf._validation import ModelError
from longleaf.importing._assemble import Ints, Source, SourceTree, no_weights
from longleaf.importing._files import read_json, read_sparse, setting
from longleaf.training.solver import LOGISTIC_LINK

MOST_LEVELS = 1000
HINGE = re.compile(r"(?:log-)?l([1-9])-hinge")
LEFT_OUT = -2


def is_pecos(folder: Path) -> bool:
    """Return whether a folder has the files of a model of PECOS XR-Linear, or of its ``ranker``."""
    return any((ranker / "0.model" / "param.json").is_file() for ranker in (folder, folder / "ranker"))


def read_pecos(folder: Path) -> Source:
    """Read a model of PECOS XR-Linear."""
    ranker = folder / "ranker" if (folder / "ranker").is_dir() else folder
    path = ranker / "param.json"
    depth = setting(read_json(path), "depth", int, path)
    if not 1 <= depth <= MOST_LEVELS:
        raise ModelError(f"{path} is damaged: depth must be from 1 to {MOST_LEVELS}; got {depth}.")
    levels = [_Level(ranker / f"{d}.model") for d in range(depth)]
    for level in levels:
        if (level.bias, level.post_processor) != (levels[0].bias, levels[0].post_processor):
            raise ModelError(
                f"{level.folder} must have the same bias and post-processor as the levels above it; "
                f"got {level.bias} and {level.post_processor!r}."
            )
    tree = _join(ranker, levels)
    return Source(
        "pecos",
        [tree],
        _link(levels[0]),
        tree.weights.shape[1],
        levels[-1].nodes,
        normalize=False,
        bias=max(levels[0].bias, 0.0),
        facts={"post_processor": levels[0].post_processor},
    )


class _Level:
    """One level: its matrices, bias and post-processor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / "param.json"
        settings = read_json(path)
        if settings.get("is_mmap"):
            raise ModelError(
                f"{folder} must be saved as npz files, by XLinearModel.save; got a compiled model."
            )
        self.bias = float(setting(settings, "bias", (int, float), path))
        prediction: dict[str, Any] = setting(settings, "pred_kwargs", dict, path)
        self.post_processor = str(setting(prediction, "post_processor", str, path))
        self.weights = read_sparse(folder / "W.npz")
        self.clusters = sp.csr_array(read_sparse(folder / "C.npz"))
        self.nodes: int = self.weights.shape[1]
        if self.clusters.shape[0] != self.nodes:
            raise ModelError(
                f"{folder / 'C.npz'} must have {self.nodes} rows, one per column of W.npz; "
                f"got {self.clusters.shape[0]}."
            )

    def parents(self) -> Ints:
        """Return each node's parent in the level above; pruned nodes have none."""
        self.clusters.eliminate_zeros()
        counts = np.diff(self.clusters.indptr)
        if counts.max(initial=0) > 1:
            node = int(counts.argmax())
            raise ModelError(
                f"{self.folder / 'C.npz'} must have one parent for each node; "
                f"got {counts[node]} for node {node}."
            )
        parent = np.full(self.nodes, LEFT_OUT, np.int64)
        parent[counts == 1] = self.clusters.indices
        return parent


def _join(ranker: Path, levels: list[_Level]) -> SourceTree:
    """Join the levels to a tree, with the first one below a root without a classifier."""
    rows, above = levels[0].weights.shape[0], 1
    parent, first = [np.array([-1])], 0
    for level in levels:
        found = (level.weights.shape[0], level.clusters.shape[1])
        if found != (rows, above):
            raise ModelError(
                f"{level.folder} must have {rows} rows in W.npz and {above} columns in C.npz; "
                f"got {found[0]} and {found[1]}."
            )
        below = level.parents()
        parent.append(np.where(below >= 0, below + first, LEFT_OUT))
        first, above = first + above, level.nodes
    label = np.full(first + above, -1, np.int64)
    label[first:] = np.arange(above)
    families = [no_weights(rows)] + [sp.csr_array(level.weights.T) for level in levels]
    by_node = sp.csr_array(sp.vstack(families, format="csr"))
    value = levels[0].bias
    bias = by_node[:, [rows - 1]].toarray()[:, 0] * np.float32(value) if value > 0 else np.zeros(len(label))
    weights = by_node[:, : rows - 1] if value > 0 else by_node
    return SourceTree(str(ranker), np.concatenate(parent), label, weights, bias)


def _link(level: _Level) -> int:
    if level.post_processor.removeprefix("log-") == "sigmoid":
        return LOGISTIC_LINK
    hinge = HINGE.fullmatch(level.post_processor)
    if hinge is None:
        raise ModelError(
            f"{level.folder / 'param.json'} must have a post-processor of probabilities, lp-hinge or "
            f"sigmoid; got {level.post_processor!r}."
        )
    return int(hinge[1])
