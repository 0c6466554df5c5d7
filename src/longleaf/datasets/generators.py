"""Generators of long-tailed data of any size and known structure, reproducible by seed."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from longleaf._validation import check_count, check_number, check_seed
from longleaf.datasets._drawing import (
    Ints,
    Random,
    draw_in_range,
    fill_with_labels,
    fill_with_words,
    popularity,
    zipf,
)

ARITY = 8
LABEL_WORDS, TOPIC_WORDS = 16, 256
TOPICS_OF_A_LABEL = TOPICS_OF_A_ROW = 2

Data: TypeAlias = "tuple[sp.csr_matrix[np.float32], sp.csr_matrix[np.float32]]"


def make_hierarchy(
    n_rows: int,
    n_features: int,
    n_labels: int,
    *,
    n_test: int = 0,
    labels_per_row: float = 5.0,
    features_per_row: float = 75.0,
    noise: float = 0.3,
    random_state: int | None = None,
) -> Data:
    """Generate rows whose labels are close together in a hidden hierarchy, with words from all its levels.

    The labels are divided into nested groups at random places, about eight times as many on each level as on
    the one above. Every group and every label has 16 random words. A row starts with one label, drawn by
    popularity; each further label shares a group with it, a small one more often than a large one. A word of
    a row comes from one of its labels or, less often, from a group above it; a share ``noise`` of the words
    comes from Zipf's law and carries no information.

    Parameters
    ----------
    n_rows, n_features, n_labels : int
        The sizes. Every label has at least one row, so there must be enough rows.
    n_test : int
        Number of additional test rows, at the end of both matrices; they do not count for the labels.
    labels_per_row, features_per_row : float
        The mean numbers of labels and of distinct words per row.
    noise : float
        The share of words that do not depend on the labels, from 0 to 1.
    random_state : int, optional
        The same seed gives the same data.

    Returns
    -------
    X : csr_matrix of float32 [rows + test, features]
        Sublinear tf-idf, rows of unit length.
    Y : csr_matrix of float32 [rows + test, labels]
        Ones where a row has a label. Popularity falls as ``1 / (rank + n_labels / 2000)``.

    Examples
    --------
    >>> X, Y = make_hierarchy(1000, 5000, 800, random_state=1)
    >>> X.shape, Y.shape, int(Y.sum(axis=0).min())
    ((1000, 5000), (1000, 800), 1)
    """
    _check(n_rows, n_features, n_labels, labels_per_row, features_per_row, noise)
    n_rows += check_count(n_test, "n_test", low=0)
    random = np.random.default_rng(check_seed(random_state))
    cumulative = np.concatenate([[0.0], np.cumsum(popularity(n_labels, random))])
    group_of, group_begin = _nested_groups(n_labels, random)
    group_words = random.integers(n_features, size=(len(group_begin) - 1, LABEL_WORDS), dtype=np.int32)
    everywhere = np.zeros(n_rows, np.int64)
    first_label = draw_in_range(cumulative, everywhere, everywhere + n_labels, random)

    def draw_label(rows: Ints, attempt: int, random: Random) -> Ints:
        # further attempts look higher up in the hierarchy
        group = group_of[_levels_up(len(rows), len(group_of), random, attempt), first_label[rows]]
        begin, end = group_begin[group], group_begin[group + 1]
        return draw_in_range(cumulative, begin, np.where(end == 0, n_labels, end), random)

    Y = fill_with_labels(n_rows, n_test, n_labels, labels_per_row, draw_label, random)

    def draw_word(rows: Ints, random: Random) -> Ints:
        label = _some_label(Y, rows, random)
        group = group_of[_levels_up(len(rows), len(group_of), random), label]
        return group_words[group, random.integers(LABEL_WORDS, size=len(rows))].astype(np.int64)

    return fill_with_words(n_rows, n_features, features_per_row, noise, draw_word, random), Y


def make_topics(
    n_rows: int,
    n_features: int,
    n_labels: int,
    *,
    n_test: int = 0,
    labels_per_row: float = 5.0,
    features_per_row: float = 75.0,
    noise: float = 0.3,
    random_state: int | None = None,
) -> Data:
    """Generate rows about two topics each, with labels and words from both, without a hierarchy.

    There are as many topics as the square root of the number of labels. Every label belongs to two of them,
    drawn at random, so that topics overlap everywhere; nine tenths of a row's labels are drawn, by
    popularity, from the row's two topics, the others from all labels. Half of the words other than noise
    come from the row's topics, with 256 words each by Zipf's law, half from 16 words of each of its labels.

    Parameters and results are those of `make_hierarchy`.

    Examples
    --------
    >>> X, Y = make_topics(1000, 5000, 800, random_state=1)
    >>> X.shape, Y.shape, int(Y.sum(axis=0).min())
    ((1000, 5000), (1000, 800), 1)
    """
    _check(n_rows, n_features, n_labels, labels_per_row, features_per_row, noise)
    n_rows += check_count(n_test, "n_test", low=0)
    random = np.random.default_rng(check_seed(random_state))
    n_topics = max(2, round(n_labels**0.5))
    topic = random.integers(n_topics, size=TOPICS_OF_A_LABEL * n_labels)
    member = np.argsort(topic, kind="stable") % n_labels  # the labels of all topics, concatenated
    topic_begin = np.searchsorted(np.sort(topic), np.arange(n_topics + 1))
    cumulative = np.concatenate([[0.0], np.cumsum(popularity(n_labels, random)[member])])
    label_words = random.integers(n_features, size=(n_labels, LABEL_WORDS), dtype=np.int32)
    topic_words = random.integers(n_features, size=(n_topics, TOPIC_WORDS), dtype=np.int32)
    # the popularity of a topic is that of its labels, so a topic without labels is never drawn
    everywhere = np.zeros(n_rows * TOPICS_OF_A_ROW, np.int64)
    drawn = draw_in_range(cumulative, everywhere, everywhere + len(member), random)
    topics_of_row = np.sort(topic)[drawn].reshape(n_rows, TOPICS_OF_A_ROW)

    def some_topic(rows: Ints, random: Random) -> Ints:
        return topics_of_row[rows, random.integers(TOPICS_OF_A_ROW, size=len(rows))]

    def draw_label(rows: Ints, attempt: int, random: Random) -> Ints:
        chosen = some_topic(rows, random)
        stray = random.random(len(rows)) < 0.1 * (1 + attempt)
        begin = np.where(stray, 0, topic_begin[chosen])
        end = np.where(stray, len(member), topic_begin[chosen + 1])
        return member[draw_in_range(cumulative, begin, end, random)]

    Y = fill_with_labels(n_rows, n_test, n_labels, labels_per_row, draw_label, random)

    def draw_word(rows: Ints, random: Random) -> Ints:
        of_topic = topic_words[some_topic(rows, random), zipf(TOPIC_WORDS, len(rows), random)]
        of_label = label_words[_some_label(Y, rows, random), random.integers(LABEL_WORDS, size=len(rows))]
        return np.where(random.random(len(rows)) < 0.5, of_topic, of_label).astype(np.int64)

    return fill_with_words(n_rows, n_features, features_per_row, noise, draw_word, random), Y


def _nested_groups(n_labels: int, random: Random) -> tuple[Ints, Ints]:
    """Divide the labels into groups, and the groups into smaller ones, at random places.

    Returns
    -------
    group_of : int64 array [levels, labels]
        The group of each label on each level: level 0 is the label itself, the last level is all labels.
    group_begin : int64 array [groups + 1]
        First label of each group; its end is the next group's first label, unless that is 0.
    """
    cuts = 1 + random.permutation(n_labels - 1)  # each level uses a prefix of these, so groups are nested
    labels = np.arange(n_labels)
    group_of, begins, first = [labels], [labels], n_labels
    size = n_labels // ARITY
    while True:
        begin = np.concatenate([[0], np.sort(cuts[: max(0, size - 1)])])
        group_of.append(first + np.searchsorted(begin, labels, side="right") - 1)
        begins.append(begin)
        first += len(begin)
        if len(begin) == 1:
            return np.stack(group_of), np.concatenate([*begins, [0]])
        size //= ARITY


def _levels_up(size: int, n_levels: int, random: Random, least: int = 0) -> Ints:
    """Draw levels: 0 in half of the cases, 1 in a quarter, and so on, plus ``least``."""
    return np.minimum(least + random.geometric(0.5, size) - 1, n_levels - 1)


def _some_label(Y: sp.csr_matrix[np.float32], rows: Ints, random: Random) -> Ints:
    """Draw one of the labels of each row."""
    begin, end = Y.indptr[rows], Y.indptr[rows + 1]
    return np.asarray(
        Y.indices[begin + (random.random(len(rows)) * (end - begin)).astype(np.int64)], np.int64
    )


def _check(
    n_rows: int,
    n_features: int,
    n_labels: int,
    labels_per_row: float,
    features_per_row: float,
    noise: float,
) -> None:
    check_count(n_rows, "n_rows")
    check_count(n_features, "n_features")
    check_count(n_labels, "n_labels", low=2)
    check_number(labels_per_row, "labels_per_row", low=1)
    check_number(features_per_row, "features_per_row", low=1)
    check_number(noise, "noise", low=0, high=1)
    if 2 * labels_per_row > n_labels:
        raise ValueError(f"labels_per_row must be at most half of n_labels={n_labels}; got {labels_per_row}.")
    if 2 * features_per_row > n_features:
        raise ValueError(
            f"features_per_row must be at most half of n_features={n_features}; got {features_per_row}."
        )
    if n_rows * labels_per_row < 1.1 * n_labels:
        raise ValueError(
            f"n_rows * labels_per_row must be at least 1.1 times n_labels={n_labels}, so that every label "
            f"has a row; got {n_rows * labels_per_row:g}."
        )
