"""The options of `train` and `plan` that describe the estimator."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from longleaf.br import BR
from longleaf.cli._tables import given
from longleaf.cli._training import LARGEST, MOST_TREES, Loss, TreeKind, check_cost, check_threshold
from longleaf.plt import PLT
from longleaf.presets import PRESETS
from longleaf.presets import preset as preset_settings

# the names come from PRESETS, where mypy cannot see them
Preset = StrEnum("Preset", {name: name for name in PRESETS})  # type: ignore[misc]
FLAT_SETTINGS = {"loss", "C", "threshold", "positive_weight"}
OPTIONS = {"n_trees": "--trees", "max_leaf": "--max-leaf"}


class Kind(StrEnum):
    """The kind of model to train."""

    plt = "plt"
    br = "br"


PresetOption = Annotated[
    Preset | None,
    typer.Option("--preset", help="Settings of a published system; explicit options override them."),
]
KindOption = Annotated[
    Kind, typer.Option("--model", help="Label trees, or one classifier per label (binary relevance).")
]


def tree_settings(
    trees: Annotated[
        int | None,
        typer.Option("--trees", min=1, max=MOST_TREES, metavar="N", help="Number of trees to average."),
    ] = None,
    loss: Annotated[Loss | None, typer.Option("--loss", help="Loss of the node classifiers.")] = None,
    cost: Annotated[
        float | None,
        typer.Option(
            "-C",
            metavar="C",
            help="Cost of an error; larger values fit the data more closely.",
            callback=check_cost,
        ),
    ] = None,
    arity: Annotated[
        int | None,
        typer.Option("--arity", min=2, max=LARGEST, metavar="N", help="Children per inner node."),
    ] = None,
    max_leaf: Annotated[
        int | None,
        typer.Option(
            "--max-leaf",
            min=1,
            max=LARGEST,
            metavar="N",
            help="Maximum labels per leaf cluster.",
        ),
    ] = None,
    tree: Annotated[TreeKind | None, typer.Option("--tree", help="How the trees are built.")] = None,
    refine: Annotated[
        bool | None,
        typer.Option(
            "--refine/--no-refine",
            help="Train one more classifier per label, which finds rare labels better, and calibrate "
            "probabilities; default with 500 rows or more and without a preset.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="W",
            help="Drop weights of smaller magnitude from the model.",
            callback=check_threshold,
        ),
    ] = None,
) -> dict[str, Any]:
    """Return the given options as parameters of an estimator."""
    settings = given(n_trees=trees, loss=loss, C=cost, arity=arity, max_leaf=max_leaf, tree=tree)
    settings |= {} if refine is None else {"refine": refine}
    return settings if threshold is None else settings | {"threshold": threshold}


def make_estimator(
    kind: Kind, preset: Preset | None, settings: dict[str, Any], seed: int, threads: int | None
) -> PLT | BR:
    """Return the estimator described by the options; omitted options keep their defaults."""
    common: dict[str, Any] = {"random_state": seed, "n_jobs": -1 if threads is None else threads}
    settings = {name: str(v) if isinstance(v, StrEnum) else v for name, v in settings.items()}
    if kind is Kind.br:
        foreign = sorted(set(settings) - FLAT_SETTINGS) + ["preset"] * (preset is not None)
        if foreign:
            option = OPTIONS.get(foreign[0], f"--{foreign[0]}")
            raise typer.BadParameter(f"{option} applies to trees and cannot be used with --model br.")
        return BR(**settings, **common)
    named = preset_settings(preset.value) if preset is not None else {}
    if settings.get("loss", named.get("loss")) != named.get("loss"):
        named.pop("C", None)  # the preset's C belongs to its own loss
    estimator = PLT(**(named | settings), **common)
    if estimator.tree == "merged" and estimator.arity & (estimator.arity - 1):
        raise typer.BadParameter(f"--arity must be a power of two with --tree merged; got {estimator.arity}.")
    return estimator
