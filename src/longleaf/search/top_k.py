"""What a search takes and returns: gains, thresholds and limits on them; the best labels of each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import check_choice, check_count, check_number, check_per_label
from longleaf.propensity import inverse_propensity_from_counts
from longleaf.search.utility import check_lines

Floats = npt.NDArray[np.float32]

SEARCHES = ("exact", "beam", "auto")
ENSEMBLES = ("mean", "union")
VALUES = ("probability", "score")
MOST_EPSILON = 0.999999
LARGEST_GAIN = 1e38
"""A score must fit a 32-bit float."""
NONE = np.zeros(0, np.float32)
"""No gains, no bounds, no thresholds, as native code reads it."""
EXACT = np.zeros(0, bool)
"""What an answer has of which nothing was said: every row is exact."""


@dataclass(frozen=True, eq=False)
class TopK:
    """The best labels of each row, best first.

    Attributes
    ----------
    labels : int32 array [rows, k]
        Padded with -1 where a row has fewer.
    scores : float32 array [rows, k]
        Gain times probability; 0 where the label is -1.
    probabilities : float32 array [rows, k]
        The probabilities by themselves: exact also where a gain is so small that its score is 0. NaN where
        a method has none.
    evaluations : int64 array [rows]
        How many node classifiers were evaluated to find them: those of Algorithm 1 for a row by itself,
        more for rows that are searched together, which is faster.
    exact : bool array [rows]
        Whether these are provably the best labels of the model's own scores. A beam search, or one with
        limits, says so of each row.
    gap : float32 array [rows]
        By how much the score of a label that is missing here can exceed the k-th score at most: 0 where the
        answer is exact. Where fewer than k labels were found, the k-th score counts as 0, and with a utility
        the gap is infinite.
    """

    labels: npt.NDArray[np.int32]
    scores: Floats
    probabilities: Floats
    evaluations: npt.NDArray[np.int64]
    exact: npt.NDArray[np.bool_] = field(default_factory=lambda: EXACT)
    gap: Floats = field(default_factory=lambda: NONE)

    def __post_init__(self) -> None:
        """Fill in that the answer is exact, unless a search says otherwise."""
        if self.exact is EXACT:
            object.__setattr__(self, "exact", np.ones(len(self.labels), bool))
        if self.gap is NONE:
            object.__setattr__(self, "gap", np.zeros(len(self.labels), np.float32))

    @classmethod
    def of_search(
        cls,
        labels: npt.NDArray[np.int32],
        scores: Floats,
        probabilities: Floats,
        evaluations: npt.NDArray[np.int64],
        missed: Floats,
        *,
        utilities: bool,
        largest: float,
    ) -> TopK:
        """Return the answer of a native search.

        ``missed`` is the most that a label can score that the search may have missed, -inf where there is
        none; it is a log, unless scores are utilities. No score exceeds ``largest``.
        """
        exact = missed == -np.inf
        if exact.all():
            return cls(labels, scores, probabilities, evaluations)
        last = scores[:, -1].astype(np.float64)
        if utilities:
            last = np.where(labels[:, -1] >= 0, last, -np.inf)
        most = missed.astype(np.float64) if utilities else np.exp(missed.astype(np.float64))
        most = np.minimum(most, largest)
        gap = np.maximum(np.where(exact, 0.0, most - np.where(exact, 0.0, last)), 0.0)
        return cls(labels, scores, probabilities, evaluations, exact, gap.astype(np.float32))

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Allow ``labels, scores = model.top_k(X)``."""
        return iter((self.labels, self.scores))

    @classmethod
    def concatenate(cls, blocks: Sequence[TopK]) -> TopK:
        """Join the answers for consecutive blocks of rows."""
        return cls(*(np.concatenate([getattr(one, f.name) for one in blocks]) for f in fields(cls)))

    def take(self, rows: npt.ArrayLike) -> TopK:
        """Return the answers for some rows, in the order of their numbers here."""
        chosen = np.asarray(rows)
        return TopK(*(getattr(self, f.name)[chosen] for f in fields(self)))

    def to_frame(self, classes: npt.ArrayLike | None = None, ids: Iterable[Any] | None = None) -> Any:
        """Return a pandas DataFrame with a line per label; requires the extra ``pandas``.

        Parameters
        ----------
        classes : array [labels], optional
            What each label is called, such as the ``classes_`` of a `longleaf.Tagger`.
        ids : iterable [rows], optional
            What each row is called.

        Returns
        -------
        pandas.DataFrame
            Columns ``row`` (the number from 0; with ``ids`` it is ``id``), ``rank`` (from 1), ``label`` (with
            ``classes`` it is ``tag``), ``score`` and ``probability``. A row without labels has no line.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "TopK.to_frame needs the extra pandas, which is not installed: "
                "pip install 'longleaf[pandas]'."
            ) from None
        row, place = np.nonzero(self.labels >= 0)
        label = self.labels[row, place]
        columns: dict[str, Any] = {"row": row}
        if ids is not None:
            names = list(ids)
            if len(names) != len(self.labels):
                raise ValueError(f"ids must have {len(self.labels)} entries, one per row; got {len(names)}.")
            columns = {"id": [names[one] for one in row.tolist()]}
        columns["rank"] = place + 1
        if classes is None:
            columns["label"] = label
        else:
            tags = np.asarray(classes)
            self._check_width(len(tags), "classes must have an entry for every label")
            columns["tag"] = tags[label]
        columns["score"], columns["probability"] = self.scores[row, place], self.probabilities[row, place]
        return pandas.DataFrame(columns)

    def to_csr(self, n_labels: int, values: str = "probability") -> sp.csr_array:
        """Return the probabilities or scores as a sparse matrix, without the order.

        Parameters
        ----------
        n_labels : int
            The number of columns, such as the ``n_labels_`` of the model.
        values : {"probability", "score"}

        Returns
        -------
        csr_array of float32 [rows, n_labels]
            With an entry for every label returned, also where its value is 0, sorted by column.
        """
        self._check_width(check_count(n_labels, "n_labels", low=0), "n_labels must include every label")
        check_choice(values, "values", VALUES)
        found = self.probabilities if values == "probability" else self.scores
        given = self.labels >= 0
        ends = np.append(0, given.sum(axis=1).cumsum())
        matrix: sp.csr_array = sp.csr_array(
            (found[given], self.labels[given], ends), shape=(len(self.labels), n_labels)
        )
        matrix.sort_indices()
        return matrix

    def _check_width(self, width: int, must: str) -> None:
        largest = int(self.labels.max(initial=-1))
        if largest >= width:
            raise ValueError(f"{must}; got {width}, and the largest label is {largest}.")


def resolve_gain(
    label_counts: npt.NDArray[np.int64],
    n_rows: int,
    *,
    tail: float | None,
    gain: npt.ArrayLike | None,
    propensity: tuple[float, float],
) -> npt.NDArray[np.float64] | None:
    """Return the gain of each label, or None where every gain is 1.

    Parameters
    ----------
    label_counts, n_rows
        How often each label occurred in training, in how many rows.
    tail : float, optional
        The exponent of the inverse propensity: 0 for plain probabilities, 1 for PS-PLT.
    gain : array [labels], optional
        Gains of the caller's own; not together with ``tail``.
    propensity : (A, B)
        The constants of the propensity model.
    """
    if tail is not None and gain is not None:
        raise ValueError("tail and gain must not be given together; gain already says what a label is worth.")
    if gain is not None:
        return check_per_label(gain, len(label_counts), "gain", high=LARGEST_GAIN)
    if tail is None or check_number(tail, "tail", low=0) == 0:
        return None
    a, b = propensity
    with np.errstate(over="ignore"):
        gains = inverse_propensity_from_counts(label_counts, n_rows, a=a, b=b) ** tail
    if gains.max(initial=0) > LARGEST_GAIN:
        raise ValueError(f"tail must lead to gains of at most {LARGEST_GAIN:g}; got {tail:g}.")
    return gains


def log_gain(gain: npt.NDArray[np.float64]) -> Floats:
    """Return the logarithms of the gains; -inf for labels that must never be returned."""
    with np.errstate(divide="ignore"):
        return np.log(gain).astype(np.float32)


def check_threshold(threshold: float | None) -> float | None:
    """Check a score below which no label is returned."""
    return None if threshold is None else check_number(threshold, "threshold", low=0, high=LARGEST_GAIN)


def least_scores(
    gain: npt.NDArray[np.float64] | None, min_probability: float, threshold: float | None = None
) -> float | npt.NDArray[np.float64]:
    """Return the threshold that leaves out labels whose probability is too small, whatever their gain.

    A score is gain times probability, so each label has a smallest score of its own.

    Parameters
    ----------
    gain : array [labels], optional
        The gain of each label; None if all are 1.
    min_probability : float
        From 0 to 1.
    threshold : float, optional
        A smallest score for all labels; each label must reach the larger of both.

    Returns
    -------
    float or array [labels]
    """
    least = check_number(min_probability, "min_probability", low=0, high=1)
    if gain is None:
        return max(least, threshold or 0.0)
    scores = np.maximum(gain * least, threshold or 0.0)
    # Labels that are worth nothing are never returned; 0 would only keep the search from ending early.
    return np.where(gain > 0, scores, scores.max(initial=0))


class SearchLimits(TypedDict, total=False):
    """When a search ends that is not done, as native code calls it; without them it ends exact."""

    resume: bool  # goes on to the exact answer from what a beam has found
    epsilon: float
    max_evaluations: int
    seconds: float


def check_limits(
    epsilon: float, max_nodes: int | None, deadline_ms: float | None, *, resume: bool
) -> SearchLimits:
    """Check the limits of a search."""
    limits: SearchLimits = {"resume": True} if resume else {}
    if epsilon := check_number(epsilon, "epsilon", low=0, high=MOST_EPSILON):
        limits["epsilon"] = epsilon
    if max_nodes is not None:
        limits["max_evaluations"] = check_count(max_nodes, "max_nodes")
    if deadline_ms is not None:
        limits["seconds"] = check_number(deadline_ms, "deadline_ms", low=1e-3, high=1e9) / 1000
    return limits


def key_threshold(
    threshold: float | npt.ArrayLike | None, n_labels: int, *, utilities: bool
) -> tuple[Floats, float]:
    """Return the smallest key of each label, and a number below all of them.

    Parameters
    ----------
    threshold : float or array [labels], optional
        Labels that score less are not returned.
    n_labels : int
        How many labels there are.
    utilities : bool
        Whether scores are utilities, which are keys themselves; else a key is the logarithm of a score.
    """
    if threshold is None:
        return NONE, -np.inf
    if utilities:
        least = np.broadcast_to(check_lines(threshold, "threshold", largest=LARGEST_GAIN), n_labels).astype(
            np.float32
        )
        return least, float(np.nextafter(least.min(initial=np.inf), np.float32(-np.inf)))
    if np.ndim(threshold) == 0:
        threshold = np.full(n_labels, check_number(threshold, "threshold", low=0, high=LARGEST_GAIN))
    logs = _least_log(check_per_label(threshold, n_labels, "threshold", high=LARGEST_GAIN))
    return logs, float(np.nextafter(logs.min(initial=np.inf), np.float32(-np.inf)))


def _least_log(score: npt.NDArray[np.float64]) -> Floats:
    """Return the smallest log score that is returned as the given score, or more.

    Log scores are finer than the scores that are made of them: all those down to the middle between a score
    and the next smaller one become that score.
    """
    exact = score.astype(np.float32)
    middle = (exact + np.nextafter(exact, np.float32(0)).astype(np.float64)) / 2
    few_digits = (exact < np.finfo(np.float32).tiny) | np.isinf(exact)
    with np.errstate(divide="ignore"):
        least = np.log(np.where(few_digits, score, middle))
    logs = least.astype(np.float32)
    return np.where(logs < least, np.nextafter(logs, np.float32(np.inf)), logs)
