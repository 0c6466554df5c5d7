"""Settings with a name: published systems as settings of `longleaf.PLT`."""

from __future__ import annotations

from typing import Any

from longleaf._validation import check_choice

PRESETS: dict[str, dict[str, Any]] = {
    # Wydmuch et al. 2021: 3 trees by balanced 2-means to clusters of 100, log loss; C, bias and the power for
    # squared hinge are those of its code (napkinXC and the scripts of its experiments), not of its text
    "paper": {
        "n_trees": 3,
        "tree": "kmeans",
        "arity": 2,
        "max_leaf": 100,
        "loss": "log",
        "C": 16.0,
        "C_scale": "none",
        "bias": 1.0,
        "hinge_power": 2,
        "refine": False,
    },
    # Prabhu et al. 2018: the same trees with squared hinge
    "parabel": {
        "n_trees": 3,
        "tree": "kmeans",
        "arity": 2,
        "max_leaf": 100,
        "loss": "squared-hinge",
        "C": 1.0,
        "C_scale": "none",
        "bias": 1.0,
        "hinge_power": 2,
        "refine": False,
    },
    # Khandagale et al. 2019: shallow, wide and unbalanced
    "bonsai": {
        "n_trees": 3,
        "tree": "unbalanced",
        "arity": 100,
        "max_leaf": 100,
        "loss": "squared-hinge",
        "C": 1.0,
        "C_scale": "none",
        "bias": 1.0,
        "hinge_power": 2,
        "refine": False,
    },
}


def preset(name: str) -> dict[str, Any]:
    """Give the settings of a preset by its name."""
    return dict(PRESETS[check_choice(name, "preset", PRESETS)])
