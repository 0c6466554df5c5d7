"""Models that know the truth: a label tree whose node probabilities make every label's exactly the given one.

With labels that are independent given the row, a node holds a relevant label with chance
``1 - prod (1 - eta_j)`` over the labels below it, and each node classifier is the ratio of that at the node
and at its parent. The "features" of row i are the i-th unit vector, so that weights are a table of logits.
"""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import logit

import longleaf as ll
from tests.helpers.handmade import estimator, one_by_one  # the one place that knows how weights are packed

__all__ = ["least_evaluations", "lookup_model", "node_probabilities", "one_by_one"]

Floats = npt.NDArray[np.float64]
NEAREST = 1e-12  # to 0 and 1, for logits to be finite


def lookup_model(
    eta: Floats, trees: list[ll.LabelTree], noise: float = 0.0, random_state: int = 1
) -> tuple[ll.PLT, "sp.csr_matrix[np.float32]"]:
    """Make an ensemble that gives each row its probabilities, and the rows to ask it about.

    ``noise`` is the standard deviation of what is added to every logit: how far a trained tree is off.
    """
    random = np.random.default_rng(random_state)
    parts = []
    for tree in trees:
        margin = logit(np.clip(node_probabilities(eta, tree), NEAREST, 1 - NEAREST))
        margin[:, 1:] += noise * random.normal(size=margin[:, 1:].shape)
        parts.append((tree, margin.astype(np.float32), np.zeros(tree.n_nodes, np.float32)))
    rows = sp.identity(len(eta), np.float32, format="csr")
    return estimator(parts, eta.shape[1]), sp.csr_matrix(rows)


def node_probabilities(eta: Floats, tree: ll.LabelTree) -> Floats:
    """Give the chance that a node holds a relevant label, given that its parent does, [rows, nodes].

    The root's is 1, and its children's are not conditioned on anything.
    """
    parent = tree.parent
    none_below = np.zeros((len(eta), tree.n_nodes))
    leaves = tree.label >= 0
    none_below[:, leaves] = np.log1p(-np.minimum(eta[:, tree.label[leaves]], 1 - NEAREST))
    for v in range(tree.n_nodes - 1, 0, -1):
        none_below[:, parent[v]] += none_below[:, v]
    some_below = -np.expm1(none_below)
    some_below[:, 0] = 1.0
    above = np.where(parent < 0, 0, parent)
    return some_below / some_below[:, above]


def least_evaluations(model_eta: Floats, tree: ll.LabelTree, gain: Floats, k: int, informed: bool) -> Floats:
    """Count, by brute force, the nodes that a best-first search has to evaluate for each row.

    It expands every node whose path probability times bound is above the k-th best score. The bound is the
    best gain below the node (``informed``: A*), or else the best gain of all (uniform-cost search, which
    knows nothing about where the gains are).
    """
    parent = tree.parent
    path = node_probabilities(model_eta, tree)
    for v in range(1, tree.n_nodes):
        path[:, v] *= path[:, parent[v]]
    bound = np.where(tree.label >= 0, gain[np.maximum(tree.label, 0)], 0.0)
    for v in range(tree.n_nodes - 1, 0, -1):
        bound[parent[v]] = max(bound[parent[v]], bound[v])
    if not informed:
        bound[:] = gain.max()
    last = -np.sort(-model_eta * gain, axis=1)[:, k - 1]
    children = np.diff(tree.first_child)
    expanded = path * bound > last[:, None]
    return np.asarray(expanded @ children, np.float64)
