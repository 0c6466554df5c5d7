"""A loaded model: rows in, suggestions as plain JSON out."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import check_features
from longleaf.encoders.column import Column
from longleaf.estimator import LabelEstimator
from longleaf.explain.words import Explanation
from longleaf.io._manifest import MANIFEST
from longleaf.io.names import read_names
from longleaf.metrics._frequency import BINS, frequency_bins
from longleaf.models import load
from longleaf.server.reader import stop_if_abandoned
from longleaf.server.settings import Refusal
from longleaf.server.tag_search import TagSearch
from longleaf.suggest import MOST_WORDS, Query, Suggester
from longleaf.tagger import Tagger, suggester_of
from longleaf.text.fields import Text, field_texts
from longleaf.text.tags import TagIndex

Embeddings = npt.NDArray[np.float32]

UNPROCESSABLE = 422
WARM_NODES = 2_000_000
"""In a model with more nodes, weights are read and checked when requests first need them."""


MOST_QUERIES = 8
"""How many queries with utilities are remembered, with the bounds that a search makes of them."""


class Engine:
    """One version of the model. It does not change, so requests in flight may keep using an old one.

    Parameters
    ----------
    path : str
        The model's folder.
    names : str, optional
        A file of readable names, which replaces the model's own.
    threads : int
        Threads per search.
    languages : tuple of str
        The languages of these names to display, the best first.
    original : str, optional
        The model's folder, if `path` is a copy of it: an encoder may be beside it.

    Raises
    ------
    ModelError
        Also if the encoder that the model was trained with cannot be loaded, or is another one now.
    """

    def __init__(
        self,
        path: str,
        names: str | None = None,
        threads: int = 1,
        languages: tuple[str, ...] = (),
        original: str | None = None,
    ) -> None:
        self.version, model = _load_version(path)
        self.path, self.threads, self.loaded = path, threads, time.time()
        if isinstance(model, Tagger) and model.meaning_ is not None:
            model.meaning_ = model.meaning_.near(path if original is None else original)
            model.meaning_.encoder()
        self.tagger = model if isinstance(model, Tagger) else None
        self.suggester = suggester_of(model)
        self.model: LabelEstimator = self.suggester.model
        if names is not None:
            tags = TagIndex(self.suggester.tags.tags, read_names(names, languages))
            old = self.suggester
            self.suggester = Suggester(self.model, tags, old.vectorizer, old.records, old.fusion, old.meaning)
        self.tags = self.suggester.tags
        self.bins = frequency_bins(np.asarray(self.model.label_counts_, np.float64))
        self.tag_search = TagSearch(
            [self.tags.name(tag) for tag in self.tags.tags], list(self.tags.tags), self.counts
        )
        self._queries: dict[str, Query] = {}
        self._warm()

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each label occurred in training."""
        return self.model.label_counts_

    @property
    def accepts(self) -> list[str]:
        """What requests may contain: texts, vectors or both."""
        return ["texts", "vectors"] if self.tagger is not None else ["vectors"]

    def needs_texts(self) -> Tagger:
        """Return the tagger; raise `Refusal` if the model has none."""
        if self.tagger is None:
            raise Refusal(
                UNPROCESSABLE,
                "This model was trained on vectors and cannot read texts; send vectors.",
            )
        return self.tagger

    def is_blank(self, text: Text) -> bool:
        """Return whether a text, or each field of a record that the model reads, is empty."""
        return not any(one.strip() for one in field_texts(text, self.suggester.fields, 0))

    @property
    def embeds(self) -> bool:
        """Whether texts are embedded: the model was trained with an encoder."""
        return self.suggester.meaning is not None

    @property
    def encoder_facts(self) -> dict[str, Any] | None:
        """What there is to say about the encoder; None if the model has none."""
        return None if self.suggester.meaning is None else self.suggester.meaning.facts

    @property
    def column(self) -> Column | None:
        """The field of records that holds their embeddings, if the model reads one."""
        encoder = None if self.suggester.meaning is None else self.suggester.meaning.encoder()
        return encoder if isinstance(encoder, Column) else None

    def embedding(self, text: Text) -> Embeddings:
        """Return the embedding of one text as an array with one row."""
        return self.suggester.embeddings([text])

    def rows(self, texts: Sequence[Text], embeddings: Embeddings | None = None) -> Any:
        """Turn texts or records into rows to be searched; embeddings that are not known are computed."""
        self.needs_texts()
        return self.suggester.rows(texts, embeddings)

    def vectors(self, vectors: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> sp.csr_matrix:
        """Build rows from arrays of indices and values; reject invalid ones."""
        n_features = self.model.n_features_in_
        ends = np.cumsum([0, *(len(indices) for indices, _ in vectors)])
        indices = np.concatenate([indices for indices, _ in vectors])
        values = np.concatenate([values for _, values in vectors]).astype(np.float64)
        outside = (indices < 0) | (indices >= n_features)
        if outside.any():
            raise ValueError(f"indices must be from 0 to {n_features - 1}; got {indices[outside][0]}.")
        X = sp.csr_matrix((values, indices.astype(np.int32), ends), shape=(len(vectors), n_features))
        X.sum_duplicates()
        check_features(X, n_features, normalize=self.model.normalize, name="vectors")
        return X.astype(np.float32)

    def query(self, key: str, make: Callable[[], Query]) -> Query:
        """Return the query of a key; it is made again unless it has a utility and was asked for lately."""
        query = self._queries.pop(key, None) or make()
        if "utility" in query.options:
            self._queries[key] = query
            if len(self._queries) > MOST_QUERIES:
                self._queries.pop(next(iter(self._queries)))
        return query

    def suggest(self, X: Any, query: Query) -> list[dict[str, Any]]:
        """Return the result of each row as a JSON object."""
        threads = min(self.threads, max(1, X.shape[0] // 4))
        found = self.suggester.suggest(X, replace(query, options={**query.options, "n_jobs": threads}))
        return [
            {"suggestions": [self.describe(self.tags.number(one.tag)) | one.numbers() for one in row]}
            | (row.certificate() if query.may_end_early else {})
            for row in found
        ]

    def describe(self, label: int) -> dict[str, Any]:
        """Describe a label, independently of any text."""
        tag = self.tags.tags[label]
        return {
            "tag": tag,
            "name": self.tags.name(tag),
            "count": int(self.counts[label]),
            "bin": BINS[self.bins[label]],
        }

    def explain(self, X: Any, text: Text, tag: str, meaning_by_word: bool = False) -> Explanation:
        """Explain a tag, given by itself or its readable name, by the words of a text or record.

        Parameters
        ----------
        X : matrix [1, features]
            The row of the text.
        text : str or mapping
        tag : str
        meaning_by_word : bool
            As in `longleaf.Tagger.explain`.
        """
        label = self.tags.number(tag)
        return self.suggester.explain(
            X, 0, label, text, meaning_by_word, progress=lambda _: stop_if_abandoned()
        )

    def words(
        self, text: Text, tags: Iterable[str], embedding: Embeddings | None = None
    ) -> list[list[tuple[str, float]]]:
        """Return the words that support each of some tags, strongest first."""
        X, labels = self.rows([text], embedding), self.tags.numbers(tags, "tags")
        found = []
        for label in labels:
            stop_if_abandoned()
            explained = self.suggester.explain_words(X, 0, int(label), text)
            found.append(list(explained.words_for[:MOST_WORDS]))
        return found

    def _warm(self) -> None:
        """Load what the first requests would otherwise wait for; forked workers then share it."""
        empty = sp.csr_matrix(np.zeros((1, self.model.n_features_in_), np.float32))
        X = empty
        if self.tagger is not None:
            meaning = self.suggester.meaning
            none = None if meaning is None else np.zeros((1, meaning.components.mean.size), np.float32)
            X = self.rows(["warm"], none)
        for tail in (None, 1.0):
            self.model.top_k(X, 1, tail=tail, n_jobs=1)
        n_nodes = sum(tree.n_nodes for tree in self.model.trees_)
        if n_nodes <= WARM_NODES:  # a beam this wide visits every node
            self.model.top_k(X, 1, search="beam", beam=n_nodes, n_jobs=1)


def _load_version(path: str) -> tuple[str, LabelEstimator | Tagger]:
    """Load a model and its version, even while it is being replaced."""
    while True:
        version, model = model_version(path), load(path)
        if model_version(path) == version:
            return version, model


def model_version(path: str) -> str:
    """Return the version of a model: a digest of ``model.json``, which has a checksum of every array."""
    try:
        manifest = Path(path, MANIFEST).read_bytes()
    except OSError:
        return ""  # `load` reports what is wrong
    return hashlib.sha256(manifest).hexdigest()[:12]
