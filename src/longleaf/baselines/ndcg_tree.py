"""Trees that split rows so that each side can be ranked well by a single order of its labels.

They are grown by native code, in ``native/baselines``, which describes the problem that a node solves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf._validation import Rows

MOST_EPOCHS, TOLERANCE = 20, 0.005  # of a separator, as in the authors' code


@dataclass(eq=False)
class NdcgTree:
    """One tree: inner nodes have a separator and two children, leaves the mean gains of their rows' labels.

    ``children[v]`` are the nodes for margins of at most and above 0, or (-1, -1) at a leaf; ``place[v]`` is
    the row of ``weights`` and ``bias`` of an inner node, and of ``leaves`` of a leaf.
    """

    children: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    weight_indptr: npt.NDArray[np.int64]
    weight_indices: npt.NDArray[np.int32]
    weight_data: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]
    leaf_indptr: npt.NDArray[np.int64]
    leaf_indices: npt.NDArray[np.int32]
    leaf_data: npt.NDArray[np.float32]


def grow_trees(
    rows: Rows,
    Y: Any,
    gains: npt.NDArray[np.float64],
    seeds: npt.NDArray[Any],
    *,
    max_leaf: int,
    max_labels: int,
    C: float,
    bias: float,
    threads: int,
    progress: Callable[[float], None] | None = None,
) -> list[NdcgTree]:
    """Grow one tree per seed.

    Parameters
    ----------
    rows : Rows
        The features.
    Y : csr_matrix [rows, labels]
        The labels of the rows.
    gains : float64 [labels]
        Gain of each label: 1 in FastXML, the inverse propensity in PfastreXML.
    seeds : int [trees]
        Seed of each tree.
    max_leaf, max_labels, C, bias
        As in `longleaf.PfastreXML`.
    threads : int
        Number of trees grown in parallel.
    progress : callable, optional
        Called from time to time with the share that is done.
    """
    grown = _core.grow_ndcg_trees(
        *rows.csr,
        rows.n_features,
        rows.scale,
        Y.indptr.astype(np.int64),
        Y.indices.astype(np.int32, copy=False),
        gains,
        np.asarray(seeds, np.uint64),
        max_leaf=max_leaf,
        max_labels=max_labels,
        C=C,
        bias=bias,
        tolerance=TOLERANCE,
        max_epochs=MOST_EPOCHS,
        threads=threads,
        progress=progress,
    )
    return [NdcgTree(**arrays) for arrays in grown]
