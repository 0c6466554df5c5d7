"""The space of settings to try, and a seeded draw from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.random import sample_without_replacement

from longleaf.estimator import LabelEstimator

Settings = dict[str, Any]

SPACE: dict[str, Any] = {
    "loss": ("log", "squared-hinge"),
    "C": {"log": (4.0, 8.0, 16.0, 32.0, 64.0), "squared-hinge": (0.25, 0.5, 1.0, 2.0, 4.0)},
    "arity": (2, 8, 16, 32),
    "max_leaf": (20, 50, 100, 200),
    "n_trees": (1, 3),
    "threshold": (0.05, 0.1),
}
"""The default values to try: powers of two around those of published systems."""


FIELD_FACTORS = (0.5, 2.0)


def field_weights(weights: Mapping[str, float]) -> tuple[dict[str, float], ...]:
    """Return weights of fields to try: those given, and others for one field at a time, but the body.

    Examples
    --------
    >>> field_weights({"title": 1.0, "text": 1.0})[1:]
    ({'title': 0.5, 'text': 1.0}, {'title': 2.0, 'text': 1.0})
    """
    others = [
        dict(weights) | {name: factor * weights[name]}
        for name in list(weights)[:-1]
        for factor in FIELD_FACTORS
        if weights[name]
    ]
    return dict(weights), *others


ENCODER_WEIGHTS = (0.25, 0.5, 1.0)


def encoder_weights(weight: float) -> tuple[float, ...]:
    """Return weights of the encoder to try: the one given and usual ones."""
    return weight, *(one for one in ENCODER_WEIGHTS if one != weight)


OF_TEXTS = ("fields", "encoder_weight")


def of_estimator(settings: Settings) -> Settings:
    """Return the settings of the estimator, without those of the texts."""
    return {name: value for name, value in settings.items() if name not in OF_TEXTS}


def full_space(space: Mapping[str, Any] | None, estimator: LabelEstimator) -> dict[str, Any]:
    """Complete the caller's choices with `SPACE`, without settings that the estimator does not have."""
    known = estimator.get_params(deep=False)
    for name, values in (space or {}).items():
        if name not in known:
            raise ValueError(f"space must name settings of {type(estimator).__name__}; got {name!r}.")
        by_loss = values.values() if name == "C" and isinstance(values, Mapping) else [values]
        for choices in by_loss:
            if isinstance(choices, str) or not isinstance(choices, Sequence) or not choices:
                raise ValueError(f"space must list at least one value of {name}; got {choices!r}.")
    return {name: values for name, values in SPACE.items() if name in known} | dict(space or {})


def starting_settings(
    names: Sequence[str], estimator: LabelEstimator, space: Mapping[str, Any] | None = None
) -> Settings:
    """Return the estimator's own settings, with a default C as a number.

    If the caller lists values without the estimator's own, the first of them replaces it: with
    ``n_trees=[1]``, no candidate has three trees.
    """
    params, choices = estimator.get_params(deep=False), dict(space or {})
    if params["loss"] not in choices.get("loss", [params["loss"]]):
        params |= {"loss": choices["loss"][0], "C": None}  # the C was chosen for the other loss
    if params["C"] is None:
        params["C"] = estimator.default_costs.get(params["loss"])
    if isinstance(choices.get("C"), Mapping):
        choices["C"] = choices["C"].get(params["loss"], [params["C"]])
    for name, values in choices.items():
        params[name] = params[name] if params[name] in values else values[0]
    return {name: params[name] for name in names}


def draw(space: Mapping[str, Any], start: Settings, n: int, seed: int) -> list[Settings]:
    """Return ``n`` distinct settings, or all there are: the starting ones first, then others at random.

    Parameters
    ----------
    space : mapping of str to values
        The values of "C" may be given by loss.
    start : dict
        The starting settings, one value for each name in ``space``; they need not be in the space.
    n : int
        Number of settings.
    seed : int
        The same seed gives the same settings.
    """
    pairs = _loss_pairs(space, start)
    others = {name: values for name, values in space.items() if name not in ("loss", "C")}
    shape = (len(pairs), *(len(values) for values in others.values()))
    size = math.prod(shape)
    n_drawn = min(n, size)  # one more than needed, as the starting settings may be drawn
    places = sample_without_replacement(size, n_drawn, random_state=seed)
    drawn = []
    for place in np.random.RandomState(seed).permutation(places).tolist():
        first, *rest = np.unravel_index(place, shape)
        choice = {name: values[i] for (name, values), i in zip(others.items(), rest, strict=True)}
        both = pairs[int(first)] | choice
        drawn.append({name: both[name] for name in space})
    return [start, *(settings for settings in drawn if settings != start)][:n]


def _loss_pairs(space: Mapping[str, Any], start: Settings) -> list[Settings]:
    """Return pairs of loss and cost; a setting that is not searched is omitted."""
    pairs: list[Settings] = [{"loss": loss} for loss in space["loss"]] if "loss" in space else [{}]
    if "C" not in space:
        return pairs
    costs = space["C"]
    if not isinstance(costs, Mapping):
        return [pair | {"C": C} for pair in pairs for C in costs]
    missing = {pair.get("loss", start.get("loss")) for pair in pairs} - set(costs)
    if missing:
        raise ValueError(f"space must list C for every loss; got none for {missing.pop()!r}.")
    return [pair | {"C": C} for pair in pairs for C in costs[pair.get("loss", start.get("loss"))]]
