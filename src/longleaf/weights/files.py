"""A model of labels as plain JSON and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf._validation import ModelError, check_count
from longleaf._validation.numbers import MOST_LABELS, MOST_ROWS
from longleaf.io._schema import Check, ListOf, Object, check_arrays, check_range, check_string
from longleaf.io.storage import Folder
from longleaf.propensity._model import UNKNOWN_COUNT
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.chunks import WeightedTree
from longleaf.weights.layout import ARRAYS, mark_dense_words

Arrays = dict[str, npt.NDArray[Any]]


def to_arrays(
    label_counts: npt.NDArray[np.int64],
    trees: list[LabelTree],
    weights: list[_core.WeightArrays],
    refined: WeightedTree | None = None,
) -> Arrays:
    """Return the arrays of a fitted model by name; they may be nested in another model's folder."""
    arrays: Arrays = {"label_counts": label_counts}
    named = {f"tree{t}": pair for t, pair in enumerate(zip(trees, weights, strict=True))}
    if refined is not None:
        named["refined"] = refined.tree, refined.weights
    for place, (tree, tree_weights) in named.items():
        arrays[f"{place}/first_child"] = tree.first_child
        arrays[f"{place}/label"] = tree.label
        arrays |= {f"{place}/{name}": array for name, array in tree_weights.items()}
    return arrays


LABELS = {"label_counts": "int64"}
TREE = {"first_child": "int32", "label": "int32", **ARRAYS}
"""The arrays of a tree and its weights; `longleaf._core.Forest` checks what they hold."""

MOST_MASS = 2**62
"""Of a feature; what a life of learning adds up to is far less."""

ORIGIN = Object(optional={"settings": Object(), "tuning": Object(), "updates": ListOf(Object())})


def meta_schema(params: Mapping[str, Check]) -> Object:
    """Say what ``model.json`` must hold of a model with these parameters."""
    return Object(
        {
            "params": Object(optional=params, closed=True),
            "trees": check_count,
            "rows": partial(check_count, low=0, high=MOST_ROWS),
            "features": partial(check_count, low=0, high=MOST_LABELS),
            "origin": ORIGIN,
        },
        {"feature_names": ListOf(check_string)},
    )


def params_from(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the estimator's parameters; JSON knows no tuples."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in meta["params"].items()}


def attributes_from(folder: Folder) -> dict[str, Any]:
    """Return the attributes of the fitted model that `to_arrays` turned into arrays.

    Parameters
    ----------
    folder : Folder
        Its metadata have been checked by `meta_schema`.
    """
    meta, features = folder.meta, folder.meta["features"]
    check_arrays(folder.arrays, LABELS, folder.place)
    label_counts = folder.arrays["label_counts"]
    check_range(label_counts, UNKNOWN_COUNT, meta["rows"], f"{folder.place}label_counts.npy")
    trees = [_weighted_tree(folder, f"tree{t}") for t in range(meta["trees"])]
    attributes: dict[str, Any] = {
        "trees_": [one.tree for one in trees],
        "weights_": [one.weights for one in trees],
        "label_counts_": label_counts,
        "n_rows_": meta["rows"],
        "n_features_in_": features,
        "n_labels_": len(label_counts),
        "origin_": meta["origin"],
    }
    if "refined/label" in folder.arrays:
        attributes["refined_"] = _weighted_tree(folder, "refined")
    if "feature_mass" in folder.arrays:
        attributes["feature_mass_"] = _checked_mass(folder, features)
    if "feature_names" in meta:
        attributes["feature_names_in_"] = _checked_names(folder, features)
    return attributes


def _weighted_tree(folder: Folder, name: str) -> WeightedTree:
    arrays, place = folder.part(name), f"{folder.place}{name}/"
    check_arrays(arrays, TREE, place)
    if "dense" in arrays:  # of format 1
        check_arrays(arrays, {"dense": "uint8"}, place)
        arrays["words"] = mark_dense_words(arrays.pop("dense"), arrays["word"], arrays["words"], place)
    return WeightedTree(LabelTree(arrays.pop("first_child"), arrays.pop("label")), arrays)


def _checked_mass(folder: Folder, n_features: int) -> npt.NDArray[Any]:
    check_arrays(folder.arrays, {"feature_mass": "int64"}, folder.place)
    mass = folder.arrays["feature_mass"]
    if len(mass) != n_features:
        raise ModelError(f"{folder.place}feature_mass.npy must have {n_features} numbers; got {len(mass)}.")
    check_range(mass, 0, MOST_MASS, f"{folder.place}feature_mass.npy")
    return mass


def _checked_names(folder: Folder, n_features: int) -> npt.NDArray[Any]:
    names = folder.meta["feature_names"]
    if len(names) != n_features:
        raise ModelError(f"{folder.meta_name}.feature_names must have {n_features} names; got {len(names)}.")
    return np.array(names, dtype=object)


def plain(value: Any) -> Any:
    """Turn a parameter into what JSON can hold; a tree of the user's own is saved with the model itself."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else None
