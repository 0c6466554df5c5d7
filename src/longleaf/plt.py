"""Probabilistic label trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core
from longleaf._fitting.clustering import CLUSTERED, ClusterSettings, cluster_tree
from longleaf._growth.learner import LabelLearner
from longleaf._positive_weight import INVERSE_PRIOR, PROPENSITY
from longleaf._validation import Rows, check_choice, check_count
from longleaf.linear import SolverSettings
from longleaf.presets import preset
from longleaf.tree import LabelTree

TREES = (*CLUSTERED, "complete", "random", "huffman")


class PLT(LabelLearner):
    """Probabilistic label trees, and PS-PLT when searched with gains.

    Parameters
    ----------
    n_trees : int
        The trees of the ensemble; their probabilities are averaged.
    loss : {"log", "squared-hinge"}
        The loss of the node classifiers.
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
        The value of the bias feature; 0 for none. Every row has it, so that one of 1, as others have, ties
        the rows to each other: training takes longer, and rare labels are found less well.
    threshold : float
        Weights of smaller magnitude are dropped.
    tolerance : float
        Classifiers that are trained together are done when their duality gaps are below this share of their
        objectives; the worst one may have ``1 + tolerance`` times as much.
    max_epochs : int
        The most passes over the rows of a node.
    positive_weight : float, "propensity" or "inverse-prior"
        What an error on a positive row costs, as a multiple of one on a negative row. "propensity" makes up
        for labels that were never noted: ``2 z - 1``, where ``z`` estimates, from the noted labels below a
        node and their propensities by the constants ``propensity``, whether the row truly has one there.
        "inverse-prior" is how many rows a node is trained on for one positive row. Such a model has the
        correction in its scores: asking it with ``tail`` would correct twice (``docs/propensity.md``).
    C_scale : {"none", "log", "linear"}, optional
        Whether C grows as nodes have fewer rows: by ``1 + log(n / m)`` or ``n / m``. Left out, "log" for
        squared hinge and "none" for log loss.
    weight_bits : {8, 32}
        8: a weight is stored as one of 254 values in nearly equal ratios, off by 3 % at most.
    hinge_power : int
        Squared-hinge margins ``s`` become probabilities as ``exp(-max(0, 1 - s)**hinge_power)``. The
        paper's code (napkinXC) has 2; 3 ranks better, above all with gains (``docs/performance.md``).
    propensity : (A, B)
        The constants of the propensity model, for ``tail`` and for ``positive_weight="propensity"``.
    k : int
        How many labels ``predict`` gives.
    random_state : int, RandomState or None
        The same number gives the same model, bit for bit, with any number of threads.
    n_jobs : int or None
        Threads; -1 for all cores.

    Attributes
    ----------
    label_counts_ : int64 array [labels]
        How often each label occurred in training; propensities come from it.
    feature_mass_ : int64 array [features]
        How much of the rows each feature makes up, its shares of their squared lengths in 1 / 2^24: it
        says how far `partial_fit` may move a weight.
    n_features_in_, n_rows_, n_labels_ : int
        The sizes of the training data.
    feature_names_in_ : array of str objects [features]
        The names of the columns, only if ``X`` was a table that has names.
    trees_, weights_ : list
        The label trees, and the weights of their nodes as flat arrays.
    training_, origin_
        What the training of each tree took, and where the model came from.

    Examples
    --------
    >>> import longleaf as ll
    >>> X, Y = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [[0], [0, 1], [1]]
    >>> model = ll.PLT(n_trees=1, random_state=1).fit(X, Y)
    >>> model.top_k([[0.0, 1.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    kind: ClassVar[str] = "plt"
    default_costs: ClassVar[Mapping[str, float]] = {"log": 16.0, "squared-hinge": 1.0}
    default_scales: ClassVar[Mapping[str, str]] = {"log": "none", "squared-hinge": "log"}
    named_positive_weights: ClassVar[tuple[str, ...]] = (PROPENSITY, INVERSE_PRIOR)

    def __init__(
        self,
        n_trees: int = 3,
        loss: str = "squared-hinge",
        C: float | None = None,
        arity: int = 32,
        max_leaf: int = 200,
        tree: str | LabelTree | list[LabelTree] = "kmeans",
        normalize: bool = True,
        bias: float = 0.2,
        threshold: float = 0.1,
        tolerance: float = 0.01,
        max_epochs: int = 200,
        positive_weight: float | str = 1.0,
        C_scale: str | None = None,
        weight_bits: int = 8,
        hinge_power: int = 3,
        propensity: tuple[float, float] = (0.55, 1.5),
        k: int = 5,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> None:
        super().__init__(
            loss=loss,
            C=C,
            normalize=normalize,
            bias=bias,
            threshold=threshold,
            tolerance=tolerance,
            max_epochs=max_epochs,
            positive_weight=positive_weight,
            weight_bits=weight_bits,
            hinge_power=hinge_power,
            propensity=propensity,
            k=k,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.n_trees = n_trees
        self.arity = arity
        self.max_leaf = max_leaf
        self.tree = tree
        self.C_scale = C_scale

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Give the paper's setting: 3 trees by balanced 2-means to clusters of 100, log loss.

        C is 16, as in the scripts of its experiments; its text does not state it.
        """
        return cls(**(preset("paper") | changes))

    def _weigh_labels(self, settings: SolverSettings) -> SolverSettings:
        worth = self._label_worth() if self.positive_weight == PROPENSITY else None
        return replace(settings, label_worth=worth)

    def _build_trees(
        self, rows: Rows, labels: sp.csr_array, seeds: list[int], threads: int
    ) -> Iterable[LabelTree]:
        seen = np.flatnonzero(self.label_counts_)
        if not isinstance(self.tree, str):
            return _check_given_trees(self.tree, seen, self.n_trees)[-len(seeds) :]
        name = check_choice(self.tree, "tree", TREES)
        arity, max_leaf = check_count(self.arity, "arity", low=2), check_count(self.max_leaf, "max_leaf")
        if name == "complete":
            return [LabelTree.complete(seen, arity, max_leaf)] * len(seeds)
        if name == "huffman":
            return [LabelTree.huffman(seen, self.label_counts_[seen], arity)] * len(seeds)
        if name == "random":
            return [LabelTree.random(seen, np.random.RandomState(seed), arity, max_leaf) for seed in seeds]
        return _cluster_trees(ClusterSettings(name, arity, max_leaf), rows, labels, seen, seeds, threads)

    def _cluster_settings(self) -> ClusterSettings | None:
        if not isinstance(self.tree, str) or check_choice(self.tree, "tree", TREES) not in CLUSTERED:
            return None
        arity = check_count(self.arity, "arity", low=2)
        return ClusterSettings(self.tree, arity, check_count(self.max_leaf, "max_leaf"))


def _cluster_trees(
    settings: ClusterSettings,
    rows: Rows,
    labels: sp.csr_array,
    seen: npt.NDArray[np.int64],
    seeds: list[int],
    threads: int,
) -> Iterator[LabelTree]:
    """Cluster the centroids of the seen labels, once per seed; each tree is given as soon as it is built."""
    centroids = _core.label_centroids(
        *rows.csr, rows.n_features, rows.scale, *rows_of_labels(labels, seen), threads
    )
    for seed in seeds:
        yield cluster_tree(centroids, seen, rows.n_features, settings, seed=seed, threads=threads)


def rows_of_labels(
    labels: sp.csr_array, seen: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """List the rows of each label that occurs, one label after the other; the others have none to list."""
    ones = np.broadcast_to(np.int8(1), labels.nnz)
    by_label = sp.csr_array((ones, labels.indices, labels.indptr), shape=labels.shape).tocsc()
    starts = by_label.indptr[np.append(seen, labels.shape[1])]
    return starts.astype(np.int64), by_label.indices.astype(np.int32, copy=False)


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
