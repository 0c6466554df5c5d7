"""Records in, suggestions out: the one path that `Tagger`, the command line and the service share.

A `Suggester` is a fitted model with its tags, their readable names and its vectorizer. It turns what a
caller asks for into a `Query` once (gains, filters and limits are resolved there and nowhere else), and
answers queries for any number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import check_choice, check_count, check_number
from longleaf.conformal import cut as cut_to_set
from longleaf.encoders.column import Column
from longleaf.estimator import LabelEstimator
from longleaf.explain.mapped import explain_row, label_line, mapped_explanation, with_refined
from longleaf.explain.records import RecordIndex, SimilarRecord
from longleaf.explain.row import RowExplanation, explain_by_trees
from longleaf.explain.words import Explanation, NameMatch, Words, in_words
from longleaf.fusion.explain import match_value, matched_name
from longleaf.fusion.fusion import Fusion, NameFinder
from longleaf.fusion.near import as_codes
from longleaf.io.tag_names import TagNames
from longleaf.propensity import check_constants
from longleaf.search.auto_k import DEFAULT_MOST, cut, n_searched
from longleaf.search.rows import RecordRows, features_of
from longleaf.search.top_k import (
    SEARCHES,
    TopK,
    check_limits,
    check_threshold,
    least_scores,
    resolve_gain,
)
from longleaf.search.utility import LARGEST_UTILITY, Bools, Floats, Utility
from longleaf.text.fields import Text, field_texts, joined_text
from longleaf.text.meaning import EmbeddingPass, Meaning, first_words, without_word
from longleaf.text.tags import TagIndex, quoted, ready_texts
from longleaf.text.utilities import UtilityRows, utility_of
from longleaf.training.params import MOST_K

MOST_WORDS = 5
"""How many words a suggestion names."""
DIGITS = 7
"""What a 32-bit float holds."""

WORDS_AT_ONCE = 16
"""How many embeddings of a text without a word are computed between two reports of progress."""

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
        Gain times probability; with a utility, what the tag is worth, which may be negative.
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


class Suggestions(list[Suggestion]):
    """The suggestions of one text, best first: a list that says whether it is exact.

    Attributes
    ----------
    exact : bool
        Whether these are provably the best tags by the model's own scores. False only where a search may end
        early: a beam, or limits.
    gap : float
        By how much the score of a tag that is missing can exceed the last one at most: 0 where the answer is
        exact, infinite where nothing is known.
    """

    def __init__(self, found: Iterable[Suggestion] = (), exact: bool = True, gap: float = 0.0) -> None:
        super().__init__(found)
        self.exact, self.gap = exact, gap

    def certificate(self) -> dict[str, Any]:
        """Return both as they are written; an infinite gap is null."""
        return {"exact": self.exact, "gap": short(self.gap) if self.gap < np.inf else None}


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
        The gains or the utility, and the settings of the search, as ``top_k`` takes them.
    groups : int64 array [labels], optional
        The group of each label, if the probabilities decide: at most the best of each group is returned.
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

    @property
    def may_end_early(self) -> bool:
        """Whether the search may end before its answer is exact."""
        given = self.options
        limits = given.get("epsilon"), given.get("max_nodes"), given.get("deadline_ms")
        return given.get("search") == "beam" or any(limits)


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
    meaning : Meaning, optional
        The columns of an encoder, if the model was trained with one.
    """

    def __init__(
        self,
        model: LabelEstimator,
        tags: TagIndex | None = None,
        vectorizer: Any = None,
        records: RecordIndex | None = None,
        fusion: Fusion | None = None,
        meaning: Meaning | None = None,
    ) -> None:
        self.model = model
        self.tags = TagIndex(map(str, range(model.n_labels_))) if tags is None else tags
        self.vectorizer = vectorizer
        self.records = records
        self.fusion = fusion
        self.meaning = meaning

    @property
    def fields(self) -> list[str]:
        """The fields of records that the model reads, in order; none if it reads plain texts."""
        return list(getattr(self.vectorizer, "field_weights_", ()))

    def embeddings(self, texts: Iterable[Text], n_jobs: int | None = None) -> Floats:
        """Embed texts or records, for `matrix` and `rows`; the model must have been trained with an encoder.

        Parameters
        ----------
        texts : iterable of str or mapping
        n_jobs : int or None
            Threads.
        """
        assert self.meaning is not None
        reading = EmbeddingPass(self.meaning.encoder(), n_jobs)
        for _ in reading.through(texts, self.fields):
            pass
        return reading.embeddings()

    def without_embedding(self, text: Text) -> Text:
        """Return a record without the field that holds its embedding, if the model reads one."""
        encoder = None if self.meaning is None else self.meaning.encoder()
        return encoder.rest(text) if isinstance(encoder, Column) else text

    def matrix(self, texts: Iterable[Text], embeddings: Floats | None = None) -> Any:
        """Turn texts or records into features; their embeddings are computed unless they are known."""
        texts = ready_texts(texts, self.vectorizer)
        if self.meaning is None:
            X = self.vectorizer.transform(texts)
            return X if sp.issparse(X) else np.asarray(X)
        reading = EmbeddingPass(self.meaning.encoder(), self.model.n_jobs, embeddings)
        X = self.vectorizer.transform(ready_texts(reading.through(texts, self.fields), self.vectorizer))
        return self.meaning.joined(X, reading.embeddings())

    def rows(self, texts: Iterable[Text], embeddings: Floats | None = None) -> Any:
        """Turn texts or records into rows to be searched: their features, and the names found in them.

        Parameters
        ----------
        texts : iterable of str or mapping
        embeddings : float32 array [texts, embedding], optional
            Their embeddings, if they are known.
        """
        if self.fusion is None:
            return self.matrix(texts, embeddings)
        finder = NameFinder(self.fusion.index, self.fields)
        X = self.matrix(finder.through(ready_texts(texts, self.vectorizer)), embeddings)
        meaning = None if self.n_words is None else as_codes(X[:, self.n_words :].toarray())
        counts, has_leaf = self.model.label_counts_, self.model.has_leaves()
        return RecordRows(
            X, self.fusion.overrides(finder.matches(), counts, has_leaf, meaning, self.model.n_jobs)
        )

    def query(
        self,
        k: int | str = 5,
        *,
        max_k: int | None = None,
        tail: float | None = None,
        gain: Gain | None = None,
        utility: Utility | UtilityRows | None = None,
        only: Iterable[str] | None = None,
        never: Iterable[str] | None = None,
        groups: Mapping[str, Any] | None = None,
        explain: bool = False,
        propensity: tuple[float, float] | None = None,
        search: str = "exact",
        beam: int = 10,
        epsilon: float = 0.0,
        max_nodes: int | None = None,
        deadline_ms: float | None = None,
        threshold: float | None = None,
        min_probability: float | None = None,
        n_jobs: int | None = None,
    ) -> Query:
        """Check what is asked for, with the parameters of `Tagger.suggest`, and resolve tags to labels."""
        options: dict[str, Any] = {
            "search": check_choice(search, "search", SEARCHES),
            "beam": check_count(beam, "beam"),
            "epsilon": epsilon,
            "max_nodes": max_nodes,
            "deadline_ms": deadline_ms,
            "n_jobs": n_jobs,
        }
        check_limits(epsilon, max_nodes, deadline_ms, resume=False)
        group = None if groups is None else self.tags.groups(groups)
        allowed = self._allowed(only, never)
        if k == AUTO:
            most = DEFAULT_MOST if max_k is None else check_count(max_k, "max_k", high=MOST_K)
        elif max_k is None:
            most = check_k(k)
        else:
            raise ValueError(f"max_k needs k={AUTO!r}; got k={k!r:.40}.")
        if utility is not None:
            if k == AUTO:
                raise ValueError(f"k must be a whole number with a utility; got {AUTO!r}.")
            if tail is not None or gain is not None:
                raise ValueError("utility must not be given together with tail or gain, which it replaces.")
            worth = utility if isinstance(utility, Utility) else utility_of(utility, self.tags)
            options |= _by_utility(worth, self.tags, allowed, group, threshold, min_probability)
        else:
            quotas = None if k == AUTO else group
            options |= self._by_gain(tail, gain, propensity, allowed, quotas, threshold, min_probability)
        return Query(most, options, group if k == AUTO else None, explain, k == AUTO)

    def set_query(self, coverage: float, *, explain: bool = False, n_jobs: int | None = None) -> Query:
        """Return what asks for the sets of `Tagger.suggest_set`."""
        control = self.model._fitted_sets(
            "suggest_set needs held-out records: call fit_sets(texts, tags) first."
        )
        query = self.query(control.max_size, explain=explain, n_jobs=n_jobs)
        return replace(query, least_recall=control.threshold(coverage))

    def _allowed(self, only: Iterable[str] | None, never: Iterable[str] | None) -> Bools | None:
        """Return which labels may be returned; None if all may."""
        if only is None and never is None:
            return None
        allowed = np.full(len(self.tags), only is None)
        if only is not None:
            allowed[self.tags.numbers(only, "only")] = True
        if never is not None:
            allowed[self.tags.numbers(never, "never")] = False
        return allowed

    def _by_gain(
        self,
        tail: float | None,
        gain: Gain | None,
        propensity: tuple[float, float] | None,
        allowed: Bools | None,
        groups: Groups | None,
        threshold: float | None,
        min_probability: float | None,
    ) -> dict[str, Any]:
        """Return the arguments of ``top_k`` that say what labels are worth by their gains."""
        model = self.model
        constants = check_constants(model.propensity if propensity is None else propensity)
        per_label = self.tags.gains(gain) if isinstance(gain, Mapping) else gain
        gains = resolve_gain(
            model.label_counts_, model.n_rows_, tail=tail, gain=per_label, propensity=constants
        )
        if allowed is not None:  # a label of gain 0 is never returned
            gains = allowed.astype(np.float64) if gains is None else gains * allowed
        least: float | npt.NDArray[np.float64] | None = check_threshold(threshold)
        if min_probability is not None:
            least = least_scores(gains, min_probability, threshold)
        if groups is not None:
            return _best_of_groups(gains, groups, least)
        if gain is None and allowed is None:  # the search remembers the bounds of a tail dial
            return {"tail": tail, "propensity": constants, "threshold": least}
        return {"gain": gains, "threshold": least}

    def n_searched(self, query: Query) -> int:
        """Return how many labels are searched for each row."""
        return min(n_searched(query.k) if query.auto else query.k, self.model.n_labels_)

    def top_k(self, X: Any, query: Query, progress: Callable[[float], None] | None = None) -> TopK:
        """Find the best labels of each row; as many as are likely, or as a set needs, if so asked."""
        most = min(query.k, self.model.n_labels_)
        if not query.auto:
            top = self.model.top_k(X, most, **query.options, progress=progress)
            return top if query.least_recall is None else cut_to_set(top, query.least_recall)
        # what a threshold and groups exclude tells how many labels to expect
        options = {**query.options, "threshold": None}
        wide = self.model.top_k(X, self.n_searched(query), **options, progress=progress)
        return cut(wide, most, query.options["threshold"], query.groups)

    def suggest(self, X: Any, query: Query, texts: Iterable[Text] = ()) -> list[Suggestions]:
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
        certificates = zip(top.exact.tolist(), top.gap.tolist(), strict=True)
        answers = [Suggestions((), exact, gap) for exact, gap in certificates]
        for row, place in zip(*np.nonzero(top.labels >= 0), strict=True):
            label = int(top.labels[row, place])
            tag = self.tags.tags[label]
            words: Words = ()
            if query.explain:
                words = self.explain_words(X, row, label, kept[row]).words_for[:MOST_WORDS]
            score, probability = float(top.scores[row, place]), float(top.probabilities[row, place])
            answers[row].append(Suggestion(tag, self.tags.name(tag), score, probability, words))
        return answers

    def explain(
        self,
        X: Any,
        row: int,
        label: int,
        text: Text,
        meaning_by_word: bool = False,
        progress: Callable[[float], None] | None = None,
    ) -> Explanation:
        """Say what each word of a row's text added to the log probability of a label.

        Parameters
        ----------
        X : matrix [rows, features]
        row, label : int
        text : str
            The text that the row was made of.
        meaning_by_word : bool
            Whether to divide what the text's meaning added among its words; each needs an embedding.
        progress : callable, optional
            Called with the share of these embeddings that is done; it may raise an error to end the work.

        Returns
        -------
        Explanation
            With similar training records, if they are kept.
        """
        found = self.explain_words(X, row, label, text)
        if meaning_by_word:
            found = self._meaning_by_word(X, row, label, text, found, progress)
        return replace(found, records=self.similar(features_of(X)[[row]], label))

    def explain_words(self, X: Any, row: int, label: int, text: Text) -> Explanation:
        """Return what `explain` does, without training records."""
        tag = self.tags.tags[label]
        found, value = self.explain_features(X, row, label)
        match = None if value is None else self._name_match(text, label, value)
        words = self.in_words(found, tag, joined_text(self.without_embedding(text)))
        if value is not None and match is None:  # no name stands in the text, but one means what it means
            words = replace(words, meaning=(words.meaning or 0.0) + value)
        return replace(words, match=match)

    def in_words(self, found: RowExplanation, tag: str, text: str) -> Explanation:
        """Return an explanation of features in words of a text."""
        return in_words(found, tag, self.tags.name(tag), self.vectorizer, text, self.n_words)

    @property
    def n_words(self) -> int | None:
        """The number of columns before those of meaning; None if there are none of meaning."""
        return None if self.meaning is None else self.model.n_features_in_ - self.meaning.n_columns

    def _meaning_by_word(
        self,
        X: Any,
        row: int,
        label: int,
        text: Text,
        found: Explanation,
        progress: Callable[[float], None] | None,
    ) -> Explanation:
        """Divide what the meaning added: a word's share is what goes when the word is taken out.

        An encoder that cuts texts does not read the words after that many: a word has at least one token.
        """
        if self.meaning is None:
            raise ValueError("meaning_by_word needs a model with an encoder; this one has none.")
        encoder = self.meaning.encoder()
        if isinstance(encoder, Column):
            raise ValueError(f"meaning_by_word needs an encoder that reads words; got {encoder.name}.")
        assert self.n_words is not None
        words = first_words(text, self.fields, encoder.max_tokens)
        if not words:
            return found
        features, _ = self.explain_features(X, row, label)
        of_meaning = features.features >= self.n_words
        columns, added = features.features[of_meaning], features.contributions[of_meaning]
        now = sp.csr_array(features_of(X)[[row]])[:, columns].toarray()[0]
        rate = np.divide(added, now, out=np.zeros_like(added), where=now != 0)
        shares: list[float] = []
        for start in range(0, len(words), WORDS_AT_ONCE):
            if progress is not None:
                progress(start / len(words))
            some = words[start : start + WORDS_AT_ONCE]
            without = (without_word(text, self.fields, word) for word in some)
            changed = self.meaning.components.columns(self.embeddings(without, self.model.n_jobs))
            shares += ((now - changed[:, columns - self.n_words]) @ rate).tolist()
        sums = dict(found.contributions)
        for word, share in zip(words, shares, strict=True):
            sums[word] = sums.get(word, 0.0) + share
        known = [(word, value) for word, value in sums.items() if value]
        contributions = sorted(known, key=lambda pair: -abs(pair[1]))
        return replace(found, contributions=contributions, meaning=(found.meaning or 0.0) - math.fsum(shares))

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


def _best_of_groups(
    gains: npt.NDArray[np.float64] | None, groups: Groups, threshold: float | npt.NDArray[np.float64] | None
) -> dict[str, Any]:
    """Return gains as a utility that allows one label of each group.

    A search by gains returns no labels whose score is 0; a smallest score keeps one by utilities from it.
    """
    if gains is None:
        gains = np.ones(len(groups))
    if gains.max(initial=0) > LARGEST_UTILITY:
        raise ValueError(
            f"gains must be at most {LARGEST_UTILITY:g} together with groups; got {gains.max():g}."
        )
    least = np.maximum(0.0 if threshold is None else threshold, np.finfo(np.float32).tiny)
    return {"utility": Utility(gains, mask=gains > 0, groups=_shared(groups), quota=1), "threshold": least}


def _shared(groups: Groups) -> Groups:
    """Return the group of each label, -1 for one that no other label is in."""
    return np.where(np.bincount(groups)[groups] > 1, groups, -1)


def _by_utility(
    utility: Utility,
    tags: TagIndex,
    allowed: Bools | None,
    groups: Groups | None,
    threshold: float | None,
    min_probability: float | None,
) -> dict[str, Any]:
    """Return the arguments of ``top_k`` for a utility, with the filters as a part of it."""
    a, b = utility.lines(len(tags))
    mask, quotas = b > -np.inf, utility.quotas
    if groups is not None and quotas is not None:
        raise ValueError("groups must not be given together with a utility that has groups of its own.")
    if allowed is not None or groups is not None:
        mask = mask if allowed is None else mask & allowed
        group, quota = quotas or (None, None)
        if groups is not None:
            group = _shared(groups).astype(np.int32)
            quota = np.ones(int(group.max()) + 1, np.int32)
        utility = Utility(a, np.where(mask, b, 0), mask, groups=group, quota=quota)
    least: Any = None
    if threshold is not None:
        least = check_number(threshold, "threshold", low=-LARGEST_UTILITY, high=LARGEST_UTILITY)
    if min_probability is not None:
        falling = np.flatnonzero(mask & (a <= 0))
        if len(falling):
            raise ValueError(
                "min_probability needs a utility whose a is above 0 for every allowed tag; "
                f"got {a[falling[0]]:g} for {quoted(tags.tags[falling[0]])}."
            )
        least = _least_utilities(a, b, mask, min_probability, least)
    return {"utility": utility, "threshold": least}


def _least_utilities(
    a: Floats, b: Floats, mask: Bools, min_probability: float, threshold: float | None
) -> Floats:
    """Return what each label is worth at the smallest probability, or the threshold if that is more."""
    p = check_number(min_probability, "min_probability", low=0, high=1)
    least = np.where(mask, a, 0) * np.float32(p) + np.where(mask, b, 0)
    least = np.nextafter(least, np.float32(-np.inf))  # the search may round otherwise
    least = np.where(mask, least, least.max(initial=-LARGEST_UTILITY, where=mask))  # never returned anyway
    return least if threshold is None else np.maximum(least, np.float32(threshold))
