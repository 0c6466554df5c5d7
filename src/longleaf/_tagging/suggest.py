"""The best tags of rows under filters: gains in, at most one label per group out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._base.estimator import LabelEstimator
from longleaf._tagging.tags import filtered_gain, tag_numbers
from longleaf.propensity import Constants, check_constants, inverse_propensity_from_counts
from longleaf.search import resolve_gain
from longleaf.text import TextVectorizer
from longleaf.words import Words

Found = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Suggestion:
    """One suggested tag.

    Attributes
    ----------
    tag, name : str
        The tag, and its readable name (the tag itself if it has none).
    score : float
        Gain times probability.
    probability : float
        What the model thinks of it.
    words : tuple of (str, float)
        The words that spoke for it and what each added to the log probability; empty unless asked for.
    """

    tag: str
    name: str
    score: float
    probability: float
    words: Words = ()


@dataclass(frozen=True)
class Worth:
    """What tags are worth: by the tail dial alone, or an array of gains that filters have gone through."""

    model: LabelEstimator
    tail: float | None
    propensity: Constants
    gain: npt.NDArray[np.float64] | None

    @classmethod
    def of(
        cls,
        model: LabelEstimator,
        index: Mapping[str, int],
        *,
        tail: float | None,
        propensity: tuple[float, float] | None,
        gain: Mapping[str, float] | None,
        only: Iterable[str] | None,
        never: Iterable[str] | None,
    ) -> Worth:
        """Bring dial, gains and filters together; `index` numbers the tags."""
        constants = check_constants(model.propensity if propensity is None else propensity)
        array = None
        if gain is not None:
            array = np.ones(len(index))
            array[tag_numbers(gain, index, "gain")] = list(gain.values())
        if gain is not None or only is not None or never is not None:
            counts, n_rows = model.label_counts_, model.n_rows_
            array = resolve_gain(counts, n_rows, tail=tail, gain=array, propensity=constants)
            array = filtered_gain(array, index, only, never)
        return cls(model, tail, constants, array)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of ``top_k`` that say the same."""
        if self.gain is not None:
            return {"gain": self.gain}
        return {"tail": self.tail, "propensity": self.propensity}

    def __getitem__(self, labels: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Give the gains of some labels."""
        if self.gain is not None:
            return self.gain[labels]
        if not self.tail:
            return np.ones(len(labels))
        counts, (a, b) = self.model.label_counts_[labels], self.propensity
        return inverse_propensity_from_counts(counts, self.model.n_rows_, a=a, b=b) ** self.tail


def best_labels(
    model: LabelEstimator, X: Any, k: int, group: npt.NDArray[np.int64] | None, options: dict[str, Any]
) -> list[Found]:
    """Find the best k labels of each row, at most one of a group.

    Rows whose best k have groups in common are searched again for four times as many, until k groups have
    come up or there is nothing left. Whatever comes later scores less, so the answer is exact where the
    search is.

    Parameters
    ----------
    model : LabelEstimator
    X : matrix [rows, features]
    k : int
    group : int array [labels], optional
    options : dict
        What ``top_k`` takes besides.
    """
    results: list[Found] = [(np.zeros(0, np.int32), np.zeros(0, np.float32))] * X.shape[0]
    rows, width = np.arange(X.shape[0]), min(k, model.n_labels_)
    while len(rows):
        top = model.top_k(X if len(rows) == X.shape[0] else X[rows], width, **options)
        unfinished = []
        for row, labels, scores in zip(rows, top.labels, top.scores, strict=True):
            chosen = _first_of_groups(labels, group)
            if len(chosen) < k and labels[-1] >= 0 and width < model.n_labels_:
                unfinished.append(row)
            results[row] = labels[chosen[:k]], scores[chosen[:k]]
        rows, width = np.array(unfinished, np.int64), min(4 * width, model.n_labels_)
    return results


def _first_of_groups(
    labels: npt.NDArray[np.int32], group: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.int64]:
    """Give the places of the labels that are the first of their group; -1 only pads."""
    places = np.flatnonzero(labels >= 0)
    if group is None:
        return places
    return np.sort(np.unique(group[labels[places]], return_index=True)[1])


def ready_texts(texts: Iterable[str], vectorizer: Any) -> Iterable[str]:
    """Leave texts a stream for a vectorizer that reads them once; make a list for any other."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be an iterable of strings; got a single {type(texts).__name__}.")
    return texts if isinstance(vectorizer, TextVectorizer) else list(texts)
