"""What the estimators share: parameters, training, answering, saving."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from longleaf import __version__, _core
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
from longleaf.calibration import CANDIDATES, Calibration, fit_calibration
from longleaf.conformal import MAX_SIZE, RiskControl, cut, fit_risk
from longleaf.io import storage
from longleaf.io._schema import Check, Object, anything, check_saved
from longleaf.propensity import check_constants, inverse_propensity_from_counts
from longleaf.search.candidates import Candidates
from longleaf.search.prepared import PreparedTrees
from longleaf.search.rows import features_of, overrides_of
from longleaf.search.score_map import NOMINEES, MapArguments, OverrideArguments, Overrides, ScoreMap
from longleaf.search.top_k import (
    ENSEMBLES,
    SEARCHES,
    SearchLimits,
    TopK,
    check_limits,
    key_threshold,
)
from longleaf.search.utility import Utility, check_utility
from longleaf.training.checkpoint import StrPath
from longleaf.training.data import DataSizes, TrainingData, held_out_rows, is_trained_twice, may_be_calibrated
from longleaf.training.job import Refining, Trained, TrainingJob, TreeSource
from longleaf.training.params import CHECKS, MOST_K, STORED
from longleaf.training.positive_weight import INVERSE_PRIOR, check_positive_weight
from longleaf.training.run import first_of_two, run, second_of_two
from longleaf.training.solver import SolverSettings, link_of
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.chunks import WeightedTree
from longleaf.weights.files import attributes_from, meta_schema, params_from, plain, to_arrays

_SOLVER = ("tolerance", "max_epochs", "threshold", "bias", "weight_bits")

BLOCK_CELLS = 2**22  # of a dense result: as many are computed at once
MOST_CELLS = 2**31 - 1  # of a result: beyond this k is a slip, and memory would run out


class LabelEstimator(BaseEstimator):  # type: ignore[misc]
    """A model of labels: label trees, their weights and the labels' counts, a handful of flat arrays.

    A subclass says where its trees come from (`_tree_source`) and what positive rows weigh (`_weigh`).

    Attributes
    ----------
    trees_ : list of LabelTree
    weights_ : list of dict of arrays
        Per tree, the chunked weights; `longleaf.weights` says what each array holds.
    label_counts_ : int64 array [labels]
        How often each label occurred in training; propensities come from it.
    feature_mass_ : int64 array [features]
        How much of the rows each feature makes up; an imported model does not have it.
    n_rows_, n_features_in_, n_labels_ : int
        The sizes of the training data.
    feature_names_in_ : array of str objects [features]
        The names of the columns, if ``X`` was a table that has names.
    origin_ : dict
        Where the model came from: settings, version, digest of the data.
    refined_ : WeightedTree or None
        The refined classifiers of the labels, as leaves; None if labels are not refined.
    calibration_ : Calibration or None
        What makes probabilities of what trees and refined classifiers say; None: the trees' are returned.
    risk_control_ : RiskControl or None
        What sets of labels can be promised to hold; None before `fit_sets`, and after any further training.
    training_ : list of dict
        Per tree, what the training took. A loaded model does not have it.
    """

    kind: ClassVar[str]
    default_costs: ClassVar[Mapping[str, float]]  # C and C_scale by loss, where they are omitted
    default_scales: ClassVar[Mapping[str, str]] = {"log": "none", "squared-hinge": "none"}
    named_positive_weights: ClassVar[tuple[str, ...]] = ()
    trains_by_units: ClassVar[bool] = True  # whether training falls into units, for a checkpoint or machines
    n_trees: int = 1
    C_scale: str | None = None

    refined_: WeightedTree | None = None
    calibration_: Calibration | None = None
    risk_control_: RiskControl | None = None
    score_map_: ScoreMap | None = None
    trees_: list[LabelTree]
    weights_: list[_core.WeightArrays]
    label_counts_: npt.NDArray[np.int64]
    feature_mass_: npt.NDArray[np.int64]
    n_rows_: int
    n_features_in_: int
    n_labels_: int
    origin_: dict[str, Any]
    training_: list[dict[str, int]]

    def __init__(
        self,
        loss: str = "log",
        C: float | None = None,
        normalize: bool = True,
        bias: float = 1.0,
        threshold: float = 0.1,
        tolerance: float = 0.01,
        max_epochs: int = 200,
        positive_weight: float | str = 1.0,
        weight_bits: int = 8,
        hinge_power: int = 3,
        propensity: tuple[float, float] = (0.55, 1.5),
        k: int = 5,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.loss = loss
        self.C = C
        self.normalize = normalize
        self.bias = bias
        self.threshold = threshold
        self.tolerance = tolerance
        self.max_epochs = max_epochs
        self.positive_weight = positive_weight
        self.weight_bits = weight_bits
        self.hinge_power = hinge_power
        self.propensity = propensity
        self.k = k
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: LabelsLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Callable[[float], None] | None = None,
        checkpoint: StrPath | None = None,
        memory: str | int | None = None,
        scratch: StrPath | None = None,
        client: Any = None,
    ) -> Self:
        """Build the trees and train their classifiers.

        Parameters
        ----------
        X : sparse or dense matrix [rows, features]
            Any dtype and index width; never changed.
        y : sparse or dense indicator [rows, labels], or list or pandas Series of label lists
            Labels that never occur stay unknown: they get no leaf and are never returned.
        sample_weight : array [rows], optional
            What an error on each row costs, as a multiple of C.
        progress : callable, optional
            Called now and then with the share of the training that is done.
        checkpoint : str or path, optional
            A folder that keeps what is finished, made if it is not there: a training that was killed goes on
            from there when the same is asked for again, and ends in the same bits; where a small data set is
            trained on twice, to calibrate, it is the second time that goes on. It stays when the training is
            done. A folder that belongs to other data or settings is refused.
        memory : str or int, optional
            The most memory that the process may take, such as "4G". Training is planned first; then it fits,
            with weights and working copies on disk where it must, or a ValueError says why it cannot.
        scratch : str or path, optional
            The folder of such files; the system's temporary one by default.
        client : dask.distributed.Client, optional
            Train on its workers, to the same bits: `longleaf.distributed.fit`. ``n_jobs`` is not used then.
        """
        options: dict[str, Any] = {"progress": progress, "checkpoint": checkpoint}
        options |= {"memory": memory, "scratch": scratch, "client": client}
        return self._fit(X, y, sample_weight, calibrate=True, **options)

    def _fit(
        self,
        X: Any,
        y: LabelsLike,
        sample_weight: npt.ArrayLike | None,
        *,
        calibrate: bool,
        refine: bool = True,
        fresh: npt.NDArray[np.bool_] | None = None,
        progress: Callable[[float], None] | None = None,
        checkpoint: StrPath | None = None,
        memory: str | int | None = None,
        scratch: StrPath | None = None,
        client: Any = None,
    ) -> Self:
        """Train; without ``calibrate`` a caller that has rows of its own does the rest.

        Without ``refine`` labels are not refined, whatever the parameters say: a caller has too few rows.
        Rows to calibrate on are chosen among those that are ``fresh``, if any are.
        """
        if client is not None:
            if checkpoint is not None or memory is not None:
                raise ValueError("checkpoint and memory must be None with client: Dask sees to both.")
            options: dict[str, Any] = {
                "client": client,
                "progress": progress,
                "refine": refine,
                "fresh": fresh,
            }
            return self._fit_on_cluster(X, y, sample_weight, calibrate=calibrate, **options)
        job = self._job() if refine else replace(self._job(), refining=None)
        for name, given in (("checkpoint", checkpoint), ("memory", memory)):
            if given is not None and not self.trains_by_units:
                kind = type(self).__name__
                raise ValueError(f"{name} must be None for {kind}, whose training cannot be divided.")
        if y is None:
            raise ValueError(
                f"y must hold the labels of every row: {self.kind.upper()} requires y to be passed, "
                "but the target y is None."
            )
        data = job.check(X, y, sample_weight)
        options = {"progress": progress, "checkpoint": checkpoint, "memory": memory, "scratch": scratch}
        self._begin(X)
        if job.refining is None or not calibrate:
            return self._take(run(job, data, data.sizes(), **options))
        held = held_out_rows(data.labels, self.random_state, fresh=fresh)
        if not held.any():  # too few rows to fit what refined labels count
            return self._take(run(replace(job, refining=None), data, data.sizes(), **options))
        return self._fit_and_calibrate(run, job, data, held, options)

    def _fit_and_calibrate(
        self,
        train: Callable[..., Trained],
        job: TrainingJob,
        data: TrainingData,
        held: npt.NDArray[np.bool_],
        options: dict[str, Any],
    ) -> Self:
        """Keep some rows from the training, and calibrate on them; a training that fails leaves no model.

        ``train`` is `longleaf.training.run.run`, or takes and returns the same.
        """
        known, twice, aside = data.without(held), is_trained_twice(len(held)), np.flatnonzero(held)
        sizes = data.sizes()
        try:
            self._take(train(job, known, known.sizes(), **(first_of_two(options) if twice else options)))
            calibration = fit_calibration(self._candidates(data.rows.take(aside)), data.labels[aside])
            if calibration is None:
                job, self.refined_ = replace(job, refining=None), None
            if twice:
                self._forget()  # it need not be in memory any more
                self._take(train(job, data, sizes, **second_of_two(options)))
            self.calibration_, self.feature_mass_ = calibration, sizes.feature_mass
            self._note_data(sizes.label_counts, sizes.n_rows)
        except BaseException:
            self._forget()
            raise
        return self

    def _fit_on_cluster(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        calibrate: bool = True,
        refine: bool = True,
        fresh: npt.NDArray[np.bool_] | None = None,
        progress: Callable[[float], None] | None = None,
        **options: Any,
    ) -> Self:
        """Train on Dask; the options are those of `longleaf.distributed.fit`."""
        from longleaf.training import cluster  # it needs an extra

        if not self.trains_by_units:
            raise ValueError(f"model must be a PLT or BR to be trained on Dask; got {type(self).__name__}.")
        job = self._job()
        with cluster.open_session(X, y, sample_weight, normalize=job.normalize, **options) as session:
            columns = cluster.column_names(X)
            data = None
            if (
                job.refining is not None
                and refine
                and (not calibrate or may_be_calibrated(session.total.rows))
            ):
                data = session.whole()
            if data is not None and calibrate:
                held = held_out_rows(data.labels, self.random_state, fresh=fresh)
                if held.any():
                    self._begin(columns)
                    return self._fit_and_calibrate(session.train, job, data, held, {"progress": progress})
                data = None
            if data is None:
                job = replace(job, refining=None)
            trained = session.train(job, data, session.sizes(), progress=progress)
        self._begin(columns)
        return self._take(trained)

    @abstractmethod
    def _tree_source(self) -> TreeSource:
        """Check what trees are made by, and return it."""

    def _weigh(self, settings: SolverSettings, sizes: DataSizes) -> SolverSettings:
        """Complete the settings by what depends on the labels' counts."""
        return settings

    def _job(self) -> TrainingJob:
        """Check all settings of a training."""
        return TrainingJob(
            kind=self.kind,
            params=self.get_params(deep=False),
            normalize=self.normalize,
            settings=self._solver_settings(),
            weigh=self._weigh,
            source=self._tree_source(),
            n_trees=int(self.n_trees),
            random_state=self.random_state,
            threads=check_threads(self.n_jobs),
            refining=self._refining(),
        )

    def _refining(self) -> Refining | None:
        """Say how labels are refined, if they are."""
        return None

    def _solver_settings(self) -> SolverSettings:
        """Check all parameters that do not depend on the kind of trees; return those of the solver."""
        checked = {name: check(getattr(self, name), name) for name, check in CHECKS.items()}
        loss, C, C_scale = (checked[name] for name in ("loss", "C", "C_scale"))
        return SolverSettings(
            loss=loss,
            C=self.default_costs[loss] if C is None else C,
            positive_weight=check_positive_weight(self.positive_weight, self.named_positive_weights),
            C_scale=self.default_scales[loss] if C_scale is None else C_scale,
            inverse_prior=self.positive_weight == INVERSE_PRIOR,
            **{name: checked[name] for name in _SOLVER},
        )

    def _inverse_propensities(self, sizes: DataSizes) -> npt.NDArray[np.float64]:
        """Return the inverse propensity of each label by the constants ``propensity``."""
        a, b = check_constants(self.propensity)
        return inverse_propensity_from_counts(sizes.label_counts, sizes.n_rows, a=a, b=b)

    def _begin(self, X: Any | None) -> None:
        """Drop the old model, so that a training that fails leaves none, and note the columns of a table."""
        self._forget()
        self.__dict__.pop("feature_names_in_", None)
        if X is not None:
            validate_data(self, X, skip_check_array=True)

    def _forget(self) -> None:
        """Drop the model."""
        fitted = ("trees_", "weights_", "refined_", "calibration_", "risk_control_", "score_map_")
        for name in ("_prepared", *fitted):
            self.__dict__.pop(name, None)

    def _take(self, trained: Trained) -> Self:
        """Become the model that was trained."""
        sizes = trained.sizes
        self.n_rows_, self.n_features_in_, self.n_labels_ = sizes.n_rows, sizes.n_features, sizes.n_labels
        self.label_counts_, self.feature_mass_ = sizes.label_counts, sizes.feature_mass
        self.origin_ = {"longleaf": __version__, "settings": self._plain_params()}
        self.trees_, self.weights_, self.training_ = trained.trees, trained.weights, trained.facts
        self.refined_ = trained.refined
        self.__dict__.pop("_prepared", None)
        self._prepare()  # now, so that asking leaves the model as it is
        return self

    def top_k(
        self,
        X: Any,
        k: int | None = None,
        *,
        tail: float | None = None,
        gain: npt.ArrayLike | None = None,
        utility: Utility | None = None,
        propensity: tuple[float, float] | None = None,
        search: str = "exact",
        beam: int = 10,
        epsilon: float = 0.0,
        max_nodes: int | None = None,
        deadline_ms: float | None = None,
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
            How many labels; the estimator's own ``k`` by default.
        tail : float, optional
            The tail dial: gains are the inverse propensities to this power; 0 is plain precision, 1 PS-PLT.
        gain : array [labels], optional
            The gain of each label, from 0 to 1e38; a label of gain 0 is never returned.
        utility : Utility, optional
            What labels are worth, instead of ``tail`` and ``gain``: any lines in their probabilities, costs
            and quotas included. Also labels of probability 0 are returned where they are worth the most.
        propensity : (A, B), optional
            Constants of the propensity model for ``tail``; the estimator's own by default.
        search : {"exact", "beam", "auto"}
            Exact search returns the provably best labels under the model; beam search expands only the best
            ``beam`` inner nodes of each level of each tree, and says of each row whether its answer is exact
            all the same. With several trees, a label that any tree's beam reaches is scored by the mean over
            all of them; if labels are refined, it counts 0 in a tree that does not nominate it. "auto" begins
            with a beam and goes on until the answer is exact.
        epsilon : float
            End a search when no missing label can score more than the k-th score / (1 - epsilon). With
            refined labels, whose trees always nominate exactly then, it changes nothing.
        max_nodes : int, optional
            End a row's search when it has evaluated so many node classifiers. If labels are refined, a tree
            that has not nominated a label by then counts 0 for it, as with a beam.
        deadline_ms : float, optional
            End all searches after so many milliseconds, likewise.
        ensemble : {"mean", "union"}
            What the trees' answers become: the top k of the mean over all trees, or the best of the union
            of each tree's top k, the rule of the paper's code (napkinXC); its text names none. If labels are
            refined, each tree nominates k then.
        threshold : float or array [labels], optional
            Labels that score less are not returned.
        n_jobs : int, optional
            Threads; the estimator's own by default.
        progress : callable, optional
            Called now and then with the share of the work that is done.

        Returns
        -------
        TopK
            ``labels`` int32 [rows, k] padded with -1, ``scores`` float32 [rows, k], ``evaluations`` [rows];
            ``exact`` and ``gap`` [rows] say whether a search that ended early can have missed something.
        """
        check_is_fitted(self)
        k = check_count(self.k if k is None else k, "k")
        check_choice(search, "search", SEARCHES)
        check_choice(ensemble, "ensemble", ENSEMBLES)
        return self._search(
            self._check_rows(X),
            k,
            overrides_of(X),
            tail=tail,
            gain=gain,
            utility=utility,
            propensity=propensity,
            beam=0 if search == "exact" else check_count(beam, "beam"),
            limits=check_limits(epsilon, max_nodes, deadline_ms, resume=search == "auto"),
            ensemble=ensemble,
            threshold=threshold,
            n_jobs=n_jobs,
            progress=progress,
        )

    def _search(
        self,
        rows: Rows,
        k: int,
        overrides: Overrides | None = None,
        *,
        tail: float | None = None,
        gain: npt.ArrayLike | None = None,
        utility: Utility | None = None,
        propensity: tuple[float, float] | None = None,
        beam: int = 0,
        limits: SearchLimits | None = None,
        ensemble: str = "mean",
        threshold: float | npt.ArrayLike | None = None,
        n_jobs: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> TopK:
        """Find the best labels of checked rows; a beam of 0 is exact search."""
        if rows.n_rows * k > MOST_CELLS:
            raise ValueError(
                f"k times the number of rows must be at most {MOST_CELLS}; got {k} and {rows.n_rows}."
            )
        trees = self._prepare()
        constants = check_constants(self.propensity if propensity is None else propensity)
        score_map, own_maps = self._maps(overrides, rows.n_rows)
        limits = limits or {}
        if utility is None:
            ends_early = bool(limits.keys() - {"resume"}) or (beam > 0 and "resume" not in limits)
            bounds = trees.bounds(
                self.label_counts_, self.n_rows_, tail, gain, constants, score_map, certified=ends_early
            )
        else:
            if tail is not None or gain is not None:
                raise ValueError("utility must not be given together with tail or gain, which it replaces.")
            bounds = trees.utility(check_utility(utility), score_map)
        thresholds, floor = key_threshold(threshold, self.n_labels_, utilities=utility is not None)
        found = trees.forest.top_k(
            *rows.csr,
            rows.scale,
            k=k,
            beam=beam,
            union_rule=ensemble == "union",
            log_threshold=thresholds,
            log_floor=floor,
            threads=check_threads(self.n_jobs if n_jobs is None else n_jobs),
            progress=progress,
            **limits,
            **bounds,
            **own_maps,
        )
        largest = 1.0 if utility is None and not len(bounds["log_gain"]) else np.inf
        return TopK.of_search(*found, utilities=utility is not None, largest=largest)

    def fit_sets(self, X: Any, y: LabelsLike, *, max_size: int = MAX_SIZE) -> Self:
        """Fit how large the sets of `predict_set` must be, on rows that the model was not trained on.

        The trained model stays as it is. Training it further (also by `partial_fit`, `refit`, `add_labels` or
        `remove_labels`) drops what was fitted here.

        Parameters
        ----------
        X : sparse or dense matrix [rows, features]
            Held-out rows, a thousand or more, like those that will come.
        y : sparse or dense indicator [rows, labels], or list or pandas Series of label lists
            Their labels; those that the model lacks count as missed.
        max_size : int
            The most labels of a set.
        """
        size = check_count(max_size, "max_size", high=MOST_K)
        check_is_fitted(self)
        truth, top = self._judge(X, y, k=min(size, self.n_labels_))
        self.risk_control_ = fit_risk(top, truth, size)
        return self

    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        n_jobs: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> TopK:
        """Find for each row a set of labels that holds, on average, this share of its true labels or more.

        The promise holds for rows that come as the held-out rows of `fit_sets` did, and that have labels: it
        is the mean over them, and over held-out rows, not for each row by itself. Conformal risk control
        (Angelopoulos et al., ICLR 2024) makes it, whatever the model is worth; a better model has smaller
        sets.

        Parameters
        ----------
        X : sparse or dense matrix [rows, features]
        coverage : float
            Above 0 and below 1.
        n_jobs, progress
            As in `top_k`.

        Returns
        -------
        TopK
            The set of each row, best first, at most ``max_size`` labels. As wide as the largest set; smaller
            ones are padded with -1.
        """
        control = self._fitted_sets("predict_set needs held-out rows: call fit_sets(X, y) first.")
        threshold, size = control.threshold(coverage), min(control.max_size, self.n_labels_)
        return cut(self.top_k(X, size, n_jobs=n_jobs, progress=progress), threshold)

    def _fitted_sets(self, otherwise: str) -> RiskControl:
        """Return what `fit_sets` found; raise an error that says ``otherwise`` if it was not called."""
        check_is_fitted(self)
        if self.risk_control_ is None:
            raise NotFittedError(otherwise)
        return self.risk_control_

    def calibrate(self, X_held_out: Any, y_held_out: LabelsLike) -> Self:
        """Fit what makes probabilities that can be believed of what the model says; its trees stay.

        The order of the labels stays as well, as long as all gains are 1 (those with probabilities above
        1 - 1e-6 or below 1e-6 become equal). Refined labels are calibrated in `fit`, and here again.
        What `fit_sets` found is dropped.

        Parameters
        ----------
        X_held_out : sparse or dense matrix [rows, features]
        y_held_out : sparse or dense indicator [rows, labels], or list of label lists
            Rows that the model was not trained on, a thousand or two. Probabilities that are fitted on rows
            of the training would be too large.
        """
        check_is_fitted(self)
        self._become_calibrated(self.refined_, *self._check_held_out(X_held_out, y_held_out))
        return self

    def _check_held_out(self, X: Any, y: LabelsLike) -> tuple[Rows, sp.csr_array]:
        """Check rows to calibrate on."""
        if self.calibration_ is None and self.score_map_ is not None:
            raise ValueError("score_map_ must be None to calibrate: the model has maps from elsewhere.")
        rows, labels = self._check_rows(X, "X_held_out"), self._check_truth(y, "y_held_out")
        if rows.n_rows != labels.shape[0]:
            raise ValueError(
                "X_held_out and y_held_out must have the same number of rows; "
                f"got {rows.n_rows} and {labels.shape[0]}."
            )
        if rows.n_rows == 0:
            raise ValueError("X_held_out must have at least one row to calibrate on; got none.")
        return rows, labels

    def _become_calibrated(self, refined: WeightedTree | None, rows: Rows, labels: sp.csr_array) -> None:
        """Take these refined classifiers, and calibrate; where that fails the model is as it was."""
        before = dict(self.__dict__)
        try:
            if refined is not self.refined_:
                self.refined_ = refined
                self.__dict__.pop("_prepared", None)
            self.calibration_ = self.score_map_ = None
            self.__dict__.pop("risk_control_", None)  # it was fitted to the probabilities as they were
            calibration = fit_calibration(self._candidates(rows), labels)
            if calibration is None:
                raise ValueError("y_held_out must hold labels that the model ranks high, and not only these.")
            self.calibration_ = calibration
        except BaseException:
            self.__dict__ = before
            raise

    def has_leaf(self, label: int) -> bool:
        """Return whether some tree has a leaf for a label; one that training never saw mostly has none."""
        return bool(self.has_leaves()[label])

    def has_leaves(self) -> npt.NDArray[np.bool_]:
        """Return `has_leaf` of all labels."""
        return self._prepare().has_leaves

    def probability(self, X: Any, rows: npt.ArrayLike, labels: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Return the probability of each (row, label) pair.

        Parameters
        ----------
        X : sparse or dense matrix [rows, features]
        rows, labels : int arrays [pairs]
            Which rows of ``X``, which labels.

        Returns
        -------
        float32 array [pairs]
            The mean over the trees; 0 for a label that training never saw. Of refined labels, what trees and
            refined classifiers say, calibrated; 0 for a label that no tree nominates.
        """
        check_is_fitted(self)
        features = self._check_rows(X)
        row_array = _check_pairs(rows, features.n_rows, "rows")
        label_array = _check_pairs(labels, self.n_labels_, "labels")
        if row_array.shape != label_array.shape:
            raise ValueError(
                f"rows and labels must have the same length; got {len(row_array)} and {len(label_array)}."
            )
        order = np.argsort(row_array, kind="stable")  # pairs of one row share what is evaluated for it
        out = np.empty(len(order), np.float32)
        out[order] = self._probabilities(features, overrides_of(X), row_array[order], label_array[order])
        return out

    def _probabilities(
        self,
        features: Rows,
        overrides: Overrides | None,
        rows: npt.NDArray[np.int64],
        labels: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.float32]:
        """Return the probability of each pair; those of one row come together."""
        score_map, own = self._maps(overrides, features.n_rows)
        maps: MapArguments = {} if score_map is None else score_map.arguments
        pairs = rows, labels.astype(np.int32), check_threads(self.n_jobs)
        return self._prepare().forest.probabilities(*features.csr, features.scale, *pairs, **maps, **own)

    def predict_proba(self, X: Any, labels: npt.ArrayLike | None = None) -> npt.NDArray[np.float32]:
        """Return the probability of every given label for every row.

        Parameters
        ----------
        X : sparse or dense matrix [rows, features]
        labels : int array [given labels], optional
            Which labels, in the order of the columns; all by default, as in ``classes_``. All labels of many
            rows are many numbers: `top_k` finds the best ones without computing the others.

        Returns
        -------
        float32 array [rows, given labels]
            As `probability` returns them. Labels do not exclude each other: a row need not sum to 1.
        """
        check_is_fitted(self)
        features, overrides = self._check_rows(X), overrides_of(X)
        chosen = self.classes_ if labels is None else _check_pairs(labels, self.n_labels_, "labels")
        n_rows, width = features.n_rows, len(chosen)
        if n_rows * width > MOST_CELLS:
            raise ValueError(
                f"labels times the number of rows must be at most {MOST_CELLS}; got {width} and {n_rows}."
            )
        out = np.empty((n_rows, width), np.float32)
        step = max(1, BLOCK_CELLS // max(width, 1))
        for start in range(0, n_rows if width else 0, step):
            block = features[start : start + step]
            row, label = np.repeat(np.arange(block.n_rows), width), np.tile(chosen, block.n_rows)
            inside = np.arange(start, start + block.n_rows)
            own = None if overrides is None else overrides.take(inside)
            out[inside] = self._probabilities(block, own, row, label).reshape(-1, width)
        return out

    @property
    def classes_(self) -> npt.NDArray[np.int64]:
        """The numbers of the labels, 0, 1, …: the columns of `predict` and `predict_proba`."""
        return np.arange(self.n_labels_)

    def predict(self, X: Any) -> sp.csr_matrix[np.float32]:
        """Return the top ``k`` labels of each row as a CSR indicator [rows, labels]."""
        labels = self.top_k(X).labels
        row, place = np.nonzero(labels >= 0)
        ones = np.ones(len(row), np.float32)
        return sp.csr_matrix((ones, (row, labels[row, place])), shape=(len(labels), self.n_labels_))

    def score(self, X: Any, y: LabelsLike) -> float:
        """Return the precision at 1 as a fraction; labels that training never saw cannot be hit."""
        truth, top = self._judge(X, y, k=1)
        best = top.labels[:, 0]
        hits = truth[np.arange(len(best)), np.maximum(best, 0)] * (best >= 0)
        return float(np.mean(hits, dtype=np.float64))

    def inverse_propensity(
        self, propensity: tuple[float, float] | None = None, *, n_labels: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the inverse propensity of each label, for `longleaf.metrics.evaluate`.

        Parameters
        ----------
        propensity : (A, B), optional
            Constants of the propensity model; the estimator's own by default.
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
        """Return the true labels, at least as many columns as the model has labels, and the ranked ones."""
        check_is_fitted(self)
        truth = self._check_truth(y, "y")
        top = self.top_k(X, **options)
        if len(top.labels) != truth.shape[0]:
            raise ValueError(
                f"X and y must have the same number of rows; got {len(top.labels)} and {truth.shape[0]}."
            )
        return truth, top

    def _check_truth(self, y: LabelsLike, name: str) -> sp.csr_array:
        """Return true labels, at least as many columns as the model has labels."""
        truth = check_labels(y, name=name)
        if truth.shape[1] < self.n_labels_ and not is_label_lists(y):
            raise ValueError(f"{name} must have {self.n_labels_} labels, as in fit; got {truth.shape[1]}.")
        shape = (truth.shape[0], max(truth.shape[1], self.n_labels_))
        return sp.csr_array((truth.data, truth.indices, truth.indptr), shape=shape)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model as a folder; an existing one is replaced in one step, and only with ``force``."""
        storage.save_folder(path, self.kind, *self._to_arrays(), force)

    def _to_arrays(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return the model as plain JSON and arrays by name."""
        check_is_fitted(self)
        meta = {
            "params": self._plain_params(),
            "trees": len(self.trees_),
            "rows": self.n_rows_,
            "features": self.n_features_in_,
            "origin": self.origin_,
        }
        if hasattr(self, "feature_names_in_"):
            meta["feature_names"] = self.feature_names_in_.tolist()
        arrays = to_arrays(self.label_counts_, self.trees_, self.weights_, self.refined_)
        if self.calibration_ is not None:
            arrays |= {f"calibration/{name}": array for name, array in self.calibration_.state().items()}
        if self.risk_control_ is not None:
            arrays |= {f"sets/{name}": array for name, array in self.risk_control_.state().items()}
        if hasattr(self, "feature_mass_"):  # not known of imported models, and of those of older versions
            arrays["feature_mass"] = self.feature_mass_
        return check_saved(meta, self._schema()), arrays

    @classmethod
    def _from_folder(cls, folder: storage.Folder) -> Self:
        """Make a model of what `_to_arrays` gave."""
        cls._schema()(folder.meta, folder.meta_name)
        params, attributes = params_from(folder.meta), attributes_from(folder)
        if not isinstance(params.get("tree", ""), str):  # trees of the user's own
            trees = attributes["trees_"]
            params["tree"] = trees[0] if len(trees) == 1 else trees
        model = cls(**params)
        model.__dict__.update(attributes)
        if calibration := folder.part("calibration"):
            model.calibration_ = Calibration.from_state(calibration, f"{folder.place}calibration/")
        if sets := folder.part("sets"):
            model.risk_control_ = RiskControl.from_state(sets, f"{folder.place}sets/", MOST_K)
        model._prepare()
        return model

    @classmethod
    def _schema(cls) -> Object:
        """Say what the metadata of a saved model must be."""
        names = cls.named_positive_weights
        checks: dict[str, Check] = {
            **STORED,
            "positive_weight": lambda value, name: check_positive_weight(value, names, name),
        }
        return meta_schema({name: checks.get(name, anything) for name in cls._get_param_names()})

    def _verify(self) -> None:
        """Check all that is not checked before it is needed."""
        self._prepare().forest.check(check_threads(self.n_jobs))

    def _plain_params(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in self.get_params(deep=False).items()}

    def _candidates(self, rows: Rows, overrides: Overrides | None = None, k: int = CANDIDATES) -> Candidates:
        """Return what a map is fitted on: the best labels of rows by the trees, and those with overrides."""
        if self.refined_ is not None:
            own: dict[str, Any] = {} if overrides is None else dict(overrides.arguments)
            own.pop("override_refined", None)
            indptr, labels, probability, log_h = self._prepare().forest.nominees(
                *rows.csr, rows.scale, nominees=NOMINEES, threads=check_threads(self.n_jobs), **own
            )
            row = np.repeat(np.arange(rows.n_rows), np.diff(indptr))
            return Candidates(row, labels.astype(np.int64), probability, log_h, True)
        top = self._search(rows, k)
        row, place = np.nonzero(top.labels >= 0)
        pairs = row * np.int64(self.n_labels_) + top.labels[row, place]
        if overrides is not None:
            pairs = np.append(pairs, overrides.rows * np.int64(self.n_labels_) + overrides.labels)
        row, label = np.divmod(np.unique(pairs), np.int64(self.n_labels_))
        probability = self._probabilities(rows, None, row, label)
        return Candidates(row, label, probability, np.zeros(len(row), np.float32), False)

    def _score_map(self) -> ScoreMap | None:
        """Return the map of each label, if there is one: the caller's own, or that of the calibration."""
        if self.score_map_ is None and self.calibration_ is not None:
            self.score_map_ = self.calibration_.score_map(self.n_labels_)
        return None if self.score_map_ is None else self.score_map_.check(self.n_labels_)

    def _maps(self, overrides: Overrides | None, n_rows: int) -> tuple[ScoreMap | None, OverrideArguments]:
        """Check the map of each label, and those of single labels in single rows."""
        score_map = self._score_map()
        return score_map, {} if overrides is None else overrides.check(n_rows, self.n_labels_).arguments

    def _note_data(self, label_counts: npt.NDArray[np.int64], n_rows: int) -> None:
        """Note how often labels occur, in how many rows, where the model was trained on other rows."""
        self.label_counts_, self.n_rows_, self.n_labels_ = label_counts, n_rows, len(label_counts)
        self.score_map_ = None
        for name in ("_prepared", "risk_control_"):  # what sets hold was fitted to the model as it was
            self.__dict__.pop(name, None)
        self._prepare()

    def _check_rows(self, X: Any, name: str = "X") -> Rows:
        """Check rows to be asked about, and the names of their columns where there are any."""
        X = features_of(X)
        if hasattr(X, "columns") or hasattr(self, "feature_names_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        rows = check_features(X, normalize=self.normalize, name=name)
        if rows.n_features != self.n_features_in_:
            found, expected, kind = rows.n_features, self.n_features_in_, type(self).__name__
            raise ValueError(  # what stands in brackets is what scikit-learn says
                f"{name} must have {expected} features, as in fit; got {found} "
                f"({name} has {found} features, but {kind} is expecting {expected} features as input)."
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
                self.trees_,
                self.weights_,
                self.n_features_in_,
                self.n_labels_,
                self._link,
                self.refined_,
            )
        return prepared

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        made = {"_prepared"} if self.calibration_ is None else {"_prepared", "score_map_"}
        return {name: value for name, value in state.items() if name not in made}

    def __sklearn_is_fitted__(self) -> bool:
        return "weights_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def _check_pairs(values: npt.ArrayLike, size: int, name: str) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(f"{name} must be a 1-D array of whole numbers; got {array.ndim}-D of {array.dtype}.")
    if array.size and (array.min() < 0 or array.max() >= size):
        bad = array[(array < 0) | (array >= size)][0]
        raise ValueError(f"{name} must be at least 0 and below {size}; got {bad}.")
    return array.astype(np.int64)
