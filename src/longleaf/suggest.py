"""Records in, suggestions out: the one path that `Tagger`, the command line and the service share.

A `Suggester` is a fitted model with its tags, their readable names and its vectorizer. It turns what a
caller asks for into a `Query` once (gains, filters and limits are resolved there and nowhere else), and
answers queries for any number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import check_choice, check_count
from longleaf.estimator import LabelEstimator
from longleaf.explain.records import RecordIndex, SimilarRecord
from longleaf.explain.row import explain_row
from longleaf.explain.words import Explanation, Words, in_words
from longleaf.propensity import check_constants
from longleaf.search.top_k import SEARCHES, TopK, check_threshold, least_scores, resolve_gain
from longleaf.text.tags import TagIndex, ready_texts

MOST_WORDS = 5
"""How many words a suggestion names."""
DIGITS = 7
"""What a 32-bit float holds."""

Gain: TypeAlias = Mapping[str, float] | npt.NDArray[np.float64]
"""Gains: by tag (or name), 1 for those that are omitted; or one number per label."""
Groups: TypeAlias = npt.NDArray[np.int64]


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
        How likely the tag is, according to the model.
    words : tuple of (str, float)
        The words that spoke for it and what each added to the log probability; empty unless asked for.
    """

    tag: str
    name: str
    score: float
    probability: float
    words: Words = ()

    def numbers(self) -> dict[str, float]:
        """Return score and probability as they are written, without digits that mean nothing."""
        return {"score": short(self.score), "probability": short(self.probability)}


def short(number: float) -> float:
    """Round to the digits that a 32-bit float has."""
    return float(f"{number:.{DIGITS}g}")


@dataclass(frozen=True, eq=False)
class Query:
    """What is asked for each of some rows; made by `Suggester.query`.

    Attributes
    ----------
    k : int
        How many tags.
    options : dict
        The gains and settings of the search, as ``top_k`` takes them.
    groups : int64 array [labels], optional
        The group of each label: at most the best of each group is returned.
    explain : bool
        Whether suggestions name their words.
    """

    k: int
    options: Mapping[str, Any] = field(default_factory=dict)
    groups: Groups | None = None
    explain: bool = False


class Suggester:
    """A fitted model, ready to suggest.

    Parameters
    ----------
    model : PLT or BR
        Finds labels.
    tags : TagIndex, optional
        What its labels are called; their numbers by default.
    vectorizer : transformer, optional
        Turns texts into rows; a model of features has none.
    records : RecordIndex, optional
        The training records, as evidence for explanations.
    """

    def __init__(
        self,
        model: LabelEstimator,
        tags: TagIndex | None = None,
        vectorizer: Any = None,
        records: RecordIndex | None = None,
    ) -> None:
        self.model = model
        self.tags = TagIndex(map(str, range(model.n_labels_))) if tags is None else tags
        self.vectorizer = vectorizer
        self.records = records

    def matrix(self, texts: Iterable[str]) -> Any:
        """Turn texts into rows."""
        X = self.vectorizer.transform(ready_texts(texts, self.vectorizer))
        return X if sp.issparse(X) else np.asarray(X)

    def query(
        self,
        k: int = 5,
        *,
        tail: float | None = None,
        gain: Gain | None = None,
        only: Iterable[str] | None = None,
        never: Iterable[str] | None = None,
        groups: Mapping[str, Any] | None = None,
        explain: bool = False,
        propensity: tuple[float, float] | None = None,
        search: str = "exact",
        beam: int = 10,
        threshold: float | None = None,
        min_probability: float | None = None,
        n_jobs: int | None = None,
    ) -> Query:
        """Check what is asked for, with the parameters of `Tagger.suggest`, and resolve tags to labels."""
        options: dict[str, Any] = {
            "search": check_choice(search, "search", SEARCHES),
            "beam": check_count(beam, "beam"),
            "threshold": check_threshold(threshold),
            "n_jobs": n_jobs,
        }
        group = None if groups is None else self.tags.groups(groups)
        gains, resolved = self._gains(tail, gain, only, never, propensity)
        if min_probability is not None:
            options["threshold"] = least_scores(resolved, min_probability, options["threshold"])
        return Query(check_count(k, "k"), options | gains, group, explain)

    def _gains(
        self,
        tail: float | None,
        gain: Gain | None,
        only: Iterable[str] | None,
        never: Iterable[str] | None,
        propensity: tuple[float, float] | None,
    ) -> tuple[dict[str, Any], npt.NDArray[np.float64] | None]:
        """Return the arguments of ``top_k`` that set gains, and the gains; None if all are 1.

        An excluded label has a gain of 0.
        """
        model, tags = self.model, self.tags
        constants = check_constants(model.propensity if propensity is None else propensity)
        per_label = tags.gains(gain) if isinstance(gain, Mapping) else gain
        resolved = resolve_gain(
            model.label_counts_, model.n_rows_, tail=tail, gain=per_label, propensity=constants
        )
        if only is None and never is None:  # the search remembers the bounds of a tail dial
            arguments = {"tail": tail, "propensity": constants} if gain is None else {"gain": resolved}
            return arguments, resolved
        allowed = np.ones(len(tags)) if only is None else np.zeros(len(tags))
        if only is not None:
            allowed[tags.numbers(only, "only")] = 1
        if never is not None:
            allowed[tags.numbers(never, "never")] = 0
        resolved = allowed if resolved is None else resolved * allowed
        return {"gain": resolved}, resolved

    def top_k(self, X: Any, query: Query, progress: Callable[[float], None] | None = None) -> TopK:
        """Find the best labels of each row, at most one of a group.

        Rows whose best k have groups in common are searched again for four times as many, until k groups
        have come up or there is nothing left. Whatever comes later scores less, so the answer is exact where
        the search is.
        """
        model, groups = self.model, query.groups
        n_rows, k = X.shape[0], min(query.k, model.n_labels_)
        if groups is None:
            return model.top_k(X, k, **query.options, progress=progress)
        scores = np.zeros((n_rows, k), np.float32)
        best = TopK(np.full((n_rows, k), -1, np.int32), scores, scores.copy(), np.zeros(n_rows, np.int64))
        rows, width = np.arange(n_rows), k
        while len(rows):
            found = model.top_k(X if len(rows) == n_rows else X[rows], width, **query.options)
            best.evaluations[rows] += found.evaluations
            unfinished = []
            for place, row in enumerate(rows):
                first = _first_of_groups(found.labels[place], groups)[:k]
                best.labels[row, : len(first)] = found.labels[place, first]
                best.scores[row, : len(first)] = found.scores[place, first]
                best.probabilities[row, : len(first)] = found.probabilities[place, first]
                if len(first) < k and found.labels[place, -1] >= 0 and width < model.n_labels_:
                    unfinished.append(row)
            rows, width = np.array(unfinished, np.int64), min(4 * width, model.n_labels_)
        return best

    def suggest(self, X: Any, query: Query, texts: Iterable[str] = ()) -> list[list[Suggestion]]:
        """Suggest the best tags of each row, best first; fewer than k where no more can be had.

        Parameters
        ----------
        X : matrix [rows, features]
        query : Query
        texts : sequence of str
            The rows' texts, for their words; not needed unless the query asks to explain.
        """
        top = self.top_k(X, query)
        kept = list(texts) if query.explain else []
        answers: list[list[Suggestion]] = [[] for _ in top.labels]
        for row, place in zip(*np.nonzero(top.labels >= 0), strict=True):
            label = int(top.labels[row, place])
            tag = self.tags.tags[label]
            words: Words = ()
            if query.explain:
                words = self.explain_words(X, row, label, kept[row]).words_for[:MOST_WORDS]
            score, probability = float(top.scores[row, place]), float(top.probabilities[row, place])
            answers[row].append(Suggestion(tag, self.tags.name(tag), score, probability, words))
        return answers

    def explain(self, X: Any, row: int, label: int, text: str) -> Explanation:
        """Say what each word of a row's text added to the log probability of a label.

        Parameters
        ----------
        X : matrix [rows, features]
        row, label : int
        text : str
            The text that the row was made of.

        Returns
        -------
        Explanation
            With similar training records, if they are kept.
        """
        found = self.explain_words(X, row, label, text)
        return replace(found, records=self.similar(X[[row]], label))

    def explain_words(self, X: Any, row: int, label: int, text: str) -> Explanation:
        """Return what `explain` does, without training records."""
        tag = self.tags.tags[label]
        if not self.model.label_counts_[label]:
            raise ValueError(f"tag must occur in training to be explained; {tag!r} does not.")
        found = explain_row(self.model, X[[row]], label)
        return in_words(found, tag, self.tags.name(tag), self.vectorizer, text)

    def similar(self, row: Any, label: int, n: int = 3) -> tuple[SimilarRecord, ...]:
        """Return the training records most similar to a row that carry a label; none if they are not kept."""
        return () if self.records is None else self.records.similar(row, label, n)


def _first_of_groups(labels: npt.NDArray[np.int32], groups: Groups) -> npt.NDArray[np.int64]:
    """Return the places of the labels that are the first of their group; -1 only pads."""
    places = np.flatnonzero(labels >= 0)
    return np.sort(np.unique(groups[labels[places]], return_index=True)[1])
