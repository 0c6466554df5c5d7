"""Shared by the generators: long-tailed popularity, drawing the labels and words of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Random = np.random.Generator
DrawLabels = Callable[[Ints, int, Random], Ints]
"""Returns a label for each given row; the number counts earlier attempts."""
DrawWords = Callable[[Ints, Random], Ints]
"""Returns a word for each given row, chosen by one of its labels."""

ROUNDS = 12
BLOCK_ROWS = 65_536  # words are drawn for this many rows at a time, which bounds memory
PILOT_ROWS = 2_000
MOST_REPEATS = 10  # rows whose labels have too few words stay short instead of looping forever
HEAD_SHARE = 2_000  # popularity is flat over the first 1/2000 of the labels, as in the paper's larger sets


def popularity(n_labels: int, random: Random) -> Floats:
    """Return the probability of each label, ``1 / (rank + n_labels / 2000)`` up to scale, with random ranks.

    The shape hardly depends on the number of labels: 1 % of them have a quarter of all occurrences or
    more, and with four rows per label about half of them have a single one.
    """
    weight = 1 / (random.permutation(n_labels) + 1 + n_labels / HEAD_SHARE)
    return np.asarray(weight / weight.sum())


def draw_in_range(cumulative: Floats, begin: Ints, end: Ints, random: Random) -> Ints:
    """Draw one item of each range ``begin .. end - 1`` with probability proportional to its weight.

    Parameters
    ----------
    cumulative : float64 array [items + 1]
        The cumulative sum of the weights, starting with 0.
    begin, end : int64 array [draws]
        A range of at least one item for each draw.
    """
    low, high = cumulative[begin], cumulative[end]
    drawn = np.searchsorted(cumulative, low + random.random(len(begin)) * (high - low), side="right") - 1
    return np.clip(drawn, begin, end - 1)


def fill_with_labels(
    n_rows: int, n_test: int, n_labels: int, labels_per_row: float, draw: DrawLabels, random: Random
) -> sp.csr_matrix[np.float32]:
    """Draw distinct labels for every row such that every label has a row before the last ``n_test``.

    A row has ``1 + Poisson(labels_per_row - 1)`` labels; duplicates are drawn again, a few times.
    Labels that were not drawn replace occurrences of frequent ones with near numbers.
    """
    sizes = 1 + random.poisson(labels_per_row - 1, n_rows)
    pending = np.repeat(np.arange(n_rows), sizes)
    pairs = np.zeros(0, np.int64)
    for attempt in range(ROUNDS):
        pairs = np.union1d(pairs, pending * n_labels + draw(pending, attempt, random))
        missing = sizes - np.bincount(pairs // n_labels, minlength=n_rows)
        pending = np.repeat(np.arange(n_rows), missing)
        if not len(pending):
            break
    rows, labels = np.divmod(pairs, n_labels)
    _place_unseen(labels[: np.searchsorted(rows, n_rows - n_test)], n_labels, random)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
    Y = sp.csr_matrix((np.ones(len(labels), np.float32), labels, indptr), shape=(n_rows, n_labels))
    Y.sort_indices()
    return Y


def _place_unseen(labels: Ints, n_labels: int, random: Random) -> None:
    """Replace, in place, occurrences of repeated labels by labels that are missing here."""
    by_label = np.argsort(labels, kind="stable")
    repeated = by_label[1:][labels[by_label[1:]] == labels[by_label[:-1]]]
    unseen = np.flatnonzero(np.bincount(labels, minlength=n_labels) == 0)
    places = np.sort(random.choice(len(repeated), len(unseen), replace=False))
    labels[repeated[places]] = unseen


def fill_with_words(
    n_rows: int, n_features: int, features_per_row: float, noise: float, draw: DrawWords, random: Random
) -> sp.csr_matrix[np.float32]:
    """Draw the words of every row; return sublinear tf-idf with rows of unit length.

    Lengths vary from row to row as in real texts. A share ``noise`` of the words comes from Zipf's law over
    the whole vocabulary, the others from ``draw``. Because a word may be drawn repeatedly, more words must
    be drawn than the number of distinct ones; a pilot run determines how many.
    """

    def block(rows: Ints, length: float, random: Random) -> sp.csr_matrix[np.float32]:
        lengths = np.maximum(1, random.poisson(random.gamma(4.0, length / 4.0, len(rows))))
        row_of_word = np.repeat(rows, lengths)
        words = draw(row_of_word, random)
        from_noise = random.random(len(row_of_word)) < noise
        words[from_noise] = zipf(n_features, int(from_noise.sum()), random)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        ones = np.ones(len(words), np.float32)
        counts = sp.csr_matrix((ones, words.astype(np.int32), indptr), shape=(len(rows), n_features))
        counts.sum_duplicates()
        return counts

    pilot, *streams = random.spawn(1 + -(-n_rows // BLOCK_ROWS))
    length, sample = features_per_row, np.arange(min(n_rows, PILOT_ROWS))
    for _ in range(3):
        longer = length * features_per_row * len(sample) / block(sample, length, pilot).nnz
        length = min(longer, MOST_REPEATS * features_per_row)
    starts = range(0, n_rows, BLOCK_ROWS)
    blocks = [
        block(np.arange(start, min(start + BLOCK_ROWS, n_rows)), length, stream)
        for start, stream in zip(starts, streams, strict=True)
    ]
    return _tf_idf(sp.vstack(blocks, format="csr"))


def zipf(n_words: int, size: int, random: Random) -> Ints:
    """Draw words by Zipf's law: word ``w`` has a probability proportional to about ``1 / (w + 1)``."""
    drawn = np.exp(random.random(size) * np.log(n_words + 1)) - 1
    return np.asarray(np.minimum(drawn, n_words - 1), np.int64)


def _tf_idf(X: sp.csr_matrix[np.float32]) -> sp.csr_matrix[np.float32]:
    n_rows, n_features = X.shape
    idf = 1 + np.log(n_rows / np.maximum(1, np.bincount(X.indices, minlength=n_features)))
    X.data = (1 + np.log(X.data)) * idf.astype(np.float32)[X.indices]
    row_of = np.repeat(np.arange(n_rows), np.diff(X.indptr))
    norm = np.sqrt(np.bincount(row_of, weights=X.data.astype(np.float64) ** 2, minlength=n_rows))
    X.data /= norm.astype(np.float32)[row_of]
    return X
