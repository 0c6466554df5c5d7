"""What the tests of training share: small sparse problems, trained nodes read back, LIBLINEAR's answer."""

import numpy as np
import scipy.sparse as sp
from liblinear.liblinearutil import train

import longleaf as ll
from tests import reference
from tests.helpers import handmade

SOLVERS = {"log": 7, "squared-hinge": 1}  # L2R_LR_DUAL, L2R_L2LOSS_SVC_DUAL
TIGHT = {"tolerance": 1e-5, "max_epochs": 5000}
WHOLE = {"threshold": 0.0, "weight_bits": 32}


def texts(n_rows=150, n_features=120, n_labels=11, seed=0):
    """Make rows like short texts: words drawn from the topics of a row's labels and a common Zipf law."""
    rng = np.random.default_rng(seed)
    common = 1 / (1 + rng.permutation(n_features))
    topics = rng.dirichlet(np.full(n_features, 0.05), n_labels)
    X = np.zeros((n_rows, n_features), np.float32)
    rows = []
    for row in range(n_rows):
        labels = sorted(
            {int(label) for label in rng.geometric(0.25, rng.integers(0, 4)) - 1 if label < n_labels}
        )
        weights = common / common.sum() + topics[labels].sum(axis=0)
        words = rng.choice(n_features, 25, p=weights / weights.sum())
        np.add.at(X[row], words, 1.0)
        rows.append(labels)
    return sp.csr_array(np.log1p(X)), rows


def unit_rows(X):
    """Give the rows at unit length, dense."""
    X = X.toarray().astype(float)
    norm = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norm > 0, norm, 1)


def fit_tree(X, rows, tree, **params):
    """Train one tree with all weights kept and a bias of 1, as LIBLINEAR's, unless told otherwise."""
    settings = {"n_trees": 1, "tree": tree, "C_scale": "none", "bias": 1.0, "random_state": 1, "n_jobs": 1}
    settings |= WHOLE | params
    sample_weight = settings.pop("sample_weight", None)
    return ll.PLT(**settings).fit(X, rows, sample_weight=sample_weight)


def node_problems(model, X, rows):
    """Give node, dense unit rows, sides, weights and bias of every trained node, targets by the reference."""
    tree, weights = model.trees_[0], model.weights_[0]
    W, unit = handmade.decode(weights, X.shape[1]), unit_rows(X)
    for node, (held, positive) in reference.node_targets(tree, rows).items():
        y = np.where(np.isin(held, positive), 1.0, -1.0)
        yield node, held, unit[held], y, W[:, node].astype(float), float(weights["bias"][node])


def liblinear(loss, X, y, C, options="-B 1", eps=1e-6):
    """Give LIBLINEAR's weights and bias for the positive side."""
    model = train(y, sp.csr_matrix(X), f"-s {SOLVERS[loss]} -c {C} -e {eps} {options} -q")
    w, b = model.get_decfun()
    sign = 1.0 if model.get_labels()[0] > 0 else -1.0
    return sign * np.array(w), sign * b
