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
    """

    def __init__(
        self, path: str, names: str | None = None, threads: int = 1, languages: tuple[str, ...] = ()
    ) -> None:
        self.version, model = _load_version(path)
        self.path, self.threads, self.loaded = path, threads, time.time()
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

    def rows(self, texts: Sequence[Text]) -> Any:
        """Turn texts or records into rows to be searched."""
        self.needs_texts()
        return self.suggester.rows(texts)

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

    def explain(self, text: Text, tag: str) -> Explanation:
        """Explain a tag, given by itself or its readable name, by the words of a text or record."""
        return self.suggester.explain(self.rows([text]), 0, self.tags.number(tag), text)

    def words(self, text: Text, tags: Iterable[str]) -> list[list[tuple[str, float]]]:
        """Return the words that support each of some tags, strongest first."""
        X, labels = self.rows([text]), self.tags.numbers(tags, "tags")
        found = []
        for label in labels:
            stop_if_abandoned()
            explained = self.suggester.explain_words(X, 0, int(label), text)
            found.append(list(explained.words_for[:MOST_WORDS]))
        return found

    def _warm(self) -> None:
        """Load what the first requests would otherwise wait for; forked workers then share it."""
        empty = sp.csr_matrix(np.zeros((1, self.model.n_features_in_), np.float32))
        X = empty if self.tagger is None else self.rows(["warm"])
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
