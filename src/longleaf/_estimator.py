"""What the estimators share: everything that happens after the trees are trained."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from longleaf import __version__, _core
from longleaf._validation import (
    Rows,
    check_choice,
    check_count,
    check_features,
    check_labels,
    check_pair,
    check_threads,
)
from longleaf.io import storage
from longleaf.linear import LOSSES
from longleaf.search import ENSEMBLES, NONE, SEARCHES, TopK, log_gain, log_threshold, resolve_gain
from longleaf.tree import LabelTree

logger = logging.getLogger("longleaf")

MOST_REMEMBERED_GAINS = 8
MOST_CELLS = 2**31 - 1  # of a result: beyond this k is a slip, and memory would run out


class LabelEstimator(BaseEstimator):  # type: ignore[misc]
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
    origin_ : dict
        Where the model came from: settings, version, digest of the data.
    """

    kind: ClassVar[str]

    loss: str
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
    origin_: dict[str, Any]

    # ------------------------------------------------------------ predicting

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
            Exact search gives the provably best labels under the model; beam search keeps only the best
            ``beam`` nodes of each level.
        ensemble : {"mean", "union"}
            What the trees' answers become: the top k of the mean over all trees, or the paper's own rule,
            the best of the union of each tree's top k.
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
        check_is_fitted(self, "weights_")
        k = check_count(self.k if k is None else k, "k")
        check_choice(search, "search", SEARCHES)
        check_choice(ensemble, "ensemble", ENSEMBLES)
        rows = check_features(X, self.n_features_in_, normalize=self.normalize)
        if rows.n_rows * k > MOST_CELLS:
            raise ValueError(
                f"k times the number of rows must be at most {MOST_CELLS}; got {k} and {rows.n_rows}."
            )
        forest = self._forest()
        gains, bounds = self._gains_and_bounds(forest, tail, gain, propensity)
        thresholds, floor = log_threshold(threshold, self.n_labels_)
        found = forest.top_k(
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
        check_is_fitted(self, "weights_")
        features = check_features(X, self.n_features_in_, normalize=self.normalize)
        row_array = _check_pairs(rows, features.n_rows, "rows")
        label_array = _check_pairs(labels, self.n_labels_, "labels")
        if row_array.shape != label_array.shape:
            raise ValueError(
                f"rows and labels must have one length; got {len(row_array)} and {len(label_array)}."
            )
        order = np.argsort(row_array, kind="stable")  # pairs of one row share what is evaluated for it
        out = np.empty(len(order), np.float32)
        out[order] = self._forest().probabilities(
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

    def score(self, X: Any, Y: Any) -> float:
        """Give the precision at 1 as a fraction."""
        truth = check_labels(Y, self.n_labels_)
        best = self.top_k(X, k=1).labels[:, 0]
        if len(best) != truth.shape[0]:
            raise ValueError(
                f"X and Y must have the same number of rows; got {len(best)} and {truth.shape[0]}."
            )
        hits = truth[np.arange(len(best)), np.maximum(best, 0)] * (best >= 0)
        return float(np.mean(hits))

    # ------------------------------------------------------------ saving

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model as a folder; an existing one is replaced in one step, and only with ``force``."""
        storage.save_folder(path, self.kind, *self._to_arrays(), force)

    def _to_arrays(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Give the model as plain JSON and arrays by name; they may be nested in another model's folder."""
        check_is_fitted(self, "weights_")
        arrays: dict[str, npt.NDArray[Any]] = {"label_counts": self.label_counts_}
        for t, (tree, weights) in enumerate(zip(self.trees_, self.weights_, strict=True)):
            arrays[f"tree{t}/first_child"] = tree.first_child
            arrays[f"tree{t}/label"] = tree.label
            arrays |= {f"tree{t}/{name}": array for name, array in weights.items()}
        meta = {
            "params": self._plain_params(),
            "trees": len(self.trees_),
            "rows": self.n_rows_,
            "features": self.n_features_in_,
            "origin": self.origin_,
        }
        return meta, arrays

    @classmethod
    def _from_folder(cls, folder: storage.Folder) -> Self:
        """Make a model of what `_to_arrays` gave."""
        meta = folder.meta
        params = {name: tuple(v) if isinstance(v, list) else v for name, v in meta["params"].items()}
        model = cls(**params)
        parts = [folder.part(f"tree{t}") for t in range(meta["trees"])]
        model.trees_ = [LabelTree(part.pop("first_child"), part.pop("label")) for part in parts]
        if params.get("tree", "") is None:  # a tree of the user's own
            model.set_params(tree=model.trees_)
        model.weights_ = parts
        model.label_counts_ = folder.arrays["label_counts"]
        model.n_rows_ = check_count(meta["rows"], "rows")
        model.n_features_in_ = check_count(meta["features"], "features", low=0)
        model.n_labels_ = len(model.label_counts_)
        model.origin_ = meta["origin"]
        model._forest()
        return model

    # ------------------------------------------------------------ inner workings

    def _plain_params(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in self.get_params(deep=False).items()}

    def _begin_fit(self, X: Any, Y: Any) -> tuple[Rows, sp.csr_array]:
        """Check the training data and note their sizes."""
        rows = check_features(X, normalize=self.normalize)
        labels = check_labels(Y)
        if rows.n_rows != labels.shape[0]:
            raise ValueError(
                f"X and Y must have the same number of rows; got {rows.n_rows} and {labels.shape[0]}."
            )
        if rows.n_rows == 0 or labels.nnz == 0:
            raise ValueError(f"Y must have at least one label to train on; got {rows.n_rows} rows with none.")
        for name in ("_prepared", "trees_", "weights_"):  # a training that fails leaves no half model
            self.__dict__.pop(name, None)
        self.n_rows_, self.n_features_in_ = rows.n_rows, rows.n_features
        self.n_labels_ = labels.shape[1]
        self.label_counts_ = np.bincount(labels.indices, minlength=self.n_labels_).astype(np.int64)
        self.origin_ = {"longleaf": __version__, "settings": self._plain_params()}
        return rows, labels

    def _forest(self) -> _core.Forest:
        """Give the native view of the trees; made when first needed, never saved or pickled."""
        prepared = self.__dict__.get("_prepared")
        if prepared is None:
            forest = _core.Forest(
                [tree.first_child for tree in self.trees_],
                [tree.label for tree in self.trees_],
                list(self.weights_),
                self.n_features_in_,
                self.n_labels_,
                LOSSES[self.loss],
            )
            prepared = self.__dict__["_prepared"] = (forest, {})
        return prepared[0]

    def _gains_and_bounds(
        self,
        forest: _core.Forest,
        tail: float | None,
        gain: npt.ArrayLike | None,
        propensity: tuple[float, float] | None,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Give log gains per label and bounds per node; what depends on the dial alone is made once."""
        constants = check_pair(self.propensity if propensity is None else propensity, "propensity", "A, B")
        remembered = self.__dict__["_prepared"][1]
        key = (tail, *constants)
        if gain is None and key in remembered:
            return remembered[key]  # type: ignore[no-any-return]
        gains = resolve_gain(self.label_counts_, self.n_rows_, tail=tail, gain=gain, propensity=constants)
        if gains is None:
            return NONE, NONE
        logs = log_gain(gains)
        result = logs, forest.log_bounds(logs)
        if gain is None:
            while len(remembered) >= MOST_REMEMBERED_GAINS:
                remembered.pop(next(iter(remembered)))
            remembered[key] = result
        return result

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_prepared"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _check_pairs(values: npt.ArrayLike, size: int, name: str) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(f"{name} must be a 1-D array of whole numbers; got {array.ndim}-D of {array.dtype}.")
    if array.size and (array.min() < 0 or array.max() >= size):
        bad = array[(array < 0) | (array >= size)][0]
        raise ValueError(f"{name} must be at least 0 and below {size}; got {bad}.")
    return array.astype(np.int64)


def _plain(value: Any) -> Any:
    """Turn a parameter into what JSON can hold; a tree of the user's own is saved with the model itself."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else None
