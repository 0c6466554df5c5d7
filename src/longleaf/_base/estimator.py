"""What the estimators share: parameters, the steps of training, and saving."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from longleaf import __version__, _core
from longleaf._base.files import attributes_from, meta_schema, params_from, plain, to_arrays
from longleaf._base.params import CHECKS, STORED
from longleaf._base.ranker import LabelRanker
from longleaf._fitting.checkpoint import StrPath, describe_training, kept_trees, open_checkpoint
from longleaf._fitting.clustering import ClusterSettings
from longleaf._fitting.memory import parse_memory, release_unused, resident_bytes
from longleaf._fitting.part_store import PartStore
from longleaf._fitting.scratch import scratch_files
from longleaf._fitting.trees import Facts, TrainingData, check_training_data, feature_mass, train_trees
from longleaf._positive_weight import INVERSE_PRIOR, check_positive_weight
from longleaf._validation import (
    LabelsLike,
    Rows,
    check_count,
    check_threads,
)
from longleaf.io import storage
from longleaf.io._schema import Check, Object, anything, check_saved
from longleaf.linear import SolverSettings
from longleaf.propensity import check_constants, inverse_propensity_from_counts
from longleaf.tree import LabelTree

_SOLVER = ("tolerance", "max_epochs", "threshold", "bias", "weight_bits")


class LabelEstimator(LabelRanker):
    """A model of labels that can be trained, asked and saved; a subclass says what its trees are.

    Attributes
    ----------
    origin_ : dict
        Where the model came from: settings, version, digest of the data.
    training_ : list of dict
        Per tree, what the training took. A loaded model does not have it.
    """

    kind: ClassVar[str]
    default_costs: ClassVar[Mapping[str, float]]  # C and C_scale by loss, where they are left out
    n_trees: int = 1
    default_scales: ClassVar[Mapping[str, str]] = {"log": "none", "squared-hinge": "none"}
    C_scale: str | None = None
    named_positive_weights: ClassVar[tuple[str, ...]] = ()
    can_resume: ClassVar[bool] = True  # whether training falls apart into parts, for a checkpoint or machines

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
        y : sparse or dense indicator [rows, labels], or list of label lists
            Labels that never occur stay unknown: they get no leaf and are never returned.
        sample_weight : array [rows], optional
            What an error on each row costs, as a multiple of C.
        progress : callable, optional
            Called now and then with the share of the training that is done.
        checkpoint : str or path, optional
            A folder that keeps what is finished, made if it is not there: a training that was killed goes on
            from there when the same is asked for again, and ends in the same bits. It stays when the training
            is done. A folder that belongs to other data or settings is refused.
        memory : str or int, optional
            The most memory that the process may take, such as "4G". Training is planned first; then it fits,
            with weights and working copies on disk where it must, or a ValueError says why it cannot.
        scratch : str or path, optional
            The folder of such files; the system's temporary one if left out.
        client : dask.distributed.Client, optional
            Train on its workers, to the same bits: `longleaf.distributed.fit`. ``n_jobs`` is not used then.
        """
        if client is not None:
            from longleaf import distributed  # it needs an extra

            if checkpoint is not None or memory is not None:
                raise ValueError("checkpoint and memory must be None with client: Dask sees to both.")
            return distributed.fit(self, X, y, sample_weight, client=client, progress=progress)
        begin = resident_bytes()
        settings, threads = self._solver_settings(), check_threads(self.n_jobs)
        n_trees = check_count(self.n_trees, "n_trees")
        for name, given in (("checkpoint", checkpoint), ("memory", memory)):
            if given is not None and not self.can_resume:
                raise ValueError(
                    f"{name} must be None for {type(self).__name__}, whose training does not fall into parts."
                )
        data = self._begin_fit(X, y, sample_weight)
        settings = self._weigh_labels(settings)
        random = check_random_state(self.random_state)
        seeds = [int(seed) for seed in random.randint(2**31 - 1, size=n_trees)]
        with ExitStack() as files:  # mapped weights outlive their files' names
            store = None
            if memory is not None:
                from longleaf.plan import within  # not above: plans are made of estimators

                folder = Path(files.enter_context(TemporaryDirectory(prefix="longleaf-", dir=scratch)))
                means = within(self, data, seeds, settings, threads, begin, parse_memory(memory), folder)
                threads, store = means.threads, PartStore(folder) if means.spill else None
                files.enter_context(scratch_files(folder if means.scratch else None))
            build = partial(self._build_trees, data.rows, data.labels, threads=threads)
            if checkpoint is None:
                trees = list(build(seeds))
            else:
                training = describe_training(self.kind, self.get_params(deep=False), seeds, data)
                kept = open_checkpoint(checkpoint, training, any_seeds=self.random_state is None)
                store, seeds = files.enter_context(kept)
                trees = kept_trees(store, seeds, build)
            release_unused()
            weights, self.training_ = self._train(data, trees, seeds, settings, threads, progress, store)
        self.trees_, self.weights_ = trees, weights
        self._prepare()  # now, so that asking leaves the model as it is
        return self

    @abstractmethod
    def _build_trees(
        self, rows: Rows, labels: sp.csr_array, seeds: list[int], threads: int
    ) -> Iterable[LabelTree]:
        """Give one tree per seed, over the labels that occur; the seeds are the last of all."""

    def _cluster_settings(self) -> ClusterSettings | None:
        """Say how labels are clustered; None where trees do not depend on rows."""
        return None

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
        """Give the weights of each tree and what it took; with a store, they go there as they are made."""
        return train_trees(data, trees, seeds, settings, threads, progress, store)

    def _solver_settings(self) -> SolverSettings:
        """Check all parameters that do not depend on the kind of trees; give those of the solver."""
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

    def _weigh_labels(self, settings: SolverSettings) -> SolverSettings:
        """Add what positive rows of each label cost, by what `_begin_fit` noted."""
        return replace(settings, label_weight=self._label_weight())

    def _label_weight(self) -> npt.NDArray[np.float64] | None:
        """Give what a positive row of each label costs at its leaf; None for all alike."""
        return None

    def _label_worth(self) -> npt.NDArray[np.float64]:
        """Give the inverse propensity of each label by the constants ``propensity``."""
        a, b = check_constants(self.propensity)
        return inverse_propensity_from_counts(self.label_counts_, self.n_rows_, a=a, b=b)

    def _begin_fit(self, X: Any, y: LabelsLike, sample_weight: npt.ArrayLike | None) -> TrainingData:
        """Check the training data and note their sizes."""
        if y is None:
            raise ValueError(
                f"y must hold the labels of every row: {self.kind.upper()} requires y to be passed, "
                "but the target y is None."
            )
        data = check_training_data(X, y, sample_weight, normalize=self.normalize)
        for name in ("_prepared", "trees_", "weights_"):  # a training that fails leaves no half model
            self.__dict__.pop(name, None)
        validate_data(self, X, skip_check_array=True)  # notes n_features_in_ and the names of the columns
        self.n_rows_, self.n_labels_ = data.labels.shape
        self.label_counts_ = np.bincount(data.labels.indices, minlength=self.n_labels_).astype(np.int64)
        self.feature_mass_ = feature_mass(data.rows)
        self.origin_ = {"longleaf": __version__, "settings": self._plain_params()}
        return data

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model as a folder; an existing one is replaced in one step, and only with ``force``."""
        storage.save_folder(path, self.kind, *self._to_arrays(), force)

    def _to_arrays(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Give the model as plain JSON and arrays by name."""
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
        arrays = to_arrays(self.label_counts_, self.trees_, self.weights_)
        if hasattr(self, "feature_mass_"):  # not known of imported models, and of those of older versions
            arrays["feature_mass"] = self.feature_mass_
        return check_saved(meta, self._schema()), arrays

    @classmethod
    def _from_folder(cls, folder: storage.Folder) -> Self:
        """Make a model of what `_to_arrays` gave."""
        cls._schema()(folder.meta, folder.meta_name)
        params, attributes = params_from(folder.meta), attributes_from(folder)
        if not isinstance(params.get("tree", ""), str):  # trees of the user's own
            params["tree"] = attributes["trees_"]
        model = cls(**params)
        model.__dict__.update(attributes)
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags
