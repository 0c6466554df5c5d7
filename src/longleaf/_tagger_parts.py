"""The parts of a tagger that its user left out."""

from __future__ import annotations

from typing import Any

from longleaf.estimator import LabelEstimator
from longleaf.plt import PLT
from longleaf.text.vectorizer import TextVectorizer


def default_vectorizer(estimator: LabelEstimator) -> TextVectorizer:
    """Give the vectorizer that belongs to an estimator: it uses as many threads."""
    return TextVectorizer(n_jobs=estimator.n_jobs)


def with_named_parts(params: dict[str, Any], estimator: Any, vectorizer: Any) -> dict[str, Any]:
    """Put a default part beside the parameters that are meant for it, such as ``estimator__C``.

    scikit-learn sets the parameters of parts that are there; those of a tagger are None if left out.

    Parameters
    ----------
    params : dict
        What ``set_params`` was given.
    estimator, vectorizer
        The parts as they are, None if left out.
    """
    found = dict(params)
    if _lacks("estimator", found, estimator):
        found["estimator"] = PLT()
    if _lacks("vectorizer", found, vectorizer):
        chosen = found.get("estimator", estimator)
        found["vectorizer"] = default_vectorizer(PLT() if chosen is None else chosen)
    return found


def _lacks(part: str, params: dict[str, Any], now: Any) -> bool:
    return params.get(part, now) is None and any(name.startswith(f"{part}__") for name in params)
