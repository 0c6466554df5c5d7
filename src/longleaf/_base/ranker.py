"""Asking a fitted model: the best labels of rows, their probabilities, and how good they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from longleaf import _core
from longleaf._base.prepared import PreparedTrees
from longleaf._validation import (
    LabelsLike,
    Rows,
    check_choice,
    check_count,
    check_features,
    check_labels,
    check_threads,
    is_label_lists,
)
from longleaf.linear import link_of
from longleaf.propensity import check_constants, inverse_propensity_from_counts
from longleaf.search import ENSEMBLES, SEARCHES, TopK, log_threshold
from longleaf.tree import LabelTree

MOST_CELLS = 2**31 - 1  # of a result: beyond this k is a slip, and memory would run out


class LabelRanker(BaseEstimator):  # type: ignore[misc]
    """A fitted model is label trees, their weights and the labels' counts: a handful of flat arrays.

    Attributes
    ----------
    trees_ : list of LabelTree
    weights_ : list of dict of arrays
        Per tree, the chunked weights (``ChunkView`` in ``native/core.h`` says what each array holds).
    label_counts_ : int64 array [labels]
        How often each label occurred in training; propensities come from it.
    n_rows_, n_features_in_, n_labels_ : int
        The sizes of the training data.
    feature_names_in_ : array of str objects [features]
        The names of the columns, if ``X`` was a table that has names.
    """

    loss: str
    hinge_power: int
    normalize: bool
    propensity: tuple[float, float]
    k: int
    n_jobs: int | None
    trees_: list[LabelTree]
    weights_: list[_core.WeightArrays]
    label_counts_: npt.NDArray[np.int64]
    n_rows_: int
    n_features_in_: int
    n_labels_: int

    def top_k(
        self,
        X: Any,
        k: int | None = None,
        *,
        tail: float | None = None,
        gain: npt.ArrayLike | None = None,
        propensity: tuple[float, float] | None = None,
        search: str = "exact",
        beam: int = 10,
        ensemble: str = "mean",
        threshold: float | npt.ArrayLike | None = None,
        n_jobs: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> TopK:
        """Find the best k labels of each row.

        Parameters
        ----------
        X : sparse or dense matrix [rows, features]
        k : int, optional
            How many labels; the estimator's own ``k`` if left out.
        tail : float, optional
            The tail dial: gains are the inverse propensities to this power; 0 is plain precision, 1 PS-PLT.
        gain : array [labels], optional
            What each correct label is worth, at least 0; a label of gain 0 is never returned.
        propensity : (A, B), optional
            Constants of the propensity model for ``tail``; the estimator's own if left out.
        search : {"exact", "beam"}
            Exact search gives the provably best labels under the model; beam search expands only the best
            ``beam`` inner nodes of each level of each tree. With several trees, a label that any tree's beam
            reaches is scored by the mean over all of them.
        ensemble : {"mean", "union"}
            What the trees' answers become: the top k of the mean over all trees, or the best of the union
            of each tree's top k, the rule of the paper's code (napkinXC); its text names none.
        threshold : float or array [labels], optional
            Labels that score less are not returned.
        n_jobs : int, optional
            Threads; the estimator's own if left out.
        progress : callable, optional
            Called now and then with the share of the work that is done.

        Returns
        -------
        TopK
            ``labels`` int32 [rows, k] padded with -1, ``scores`` float32 [rows, k], ``evaluations`` [rows].
        """
        check_is_fitted(self)
        k = check_count(self.k if k is None else k, "k")
        check_choice(search, "search", SEARCHES)
        check_choice(ensemble, "ensemble", ENSEMBLES)
        rows = self._check_rows(X)
        if rows.n_rows * k > MOST_CELLS:
            raise ValueError(
                f"k times the number of rows must be at most {MOST_CELLS}; got {k} and {rows.n_rows}."
            )
        trees = self._prepare()
        constants = check_constants(self.propensity if propensity is None else propensity)
        gains, bounds = trees.gains_and_bounds(self.label_counts_, self.n_rows_, tail, gain, constants)
        thresholds, floor = log_threshold(threshold, self.n_labels_)
        found = trees.forest.top_k(
            *rows.csr,
            rows.scale,
            k=k,
            beam=check_count(beam, "beam") if search == "beam" else 0,
            union_rule=ensemble == "union",
            log_gain=gains,
            log_bounds=bounds,
            log_threshold=thresholds,
            log_floor=floor,
            threads=check_threads(self.n_jobs if n_jobs is None else n_jobs),
            progress=progress,
        )
        return TopK(*found)

    def probability(self, X: Any, rows: npt.ArrayLike, labels: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Give the probability of each (row, label) pair.

        Parameters
        ----------
        X : sparse or dense matrix [rows, features]
        rows, labels : int arrays [pairs]
            Which rows of ``X``, which labels.

        Returns
        -------
        float32 array [pairs]
            The mean over the trees; 0 for a label that training never saw.
        """
        check_is_fitted(self)
        features = self._check_rows(X)
        row_array = _check_pairs(rows, features.n_rows, "rows")
        label_array = _check_pairs(labels, self.n_labels_, "labels")
        if row_array.shape != label_array.shape:
            raise ValueError(
                f"rows and labels must have one length; got {len(row_array)} and {len(label_array)}."
            )
        order = np.argsort(row_array, kind="stable")  # pairs of one row share what is evaluated for it
        out = np.empty(len(order), np.float32)
        out[order] = self._prepare().forest.probabilities(
            *features.csr,
            features.scale,
            row_array[order],
            label_array[order].astype(np.int32),
            check_threads(self.n_jobs),
        )
        return out

    def predict(self, X: Any) -> sp.csr_matrix[np.float32]:
        """Give the top ``k`` labels of each row as a CSR indicator [rows, labels]."""
        labels = self.top_k(X).labels
        row, place = np.nonzero(labels >= 0)
        ones = np.ones(len(row), np.float32)
        return sp.csr_matrix((ones, (row, labels[row, place])), shape=(len(labels), self.n_labels_))

    def score(self, X: Any, y: LabelsLike) -> float:
        """Give the precision at 1 as a fraction; labels that training never saw cannot be hit."""
        truth, top = self._judge(X, y, k=1)
        best = top.labels[:, 0]
        hits = truth[np.arange(len(best)), np.maximum(best, 0)] * (best >= 0)
        return float(np.mean(hits, dtype=np.float64))

    def inverse_propensity(
        self, propensity: tuple[float, float] | None = None, *, n_labels: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Give what each label is worth by its count in training, for `longleaf.metrics.evaluate`.

        Parameters
        ----------
        propensity : (A, B), optional
            Constants of the propensity model; the estimator's own if left out.
        n_labels : int, optional
            For how many labels; those after the model's own were never seen.

        Returns
        -------
        float64 array [labels]
            Never below 1.
        """
        check_is_fitted(self)
        a, b = check_constants(self.propensity if propensity is None else propensity)
        extra = (
            0 if n_labels is None else check_count(n_labels, "n_labels", low=self.n_labels_) - self.n_labels_
        )
        counts = np.append(self.label_counts_, np.zeros(extra, np.int64))
        return inverse_propensity_from_counts(counts, self.n_rows_, a=a, b=b)

    def _judge(self, X: Any, y: LabelsLike, **options: Any) -> tuple[sp.csr_array, TopK]:
        """Give the true labels, at least as many columns as the model has labels, and the ranked ones."""
        check_is_fitted(self)
        truth = check_labels(y, name="y")
        if truth.shape[1] < self.n_labels_ and not is_label_lists(y):
            raise ValueError(f"y must have {self.n_labels_} labels, as in fit; got {truth.shape[1]}.")
        top = self.top_k(X, **options)
        if len(top.labels) != truth.shape[0]:
            raise ValueError(
                f"X and y must have the same number of rows; got {len(top.labels)} and {truth.shape[0]}."
            )
        shape = (truth.shape[0], max(truth.shape[1], self.n_labels_))
        return sp.csr_array((truth.data, truth.indices, truth.indptr), shape=shape), top

    def _check_rows(self, X: Any) -> Rows:
        """Check rows to be asked about, and the names of their columns where there are any."""
        if hasattr(X, "columns") or hasattr(self, "feature_names_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        rows = check_features(X, normalize=self.normalize)
        if rows.n_features != self.n_features_in_:
            found, expected, name = rows.n_features, self.n_features_in_, type(self).__name__
            raise ValueError(  # what stands in brackets is what scikit-learn says
                f"X must have {expected} features, as in fit; got {found} "
                f"(X has {found} features, but {name} is expecting {expected} features as input)."
            )
        return rows

    @property
    def _link(self) -> int:
        """How margins become probabilities, as native code calls it."""
        return link_of(self.loss, self.hinge_power)

    def _prepare(self) -> PreparedTrees:
        prepared: PreparedTrees | None = self.__dict__.get("_prepared")
        if prepared is None:
            prepared = self.__dict__["_prepared"] = PreparedTrees(
                self.trees_, self.weights_, self.n_features_in_, self.n_labels_, self._link
            )
        return prepared

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_prepared"}

    def __sklearn_is_fitted__(self) -> bool:
        return "weights_" in self.__dict__


def _check_pairs(values: npt.ArrayLike, size: int, name: str) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(f"{name} must be a 1-D array of whole numbers; got {array.ndim}-D of {array.dtype}.")
    if array.size and (array.min() < 0 or array.max() >= size):
        bad = array[(array < 0) | (array >= size)][0]
        raise ValueError(f"{name} must be at least 0 and below {size}; got {bad}.")
    return array.astype(np.int64)
