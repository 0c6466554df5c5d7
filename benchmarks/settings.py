"""The rows of the table: which systems, trained how, asked how."""

import sys
from dataclasses import dataclass, field
from typing import Any

from benchmarks.data import ROOT

PYTHONS = {
    "own": sys.executable,
    "peers": str(ROOT / ".venv-peers" / "bin" / "python"),
    "pecos": str(ROOT / ".venv-pecos" / "bin" / "python"),
}
BEAM = {"search": "beam", "beam": 10}
GAINS_FILE = "<inverse propensities>"


@dataclass(frozen=True)
class Search:
    """One way to ask a trained model; ``gains`` says that inverse propensities weigh the labels."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    gains: bool = False
    k: int = 5


@dataclass(frozen=True)
class Entry:
    """One training setting of one system, and the searches to try on it."""

    name: str
    system: str
    setting: str
    params: dict[str, Any]
    searches: tuple[Search, ...]
    environment: str = "own"


THREE_LOG = "3 binary trees, log loss"
THREE_HINGE = "3 binary trees, squared hinge"
THREE_WIDE = "3 trees of arity 16, squared hinge"
ONE_HINGE = "1 tree of arity 16, squared hinge"
TREES = "3 trees of arity 32, squared hinge, C grows"
DEFAULT = "default: these trees, and refined labels"

PEERS = (
    Entry(
        "napkinXC",
        "benchmarks.systems.napkinxc:NapkinXC",
        THREE_LOG,
        {
            "tree_type": "hierarchicalKmeans",
            "arity": 2,
            "max_leaves": 100,
            "ensemble": 3,
            "optimizer": "liblinear",
            "loss": "log",
            "liblinear_c": 16,
            "liblinear_eps": 0.1,
            "weights_threshold": 0.1,
            "tree_search_type": "exact",
            "seed": 1,
        },
        (Search("exact"), Search("exact, gains", {"gains": GAINS_FILE}, gains=True)),
        "peers",
    ),
    Entry(
        "omikuji",
        "benchmarks.systems.omikuji:Omikuji",
        THREE_HINGE,
        {
            "n_trees": 3,
            "cluster_k": 2,
            "min_branch_size": 100,
            "linear_c": 1.0,
            "linear_eps": 0.1,
            "linear_weight_threshold": 0.1,
        },
        (
            Search("beam 10, threads over trees", {"beam": 10, "python_threads": False}),
            Search("beam 10, threads over rows", {"beam": 10, "python_threads": True}),
        ),
        "peers",
    ),
    Entry(
        "PECOS",
        "benchmarks.systems.pecos:Pecos",
        ONE_HINGE,
        {
            "nr_splits": 16,
            "max_leaf_size": 100,
            "seed": 0,
            "solver_type": "L2R_L2LOSS_SVC_DUAL",
            "Cp": 1.0,
            "Cn": 1.0,
            "threshold": 0.1,
        },
        (Search("beam 10", {"beam": 10}),),
        "pecos",
    ),
)


def _longleaf(setting: str, params: dict[str, Any]) -> Entry:
    searches = (
        Search("exact"),
        Search("exact, gains", {"tail": 1.0}, gains=True),
        Search("beam 10", BEAM),
        Search("beam 10, gains", BEAM | {"tail": 1.0}, gains=True),
    )
    return Entry("longleaf", "benchmarks.systems.longleaf:Longleaf", setting, params, searches)


# Shape, loss and search follow the peer; C (which grows as nodes have fewer rows), the bias, the threshold,
# the tolerance and the single tree's clusters are chosen so that longleaf is ahead in quality as well.
_HASTY = {"C_scale": "log", "bias": 0.1, "refine": False, "random_state": 1}
LONGLEAF = (
    _longleaf(
        THREE_LOG,
        _HASTY
        | {"n_trees": 3, "arity": 2, "max_leaf": 100, "loss": "log"}
        | {"C": 16.0, "threshold": 0.42, "tolerance": 0.2},
    ),
    _longleaf(
        THREE_HINGE,
        _HASTY
        | {"n_trees": 3, "arity": 2, "max_leaf": 100}
        | {"C": 0.5, "threshold": 0.15, "tolerance": 0.4},
    ),
    _longleaf(
        THREE_WIDE,
        _HASTY
        | {"n_trees": 3, "arity": 16, "max_leaf": 100}
        | {"C": 0.6, "threshold": 0.14, "tolerance": 0.4},
    ),
    _longleaf(
        ONE_HINGE,
        _HASTY
        | {"n_trees": 1, "arity": 16, "tree": "merged", "max_leaf": 150}
        | {"C": 0.5, "threshold": 0.07, "tolerance": 0.05},
    ),
    _longleaf(TREES, {"refine": False, "random_state": 1}),
    _longleaf(DEFAULT, {"random_state": 1}),
)
ENTRIES = PEERS + LONGLEAF
