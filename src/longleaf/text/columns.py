"""Choosing the terms that become columns, and their weights."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import numpy.typing as npt


def allowed_terms(
    document_frequency: npt.NDArray[np.int64], n_texts: int, min_df: float, max_df: float
) -> npt.NDArray[np.bool_]:
    """Return which terms are in neither too few nor too many texts; at least one must be.

    Parameters
    ----------
    document_frequency : numpy.ndarray of int64
        The number of texts that contain each term.
    n_texts : int
        The total number of texts.
    min_df, max_df : int or float
        A number of texts, or a share of them; both inclusive.

    Returns
    -------
    numpy.ndarray of bool
        True for terms to keep.
    """
    n_terms = np.count_nonzero(document_frequency)
    if n_terms == 0:
        raise ValueError(f"texts must contain at least one term; got {n_texts} texts without any.")
    low, high = (float(df if isinstance(df, Integral) else df * n_texts) for df in (min_df, max_df))
    if high < low:
        raise ValueError(
            f"max_df must allow at least as many texts as min_df; got max_df={max_df} and min_df={min_df}, "
            f"which are {high:g} and {low:g} of {n_texts} texts."
        )
    allowed: npt.NDArray[np.bool_] = (document_frequency >= low) & (document_frequency <= high)
    if not allowed.any():
        raise ValueError(
            f"min_df and max_df must leave at least one of {n_terms} terms; "
            f"none is in {low:g} to {high:g} of {n_texts} texts."
        )
    return allowed


LEAST_NGRAM_TEXTS, MOST_NGRAM_SHARE, MOST_NGRAM_TEXTS = 2, 0.02, 100


def useful_ngrams(document_frequency: npt.NDArray[np.int64], n_texts: int) -> npt.NDArray[np.bool_]:
    """Return which character n-grams beside words are worth a column.

    Those in a single text say nothing about others; those in more than 2 % of all texts (and more than 100)
    take most of the time, and the words beside them say as much.
    """
    most = max(MOST_NGRAM_SHARE * n_texts, MOST_NGRAM_TEXTS)
    useful: npt.NDArray[np.bool_] = (document_frequency >= LEAST_NGRAM_TEXTS) & (document_frequency <= most)
    return useful


def inverse_document_frequency(
    document_frequency: npt.NDArray[np.int64], n_texts: int, smooth: bool
) -> npt.NDArray[np.float32]:
    """Return the weights of terms, larger for terms in fewer texts.

    Parameters
    ----------
    document_frequency : numpy.ndarray of int64
        The number of texts that contain each term; 0 counts as 1.
    n_texts : int
        The total number of texts.
    smooth : bool
        Whether to add one to all counts, as if one more text contained every term.

    Returns
    -------
    numpy.ndarray of float32
        ``1 + log(texts / texts with the term)``, as in scikit-learn.
    """
    ratio = (n_texts + int(smooth)) / np.maximum(document_frequency + int(smooth), 1)
    return (np.log(ratio) + 1).astype(np.float32)


def most_frequent(term_frequency: npt.NDArray[np.int64], limit: int) -> npt.NDArray[np.intp]:
    """Choose the most frequent terms.

    Parameters
    ----------
    term_frequency : numpy.ndarray of int64
        How often each term occurs, with the terms in sorted order.
    limit : int
        Number of terms to choose.

    Returns
    -------
    numpy.ndarray of intp
        Their indices, ascending.
    """
    # The same operations as in scikit-learn, including float64, so that ties are broken the same way.
    return np.sort((-term_frequency.astype(np.float64)).argsort()[:limit])


def hashed_columns(allowed: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Map every hashed column to itself, or to -1 if it is dropped.

    Parameters
    ----------
    allowed : numpy.ndarray of bool
        Which columns are kept.

    Returns
    -------
    numpy.ndarray of int32
        Input of the native counter.
    """
    return np.where(allowed, np.arange(allowed.size), -1).astype(np.int32)
