"""Refined models made by hand, and their probabilities by brute force."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from longleaf.search import Overrides, ScoreMap
from longleaf.training.refined import refined_tree
from longleaf.weights.chunks import WeightedTree
from tests import reference
from tests.helpers import handmade
from tests.reference import refined as slow


def refine(problem: handmade.Problem, rng: np.random.Generator, nominees: int) -> None:
    """Give the labels of a problem's first tree refined classifiers, and its model a map."""
    tree = refined_tree(problem.parts[0][0])
    shape = (problem.X.shape[1], tree.n_nodes)
    W = (rng.normal(size=shape) * (rng.random(shape) < 0.6)).astype(np.float32)
    W[:, tree.label < 0] = 0
    bias = rng.normal(size=tree.n_nodes).astype(np.float32)
    problem.model.refined_ = WeightedTree(tree, handmade.encode(tree, W, bias))
    problem.model.__dict__.pop("_prepared", None)
    problem.model.score_map_ = make_map(rng, problem.n_labels, nominees)


def make_map(rng: np.random.Generator, n_labels: int, nominees: int) -> ScoreMap:
    """Make a map with bent curves."""
    places = np.sort(rng.uniform(-8, 6, 4)) + np.arange(4) * 0.1
    result = np.array([places, np.cumsum(rng.uniform(0.2, 3, 4)) - 6])
    evidence = np.array([[-14.0, -9.0, 2.0, 14.0], [-30.0, -9.0, 2.0, 2.0]])
    slope, offset = rng.uniform(0.2, 2, n_labels), rng.uniform(-4, 3, n_labels)
    return ScoreMap(slope, offset, float(rng.uniform(0, 2)), nominees, evidence, result)


def by_brute_force(model: Any, X: Any, overrides: Overrides | None = None) -> np.ndarray:
    """Return the probability of every label, [rows, labels]; 0 for labels that are never returned."""
    link = reference.Link(model.loss, model.hinge_power)
    size, n_labels, score_map = model.n_features_in_, model.n_labels_, model._score_map()
    parts = [
        (tree, handmade.decode(weights, size), np.asarray(weights["bias"], float))
        for tree, weights in zip(model.trees_, model.weights_, strict=True)
    ]
    tree, weights = model.refined_.tree, model.refined_.weights
    W = handmade.decode(weights, size)
    leaf = {int(label): node for node, label in enumerate(tree.label) if label >= 0}
    out = np.zeros((X.shape[0], n_labels))
    for row, x in enumerate(np.asarray(X.todense(), float)):
        x = x / (np.linalg.norm(x) or 1.0)
        P = reference.label_probabilities(link, parts, x, n_labels)
        mean, nominated = slow.nominate(P, score_map.nominees)
        own = {} if overrides is None else _own(overrides, row)
        for label in {*np.flatnonzero(nominated).tolist(), *own}:
            node = leaf.get(label)
            said = 0.0 if node is None else slow.log_h(x @ W[:, node] + float(weights["bias"][node]))
            line = own.get(label, (score_map.slope[label], score_map.offset[label], score_map.refined))
            slope, offset, counts = map(float, line)
            curves = score_map.evidence, score_map.result
            out[row, label] = slow.probability(mean[label], said, slope, offset, counts, *curves)
    return out


def _own(overrides: Overrides, row: int) -> dict[int, tuple[float, float, float]]:
    one = overrides.take([row])
    return {
        int(label): (float(slope), float(offset), one.refined)
        for label, slope, offset in zip(one.labels, one.slope, one.offset, strict=True)
    }


def margins(model: Any, X: Any) -> np.ndarray:
    """Return the margin of every label's refined classifier, [rows, labels]; NaN where there is none."""
    tree, weights = model.refined_.tree, model.refined_.weights
    rows = np.asarray(sp.csr_array(X).todense(), float)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    found = rows / np.where(length > 0, length, 1) @ handmade.decode(weights, model.n_features_in_)
    out = np.full((len(rows), model.n_labels_), np.nan)
    leaves = np.flatnonzero(tree.label >= 0)
    out[:, tree.label[leaves]] = (found + weights["bias"])[:, leaves]
    return out
