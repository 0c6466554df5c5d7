"""A slow, obvious version of everything, to check the fast one against: one file per noun."""

from tests.reference.metrics import evaluate, frequency_bins, frequency_table, inverse_propensity
from tests.reference.ndcg import best_sides, grow_ndcg_tree, lots, rank_by_ndcg_trees
from tests.reference.phrases import find_phrases, phrases
from tests.reference.search import (
    HINGE_2,
    HINGE_3,
    LOG,
    Link,
    a_star,
    beam_search,
    best,
    bounds,
    label_probabilities,
    node_costs,
    node_probabilities,
    parents,
    union_top,
)
from tests.reference.training import node_targets, objective

__all__ = [
    "HINGE_2",
    "HINGE_3",
    "LOG",
    "Link",
    "a_star",
    "beam_search",
    "best",
    "best_sides",
    "bounds",
    "evaluate",
    "find_phrases",
    "frequency_bins",
    "frequency_table",
    "grow_ndcg_tree",
    "inverse_propensity",
    "label_probabilities",
    "lots",
    "node_costs",
    "node_probabilities",
    "node_targets",
    "objective",
    "parents",
    "phrases",
    "rank_by_ndcg_trees",
    "union_top",
]
