"""Choosing settings by successive halving.

The problem: which of many settings is best on rows that training does not see, at the cost of a few full
training runs? Given are rows with labels, a metric, and settings to try. All of them are trained on a small
sample of the rows and evaluated on the development rows; the best third continues with three times as many
rows, and so on, until the last few are trained on all rows. Most of the time is thus spent on promising
settings. The samples are nested, so a later rung only adds rows. The starting settings are part of every
rung, so that the chosen settings are never worse on the development rows. Sources: Karnin, Koren and Somekh,
ICML
2013; Jamieson and Talwalkar, AISTATS 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from longleaf._validation import check_count, check_features, check_labels
from longleaf.estimator import LabelEstimator
from longleaf.explain.titles import RecordNotes
from longleaf.metrics import Difference
from longleaf.plt import PLT
from longleaf.split import DEV, split_rows
from longleaf.tagger import Tagger
from longleaf.text.field_rows import FieldRows
from longleaf.text.tags import TagCollector, known_indicator
from longleaf.tuning.candidates import (
    Settings,
    draw,
    encoder_weights,
    field_weights,
    full_space,
    of_estimator,
    starting_settings,
)
from longleaf.tuning.halving import Evaluator, Halving, Progress, Report, Trial, rung_sizes

Splits = tuple[Any, sp.csr_array, Any, sp.csr_array]
"""Training features and labels, development features and labels."""

__all__ = ["Trial", "Tuning", "tune"]


@dataclass(frozen=True)
class Tuning:
    """The chosen settings, and the reasons.

    Attributes
    ----------
    settings, value
        The chosen settings, and their metric on the development rows.
    start : dict
        The starting settings.
    difference : Difference
        The difference of the chosen settings (b) to the starting ones (a), with a paired bootstrap interval.
        The chosen ones are the best of several on these rows, so on others the difference tends to be
        slightly smaller.
    metric, tail
        The metric, and the tail of the predictions.
    rows, dev_rows : int
        Numbers of training rows in the last rung, and of development rows.
    trials : tuple of Trial
        All trials, in order.
    random_state : int
        The seed.
    estimator : PLT, BR or Tagger
        An unfitted estimator with the chosen settings.
    """

    settings: Settings
    value: float
    start: Settings
    difference: Difference
    metric: str
    tail: float
    rows: int
    dev_rows: int
    trials: tuple[Trial, ...]
    random_state: int
    estimator: Any = field(compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the estimator as plain JSON."""
        names = [name for name in self.__dataclass_fields__ if name not in ("estimator", "trials")]
        plain = {name: getattr(self, name) for name in names}
        plain["difference"] = asdict(self.difference)
        return plain | {"trials": [asdict(trial) for trial in self.trials]}


def tune(
    X: Any,
    Y: Any,
    estimator: LabelEstimator | Tagger | None = None,
    *,
    dev: tuple[Any, Any] | None = None,
    dev_share: float = 0.1,
    metric: str = "p@5",
    tail: float | None = None,
    space: Mapping[str, Any] | None = None,
    candidates: int = 18,
    factor: int = 3,
    min_rows: int = 1000,
    random_state: int = 1,
    progress: Progress | None = None,
    report: Report | None = None,
) -> Tuning:
    """Choose settings by successive halving on development rows.

    Parameters
    ----------
    X, Y
        Features and labels as `longleaf.PLT.fit` takes them; texts and tags if ``estimator`` is a Tagger,
        which are vectorized once, so the vocabulary includes the words of held-out rows (but not their
        tags). A Tagger's ``names`` play no role in the choice; the chosen estimator has them.
    estimator : PLT, BR or Tagger, optional
        The starting settings; those that are not searched are kept. By default ``PLT()``. If ``space`` lists
        values of a setting without the estimator's own, the first of them is the starting value. Of a Tagger
        whose texts are records with several fields, other weights of the fields are tried, too, and of one
        with an encoder, other weights of the encoder.
    dev : (X, Y), optional
        The development rows. By default, ``dev_share`` of the rows are held out by `longleaf.split_rows`.
    metric : str
        ``p@k``, ``f1@k``, ``ndcg@k`` or ``psp@k``, for instance ``psp@5``.
    tail : float, optional
        The tail of the predictions; by default 1 for ``psp@k`` and 0 for the others.
    space : mapping of str to list, optional
        Values to try, by name of the setting, which replace the default ones of loss, C, arity, max_leaf,
        n_trees and threshold; values of "C" may be given by loss, ``{"log": [8], "squared-hinge": [1]}``.
    candidates : int
        Number of settings to try, including the starting ones; fewer if there are no more.
    factor : int
        One in ``factor`` settings of a rung continues, with ``factor`` times as many rows.
    min_rows : int
        Minimum rows of a rung, except the last one, which has all rows.
    random_state : int
        Seed of the split, of the draw and of the models; the same seed gives the same choice.
    progress : callable, optional
        Called from time to time with the share of the work that is done.
    report : callable, optional
        Called with each `Trial` when it is finished.

    Examples
    --------
    >>> import longleaf as ll
    >>> X, Y = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]] * 5, [[0], [0], [1], [1]] * 5
    >>> space = {"loss": ["log"], "C": [1.0, 16.0], "n_trees": [1]}
    >>> ll.tune(X, Y, metric="p@1", space=space, candidates=4).value
    100.0
    """
    start = PLT() if estimator is None else estimator
    model: Any = start
    if isinstance(start, Tagger):
        model = PLT() if start.estimator is None else start.estimator
        X, Y, dev = _vectorized(start, X, Y, dev)
    if not isinstance(model, LabelEstimator):
        raise TypeError(f"estimator must be a PLT, BR or Tagger; got {type(model).__name__}.")
    evaluator = Evaluator.of(metric, tail, model.propensity, *_split_rows(X, Y, dev, dev_share, random_state))
    whole = full_space(space, model)
    first = starting_settings(list(whole), model, space)
    if isinstance(X, FieldRows):
        if len(X.weights) > 1:
            whole["fields"], first["fields"] = field_weights(X.weights), X.weights
        if X.meaning is not None:
            whole["encoder_weight"] = encoder_weights(X.meaning.weight)
            first["encoder_weight"] = X.meaning.weight
    drawn = draw(whole, first, check_count(candidates, "candidates"), random_state)
    sizes = rung_sizes(evaluator.Y.shape[0], len(drawn), check_count(factor, "factor", low=2), min_rows)
    base = clone(model).set_params(random_state=random_state)
    halving = Halving(evaluator, base, drawn, sizes, factor, progress, report)
    trials, best = halving.run(np.random.RandomState(random_state).permutation(evaluator.Y.shape[0]))
    chosen = clone(base).set_params(**of_estimator(best.settings))
    if isinstance(start, Tagger):
        chosen = clone(start).set_params(estimator=chosen)
        if "fields" in best.settings:
            chosen.set_params(vectorizer__fields=best.settings["fields"])
        if "encoder_weight" in best.settings:
            chosen.set_params(encoder_weight=best.settings["encoder_weight"])
    return Tuning(
        settings=best.settings,
        value=best.value,
        start=first,
        difference=evaluator.difference(halving.tops[0], halving.tops[best.candidate]),
        metric=metric,
        tail=evaluator.tail,
        rows=best.rows,
        dev_rows=evaluator.truth.shape[0],
        trials=tuple(trials),
        random_state=random_state,
        estimator=chosen,
    )


def _split_rows(X: Any, Y: Any, dev: tuple[Any, Any] | None, dev_share: float, seed: int) -> Splits:
    """Check the rows, and hold some out if there are no development rows."""
    if not isinstance(X, FieldRows):
        check_features(X)
    X, labels = _indexable(X), check_labels(Y)
    if X.shape[0] != labels.shape[0]:
        raise ValueError(
            f"X and Y must have the same number of rows; got {X.shape[0]} and {labels.shape[0]}."
        )
    if dev is not None:
        if not isinstance(dev[0], FieldRows):
            check_features(dev[0], X.shape[1], name="dev's X")
        X_dev, Y_dev = _indexable(dev[0]), check_labels(dev[1], name="dev's Y")
        if X_dev.shape[0] != Y_dev.shape[0]:
            sizes = f"{X_dev.shape[0]} and {Y_dev.shape[0]}"
            raise ValueError(f"dev's X and Y must have the same number of rows; got {sizes}.")
        return X, labels, X_dev, Y_dev
    held_out = split_rows(labels, dev_share, 0.0, random_state=seed) == DEV
    if not held_out.any():
        raise ValueError(
            "Y must have rows that can be held out, each of whose labels has another row; give dev instead."
        )
    return X[~held_out], labels[~held_out], X[held_out], labels[held_out]


def _indexable(X: Any) -> Any:
    matrix: Any = X
    if isinstance(X, FieldRows):
        return X
    return matrix.tocsr() if sp.issparse(X) else np.asarray(X)


def _vectorized(
    tagger: Tagger, texts: Any, tags: Any, dev: tuple[Any, Any] | None
) -> tuple[Any, sp.csr_array, tuple[Any, Any] | None]:
    """Convert texts and tags to matrices once; tags that only ``dev`` has are the last columns."""
    texts = list(texts)
    # names play no role in the choice
    plain = clone(tagger).set_params(names=None)
    rows = plain._read(texts, TagCollector.of(tags), RecordNotes(False))
    if dev is None:
        return rows.by_field(texts), rows.Y, None
    return (
        rows.by_field(texts),
        rows.Y,
        (rows.others_by_field(dev[0]), known_indicator(dev[1], rows.classes, "add")),
    )
