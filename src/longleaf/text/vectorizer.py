"""Texts and records to a sparse tf-idf matrix: a ``TfidfVectorizer`` with fields, in native code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from longleaf import _core
from longleaf._validation.numbers import check_threads
from longleaf.io.storage import unpack_strings
from longleaf.text.batches import batches
from longleaf.text.characters import character_table
from longleaf.text.checks import ARRAYS, check_parameters, check_state
from longleaf.text.columns import (
    allowed_terms,
    hashed_columns,
    inverse_document_frequency,
    most_frequent,
    useful_ngrams,
)
from longleaf.text.fields import FieldWeights, Text, split_first
from longleaf.text.fields import check_fields as checked_fields
from longleaf.text.stems import Stemming, check_languages

_ANALYZERS = {"word": 0, "char": 1, "char_wb": 2}
_NORMS = {None: 0, "l1": 1, "l2": 2}
DEFAULT_CHARACTERS = (5, 5)
PIECE_MARKS = ("~", "^")
"""What the names of columns begin with that are not terms, but pieces of the words beside them."""


class TextVectorizer(BaseEstimator):  # type: ignore[misc]
    r"""Turn texts into rows of weighted term counts.

    With ``analyzer="word"`` the terms are those of scikit-learn's default pattern ``(?u)\b\w\w+\b``. The same
    texts and settings give the vocabulary and values of ``TfidfVectorizer``, and the same bits for any
    number of threads. Texts may be any iterable: they are read in batches and not kept.

    A text may also be a record, which maps fields to text. All fields share one vocabulary and one idf, by
    the number of records that have a term. Each field is scaled to unit length by itself, weighted, and added
    in the same columns; so a word in a short title counts for more than one in a long text, and an empty
    field costs nothing. A plain text given to a vectorizer with fields is the last field, the body.

    Parameters
    ----------
    analyzer : {"word", "char", "char_wb"}, default="word"
        Whether terms are n-grams of words, of characters, or of characters within words padded with spaces.
    ngram_range : tuple of (int, int), default=(1, 1)
        The minimum and maximum length of n-grams.
    char_ngram_range : tuple of (int, int) or None, default=None
        In addition to words, the character n-grams of these lengths (at most 20) of the text's words, which
        single spaces join: they find parts of compounds, inflected forms, and which words are neighbours.
        Their names have a leading ``~``, which no word has. Those in a single text, or in more than 2 % of
        the texts (and more than 100), are dropped.
    stem : str, list of str or None, default=None
        In addition to words, their stems in these languages, such as "german" or ["de", "en"], by the
        Snowball algorithms; requires the extra ``stem``. A record's field ``lang`` says its language; without
        one, its words are stemmed in all of these languages. The names of stems have a leading ``^``.
    lowercase : bool, default=True
        Whether to lower-case texts first, as ``str.lower`` does.
    min_df, max_df : int or float, default=1 and 1.0
        Terms (with hashing: columns) in fewer or more texts are ignored; a float is a share of the texts.
    max_features : int or None, default=None
        Keep only this many terms, the most frequent ones over all texts.
    sublinear_tf : bool, default=True
        Whether a count ``c`` is replaced by ``1 + log(c)``.
    use_idf, smooth_idf : bool, default=True
        Whether terms are weighted by inverse document frequency, smoothed as if one more text contained
        every term.
    norm : {"l2", "l1", None}, default="l2"
        The norm to which rows are scaled.
    hashing : int or None, default=None
        Number of columns to hash terms into, instead of a vocabulary: memory is bounded, but names are lost.
    n_jobs : int or None, default=None
        Number of threads; None is 1, -1 is all cores.
    fields : mapping of str to float, list of str or None, default=None
        The fields of records to read, and the weight of each (1 in a list). By default those of the first
        record, with equal weights; none if that is a plain text.

    Attributes
    ----------
    field_weights_ : dict of str to float
        The fields and their weights; empty for plain texts.
    term_bytes_ : numpy.ndarray of uint8
        The terms in UTF-8, concatenated in order of code points. Empty with hashing.
    term_offsets_ : numpy.ndarray of shape (n_terms + 1,), int64
        The start of each term in `term_bytes_`, and the end of the last.
    idf_ : numpy.ndarray of shape (n_columns,), float32
        The weight of every column; 1 without `use_idf`, 0 for hashed columns that are dropped.

    Examples
    --------
    >>> from longleaf.text.vectorizer import TextVectorizer
    >>> vectorizer = TextVectorizer()
    >>> vectorizer.fit_transform(["Olive oil and oil", "olive trees"]).shape
    (2, 4)
    >>> vectorizer.get_feature_names_out().tolist()
    ['and', 'oil', 'olive', 'trees']
    """

    field_weights_: dict[str, float]
    term_bytes_: npt.NDArray[np.uint8]
    term_offsets_: npt.NDArray[np.int64]
    idf_: npt.NDArray[np.float32]

    def __init__(
        self,
        *,
        analyzer: Literal["word", "char", "char_wb"] = "word",
        ngram_range: tuple[int, int] = (1, 1),
        char_ngram_range: tuple[int, int] | None = None,
        stem: str | Sequence[str] | None = None,
        lowercase: bool = True,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        sublinear_tf: bool = True,
        use_idf: bool = True,
        smooth_idf: bool = True,
        norm: Literal["l2", "l1"] | None = "l2",
        hashing: int | None = None,
        n_jobs: int | None = None,
        fields: FieldWeights | list[str] | None = None,
    ) -> None:
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.char_ngram_range = char_ngram_range
        self.stem = stem
        self.lowercase = lowercase
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.sublinear_tf = sublinear_tf
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.norm = norm
        self.hashing = hashing
        self.n_jobs = n_jobs
        self.fields = fields

    @classmethod
    def for_tags(cls, **changes: Any) -> Self:
        """Return the vectorizer that taggers use by default: words, and beside them character 5-grams."""
        words = changes.get("analyzer", "word") == "word"
        return cls(**(({"char_ngram_range": DEFAULT_CHARACTERS} if words else {}) | changes))

    def fit(self, texts: Iterable[Text], y: object = None) -> Self:
        """Learn the vocabulary and the document frequencies.

        Parameters
        ----------
        texts : iterable of str or mapping
            One text or record per row.
        y : object
            Not used.

        Returns
        -------
        TextVectorizer
            Itself.
        """
        self._learn(self._count(self._begin(texts), None, keep_rows=False))
        return self

    def fit_transform(self, texts: Iterable[Text], y: object = None) -> csr_matrix:
        """Learn the vocabulary and return the matrix, in one pass over the texts.

        Parameters
        ----------
        texts : iterable of str or mapping
            One text or record per row.
        y : object
            Not used.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_texts, n_columns), float32
            The same as ``fit(texts).transform(texts)``.
        """
        counter = self._count(self._begin(texts), None, keep_rows=True)
        return self._matrix(counter, self._learn(counter))

    def transform(self, texts: Iterable[Text]) -> csr_matrix:
        """Transform texts with the vocabulary and weights of `fit`; unknown terms are ignored.

        Parameters
        ----------
        texts : iterable of str or mapping
            One text or record per row.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_texts, n_columns), float32
            Rows with sorted columns.
        """
        check_is_fitted(self)
        counter = self._count(texts, self._known_terms(), keep_rows=True)
        columns = np.empty(0, np.int32) if self.hashing is None else hashed_columns(self.idf_ > 0)
        return self._matrix(counter, columns)

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Return the names of the columns.

        Parameters
        ----------
        input_features : object
            Not used.

        Returns
        -------
        numpy.ndarray of shape (n_columns,), str objects
            The terms; with hashing ``hash0``, ``hash1`` and so on.
        """
        check_is_fitted(self)
        if self.hashing is not None:
            return np.array([f"hash{column}" for column in range(self.hashing)], dtype=object)
        names = np.empty(len(self.term_offsets_) - 1, dtype=object)
        names[:] = unpack_strings(self.term_bytes_, self.term_offsets_)
        return names

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Columns by term, created on each access; empty with hashing."""
        names = self.get_feature_names_out() if self.hashing is None else ()
        return {term: column for column, term in enumerate(names)}

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return the fitted state as plain data.

        Returns
        -------
        parameters : dict
            The parameters, ready for JSON.
        arrays : dict of numpy.ndarray
            ``term_bytes``, ``term_offsets`` and ``idf``.
        """
        check_is_fitted(self)
        check_parameters(self.get_params())  # do not write what could not be read back
        parameters = {name: _plain(value) for name, value in self.get_params().items()}
        parameters["fields"] = dict(self.field_weights_) or None
        return parameters, {
            "term_bytes": self.term_bytes_,
            "term_offsets": self.term_offsets_,
            "idf": self.idf_,
        }

    @classmethod
    def from_state(cls, parameters: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """Create a fitted vectorizer from the result of `state`, as read from JSON and plain files.

        Parameters
        ----------
        parameters, arrays : dict
            The result of `state`; arrays may be memory-mapped.

        Returns
        -------
        TextVectorizer
            It transforms like the saved one, bit for bit.
        """
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in parameters.items()}
        made = cls(**given)
        check_parameters(made.get_params())
        check_state(arrays, made.hashing)
        made.field_weights_ = checked_fields(made.fields) or {}
        made.term_bytes_, made.term_offsets_, made.idf_ = (np.asarray(arrays[name]) for name in ARRAYS)
        return made

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_terms", None)  # native, and cheap to rebuild
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def reweighted(self, weights: FieldWeights) -> Self:
        """Return the fitted vectorizer with other weights of its fields."""
        if set(weights) != set(self.field_weights_):
            raise ValueError(
                f"weights must have the fields {', '.join(self.field_weights_)}; got {', '.join(weights)}."
            )
        changed = copy(self)
        changed.fields = changed.field_weights_ = {name: weights[name] for name in self.field_weights_}
        return changed

    def settle_fields(self, texts: Iterable[Text]) -> tuple[dict[str, float], Iterable[Text]]:
        """Return the fields and their weights, by the first text if they are not given, and all texts."""
        given = checked_fields(self.fields)
        first, texts = split_first(texts)
        return (first if given is None else given), texts

    def _begin(self, texts: Iterable[Text]) -> Iterable[Text]:
        self.field_weights_, texts = self.settle_fields(texts)
        return texts

    def _count(
        self, texts: Iterable[Text], known: _core.Vocabulary | None, keep_rows: bool
    ) -> _core.TextCounter:
        check_parameters(self.__dict__)  # faster than `get_params`, which would dominate for a short text
        counter = _core.TextCounter(
            character_table(bool(self.lowercase)),
            _ANALYZERS[self.analyzer],
            self.ngram_range,
            self.char_ngram_range or (0, 0),
            int(self.hashing or 0),
            max(1, len(self.field_weights_)),
            known,
            check_threads(self.n_jobs),
            keep_rows,
        )
        stemming = None if self.stem is None else Stemming(check_languages(self.stem), bool(self.lowercase))
        texts = texts if stemming is None else stemming.through(texts)
        for batch in batches(texts, bool(self.lowercase), list(self.field_weights_)):
            counter.add(batch, None if stemming is None else stemming.table(batch))
        return counter

    def _learn(self, counter: _core.TextCounter) -> npt.NDArray[np.int32]:
        """Choose and weight the columns; return the column of every counted id, -1 if dropped."""
        document_frequency, term_frequency = counter.merge()
        allowed = allowed_terms(document_frequency, counter.n_rows, self.min_df, self.max_df)
        if self.char_ngram_range is not None and self.hashing is None:
            allowed &= ~counter.extra() | useful_ngrams(document_frequency, counter.n_rows)
        idf = np.ones(document_frequency.size, np.float32)
        if self.use_idf:
            idf = inverse_document_frequency(document_frequency, counter.n_rows, bool(self.smooth_idf))
        if self.hashing is not None:
            ids, columns = np.empty(0, np.uint32), hashed_columns(allowed)
            self.idf_ = np.where(allowed, idf, np.float32(0))
        else:
            ids = counter.sort(np.flatnonzero(allowed).astype(np.uint32))
            if self.max_features is not None and ids.size > self.max_features:
                ids = ids[most_frequent(term_frequency[ids], self.max_features)]
            columns = np.full(document_frequency.size, -1, np.int32)
            columns[ids] = np.arange(ids.size)
            self.idf_ = idf[ids]
        self.term_bytes_, self.term_offsets_ = counter.terms(ids)
        self._terms: _core.Vocabulary | None = None
        return columns

    def _known_terms(self) -> _core.Vocabulary:
        terms: _core.Vocabulary | None = getattr(self, "_terms", None)
        if terms is None:
            terms = self._terms = _core.Vocabulary(self.term_bytes_, self.term_offsets_)
        return terms

    def _matrix(self, counter: _core.TextCounter, columns: npt.NDArray[np.int32]) -> csr_matrix:
        weights = np.array(list(self.field_weights_.values()) or [1.0], np.float32)
        rows = counter.rows(columns, self.idf_, weights, bool(self.sublinear_tf), _NORMS[self.norm])
        matrix = csr_matrix(rows, shape=(counter.n_rows, self.idf_.size))
        matrix.has_canonical_format = True  # and sorted indices
        return matrix


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
