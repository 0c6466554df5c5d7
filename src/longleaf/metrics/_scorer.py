"""Any metric as a scorer for scikit-learn's searches and cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longleaf._validation import LabelsLike
from longleaf.metrics._evaluate import evaluate

METRICS = (
    *("p", "precision", "recall", "f1", "ndcg", "psp", "psrecall", "psndcg"),
    *("coverage", "macro_precision", "macro_recall", "macro_f1"),
)


@dataclass(frozen=True)
class Scorer:
    """The result of `make_scorer`: call it with a fitted estimator, rows and their true labels."""

    name: str
    k: int
    tail: float | None
    propensity: tuple[float, float] | None
    search: str
    beam: int

    def __call__(self, estimator: Any, X: Any, y: LabelsLike) -> float:
        """Return the metric in percent.

        Parameters
        ----------
        estimator : PLT, BR, Tagger, or a pipeline or search that ends in one
            Fitted.
        X, y
            As in its ``score``.
        """
        model, X, y = _innermost(estimator, X, y)
        options = {"tail": self.tail, "propensity": self.propensity, "search": self.search, "beam": self.beam}
        truth, top = model._judge(X, y, k=self.k, **options)
        inverse_propensity = model.inverse_propensity(self.propensity, n_labels=truth.shape[1])
        return evaluate(truth, top, inverse_propensity, k=self.k)[f"{self.name}@{self.k}"]


def make_scorer(
    metric: str,
    *,
    tail: float | None = None,
    propensity: tuple[float, float] | None = None,
    search: str = "exact",
    beam: int = 10,
) -> Scorer:
    """Make a scorer for the parameter ``scoring`` of ``GridSearchCV``, ``cross_val_score`` and the like.

    Parameters
    ----------
    metric : str
        A metric of `evaluate` and its k: ``"p@1"``, ``"f1@5"``, ``"psp@5"``, ``"ndcg@3"``, …; not
        the calibration errors, of which smaller is better.
    tail, search, beam
        How the labels are searched, as in `longleaf.PLT.top_k`.
    propensity : (A, B), optional
        Constants of the propensity model, for both the metric and tail; default: those of the estimator.

    Returns
    -------
    callable (estimator, X, y) -> float
        In percent; higher is better. Propensities come from the labels that the estimator was trained on,
        never from those it is evaluated on. Labels that training never saw count in the denominators.

    Examples
    --------
    >>> import longleaf as ll
    >>> X, Y = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [[0], [0, 1], [1]]
    >>> model = ll.PLT(n_trees=1, random_state=1).fit(X, Y)
    >>> ll.metrics.make_scorer("p@1", tail=1.0)(model, X, Y)
    100.0
    """
    name, _, places = metric.partition("@")
    if name not in METRICS or not places.isdecimal() or int(places) < 1:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, then @ and k; got {metric!r}.")
    return Scorer(name, int(places), tail, propensity, search, beam)


def _innermost(estimator: Any, X: Any, y: LabelsLike) -> tuple[Any, Any, LabelsLike]:
    """Unwrap searches, pipelines and taggers, transforming the rows on the way to the model of labels."""
    if hasattr(estimator, "best_estimator_"):
        return _innermost(estimator.best_estimator_, X, y)
    if hasattr(estimator, "steps"):
        *_, (_, last) = estimator.steps
        return _innermost(last, estimator[:-1].transform(X) if len(estimator.steps) > 1 else X, y)
    if hasattr(estimator, "transform_tags"):
        tags = estimator.transform_tags(y, unseen="add")
        return estimator.estimator_, estimator._rows(X), tags
    if not hasattr(estimator, "_judge"):
        raise TypeError(
            f"estimator must be a PLT, BR or Tagger, or end in one; got {type(estimator).__name__}."
        )
    return estimator, X, y
