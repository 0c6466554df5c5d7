"""ProXML: robust one-vs-rest by the l1 norm.

The problem: labels with few rows, whose words in the test rows are not those of the training rows. Given are
rows ``x_i`` of unit length and, for each label, ``y_i = 1`` where row i has it and -1 elsewhere. A classifier
that withstands the worst change of the features within a box is one with an l1 norm in its objective:

    minimise over w   |w|_1 + C sum_i c_i max(0, 1 - y_i w·x_i)²,

where ``c_i`` is 1 for negative rows and the label's weight for positive ones. Out come sparse weights.
Source: Babbar and Schölkopf, "Data scarcity, robustness and extreme multi-label classification", Machine
Learning 108, 2019. They minimise it by proximal gradient steps, here it is done by LIBLINEAR's coordinate
descent through scikit-learn, to a tolerance at which both give the same minimum.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from longleaf import _core
from longleaf._fitting.part_store import PartStore
from longleaf._fitting.trees import Facts, TrainingData, logger
from longleaf._positive_weight import PROPENSITY
from longleaf._validation import Rows
from longleaf.br import BR
from longleaf.linear import SolverSettings, node_rows, positive_weights
from longleaf.tree import LabelTree

NEXT_TO_NOTHING = 1e-12


class ProXML(BR):
    """One l1-regularised squared-hinge classifier per label, positive rows weighted by ``1 / p_j``.

    Babbar and Schölkopf, "Data scarcity, robustness and extreme multi-label classification", Machine Learning
    108, 2019. Their published code trains with weights of 1 and ranks by gains where it is judged by psp@k:
    ``ProXML(positive_weight=1.0)`` asked with ``tail=1``.

    Parameters
    ----------
    C : float
        The cost of an error.
    normalize, bias, threshold, weight_bits, propensity, k, random_state
        As in `longleaf.PLT`; the weights are sparse by themselves, so that ``threshold`` is 0.
    tolerance, max_epochs
        LIBLINEAR's stopping tolerance, and the most passes over the features.
    n_jobs : int or None
        Threads of searching. Training takes one: LIBLINEAR draws from a generator that threads would share,
        and the same seed would not give the same model.
    positive_weight : float or "propensity"
        What an error on a positive row costs, as a multiple of one on a negative row; "propensity" is the
        label's inverse propensity by the constants ``propensity``.

    Examples
    --------
    >>> model = ProXML(random_state=1).fit([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [[0], [0], [1]])
    >>> model.top_k([[0.0, 1.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    kind: ClassVar[str] = "proxml"
    can_resume: ClassVar[bool] = False
    loss: str = "squared-hinge"
    hinge_power: int = 2  # without gains, its ranking does not depend on it
    default_costs: ClassVar[Mapping[str, float]] = {"squared-hinge": 1.0}
    named_positive_weights: ClassVar[tuple[str, ...]] = (PROPENSITY,)

    def __init__(
        self,
        C: float | None = 1.0,
        normalize: bool = True,
        bias: float = 1.0,
        threshold: float = 0.0,
        tolerance: float = 0.001,
        max_epochs: int = 1000,
        positive_weight: float | str = PROPENSITY,
        weight_bits: int = 8,
        propensity: tuple[float, float] = (0.55, 1.5),
        k: int = 5,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> None:
        super().__init__(
            loss=self.loss,
            C=C,
            normalize=normalize,
            bias=bias,
            threshold=threshold,
            tolerance=tolerance,
            max_epochs=max_epochs,
            positive_weight=positive_weight,
            weight_bits=weight_bits,
            hinge_power=self.hinge_power,
            propensity=propensity,
            k=k,
            random_state=random_state,
            n_jobs=n_jobs,
        )

    def _label_weight(self) -> npt.NDArray[np.float64] | None:
        return self._label_worth() if self.positive_weight == PROPENSITY else None

    def _train(
        self,
        data: TrainingData,
        trees: list[LabelTree],
        seeds: list[int],
        settings: SolverSettings,
        threads: int,
        progress: Callable[[float], None] | None,
        store: PartStore | None,
    ) -> tuple[list[_core.WeightArrays], list[Facts]]:
        (tree,), (seed,) = trees, seeds
        X, rows_of_label = scaled_rows(data.rows), data.labels.T.tocsr()
        positive = positive_weights(tree, np.diff(node_rows(tree, data.labels)[0]), settings)

        def solve(node: int) -> tuple[npt.NDArray[np.float32], float, bool]:
            label = int(tree.label[node])
            held = rows_of_label.indices[rows_of_label.indptr[label] : rows_of_label.indptr[label + 1]]
            return _solve(X, held, data.row_weight, float(positive[node]), settings, seed)

        leaves = np.flatnonzero(tree.label >= 0)
        solved = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # told below, once for all labels
            for w, bias, done in map(solve, leaves.tolist()):
                (feature,) = np.nonzero(np.abs(w) > settings.threshold)
                solved.append((feature.astype(np.int32), w[feature], bias, done))
                if progress is not None:
                    progress(len(solved) / len(leaves))
        unfinished = sum(not done for *_, done in solved)
        if unfinished:
            logger.warning("%d classifiers stopped at max_epochs=%d", unfinished, settings.max_epochs)
        return [_assemble(tree, leaves, solved, X.shape[1], settings)], [{"unfinished": unfinished}]


def scaled_rows(rows: Rows) -> sp.csr_matrix[np.float64]:
    """Give the rows as a matrix, each times its scale."""
    data = rows.data.astype(np.float64) * np.repeat(rows.scale.astype(np.float64), np.diff(rows.indptr))
    return sp.csr_matrix((data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))


def _solve(
    X: sp.csr_matrix[np.float64],
    held: npt.NDArray[np.int32],
    row_weight: npt.NDArray[np.float32] | None,
    positive_weight: float,
    settings: SolverSettings,
    seed: int,
) -> tuple[npt.NDArray[np.float32], float, bool]:
    """Give weights, bias and whether the tolerance was reached, for the label of the rows ``held``."""
    from sklearn.svm import LinearSVC  # here, since few programs need it and it is slow to import

    n = X.shape[0]
    cost = np.ones(n) if row_weight is None else row_weight.astype(np.float64)
    y = np.full(n, -1)
    y[held] = 1
    cost[held] *= positive_weight
    for side in (-1, 1):
        if not (cost[y == side] > 0).any():  # LIBLINEAR needs both sides: an empty row of no importance
            X = sp.vstack([X, sp.csr_matrix((1, X.shape[1]))], format="csr")
            y, cost = np.append(y, side), np.append(cost, NEXT_TO_NOTHING)
    solver = LinearSVC(
        penalty="l1",
        loss="squared_hinge",
        dual=False,
        C=settings.C,
        tol=settings.tolerance,
        max_iter=settings.max_epochs,
        fit_intercept=settings.bias != 0,
        intercept_scaling=settings.bias or 1.0,
        random_state=seed,
    )
    solver.fit(X, y, sample_weight=cost)
    bias = float(np.atleast_1d(solver.intercept_)[0])
    return solver.coef_[0].astype(np.float32), bias, int(np.max(solver.n_iter_)) < settings.max_epochs


def _assemble(
    tree: LabelTree,
    leaves: npt.NDArray[np.int64],
    solved: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], float, bool]],
    n_features: int,
    settings: SolverSettings,
) -> _core.WeightArrays:
    """Pack the labels' weights into the arrays that a model holds; the tree is flat."""
    bias = np.zeros(tree.n_nodes, np.float32)
    bias[leaves] = [b for _, _, b, _ in solved]
    features, children, values = [], [], []
    for begin in range(0, len(solved), _core.CHUNK_WIDTH):
        part = solved[begin : begin + _core.CHUNK_WIDTH]
        feature = np.concatenate([f for f, *_ in part])
        child = np.repeat(np.arange(len(part)), [len(f) for f, *_ in part])
        order = np.lexsort((child, feature))
        features.append(feature[order].astype(np.int32))
        children.append(child[order].astype(np.uint8))
        values.append(np.concatenate([v for _, v, *_ in part])[order].astype(np.float32))
    return _core.assemble_chunks(
        tree.first_child, tree.label, features, children, values, bias, n_features, settings.weight_bits
    )
