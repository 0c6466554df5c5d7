"""Probabilistic label trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state

from longleaf import _core
from longleaf._estimator import LabelEstimator, logger
from longleaf._validation import Rows, check_choice, check_count, check_number, check_threads
from longleaf.linear import COST_SCALES, LOSSES, SolverSettings, train_tree
from longleaf.presets import preset
from longleaf.tree import LabelTree

TREES = ("kmeans", "merged", "unbalanced", "complete", "random", "huffman")
DEFAULT_C = {"log": 16.0, "squared-hinge": 1.0}
KMEANS_ITERATIONS, KMEANS_TOLERANCE = 20, 1e-4


class PLT(LabelEstimator):
    """Probabilistic label trees, and PS-PLT when searched with gains.

    Parameters
    ----------
    n_trees : int
        The trees of the ensemble; their probabilities are averaged.
    loss : {"log", "squared-hinge"}
        The loss of the node classifiers. Squared-hinge margins ``s`` become probabilities as
        ``exp(-max(0, 1 - s)**2)``.
    C : float, optional
        The cost of an error; 16 for "log", 1 for "squared-hinge" if left out.
    arity : int
        Children of an inner node.
    max_leaf : int
        Clusters of at most this many labels are not split any more; their labels are siblings.
    tree : {"kmeans", "merged", "unbalanced", "complete", "random", "huffman"}, LabelTree or list of LabelTree
        "kmeans" splits each cluster by balanced k-means with ``arity`` centres; "merged" builds a binary
        tree and merges its levels to ``arity``, a power of two; "unbalanced" is k-means without equal sizes.
    normalize : bool
        Whether rows are scaled to unit length.
    bias : float
        The value of the bias feature; 0 for none.
    threshold : float
        Weights of smaller magnitude are dropped.
    tolerance : float
        A classifier is done when its duality gap is below this share of its objective.
    max_epochs : int
        The most passes over the rows of a node.
    positive_weight : float
        What an error on a positive row costs, as a multiple of one on a negative row.
    C_scale : {"none", "log", "linear"}
        Whether C grows as nodes have fewer rows: by ``1 + log(n / m)`` or ``n / m``.
    weight_bits : {8, 32}
        8: weights are stored as one of 256 values spaced in equal ratios, off by 2 % at most.
    propensity : (A, B)
        The constants of the propensity model, for ``tail``.
    k : int
        How many labels ``predict`` gives.
    random_state : int, RandomState or None
        The same number gives the same model, bit for bit, with any number of threads.
    n_jobs : int or None
        Threads; -1 for all cores.

    Examples
    --------
    >>> import longleaf as ll
    >>> X, Y = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [[0], [0, 1], [1]]
    >>> model = ll.PLT(n_trees=1, random_state=1).fit(X, Y)
    >>> model.top_k([[0.0, 1.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    kind: ClassVar[str] = "plt"

    def __init__(
        self,
        n_trees: int = 3,
        loss: str = "log",
        C: float | None = None,
        arity: int = 2,
        max_leaf: int = 100,
        tree: str | LabelTree | list[LabelTree] = "kmeans",
        normalize: bool = True,
        bias: float = 1.0,
        threshold: float = 0.1,
        tolerance: float = 0.01,
        max_epochs: int = 200,
        positive_weight: float = 1.0,
        C_scale: str = "none",
        weight_bits: int = 8,
        propensity: tuple[float, float] = (0.55, 1.5),
        k: int = 5,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_trees = n_trees
        self.loss = loss
        self.C = C
        self.arity = arity
        self.max_leaf = max_leaf
        self.tree = tree
        self.normalize = normalize
        self.bias = bias
        self.threshold = threshold
        self.tolerance = tolerance
        self.max_epochs = max_epochs
        self.positive_weight = positive_weight
        self.C_scale = C_scale
        self.weight_bits = weight_bits
        self.propensity = propensity
        self.k = k
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Give the paper's setting: 3 trees by balanced 2-means to clusters of 100, log loss, C=16."""
        return cls(**(preset("paper") | changes))

    def fit(
        self,
        X: Any,
        Y: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Build the trees and train their classifiers.

        Parameters
        ----------
        X : sparse or dense matrix [rows, features]
            Any dtype and index width; never changed.
        Y : sparse or dense indicator [rows, labels], or list of label lists
            Labels that never occur stay unknown: they get no leaf and are never returned.
        sample_weight : array [rows], optional
            What an error on each row costs, as a multiple of C.
        progress : callable, optional
            Called now and then with the share of the training that is done.
        """
        settings, threads = self._solver_settings(), check_threads(self.n_jobs)
        n_trees = check_count(self.n_trees, "n_trees")
        rows, labels = self._begin_fit(X, Y)
        row_weight = _check_row_weight(sample_weight, rows.n_rows)
        random = check_random_state(self.random_state)
        seeds = [int(seed) for seed in random.randint(2**31 - 1, size=n_trees)]
        trees = self._build_trees(rows, labels, seeds, threads)
        trained = []
        for t, (tree, seed) in enumerate(zip(trees, seeds, strict=True)):
            trained.append(
                train_tree(
                    rows,
                    labels,
                    tree,
                    settings,
                    seed=seed,
                    threads=threads,
                    row_weight=row_weight,
                    progress=_share(progress, t, n_trees),
                )
            )
            facts = trained[-1][1]
            logger.info("tree %d of %d: %d nodes, %s", t + 1, n_trees, tree.n_nodes, facts)
            if facts["unfinished"]:
                logger.warning(
                    "tree %d: %d blocks of classifiers stopped at max_epochs=%d before reaching tolerance=%g",
                    t + 1,
                    facts["unfinished"],
                    settings.max_epochs,
                    settings.tolerance,
                )
        self.trees_, self.weights_ = trees, [weights for weights, _ in trained]
        self.training_ = [facts for _, facts in trained]
        return self

    def _solver_settings(self) -> SolverSettings:
        loss = check_choice(self.loss, "loss", LOSSES)
        if self.weight_bits not in (8, 32):
            raise ValueError(f"weight_bits must be 8 or 32; got {self.weight_bits!r}.")
        return SolverSettings(
            loss=loss,
            C=check_number(DEFAULT_C[loss] if self.C is None else self.C, "C", low=0, open_low=True),
            tolerance=check_number(self.tolerance, "tolerance", low=0, open_low=True),
            max_epochs=check_count(self.max_epochs, "max_epochs"),
            threshold=check_number(self.threshold, "threshold", low=0),
            bias=check_number(self.bias, "bias"),
            positive_weight=check_number(self.positive_weight, "positive_weight", low=0, open_low=True),
            C_scale=check_choice(self.C_scale, "C_scale", COST_SCALES),
            weight_bits=self.weight_bits,
        )

    def _build_trees(
        self, rows: Rows, labels: sp.csr_array, seeds: list[int], threads: int
    ) -> list[LabelTree]:
        seen = np.flatnonzero(self.label_counts_)
        if not isinstance(self.tree, str):
            return _check_given_trees(self.tree, seen, len(seeds))
        name = check_choice(self.tree, "tree", TREES)
        arity, max_leaf = check_count(self.arity, "arity", low=2), check_count(self.max_leaf, "max_leaf")
        if name == "complete":
            return [LabelTree.complete(seen, arity, max_leaf)] * len(seeds)
        if name == "huffman":
            return [LabelTree.huffman(seen, self.label_counts_[seen], arity)] * len(seeds)
        if name == "random":
            return [LabelTree.random(seen, np.random.RandomState(seed), arity, max_leaf) for seed in seeds]
        return _cluster_trees(name, rows, labels, seen, seeds, arity, max_leaf, threads)


def _cluster_trees(
    name: str,
    rows: Rows,
    labels: sp.csr_array,
    seen: npt.NDArray[np.int64],
    seeds: list[int],
    arity: int,
    max_leaf: int,
    threads: int,
) -> list[LabelTree]:
    """Cluster the centroids of the seen labels, once per seed."""
    if name == "merged" and arity & (arity - 1):
        raise ValueError(f'arity must be a power of two with tree="merged"; got {arity}.')
    rows_of_label = labels.T.tocsr()[seen]
    centroids = _core.label_centroids(
        *rows.csr,
        rows.n_features,
        rows.scale,
        rows_of_label.indptr.astype(np.int64),
        rows_of_label.indices.astype(np.int32),
        threads,
    )
    trees = []
    for seed in seeds:
        order, begin, end, parent = _core.cluster_labels(
            *centroids,
            rows.n_features,
            arity=2 if name == "merged" else arity,
            max_leaf=max_leaf,
            max_iterations=KMEANS_ITERATIONS,
            tolerance=KMEANS_TOLERANCE,
            balanced=name != "unbalanced",
            seed=seed,
            threads=threads,
        )
        tree = LabelTree.from_clusters(seen[order], begin, end, parent)
        trees.append(tree.merge_levels(arity.bit_length() - 1) if name == "merged" and arity > 2 else tree)
    return trees


def _check_given_trees(
    given: LabelTree | list[LabelTree], seen: npt.NDArray[np.int64], n_trees: int
) -> list[LabelTree]:
    """Restrict a user's own trees to the labels seen in training; each must have them all."""
    trees = [given] * n_trees if isinstance(given, LabelTree) else given
    whole = isinstance(trees, list | tuple) and all(isinstance(tree, LabelTree) for tree in trees)
    if not whole or len(trees) != n_trees:
        raise ValueError(f"tree must be a name, a LabelTree or a list of {n_trees} of them (n_trees).")
    for tree in trees:
        missing = np.setdiff1d(seen, tree.labels)
        if len(missing):
            raise ValueError(f"tree must have a leaf for every label in Y; label {missing[0]} has none.")
    return [tree.restrict(seen) for tree in trees]


def _check_row_weight(weight: npt.ArrayLike | None, n_rows: int) -> npt.NDArray[np.float32] | None:
    if weight is None:
        return None
    array = np.asarray(weight, np.float32)
    if array.shape != (n_rows,) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            f"sample_weight must be {n_rows} finite numbers of at least 0; got shape {array.shape}."
        )
    return array


def _share(
    progress: Callable[[float], None] | None, tree: int, n_trees: int
) -> Callable[[float], None] | None:
    return None if progress is None else lambda done: progress((tree + min(done, 1.0)) / n_trees)
