"""Probabilistic label trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from longleaf._validation import (
    LabelsLike,
    check_choice,
    check_count,
    check_flag,
    check_labels,
    check_threads,
    is_label_lists,
)
from longleaf._validation.numbers import MOST_ROWS
from longleaf.estimator import LabelEstimator
from longleaf.learning.refined import learn_refined, relearn_refined
from longleaf.learning.update import UpdateBatch, forget, learn, relearn
from longleaf.presets import preset
from longleaf.propensity import check_constants, inverse_propensity_from_counts
from longleaf.propensity._model import UNKNOWN_COUNT
from longleaf.training.data import DataSizes, TrainingData, check_row_weight, feature_mass
from longleaf.training.job import Refining, TreeSource
from longleaf.training.positive_weight import INVERSE_PRIOR, PROPENSITY
from longleaf.training.refined import refined_settings, train_refined
from longleaf.training.solver import SolverSettings
from longleaf.training.store import Facts
from longleaf.trees.clustering import CLUSTERED, ClusterSettings
from longleaf.trees.clustering import TREES as TREES
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.chunks import WeightedTree, weight_bits_of
from longleaf.weights.files import MOST_MASS

Ints = npt.NDArray[np.int64]
Step = Callable[[WeightedTree, int], tuple[WeightedTree, Facts]]
RefinedStep = Callable[[WeightedTree, WeightedTree, SolverSettings, int], WeightedTree]


class PLT(LabelEstimator):
    """Probabilistic label trees, and PS-PLT when searched with gains.

    Parameters
    ----------
    n_trees : int
        The trees of the ensemble; their probabilities are averaged. Where all would be the same tree, one is
        trained: with at most ``max_leaf`` labels, with "complete" and "huffman", and with a LabelTree.
    loss : {"log", "squared-hinge"}
        The loss of the node classifiers.
    C : float, optional
        The cost of an error; 16 for "log", 1 for "squared-hinge" by default.
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
        for labels that were never observed: ``2 z - 1``, where ``z`` estimates, from the observed labels
        below a node and their propensities by the constants ``propensity``, whether the row truly has one.
        "inverse-prior" is how many rows a node is trained on for one positive row. Such a model has the
        correction in its scores: asking it with ``tail`` would correct twice
        (``docs/guide/missing-labels.md``).
    C_scale : {"none", "log", "linear"}, optional
        Whether C grows as nodes have fewer rows: by ``1 + log(n / m)`` or ``n / m``. If omitted, "log" for
        squared hinge and "none" for log loss.
    weight_bits : {8, 32}
        8: a weight is stored as one of 254 values in nearly equal ratios. If the largest weight of up to 192
        siblings is ``r`` times the smallest, each is off by at most ``(0.1 + log2(r)) / 252`` of itself:
        2.7 % for 100, 5.4 % for 10,000; smaller weights are off by at most a 10,000th of the largest.
    hinge_power : int
        Squared-hinge margins ``s`` become probabilities as ``exp(-max(0, 1 - s)**hinge_power)``. The
        paper's code (napkinXC) has 2; 3 ranks better, above all with gains
        (``docs/experiments/2026-11-performance.md``).
    refine : bool
        Whether every label gets one more classifier, trained on its rows and on those mistaken for them,
        and probabilities are calibrated on rows kept from training (a tenth, at most 1,500). Fewer than 500
        rows are too few for it: such a model has its trees alone (``docs/explanation/refined.md``).
    propensity : (A, B)
        The constants of the propensity model, for ``tail`` and for ``positive_weight="propensity"``.
    k : int
        How many labels ``predict`` returns.
    random_state : int, RandomState or None
        The same number results in the same model, bit for bit, with any number of threads (on the same kind
        of processor).
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
        refine: bool = True,
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
        self.refine = refine

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the paper's setting: 3 trees by balanced 2-means to clusters of 100, log loss.

        C is 16, as in the scripts of its experiments; its text does not state it.
        """
        return cls(**(preset("paper") | changes))

    def _weigh(self, settings: SolverSettings, sizes: DataSizes) -> SolverSettings:
        weights = self._inverse_propensities(sizes) if self.positive_weight == PROPENSITY else None
        return replace(settings, label_inverse_propensity=weights)

    def _refining(self) -> Refining | None:
        return self._how_to_refine() if check_flag(self.refine, "refine") else None

    def _how_to_refine(self) -> Refining:
        return Refining(lambda sizes: self._refined_settings(sizes.label_counts, sizes.n_rows), self._link)

    def _refined_settings(self, label_counts: Ints, n_rows: int) -> SolverSettings:
        a, b = check_constants(self.propensity)
        inverse = inverse_propensity_from_counts(label_counts, n_rows, a=a, b=b)
        return refined_settings(self._solver_settings(), label_counts, inverse)

    def _tree_source(self) -> TreeSource:
        if not isinstance(self.tree, str):
            return TreeSource(
                grow=partial(_given_trees, self.tree, self.n_trees),
                same_up_to=math.inf if isinstance(self.tree, LabelTree) else 0,
            )
        name = check_choice(self.tree, "tree", TREES)
        arity, max_leaf = check_count(self.arity, "arity", low=2), check_count(self.max_leaf, "max_leaf")
        if name in CLUSTERED:
            return TreeSource(ClusterSettings(name, arity, max_leaf), same_up_to=max_leaf)
        return TreeSource(
            grow=partial(_grow_trees, name, arity, max_leaf),
            same_up_to=max_leaf if name == "random" else math.inf,
        )

    def partial_fit(
        self,
        X: Any,
        y: LabelsLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Learn from new rows without the old ones; the first call is `fit`.

        The classifiers on the paths of the new rows move from where they are, as little as the rows allow;
        all others stay as they are. Labels that had no row yet get a leaf where their rows score best, and
        clusters that outgrow ``max_leaf`` are split. Counts, and so propensities, follow.

        Parameters
        ----------
        X : sparse or dense matrix [rows, features]
            New rows only: those that the model has learned from must not come again.
        y : sparse or dense indicator [rows, labels], or list of label lists
            May have more labels than the model; their numbers follow those that it has.
        sample_weight : array [rows], optional
            What an error on each row costs, as a multiple of C.
        progress : callable, optional
            Called now and then with the share of the training that is done.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight, progress=progress)
        data = self._check_update(X, y, sample_weight)
        counts = np.bincount(data.labels.indices, minlength=data.labels.shape[1])
        counts[: self.n_labels_] += self.label_counts_
        known = getattr(self, "feature_mass_", None)
        mass = None if known is None else np.minimum(known + feature_mass(data.rows), MOST_MASS)
        n_rows = min(self.n_rows_ + data.rows.n_rows, MOST_ROWS)
        batch = self._batch(data, np.minimum(counts, n_rows), mass, n_rows)
        self._take_in(
            batch,
            lambda weighted, seed: learn(weighted, batch, seed),
            lambda refined, first, *how: learn_refined(refined, first, batch, *how),
            progress,
        )
        return self

    def refine_labels(
        self,
        X: Any,
        y: LabelsLike,
        X_held_out: Any,
        y_held_out: LabelsLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Refine the labels of trees that are there, such as imported ones.

        Parameters
        ----------
        X, y, sample_weight, progress
            As in `fit`: the rows that the trees were trained on.
        X_held_out, y_held_out
            Other rows, a thousand or two: what the score is fitted on, as in `calibrate`.
        """
        check_is_fitted(self)
        data = self._check_update(X, y, sample_weight)
        aside = self._check_held_out(X_held_out, y_held_out)
        threads = check_threads(self.n_jobs)
        ranking, seed = self._weighted_trees()[0], check_random_state(self.random_state).randint(2**31 - 1)
        refined, _ = train_refined(
            ranking,
            data,
            data.sizes(),
            self._how_to_refine(),
            int(seed),
            threads,
            progress,
            None,
            len(self.trees_),
        )
        self._become_calibrated(refined, *aside)
        return self

    def refit(
        self,
        X: Any,
        y: LabelsLike,
        labels: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Train the classifiers on the paths of some labels again, from all rows; the trees stay.

        Parameters
        ----------
        X, y, sample_weight, progress
            As in `fit`: all rows, old and new. Labels without a leaf are placed first; counts become
            those of these rows.
        labels : int array, optional
            The labels whose paths are trained: their leaves, the siblings of these, and so on up to the
            root's children. All labels by default.
        """
        check_is_fitted(self)
        data = self._check_update(X, y, sample_weight)
        n_labels = data.labels.shape[1]
        chosen = np.arange(n_labels) if labels is None else _check_label_numbers(labels, n_labels)
        counts = np.bincount(data.labels.indices, minlength=n_labels)
        batch = self._batch(data, counts, feature_mass(data.rows), data.rows.n_rows)
        self._take_in(
            batch,
            lambda weighted, seed: relearn(weighted, chosen, batch, seed),
            lambda refined, first, *how: relearn_refined(refined, first, chosen, batch, *how),
            progress,
        )
        return self

    def add_labels(self, n: int, X: Any = None, y: LabelsLike = None, **options: Any) -> Ints:
        """Add new labels, and learn them if there are rows.

        Parameters
        ----------
        n : int
            How many labels; a label has no leaf and is never returned until it has rows.
        X, y, **options
            Rows for `partial_fit`, which is all that happens to them.

        Returns
        -------
        int64 array [n]
            Their numbers.
        """
        check_is_fitted(self)
        n = check_count(n, "n")
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together.")
        first, width = self.n_labels_, self.n_labels_ + n
        if X is None:
            self._note_data(np.append(self.label_counts_, np.zeros(n, np.int64)), self.n_rows_)
        else:
            self.partial_fit(X, check_labels(y, width, name="y"), **options)
        return np.arange(first, width)

    def remove_labels(self, labels: npt.ArrayLike) -> Self:
        """Take labels out of the trees: they are never returned again, and the others are as they were.

        The numbers of the others stay, and a removed label's number is not reused; rows that carry it
        in a later `partial_fit` bring it back as a new label.

        Parameters
        ----------
        labels : int array
            The numbers of labels.
        """
        check_is_fitted(self)
        gone = _check_label_numbers(labels, self.n_labels_)
        size, threads = self.n_features_in_, check_threads(self.n_jobs)
        trees = [forget(weighted, gone, size, threads) for weighted in self._check_some_stay(gone)]
        refined = None if self.refined_ is None else forget(self.refined_, gone, size, threads)
        counts = np.array(self.label_counts_)
        counts[gone] = 0
        self.trees_, self.weights_ = (
            [weighted.tree for weighted in trees],
            [weighted.weights for weighted in trees],
        )
        self.refined_ = refined
        self._note_data(counts, self.n_rows_)
        return self

    def _check_some_stay(self, gone: Ints) -> list[WeightedTree]:
        trees = self._weighted_trees()
        if any(np.isin(one.tree.labels, gone).all() for one in trees):
            raise ValueError("labels must leave at least one label that the model can return; none stays.")
        return trees

    def _weighted_trees(self) -> list[WeightedTree]:
        return [WeightedTree(*pair) for pair in zip(self.trees_, self.weights_, strict=True)]

    def _check_update(self, X: Any, y: LabelsLike, sample_weight: npt.ArrayLike | None) -> TrainingData:
        """Check rows to learn from; their labels get a column for every label of the model."""
        weight: Any = self.positive_weight  # a name's meaning depends on rows that are no longer there
        if isinstance(weight, str):
            raise ValueError(f"positive_weight must be a number to go on learning; got {weight!r}.")
        if np.any(self.label_counts_ == UNKNOWN_COUNT):
            raise ValueError(
                "label_counts_ must be known to go on learning: import the model with its counts."
            )
        rows, labels = self._check_rows(X), check_labels(y, name="y")
        if rows.n_rows != labels.shape[0]:
            raise ValueError(
                f"X and y must have the same number of rows; got {rows.n_rows} and {labels.shape[0]}."
            )
        if rows.n_rows == 0:
            raise ValueError("X must have at least one row to learn from; got none.")
        if labels.shape[1] < self.n_labels_ and not is_label_lists(y):
            raise ValueError(f"y must have at least {self.n_labels_} labels; got {labels.shape[1]}.")
        shape = (labels.shape[0], max(labels.shape[1], self.n_labels_))
        labels = sp.csr_array((labels.data, labels.indices, labels.indptr), shape=shape)
        return TrainingData(rows, labels, check_row_weight(sample_weight, rows.n_rows))

    def _batch(self, data: TrainingData, counts: Ints, mass: Ints | None, n_rows: int) -> UpdateBatch:
        return UpdateBatch(
            data,
            counts.astype(np.int64),
            mass,
            n_rows,
            replace(self._solver_settings(), weight_bits=weight_bits_of(self.weights_[0])),
            self._link,
            check_threads(self.n_jobs),
            check_count(self.arity, "arity", low=2),
            check_count(self.max_leaf, "max_leaf") if isinstance(self.tree, str) else None,
        )

    def _take_in(
        self,
        batch: UpdateBatch,
        step: Step,
        refined_step: RefinedStep,
        progress: Callable[[float], None] | None,
    ) -> None:
        """Let every tree take a step, and the refined labels one; nothing changes before all have."""
        trees = self._weighted_trees()
        if len(trees) == 1 and np.count_nonzero(batch.label_counts) > self._tree_source().same_up_to:
            trees *= check_count(self.n_trees, "n_trees")  # one did for all; now they come to differ
        random = check_random_state(self.random_state)
        seeds = random.randint(2**31 - 1, size=len(trees))
        taken = []
        for one, seed in zip(trees, seeds, strict=True):
            taken.append(step(one, int(seed)))
            if progress is not None:
                progress(len(taken) / (len(trees) + 1))
        refined = self.refined_
        if refined is not None:
            settings = self._refined_settings(batch.label_counts, batch.n_rows)
            refined = refined_step(refined, taken[0][0], settings, int(seeds[0]))
        if progress is not None:
            progress(1.0)
        self.refined_ = refined
        self.trees_ = [weighted.tree for weighted, _ in taken]
        self.weights_ = [weighted.weights for weighted, _ in taken]
        self.training_ = [facts for _, facts in taken]
        if batch.feature_mass is not None:
            self.feature_mass_ = batch.feature_mass
        self._note_data(batch.label_counts, batch.n_rows)


def _grow_trees(
    name: str, arity: int, max_leaf: int, counts: npt.NDArray[np.int64], seeds: list[int]
) -> list[LabelTree]:
    """Return the trees that do not depend on rows, over the labels that occur."""
    seen = np.flatnonzero(counts)
    if name == "complete":
        return [LabelTree.complete(seen, arity, max_leaf)] * len(seeds)
    if name == "huffman":
        return [LabelTree.huffman(seen, counts[seen], arity)] * len(seeds)
    return [LabelTree.random(seen, np.random.RandomState(seed), arity, max_leaf) for seed in seeds]


def _given_trees(
    given: LabelTree | list[LabelTree], n_trees: int, counts: npt.NDArray[np.int64], seeds: list[int]
) -> list[LabelTree]:
    """Restrict a user's own trees to the labels seen in training; each must have them all.

    The seeds are the last of all: a checkpoint may have the trees before.
    """
    trees = [given] * n_trees if isinstance(given, LabelTree) else given
    whole = isinstance(trees, list | tuple) and all(isinstance(tree, LabelTree) for tree in trees)
    if not whole or len(trees) != n_trees:
        raise ValueError(f"tree must be a name, a LabelTree or a list of {n_trees} of them (n_trees).")
    seen = np.flatnonzero(counts)
    for tree in trees:
        missing = np.setdiff1d(seen, tree.labels)
        if len(missing):
            raise ValueError(f"tree must have a leaf for every label in Y; label {missing[0]} has none.")
    return [tree.restrict(seen) for tree in trees[-len(seeds) :]]


def _check_label_numbers(labels: npt.ArrayLike, n_labels: int) -> Ints:
    numbers = np.atleast_1d(np.asarray(labels))
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size):
        raise ValueError(f"labels must be whole numbers; got {numbers.ndim}-D of {numbers.dtype}.")
    bad = numbers[(numbers < 0) | (numbers >= n_labels)] if numbers.size else numbers
    if len(bad):
        raise ValueError(f"labels must be at least 0 and below {n_labels}; got {bad[0]}.")
    return np.unique(numbers.astype(np.int64))
