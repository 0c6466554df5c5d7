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
from longleaf.conformal import cut as cut_to_set
from longleaf.estimator import LabelEstimator
from longleaf.explain.mapped import explain_row, label_line, mapped_explanation, with_refined
from longleaf.explain.records import RecordIndex, SimilarRecord
from longleaf.explain.row import RowExplanation, explain_by_trees
from longleaf.explain.words import Explanation, NameMatch, Words, in_words
from longleaf.fusion.explain import match_value, matched_name
from longleaf.fusion.fusion import Fusion, NameFinder
from longleaf.io.tag_names import TagNames
from longleaf.propensity import check_constants
from longleaf.search.auto_k import DEFAULT_MOST, cut, n_searched
from longleaf.search.rows import RecordRows, features_of
from longleaf.search.top_k import SEARCHES, TopK, check_threshold, least_scores, resolve_gain
from longleaf.text.fields import Text, field_texts, joined_text
from longleaf.text.tags import TagIndex, ready_texts
from longleaf.training.params import MOST_K

MOST_WORDS = 5
"""How many words a suggestion names."""
DIGITS = 7
"""What a 32-bit float holds."""

AUTO = "auto"
"""As k: the probabilities decide how many tags each record gets."""

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
        The words that support it, and what each added to the log probability; empty unless asked for.
    """

    tag: str
    name: str
    score: float
    probability: float
    words: Words = ()

    def numbers(self) -> dict[str, float]:
        """Return score and probability as they are written, without digits that mean nothing."""
        return {"score": short(self.score), "probability": short(self.probability)}


def check_k(k: object, most: int = MOST_K) -> int:
    """Return how many tags to suggest, at most ``most``."""
    if isinstance(k, str):
        raise ValueError(f"k must be a whole number or {AUTO!r}; got {k!r:.40}.")
    return check_count(k, "k", high=most)


def short(number: float) -> float:
    """Round to the digits that a 32-bit float has."""
    return float(f"{number:.{DIGITS}g}")


@dataclass(frozen=True, eq=False)
class Query:
    """What is asked for each of some rows; made by `Suggester.query`.

    Attributes
    ----------
    k : int
        How many tags; the most, if the probabilities decide.
    options : dict
        The gains and settings of the search, as ``top_k`` takes them.
    groups : int64 array [labels], optional
        The group of each label: at most the best of each group is returned.
    explain : bool
        Whether suggestions name their words.
    auto : bool
        Whether the probabilities decide how many tags a row gets: `longleaf.search.auto_k`.
    least_recall : float, optional
        What each tag must be expected to add to the recall of its row: `longleaf.conformal`.
    """

    k: int
    options: Mapping[str, Any] = field(default_factory=dict)
    groups: Groups | None = None
    explain: bool = False
    auto: bool = False
    least_recall: float | None = None


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
    fusion : Fusion, optional
        What the names of tags add to the trees, if the model was trained with names.
    """

    def __init__(
        self,
        model: LabelEstimator,
        tags: TagIndex | None = None,
        vectorizer: Any = None,
        records: RecordIndex | None = None,
        fusion: Fusion | None = None,
    ) -> None:
        self.model = model
        self.tags = TagIndex(map(str, range(model.n_labels_))) if tags is None else tags
        self.vectorizer = vectorizer
        self.records = records
        self.fusion = fusion

    @property
    def fields(self) -> list[str]:
        """The fields of records that the model reads, in order; none if it reads plain texts."""
        return list(getattr(self.vectorizer, "field_weights_", ()))

    def matrix(self, texts: Iterable[Text]) -> Any:
        """Turn texts or records into features."""
        X = self.vectorizer.transform(ready_texts(texts, self.vectorizer))
        return X if sp.issparse(X) else np.asarray(X)

    def rows(self, texts: Iterable[Text]) -> Any:
        """Turn texts or records into rows to be searched: their features, and the names found in them."""
        if self.fusion is None:
            return self.matrix(texts)
        finder = NameFinder(self.fusion.index, self.fields)
        X = self.matrix(finder.through(ready_texts(texts, self.vectorizer)))
        return RecordRows(
            X, self.fusion.overrides(finder.matches(), self.model.label_counts_, self.model.has_leaves())
        )

    def query(
        self,
        k: int | str = 5,
        *,
        max_k: int | None = None,
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
        if k == AUTO:
            most = DEFAULT_MOST if max_k is None else check_count(max_k, "max_k", high=MOST_K)
        elif max_k is None:
            most = check_k(k)
        else:
            raise ValueError(f"max_k needs k={AUTO!r}; got k={k!r:.40}.")
        return Query(most, options | gains, group, explain, k == AUTO)

    def set_query(self, coverage: float, *, explain: bool = False, n_jobs: int | None = None) -> Query:
        """Return what asks for the sets of `Tagger.suggest_set`."""
        control = self.model._fitted_sets(
            "suggest_set needs held-out records: call fit_sets(texts, tags) first."
        )
        query = self.query(control.max_size, explain=explain, n_jobs=n_jobs)
        return replace(query, least_recall=control.threshold(coverage))

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

    def n_searched(self, query: Query) -> int:
        """Return how many labels are searched for each row."""
        return min(n_searched(query.k) if query.auto else query.k, self.model.n_labels_)

    def top_k(self, X: Any, query: Query, progress: Callable[[float], None] | None = None) -> TopK:
        """Find the best labels of each row, at most one of a group; as many as are likely, if so asked.

        Rows whose best k have groups in common are searched again for four times as many, until k groups
        have come up or there is nothing left. Whatever comes later scores less, so the answer is exact where
        the search is.
        """
        if query.least_recall is not None:
            return cut_to_set(self._top_k(X, query, progress), query.least_recall)
        if not query.auto:
            return self._top_k(X, query, progress)
        # what a threshold and groups exclude tells how many labels to expect
        options = {**query.options, "threshold": None}
        wide = replace(query, k=self.n_searched(query), options=options, groups=None)
        most = min(query.k, self.model.n_labels_)
        return cut(self._top_k(X, wide, progress), most, query.options["threshold"], query.groups)

    def _top_k(self, X: Any, query: Query, progress: Callable[[float], None] | None) -> TopK:
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

    def suggest(self, X: Any, query: Query, texts: Iterable[Text] = ()) -> list[list[Suggestion]]:
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

    def explain(self, X: Any, row: int, label: int, text: Text) -> Explanation:
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
        return replace(found, records=self.similar(features_of(X)[[row]], label))

    def explain_words(self, X: Any, row: int, label: int, text: Text) -> Explanation:
        """Return what `explain` does, without training records."""
        tag = self.tags.tags[label]
        found, value = self.explain_features(X, row, label)
        match = None if value is None else self._name_match(text, label, value)
        words = in_words(found, tag, self.tags.name(tag), self.vectorizer, joined_text(text))
        return replace(words, match=match)

    def explain_features(self, X: Any, row: int, label: int) -> tuple[RowExplanation, float | None]:
        """Return what each feature added, and what a name in the text added; None if there is none."""
        model, features = self.model, features_of(X)[[row]]
        score_map = model._score_map()
        if self.fusion is None or score_map is None or not isinstance(X, RecordRows):
            return explain_row(model, features, label), None
        by_trees = explain_by_trees(model, features, label) if model.has_leaf(label) else None
        refined = None
        if by_trees is not None:
            by_trees, refined = with_refined(model, features, label, 0, by_trees)
        line = label_line(score_map, label)
        words = mapped_explanation(by_trees, line, refined)
        value = match_value(by_trees, words, line, refined, X, row, label)
        final = words if value is None else replace(words, log_probability=words.log_probability + value)
        return final, value

    def _name_match(self, text: Text, label: int, value: float) -> NameMatch | None:
        fusion, tag = self.fusion, self.tags.tags[label]
        assert fusion is not None
        texts, names = field_texts(text, self.fields, 0), TagNames.of(self.tags.names or {})
        found = matched_name(fusion, texts, self.fields, label, self.model.label_counts_, names, tag)
        return None if found is None else NameMatch(*found, value)

    def similar(self, row: Any, label: int, n: int = 3) -> tuple[SimilarRecord, ...]:
        """Return the training records most similar to a row that carry a label; none if they are not kept."""
        return () if self.records is None else self.records.similar(features_of(row), label, n)


def _first_of_groups(labels: npt.NDArray[np.int32], groups: Groups) -> npt.NDArray[np.int64]:
    """Return the places of the labels that are the first of their group; -1 only pads."""
    places = np.flatnonzero(labels >= 0)
    return np.sort(np.unique(groups[labels[places]], return_index=True)[1])
