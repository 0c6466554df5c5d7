"""Training with the names of tags: name rows for the trees, and the fusion on rows kept from them.

1. While the records are read, the names that stand in them are found (`NameFinder`).
2. Every tag of the vocabulary becomes a label, those that training never saw included, and every tag with a
   name one more training row per language, made of its names: a tag with few rows is pulled towards its
   names, one with none gets a place in the trees. Counts, and so propensities, stay those of the records.
3. Some rows are kept from the trees, and the fusion is fitted on them. Of small data they would be missed:
   there, the trees are then trained again with all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf.estimator import LabelEstimator
from longleaf.fusion.evidence import NameStatistics, evidence_of, with_near
from longleaf.fusion.fit import fit_weights
from longleaf.fusion.fusion import Fusion, NameFinder
from longleaf.fusion.near import Codes, NearNames, as_codes
from longleaf.io.tag_names import TagNames
from longleaf.text.fields import Text
from longleaf.text.phrases import PhraseIndex
from longleaf.training.data import held_out_rows, is_trained_twice
from longleaf.training.run import first_of_two, second_of_two

Objects = npt.NDArray[np.object_]
Ints = npt.NDArray[np.int64]
LEAST_NEAR = 200
"""Fewer held-out rows do not show what it is worth that a name means nearly what a row means."""
RowsOf = Callable[[Sequence[str]], sp.csr_matrix]


class NamedTraining:
    """A training with names, from the first record to the fusion.

    Parameters
    ----------
    names : TagNames
        The vocabulary.
    fields : sequence of str
        The fields of the records; none for plain texts.
    n_jobs : int or None
        Threads.
    """

    def __init__(self, names: TagNames, fields: Sequence[str], n_jobs: int | None) -> None:
        self._names = names
        self._finder = NameFinder(PhraseIndex(names.texts, names.owners, n_jobs), fields)

    def through(self, texts: Iterable[Text]) -> Iterable[Text]:
        """Yield the texts; names are found in them as they pass."""
        return self._finder.through(texts)

    def with_unseen(self, classes: Iterable[str], Y: sp.csr_array) -> tuple[list[str], sp.csr_array]:
        """Return the tags and the indicator with those of the vocabulary that no row carries, as the last."""
        seen = list(classes)
        known = set(seen)
        tags = seen + sorted(tag for tag in self._names.tags if tag not in known)
        shape = (Y.shape[0], len(tags))
        return tags, sp.csr_array((Y.data, Y.indices, Y.indptr), shape=shape)

    def fit(
        self,
        estimator: LabelEstimator,
        rows_of: RowsOf,
        X: Any,
        Y: sp.csr_array,
        tags: Sequence[str],
        options: dict[str, Any],
        *,
        n_columns: int = 0,
        fresh: npt.NDArray[np.bool_] | None = None,
    ) -> Fusion | None:
        """Train the estimator, and return the fusion; None if there are too few rows to fit one.

        Parameters
        ----------
        estimator : LabelEstimator
        rows_of : callable
            Turns plain texts into rows as those of ``X``.
        X, Y : matrices [rows, features], [rows, tags]
        tags : sequence of str
            As `with_unseen` returns them.
        options : dict
            The parameters of ``estimator.fit``.
        n_columns : int
            How many of the last features are columns of meaning.
        fresh : bool array [rows], optional
            Rows to keep from the trees rather than others: those that an encoder has not learned from.
        """
        number = {tag: place for place, tag in enumerate(tags)}
        numbers = np.array([number[tag] for tag in self._names.tags], np.int64)
        weight = options.get("sample_weight")
        if weight is not None and np.shape(weight) != (X.shape[0],):
            raise ValueError(f"sample_weight must be {X.shape[0]} finite numbers of at least 0.")
        rows = rows_of(self._names.texts)
        near = (
            None
            if n_columns == 0
            else NearNames.of(rows[:, -n_columns:].toarray(), numbers[self._names.owners])
        )
        named, name_rows = self._name_rows(rows, numbers, len(tags))
        ones = np.ones(len(named), np.float32)
        targets = sp.csr_array((ones, (np.arange(len(named)), named)), shape=(len(named), len(tags)))

        held = held_out_rows(Y, estimator.random_state, any_row=True, fresh=fresh)

        def train(rows: npt.NDArray[np.bool_], own: dict[str, Any]) -> None:
            if weight is not None:
                own = own | {"sample_weight": np.append(np.asarray(weight)[rows], ones)}
            weight_of_rows = own.pop("sample_weight", None)
            features, labels = sp.vstack([X[rows], name_rows]).tocsr(), sp.vstack([Y[rows], targets]).tocsr()
            estimator._fit(features, labels, weight_of_rows, calibrate=False, refine=bool(held.any()), **own)

        twice = bool(held.any()) and is_trained_twice(len(held))
        train(~held, first_of_two(options) if twice else options)
        if held.sum() < LEAST_NEAR:
            near = None
        meaning = None if near is None else as_codes(X[:, -n_columns:].toarray())
        fusion = self._fusion(estimator, X, Y, held, numbers, near, meaning) if held.any() else None
        if twice:
            train(np.ones(len(held), bool), second_of_two(options))
        estimator._note_data(np.bincount(Y.indices, minlength=len(tags)).astype(np.int64), X.shape[0])
        return fusion

    def _fusion(
        self,
        estimator: LabelEstimator,
        X: Any,
        Y: sp.csr_array,
        held: npt.NDArray[np.bool_],
        numbers: Ints,
        near: NearNames | None,
        meaning: Codes | None,
    ) -> Fusion:
        """Fit the fusion on the rows that were kept from the estimator."""
        index, matches = self._finder.index.renumbered(numbers), self._finder.matches()
        known, counts = (
            np.bincount(rows.indices, minlength=Y.shape[1]).astype(np.int64) for rows in (Y[~held], Y)
        )
        before = NameStatistics.count(index, matches, Y, ~held)
        precision = before.precision(index, known)
        evidence = evidence_of(index, matches.of(np.flatnonzero(held)), before, precision)
        if near is not None and meaning is not None:
            evidence = with_near(evidence, near, meaning[held], estimator.n_jobs)
        weights = fit_weights(estimator, estimator._check_rows(X[held]), Y[held], evidence, known)
        statistics = NameStatistics.count(index, matches, Y, np.ones(len(held), bool))
        return Fusion.of(index, statistics, weights, counts, near)

    def _name_rows(self, rows: Any, numbers: Ints, n_tags: int) -> tuple[Ints, sp.csr_matrix]:
        """Return a row per tag and language, the sum of its names in it, and the tag of each row."""
        names = self._names
        n_languages = max(len(names.languages), 1)
        groups = numbers[names.owners] * n_languages + names.language_codes
        ones = np.ones(len(groups), np.float32)
        members = sp.csr_matrix(
            (ones, (groups, np.arange(len(groups)))), shape=(n_tags * n_languages, len(groups))
        )
        summed = sp.csr_matrix(members @ rows)
        known = np.flatnonzero(np.diff(summed.indptr))
        return known // n_languages, summed[known]
