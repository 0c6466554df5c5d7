"""A model of labels as plain JSON and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf._validation import ModelError, check_count
from longleaf.io.storage import Folder
from longleaf.trees.label_tree import LabelTree

Arrays = dict[str, npt.NDArray[Any]]


def to_arrays(
    label_counts: npt.NDArray[np.int64], trees: list[LabelTree], weights: list[_core.WeightArrays]
) -> Arrays:
    """Give the arrays of a fitted model by name; they may be nested in another model's folder."""
    arrays: Arrays = {"label_counts": label_counts}
    for t, (tree, tree_weights) in enumerate(zip(trees, weights, strict=True)):
        arrays[f"tree{t}/first_child"] = tree.first_child
        arrays[f"tree{t}/label"] = tree.label
        arrays |= {f"tree{t}/{name}": array for name, array in tree_weights.items()}
    return arrays


def params_from(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Give the estimator's parameters; JSON knows no tuples."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in meta["params"].items()}


def attributes_from(folder: Folder) -> dict[str, Any]:
    """Give the attributes of the fitted model that `to_arrays` turned into arrays."""
    meta = folder.meta
    parts = [folder.part(f"tree{t}") for t in range(meta["trees"])]
    label_counts = folder.arrays["label_counts"]
    attributes = {
        "trees_": [LabelTree(part.pop("first_child"), part.pop("label")) for part in parts],
        "weights_": parts,
        "label_counts_": label_counts,
        "n_rows_": check_count(meta["rows"], "rows", low=0),
        "n_features_in_": check_count(meta["features"], "features", low=0),
        "n_labels_": len(label_counts),
        "origin_": meta["origin"],
    }
    if "feature_mass" in folder.arrays:
        attributes["feature_mass_"] = _check_mass(folder.arrays["feature_mass"], meta["features"])
    if "feature_names" in meta:
        attributes["feature_names_in_"] = np.array(meta["feature_names"], dtype=object)
    return attributes


def _check_mass(mass: npt.NDArray[Any], n_features: int) -> npt.NDArray[Any]:
    if mass.dtype != np.int64 or mass.shape != (n_features,):
        raise ModelError(
            f"feature_mass must be int64 of shape ({n_features},), one per feature; "
            f"got {mass.dtype} of shape {mass.shape}."
        )
    return mass


def plain(value: Any) -> Any:
    """Turn a parameter into what JSON can hold; a tree of the user's own is saved with the model itself."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else None
