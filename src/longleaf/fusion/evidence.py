"""What the names that stand in a record say about its labels: a few numbers per match.

A name is worth as much as it was right in training, so every entry of the index (a phrase as a name of one
label) has a precision: of the training rows that have the phrase, how many carry the label. It is smoothed,
so that a name that was never found counts as a middling one; one of a tag that training never saw starts
lower, and sinks with every row that has the phrase, since none of them carries the tag.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import carries
from longleaf.fusion.near import Codes, NearNames
from longleaf.text.phrases import Matches, PhraseIndex

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

RIGHT, SEEN, UNSEEN = 0.5, 10.0, 50.0
"""Added to the rows that were right, and to all rows with the phrase: of a tag that training saw, or not."""
LEAST_PRECISION = 0.005
"""A name that is right less often says nothing; most of them are words such as "method"."""
IN_FIRST = 3.0
"""How much more a name counts in the first field, where several names of a label are found."""
FEATURES = (
    "log_precision",
    "in_first",
    "log_count",
    "log_position",
    "shortness",
    "log_characters",
    "log_ambiguity",
    "brackets",
    "log_found",
)
NEAR_FEATURES = ("cosine", "only_near")
"""Of names known by what they mean, too: how near the best one is, and whether none stands in the row."""
BLOCK_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class NameStatistics:
    """How often names were found in training, and were right.

    Attributes
    ----------
    found : int64 array [phrases]
        The rows that have the phrase.
    right : int64 array [entries]
        Those of them that carry the entry's label.
    """

    found: Ints
    right: Ints

    @classmethod
    def count(
        cls, index: PhraseIndex, matches: Matches, Y: sp.csr_array, rows: npt.NDArray[np.bool_]
    ) -> NameStatistics:
        """Count over some of the rows."""
        found, right = np.zeros(len(index), np.int64), np.zeros(len(index.entry_labels), np.int64)
        for begin in range(0, len(rows), BLOCK_ROWS):
            end = min(begin + BLOCK_ROWS, len(rows))
            match, entry = _entries(index, matches, begin, end)
            row = _row_of_matches(matches, begin, end)
            used = rows[row]
            piece = matches.phrases[matches.indptr[begin] : matches.indptr[end]]
            found += np.bincount(piece[used], minlength=len(index))
            entry, row = entry[used[match]], row[match][used[match]]
            hits = carries(Y, row, index.entry_labels[entry])
            right += np.bincount(entry[hits], minlength=len(right))
        return cls(found, right)

    def precision(self, index: PhraseIndex, label_counts: Ints) -> Doubles:
        """Return how often each entry's name is right, smoothed; float64 [entries]."""
        found = np.repeat(self.found, np.diff(index.entry_ptr))
        prior = np.where(label_counts[index.entry_labels] > 0, SEEN, UNSEEN)
        precision: Doubles = (self.right + RIGHT) / (found + prior)
        return precision


@dataclass(frozen=True, eq=False)
class Evidence:
    """Pairs of a row and a label that a name speaks for, each by its best match or by what it means.

    Attributes
    ----------
    indptr : int64 array [rows + 1]
        The pairs of row ``i`` are ``indptr[i]`` to ``indptr[i + 1]``.
    labels : int64 array [pairs]
        Ascending in each row.
    entries : int64 array [pairs]
        The entry of the index that matched, -1 if none did.
    features : float64 array [pairs, features]
        As `FEATURES` and, where names are known by what they mean, `NEAR_FEATURES` name them.
    """

    indptr: Ints
    labels: Ints
    entries: Ints
    features: Doubles

    @property
    def rows(self) -> Ints:
        """The row of each pair."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))


def evidence_of(
    index: PhraseIndex, matches: Matches, statistics: NameStatistics, precision: Doubles
) -> Evidence:
    """Describe the matches of some rows; names of a precision below `LEAST_PRECISION` are left out."""
    n_rows = len(matches.indptr) - 1
    match, entry = _entries(index, matches, 0, n_rows)
    kept = precision[entry] >= LEAST_PRECISION
    match, entry = match[kept], entry[kept]
    row, label = _row_of_matches(matches, 0, n_rows)[match], index.entry_labels[entry].astype(np.int64)
    in_first = matches.in_first[match] > 0
    value = precision[entry] * np.where(in_first, IN_FIRST, 1.0)
    order = np.lexsort((entry, -value, label, row))
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(row[order]) != 0) | (np.diff(label[order]) != 0)
    best = order[first]
    entry, match, row = entry[best], match[best], row[best]
    phrase = matches.phrases[match]
    features = np.column_stack(
        [
            np.log(precision[entry]),
            in_first[best],
            np.log1p(matches.counts[match]),
            np.log1p(matches.positions[match]),
            1.0 / np.maximum(index.n_words[phrase], 1),
            np.log(np.maximum(index.n_characters[phrase], 1)),
            np.log(np.diff(index.entry_ptr)[phrase]),
            index.entry_brackets[entry],
            np.log1p(statistics.found[phrase]),
        ]
    )
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=n_rows)))).astype(np.int64)
    return Evidence(indptr, label[best], entry, features)


def with_near(found: Evidence, near: NearNames, rows: Codes, n_jobs: int | None) -> Evidence:
    """Add the labels whose names are nearest to each row, and how near the names of all are.

    Parameters
    ----------
    found : Evidence
        The labels whose names stand in the rows.
    near : NearNames
    rows : int8 array [rows, columns]
        The rows, as `longleaf.fusion.near.as_codes` returns them.
    n_jobs : int or None
        Threads.
    """
    indptr, labels = near.nearest(rows, n_jobs)
    n_labels = 1 + max(int(one.max(initial=0)) for one in (found.labels, labels))
    keys = found.rows * n_labels + found.labels
    every = np.union1d(keys, np.repeat(np.arange(len(rows)), np.diff(indptr)) * n_labels + labels)
    row, label = every // n_labels, every % n_labels
    stands = np.isin(every, keys)  # in the same order as `keys`
    entries = np.full(len(every), -1, np.int64)
    entries[stands] = found.entries
    features = np.zeros((len(every), len(FEATURES) + len(NEAR_FEATURES)))
    features[stands, : len(FEATURES)] = found.features
    features[:, len(FEATURES)] = near.cosines(rows, row, label)
    features[:, len(FEATURES) + 1] = ~stands
    begins = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(rows)))))
    return Evidence(begins.astype(np.int64), label, entries, features)


def _row_of_matches(matches: Matches, begin: int, end: int) -> Ints:
    return np.repeat(np.arange(begin, end), np.diff(matches.indptr[begin : end + 1]))


def _entries(index: PhraseIndex, matches: Matches, begin: int, end: int) -> tuple[Ints, Ints]:
    """Return the entries of the phrases found in some rows, and the match that each belongs to."""
    phrases = matches.phrases[matches.indptr[begin] : matches.indptr[end]]
    first, sizes = index.entry_ptr[phrases], np.diff(index.entry_ptr)[phrases]
    match = np.repeat(np.arange(len(phrases)), sizes)
    within = np.arange(len(match)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return match, first[match] + within
