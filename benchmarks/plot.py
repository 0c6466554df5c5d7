"""Draws a saved result: ``python -m benchmarks.plot RESULT.json`` writes pictures beside it.

A result of `benchmarks.speed` gives a picture a data set, one of `benchmarks.scale` three: against labels,
rows and k.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.scale import growth
from benchmarks.scale.cells import SEARCHES, SOURCES

Record = dict[str, Any]
# Title, key of the record, scale, whether it belongs to the training (once a model) or to each search.
COSTS = (
    ("training, seconds", "train_seconds", 1.0, True),
    ("training, CPU seconds", "train_cpu_seconds", 1.0, True),
    ("peak memory above the data, MiB", "peak_bytes", 2**-20, True),
    ("model on disk, MiB", "model_bytes", 2**-20, True),
    ("load, seconds", "load_seconds", 1.0, False),
    ("batch, ms a row", "batch_ms", 1.0, False),
    ("one row at a time, ms", "single_ms", 1.0, False),
    ("node evaluations a row", "evaluations", 1.0, False),
)
QUALITY = tuple(
    (f"{name}@{k}, percent", f"{name}@{k}", 1.0, False) for name in ("p", "psp") for k in (1, 3, 5)
)
COLOURS = {"longleaf": "tab:green", "napkinXC": "tab:blue", "omikuji": "tab:orange", "PECOS": "tab:red"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    path: Path = parser.parse_args().result
    result = json.loads(path.read_text())
    for drawn in draw_growth(result, path) if "cells" in result else draw(result, path):
        print(drawn)


def draw(result: dict[str, Any], path: Path) -> list[Path]:
    """Draw one picture for each data set and return their paths."""
    drawn = []
    for name in dict.fromkeys(record["data"] for record in result["records"]):
        records = [record for record in result["records"] if record["data"] == name]
        drawn.append(_draw_data(records, name, path.with_name(f"{path.stem}-{name}.png")))
    return drawn


def _draw_data(records: list[Record], name: str, path: Path) -> Path:
    panels = COSTS + QUALITY
    figure, axes = plt.subplots(
        len(panels) // 2, 2, figsize=(16, 0.35 * len(panels) * max(4, len(records)) / 2)
    )
    for axis, (title, key, scale, once) in zip(axes.T.flat, panels, strict=True):
        shown = points(records, key, once)
        names, values = [name for name, _, _ in shown], [value * scale for _, _, value in shown]
        colours = [COLOURS.get(system, "tab:gray") for _, system, _ in shown]
        # Points, not bars: costs are drawn by their logarithm, and qualities differ by little, so neither
        # axis begins at zero and the length of a bar would mislead.
        axis.scatter(values, names, c=colours)
        if shown and (title, key, scale, once) in COSTS:
            axis.set_xscale("log")
        axis.grid(axis="x", which="both", alpha=0.3)
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=6, which="both")
        axis.invert_yaxis()
    figure.suptitle(name)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def points(records: list[Record], key: str, once: bool) -> list[tuple[str, str, float]]:
    """Return label, system and value of each point; what failed or is not exposed has none."""
    shown: dict[str, tuple[str, str, float]] = {}
    for record in records:
        label = f"{record['system']}: {record['setting']}" + ("" if once else f" ({record['search']})")
        if record.get(key) is not None:
            shown.setdefault(label, (label, record["system"], record[key]))
    return list(shown.values())


def draw_growth(result: dict[str, Any], path: Path) -> list[Path]:
    """Draw costs against labels, rows and k, both axes by their logarithm; return the pictures' paths."""
    curves = list(growth.curves(growth.records(result)))
    colours = dict(zip(SOURCES, ("tab:green", "tab:blue", "tab:orange"), strict=True))
    styles = {"": "o-"} | {
        search.name: style for search, style in zip(SEARCHES, ("o-", "s--", "^:"), strict=True)
    }
    drawn = []
    for against in dict.fromkeys(curve.against for curve in curves):
        shown = [curve for curve in curves if curve.against == against]
        headings = list(dict.fromkeys(curve.heading for curve in shown))
        figure, axes = plt.subplots(1, len(headings), figsize=(5 * len(headings), 5), squeeze=False)
        for axis, heading in zip(axes.flat, headings, strict=True):
            for curve in (curve for curve in shown if curve.heading == heading):
                label = f"{curve.source} {curve.search}".strip()
                axis.loglog(curve.x, curve.y, styles[curve.search], color=colours[curve.source], label=label)
            axis.set_title(heading, fontsize=9)
            axis.set_xlabel(against)
            axis.grid(which="both", alpha=0.3)
            axis.legend(fontsize=6)
        drawn.append(path.with_name(f"{path.stem}-{against}.png"))
        figure.tight_layout()
        figure.savefig(drawn[-1], dpi=120)
        plt.close(figure)
    return drawn


if __name__ == "__main__":
    main()
