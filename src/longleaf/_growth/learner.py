"""What makes an estimator go on learning after `fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from longleaf._base.estimator import LabelEstimator
from longleaf._base.files import MOST_MASS
from longleaf._fitting.trees import Facts, TrainingData, check_row_weight, feature_mass
from longleaf._growth.chunks import weight_bits_of
from longleaf._growth.learning import Lesson, forget, learn, relearn
from longleaf._growth.placement import Grown
from longleaf._numbers import MOST_ROWS
from longleaf._validation import LabelsLike, check_count, check_labels, check_threads, is_label_lists
from longleaf.propensity._model import UNKNOWN_COUNT

Ints = npt.NDArray[np.int64]
Step = Callable[[Grown, int], tuple[Grown, Facts]]


class LabelLearner(LabelEstimator):
    """A model of labels that new rows and new labels can be added to; label numbers never change.

    A saved and loaded model goes on where it was: its weights and counts are all that learning needs.
    """

    tree: Any
    arity: int
    max_leaf: int

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
        data = self._check_lesson(X, y, sample_weight)
        counts = np.bincount(data.labels.indices, minlength=data.labels.shape[1])
        counts[: self.n_labels_] += self.label_counts_
        known = getattr(self, "feature_mass_", None)
        mass = None if known is None else np.minimum(known + feature_mass(data.rows), MOST_MASS)
        n_rows = min(self.n_rows_ + data.rows.n_rows, MOST_ROWS)
        lesson = self._lesson(data, np.minimum(counts, n_rows), mass, n_rows)
        self._take_in(lesson, lambda grown, seed: learn(grown, lesson, seed), progress)
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
        """Train the classifiers on the paths of some labels anew, from all rows; the trees stay.

        Parameters
        ----------
        X, y, sample_weight, progress
            As in `fit`: all rows, old and new. Labels without a leaf are placed first; counts become
            those of these rows.
        labels : int array, optional
            The labels whose paths are trained: their leaves, the siblings of these, and so on up to the
            root's children. All labels if left out.
        """
        check_is_fitted(self)
        data = self._check_lesson(X, y, sample_weight)
        n_labels = data.labels.shape[1]
        chosen = np.arange(n_labels) if labels is None else _check_label_numbers(labels, n_labels)
        counts = np.bincount(data.labels.indices, minlength=n_labels)
        lesson = self._lesson(data, counts, feature_mass(data.rows), data.rows.n_rows)
        self._take_in(lesson, lambda grown, seed: relearn(grown, chosen, lesson, seed), progress)
        return self

    def add_labels(self, n: int, X: Any = None, y: LabelsLike = None, **options: Any) -> Ints:
        """Make room for new labels, and learn them if there are rows.

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
            self._note_counts(np.append(self.label_counts_, np.zeros(n, np.int64)))
        else:
            self.partial_fit(X, check_labels(y, width, name="y"), **options)
        return np.arange(first, width)

    def remove_labels(self, labels: npt.ArrayLike) -> Self:
        """Take labels out of the trees: they are never returned again, and the others are as they were.

        The numbers of the others stay, and a removed label's number is not given away; rows that carry it
        in a later `partial_fit` bring it back as a new label.

        Parameters
        ----------
        labels : int array
            The numbers of labels.
        """
        check_is_fitted(self)
        gone = _check_label_numbers(labels, self.n_labels_)
        size, threads = self.n_features_in_, check_threads(self.n_jobs)
        trees = [forget(grown, gone, size, threads) for grown in self._check_some_stay(gone)]
        counts = np.array(self.label_counts_)
        counts[gone] = 0
        self.trees_, self.weights_ = [grown.tree for grown in trees], [grown.weights for grown in trees]
        self._note_counts(counts)
        return self

    def _check_some_stay(self, gone: Ints) -> list[Grown]:
        grown = [Grown(*pair) for pair in zip(self.trees_, self.weights_, strict=True)]
        if any(np.isin(one.tree.labels, gone).all() for one in grown):
            raise ValueError("labels must leave at least one label that the model can return; none stays.")
        return grown

    def _check_lesson(self, X: Any, y: LabelsLike, sample_weight: npt.ArrayLike | None) -> TrainingData:
        """Check rows to learn from; their labels get a column for every label of the model."""
        weight: Any = self.positive_weight  # a name's meaning hangs on rows that are no longer there
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

    def _lesson(self, data: TrainingData, counts: Ints, mass: Ints | None, n_rows: int) -> Lesson:
        return Lesson(
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

    def _take_in(self, lesson: Lesson, step: Step, progress: Callable[[float], None] | None) -> None:
        """Let every tree take a step; nothing changes before all have."""
        random = check_random_state(self.random_state)
        seeds = random.randint(2**31 - 1, size=len(self.trees_))
        taken = []
        for tree, weights, seed in zip(self.trees_, self.weights_, seeds, strict=True):
            taken.append(step(Grown(tree, weights), int(seed)))
            if progress is not None:
                progress(len(taken) / len(self.trees_))
        self.trees_ = [grown.tree for grown, _ in taken]
        self.weights_ = [grown.weights for grown, _ in taken]
        self.training_ = [facts for _, facts in taken]
        self.n_rows_ = lesson.n_rows
        if lesson.feature_mass is not None:
            self.feature_mass_ = lesson.feature_mass
        self._note_counts(lesson.label_counts)

    def _note_counts(self, counts: npt.NDArray[np.int64]) -> None:
        """Note the labels' counts; what was prepared for the old ones is made anew."""
        self.label_counts_, self.n_labels_ = counts, len(counts)
        self.__dict__.pop("_prepared", None)
        self._prepare()


def _check_label_numbers(labels: npt.ArrayLike, n_labels: int) -> Ints:
    numbers = np.atleast_1d(np.asarray(labels))
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size):
        raise ValueError(f"labels must be whole numbers; got {numbers.ndim}-D of {numbers.dtype}.")
    bad = numbers[(numbers < 0) | (numbers >= n_labels)] if numbers.size else numbers
    if len(bad):
        raise ValueError(f"labels must be at least 0 and below {n_labels}; got {bad[0]}.")
    return np.unique(numbers.astype(np.int64))
