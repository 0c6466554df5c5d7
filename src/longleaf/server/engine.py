"""A loaded model, ready to answer: rows in, suggestions as plain JSON out."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._base.estimator import LabelEstimator
from longleaf._tagging.suggest import Worth, best_labels
from longleaf._tagging.tags import as_objects, group_numbers, tag_numbers
from longleaf._validation import check_features
from longleaf.explain import explain_row
from longleaf.io._manifest import MANIFEST
from longleaf.io.names import read_names
from longleaf.metrics._frequency import BINS, frequency_bins
from longleaf.models import load
from longleaf.propensity import Constants
from longleaf.server.reader import checkpoint
from longleaf.server.settings import Refusal
from longleaf.server.tag_search import TagSearch
from longleaf.tagger import Tagger
from longleaf.words import Explanation, in_words

UNPROCESSABLE = 422
MOST_WORDS = 5
"""How many words a suggestion names."""
MOST_DIALS = 8
"""Of how many dials the gains are remembered."""
WARM_NODES = 2_000_000
"""Of a model with more nodes, weights are read from disk and checked when requests first need them."""


class Engine:
    """One version of the model. It never changes, so requests in flight may keep an old one.

    Parameters
    ----------
    path : str
        The model's folder.
    names : str, optional
        A file of readable names, in place of the model's own.
    threads : int
        Threads of a search.
    """

    def __init__(self, path: str, names: str | None = None, threads: int = 1) -> None:
        self.version, model = _load_version(path)
        self.path, self.threads, self.loaded = path, threads, time.time()
        self.tagger = model if isinstance(model, Tagger) else None
        self.model: LabelEstimator = model.estimator_ if isinstance(model, Tagger) else model
        if self.tagger is not None:
            self.tags, self.index = self.tagger.classes_, self.tagger._index
        else:
            self.tags = as_objects(str(label) for label in range(self.model.n_labels_))
            self.index = {tag: number for number, tag in enumerate(self.tags)}
        own = (self.tagger.names if self.tagger is not None else None) or {}
        self.names: Mapping[str, str] = own if names is None else read_names(names)
        self.bins = frequency_bins(np.asarray(self.model.label_counts_, np.float64))
        self.tag_search = TagSearch([self.name(tag) for tag in self.tags], list(self.tags), self.counts)
        self._tags_by_name = {name: tag for tag, name in self.names.items() if tag in self.index}
        self._gains: dict[tuple[float | None, Constants], npt.NDArray[np.float64]] = {}
        self._warm()

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each label occurred in training."""
        return self.model.label_counts_

    @property
    def accepts(self) -> list[str]:
        """What requests may hold."""
        return ["texts", "vectors"] if self.tagger is not None else ["vectors"]

    def name(self, tag: str) -> str:
        """Give the readable name of a tag; itself if it has none."""
        return self.names.get(tag, tag)

    def tag(self, word: str) -> str:
        """Give the tag that a request means: a tag, or else the readable name of one."""
        return word if word in self.index else self._tags_by_name.get(word, word)

    def needs_texts(self) -> Tagger:
        """Give the tagger; a model without one refuses."""
        if self.tagger is None:
            raise Refusal(
                UNPROCESSABLE,
                "This model was trained on vectors and cannot read texts; send vectors.",
            )
        return self.tagger

    def matrix(self, texts: Sequence[str]) -> Any:
        """Turn texts into rows."""
        return self.needs_texts()._matrix(texts)

    def vectors(self, vectors: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> sp.csr_matrix:
        """Turn arrays of indices and values into rows, refusing what the model cannot read."""
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

    def worth(self, **wishes: Any) -> Worth:
        """Bring dial, gains and filters together."""
        return Worth.of(self.model, self.index, **wishes)

    def groups(self, groups: Mapping[str, Any]) -> npt.NDArray[np.int64]:
        """Give each label the number of its group."""
        return group_numbers(groups, self.index)

    def number(self, tag: str, argument: str = "tag") -> int:
        """Look up a tag."""
        return int(tag_numbers([tag], self.index, argument)[0])

    def suggest(
        self, X: Any, k: int, worth: Worth, group: npt.NDArray[np.int64] | None, options: dict[str, Any]
    ) -> list[list[dict[str, Any]]]:
        """Suggest the best tags of each row, as they go into the answer."""
        options = options | worth.options | {"n_jobs": min(self.threads, max(1, X.shape[0] // 4))}
        found, gains = best_labels(self.model, X, k, group, options), self._gains_of(worth)
        return [
            [
                self.describe(label) | {"score": score, "probability": min(1.0, score / one)}
                for label, score, one in zip(
                    labels.tolist(), scores.tolist(), gains[labels].tolist(), strict=True
                )
            ]
            for labels, scores in found
        ]

    def _gains_of(self, worth: Worth) -> npt.NDArray[np.float64]:
        """Give the gains of all labels; those of a dial are made once. Only the searcher calls this."""
        if worth.gain is not None:
            return worth.gain
        dial = worth.tail, worth.propensity
        if dial not in self._gains:
            if len(self._gains) >= MOST_DIALS:
                self._gains.clear()
            self._gains[dial] = worth[np.arange(self.model.n_labels_, dtype=np.int32)]
        return self._gains[dial]

    def describe(self, label: int) -> dict[str, Any]:
        """Say what is known of a label without any text."""
        tag = self.tags[label]
        return {
            "tag": tag,
            "name": self.name(tag),
            "count": int(self.counts[label]),
            "bin": BINS[self.bins[label]],
        }

    def explain(self, text: str, tag: str) -> Explanation:
        """Say which words spoke for a tag."""
        return self._explain(self.matrix([text]), text, tag)

    def _explain(self, X: Any, text: str, tag: str) -> Explanation:
        checkpoint()
        label = self.number(tag)
        if not self.counts[label]:
            raise Refusal(UNPROCESSABLE, f"tag must occur in training to be explained; {tag!r} does not.")
        found = explain_row(self.model, X, label)
        return in_words(found, tag, self.name(tag), self.needs_texts().vectorizer_, text)

    def words(self, text: str, tags: Iterable[str]) -> list[list[tuple[str, float]]]:
        """Name the words that spoke for each of some tags, the strongest first."""
        X = self.matrix([text])
        return [list(self._explain(X, text, tag).words_for[:MOST_WORDS]) for tag in tags]

    def _warm(self) -> None:
        """Make now what the first requests would wait for; forked workers then share it."""
        empty = sp.csr_matrix(np.zeros((1, self.model.n_features_in_), np.float32))
        X = empty if self.tagger is None else self.matrix(["warm"])
        for tail in (None, 1.0):
            self.model.top_k(X, 1, tail=tail, n_jobs=1)
        n_nodes = sum(tree.n_nodes for tree in self.model.trees_)
        if n_nodes <= WARM_NODES:  # a beam that wide comes by every node
            self.model.top_k(X, 1, search="beam", beam=n_nodes, n_jobs=1)


def _load_version(path: str) -> tuple[str, LabelEstimator | Tagger]:
    """Load a model and its version, even while another takes its place."""
    while True:
        version, model = model_version(path), load(path)
        if model_version(path) == version:
            return version, model


def model_version(path: str) -> str:
    """Tell one model from another: a digest of ``model.json``, which has a checksum of every array."""
    try:
        manifest = Path(path, MANIFEST).read_bytes()
    except OSError:
        return ""  # `load` says what is wrong
    return hashlib.sha256(manifest).hexdigest()[:12]
