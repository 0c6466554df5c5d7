"""Models made by hand: any tree and any weights as a real estimator, without training."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import longleaf as ll
from longleaf import _core
from tests import reference


def chunks(tree):
    """Give the first node and the end of every chunk: up to 192 consecutive siblings."""
    for v in range(tree.n_nodes):
        begin, end = int(tree.first_child[v]), int(tree.first_child[v + 1])
        for first in range(begin, end, _core.CHUNK_WIDTH):
            yield first, min(first + _core.CHUNK_WIDTH, end)


def encode(tree, W, bias, weight_bits=32):
    """Pack dense weights [features, nodes] into the arrays that a model holds."""
    features, children, values = [], [], []
    for first, end in chunks(tree):
        feature, child = np.nonzero(W[:, first:end])
        features.append(feature.astype(np.int32))
        children.append(child.astype(np.uint8))
        values.append(W[feature, first + child].astype(np.float32))
    return _core.assemble_chunks(
        tree.first_child,
        tree.label,
        features,
        children,
        values,
        np.asarray(bias, np.float32),
        len(W),
        weight_bits,
    )


def decode(weights, n_features):
    """Unpack the arrays of a tree's weights into dense weights; see `longleaf.weights.layout`."""
    W = np.zeros((n_features, len(weights["bias"])), np.float32)
    pages = (n_features + 4095) // 4096
    for c in range(len(weights["weights"])):
        word = int(weights["word"][c])
        for page in range(pages):
            for bit in _ones(weights["page_words"][c * pages + page]):
                low, high, first_byte = (int(number) for number in weights["words"][3 * word : 3 * word + 3])
                dense = first_byte >= _core.DENSE_WORD
                begin = block = int(weights["byte"][c]) + first_byte % _core.DENSE_WORD
                features = _ones(low | high << 32)
                if not dense:
                    begin += 2 * len(features)
                first = begin
                for slot, feature_bit in enumerate(features):
                    feature = 4096 * page + 64 * bit + feature_bit
                    width = int(weights["node"][c + 1] - weights["node"][c])
                    if dense:
                        end = begin + width * (1 if len(weights["low"]) else 4)
                        children = np.arange(width)
                        values = _values(weights, c, begin, end)
                    else:
                        end = first + int(
                            weights["bytes"][block + 2 * slot : block + 2 * slot + 2].view("<u2")[0]
                        )
                        children, values = _slot(weights, c, begin, end, width)
                    W[feature, weights["node"][c] + children] = values
                    begin = end
                word += 1
        assert word == weights["word"][c + 1]
    return W


def _ones(bits):
    return [bit for bit in range(64) if int(bits) >> bit & 1]


def _slot(weights, c, begin, end, width):
    """Give the children and the weights of a slot: a list of names, or a bitmap where that is shorter."""
    size = 1 if len(weights["low"]) else 4
    bitmap = (width + 7) // 8
    if end - begin <= bitmap * (size + 1):
        names = (end - begin) // (size + 1)
        children = weights["bytes"][begin : begin + names].astype(np.int64)
    else:
        names = bitmap
        children = np.flatnonzero(np.unpackbits(weights["bytes"][begin : begin + names], bitorder="little"))
    return children, _values(weights, c, begin + names, end)


def _values(weights, c, begin, end):
    stored = weights["bytes"][begin:end]
    if not len(weights["low"]):
        return np.frombuffer(stored.tobytes(), np.float32)
    level = (stored >> 1).astype(np.uint32)
    bits = weights["low"][c : c + 1].view(np.uint32) + (level - 1) * weights["step"][c]
    magnitude = np.where(level > 0, bits.astype(np.uint32).view(np.float32), 0)
    return np.where(stored & 1, -magnitude, magnitude)


def estimator(parts: list[Any], n_labels: int, link: reference.Link = reference.LOG, **params: Any) -> ll.PLT:
    """Make an estimator of (tree, dense weights, bias) parts; every label was seen once in 1000 rows."""
    model = ll.PLT(n_trees=len(parts), **link._asdict(), **({"n_jobs": 1} | params))
    model.trees_ = [tree for tree, _, _ in parts]
    model.weights_ = [encode(*part) for part in parts]
    model.label_counts_ = np.ones(n_labels, np.int64)
    model.n_rows_, model.n_features_in_, model.n_labels_ = 1000, len(parts[0][1]), n_labels
    model.origin_ = {}
    return model


@dataclass
class Problem:
    """A hand-made model and some rows for it."""

    link: reference.Link
    parts: list
    n_labels: int
    X: sp.csr_array
    model: ll.PLT

    def rows(self):
        """Give the dense rows as the classifiers see them, of unit length."""
        X = self.X.toarray().astype(float)
        norm = np.sqrt((X**2).sum(axis=1, keepdims=True))
        return X / np.where(norm > 0, norm, 1)

    def label_probabilities(self):
        """Give the probabilities [rows, trees, labels] by brute force."""
        return np.array(
            [reference.label_probabilities(self.link, self.parts, x, self.n_labels) for x in self.rows()]
        )


def one_by_one(model: ll.PLT, X: Any, **options: Any) -> ll.search.TopK:
    """Search each row by itself, as Algorithm 1 does; rows that come together are searched level by level."""
    alone = [model.top_k(X[[row]], **options) for row in range(X.shape[0])]
    return ll.search.TopK.concatenate(alone)


def random_tree(rng, shape, labels):
    """Make a tree of a named shape over the given labels, in random order."""
    labels = rng.permutation(labels)
    n = len(labels)
    if shape == "balanced":
        return ll.LabelTree.complete(labels, arity=int(rng.integers(2, 5)), max_leaf=int(rng.integers(1, 6)))
    if shape == "chain":  # every inner node has one leaf and the rest
        inner = np.arange(max(1, n - 1))
        leaf_of = np.minimum(np.arange(n), len(inner) - 1)
        return ll.LabelTree.from_parents(
            np.concatenate([inner - 1, leaf_of]), np.concatenate([np.full(len(inner), -1), labels])
        )
    if shape == "unbalanced":
        inner = int(rng.integers(1, n + 1))
        above = [-1] + [int(rng.integers(0, v)) for v in range(1, inner)]
        return ll.LabelTree.from_parents(
            np.concatenate([above, rng.integers(0, inner, n)]), np.concatenate([np.full(inner, -1), labels])
        )
    return ll.LabelTree.flat(labels)


def random_problem(seed, shapes, n_labels, link=reference.LOG, n_rows=4, n_features=12, scale=2.0):
    """Make a problem with a tree of each named shape; some labels have no leaf, one row may be empty."""
    rng = np.random.default_rng(seed)
    present = rng.permutation(n_labels)[: max(1, n_labels - int(rng.integers(0, 3)))]
    parts = []
    for shape in shapes:
        tree = random_tree(rng, shape, present)
        W = (
            rng.normal(size=(n_features, tree.n_nodes))
            * scale
            * (rng.random((n_features, tree.n_nodes)) < 0.6)
        )
        bias = rng.normal(size=tree.n_nodes)
        parts.append((tree, W.astype(np.float32), bias.astype(np.float32)))
    X = (rng.random((n_rows, n_features)) < 0.5) * rng.normal(size=(n_rows, n_features))
    return Problem(
        link, parts, n_labels, sp.csr_array(X.astype(np.float32)), estimator(parts, n_labels, link)
    )
