"""The plots of a model: data in, axes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from longleaf.metrics import Calibration
from longleaf.metrics._frequency import BINS, frequency_bins
from longleaf.report import canvas
from longleaf.report.answers import Answer
from longleaf.report.canvas import BLUE, GREEN, GRID, INK, MUTED, ORANGE, PURPLE
from longleaf.report.markup import counted
from longleaf.report.measures import Cost, CountBin, LabelChange, Sizes
from longleaf.report.problem import Floats, Ints

BIN_COLOURS = (BLUE, PURPLE, ORANGE, GREEN)
DIAL_COLOURS = (BLUE, PURPLE, ORANGE)
PLACE_COLOURS = (GREEN, BLUE, ORANGE, PURPLE, MUTED)
FEW = 10
"""Points for fewer suggestions are hollow, as their share is unreliable."""


def frequency(counts: Ints) -> Axes:
    """Draw how often each label occurs in training, the most frequent first."""
    axes = canvas.new_axes("Labels by frequency", "label, most frequent first", "training rows")
    bins = frequency_bins(counts.astype(np.float64))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    place = np.arange(1, len(order) + 1)
    for number, colour in enumerate(BIN_COLOURS[:3]):
        inside = bins[order] == number
        if inside.any():
            label = f"{BINS[number]}: {inside.sum():,}"
            x, y = place[inside], counts[order][inside]
            axes.plot(x, y, color=colour, label=label, marker="o" if len(x) < 2 else "", linewidth=2.2)
            axes.fill_between(x, y, 0.8, color=colour, alpha=0.14, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.8)
    canvas.plain_log_ticks(axes, "xy")
    canvas.add_legend(axes)
    return axes


def dial(answers: Sequence[Answer], name: str, places: Sequence[int], title: str) -> Axes:
    """Draw a metric at several ranks against tail, with bootstrap bands."""
    axes = canvas.new_axes(title, "tail: common to rare", "percent")
    tails = [one.tail for one in answers]
    for at, colour in zip(places, PLACE_COLOURS * len(places), strict=False):
        key = f"{name}@{at}"
        low, high = zip(*(one.bands[key] for one in answers), strict=True)
        axes.fill_between(tails, low, high, color=colour, alpha=0.16, linewidth=0)
        axes.plot(tails, [one.metrics[key] for one in answers], color=colour, marker="o", label=key)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    canvas.add_legend(axes, 5)
    return axes


def bin_recall(answers: Sequence[Answer], k: int) -> Axes:
    """Draw recall by frequency for a few values of tail, with bootstrap bars."""
    n_bins = 3 + answers[0].bins[3].is_judged  # unseen labels only if a row has one
    names = [one.name for one in answers[0].bins[:n_bins]]
    axes = canvas.new_axes(f"Recall@{k} of {', '.join(names)}", "", "percent")
    wide = 0.8 / len(answers)
    for number, (one, colour) in enumerate(zip(answers, DIAL_COLOURS, strict=True)):
        recall = [group.recall for group in one.bins[:n_bins]]
        bands = [one.bands[f"{name}_recall@{k}"] for name in names]
        x = np.arange(n_bins) + (number - (len(answers) - 1) / 2) * wide
        axes.bar(x, recall, wide * 0.9, color=colour, alpha=0.75, label=f"tail {one.tail:g}")
        low, high = zip(*bands, strict=True)
        axes.vlines(x, low, high, color=INK, linewidth=1.1)
    ticks = [f"{group.name}\n{counted(group.labels, 'label')}" for group in answers[0].bins[:n_bins]]
    axes.set_xticks(np.arange(n_bins), ticks)
    axes.grid(axis="x", visible=False)
    canvas.add_legend(axes)
    return axes


def count_recall(bins: Sequence[CountBin], tails: Sequence[float], k: int) -> Axes:
    """Draw recall against the number of training rows of a label."""
    title = f"Recall@{k} by training rows"
    axes = canvas.new_axes(title, "training rows of a label", "percent")
    x = np.arange(len(bins))
    for number, (tail, colour) in enumerate(zip(tails, DIAL_COLOURS, strict=True)):
        axes.plot(x, [one.recall[number] for one in bins], color=colour, marker="o", label=f"tail {tail:g}")
    axes.set_xticks(x, [f"{one.low}+" if one.low > 1 else "1" for one in bins])
    axes.set_ylim(bottom=0)
    canvas.add_legend(axes)
    return axes


def reliability(series: Mapping[str, Calibration], title: str, before_ece: str = "ECE ") -> Axes:
    """Draw how often suggestions of a given probability are correct, with Wilson intervals and ECE."""
    axes = canvas.new_axes(title, "predicted probability", "share correct")
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    colours = (BLUE, ORANGE) if len(series) == 2 else BIN_COLOURS
    for (label, found), colour in zip(series.items(), colours, strict=False):
        x, y = [one.probability for one in found.bins], [one.share for one in found.bins]
        axes.plot(x, y, color=colour, label=f"{label}: {before_ece}{found.ece:.1f}", linewidth=1.1)
        for one in found.bins:
            low, high = one.interval
            axes.plot([one.probability] * 2, [low, high], color=colour, linewidth=0.9, alpha=0.6)
            filled = one.pairs >= FEW
            axes.plot(
                one.probability, one.share, "o", color=colour, fillstyle="full" if filled else "none",
                markersize=4.5,
            )  # fmt: skip
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    canvas.percent_ticks(axes)
    canvas.add_legend(axes, 4)
    return axes


def sizes(found: Sizes) -> Axes:
    """Draw F1 against the number of labels per row: fixed numbers, and as many as are likely."""
    axes = canvas.new_axes("F1 by number of labels", "labels per row, mean", "percent")
    x, y = [one.labels for one in found.fixed], [one.f1 for one in found.fixed]
    axes.plot(x, y, color=BLUE, marker="o", label="the same number for every row")
    auto = found.auto
    axes.axhline(auto.f1, color=ORANGE, linewidth=1, linestyle=(0, (4, 3)))
    axes.plot(auto.labels, auto.f1, "D", color=ORANGE, markersize=7, label="as many as are likely")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.1 * max([*y, auto.f1, 1.0]))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 5, 10]))
    canvas.add_legend(axes, 2)
    return axes


def nodes(answers: Sequence[Answer], all_nodes: int) -> Axes:
    """Draw how many node classifiers rows need; the line marks an exhaustive search."""
    axes = canvas.new_axes("Nodes visited per row", "node classifiers evaluated", "rows")
    values = [np.maximum(one.ranking.evaluations, 1) for one in answers]
    low, high = min(one.min() for one in values), max(max(one.max() for one in values), all_nodes)
    edges = np.geomspace(low * 0.95, max(high, low * 1.5) * 1.05, 36)
    for one, own, colour in zip(answers, values, (BLUE, ORANGE), strict=True):
        label = f"tail {one.tail:g}: {own.mean():,.0f} on average"
        axes.hist(own, edges.tolist(), color=colour, alpha=0.5, label=label)
    axes.axvline(all_nodes, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        f"all {all_nodes:,}", (all_nodes, 0.97), (-4, 0), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="right", va="top", fontsize=8.5, color=INK,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.grid(axis="x", visible=False)
    canvas.plain_log_ticks(axes, "x")
    canvas.add_legend(axes, 2)
    return axes


def row_times(costs: Mapping[str, Cost]) -> Axes:
    """Draw the time of single rows against the nodes visited."""
    axes = canvas.new_axes("Time per single row", "node classifiers evaluated", "milliseconds, one thread")
    for (label, cost), colour in zip(costs.items(), (BLUE, ORANGE), strict=True):
        text = f"{label}: {np.median(cost.milliseconds):.2g} ms (median)"
        x = np.maximum(cost.evaluations, 1)
        axes.plot(x, cost.milliseconds, "o", color=colour, alpha=0.45, label=text, markeredgewidth=0)
    slowest = max(float(np.percentile(cost.milliseconds, 97)) for cost in costs.values())
    axes.set_ylim(0, slowest * 1.15)
    axes.set_xscale("log")
    canvas.plain_log_ticks(axes, "x")
    canvas.add_legend(axes, 2)
    return axes


def gained_and_lost(changes: Sequence[LabelChange], title: str) -> Axes:
    """Draw the hits gained per label against its frequency; coinciding points are drawn as a larger one."""
    axes = canvas.new_axes(title, "training rows of the label", "hits gained or lost")
    moved = [(max(one.count, 0.7), one.gained) for one in changes if one.gained]
    axes.axhline(0, color=MUTED, linewidth=0.8)
    if moved:
        places, times = np.unique(np.array(moved, np.float64), axis=0, return_counts=True)
        for colour, inside, what in (
            (ORANGE, places[:, 1] > 0, "gained"),
            (BLUE, places[:, 1] < 0, "lost"),
        ):
            label = f"{counted(times[inside].sum(), 'label')} {what}"
            area = 14 * np.sqrt(times[inside])
            x, y = places[inside].T
            axes.scatter(x, y, s=area, color=colour, alpha=0.55, linewidths=0, label=label)
        axes.set_xscale("log")
        canvas.plain_log_ticks(axes, "x")
        canvas.add_legend(axes)
    else:
        axes.text(0.5, 0.6, "no label gained or lost a hit", ha="center", color=MUTED)
        axes.set_xticks([])
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    return axes


def grid(
    values: Floats,
    a: Sequence[float],
    b: Sequence[float],
    own: tuple[float, float],
    title: str,
    limits: tuple[float, float],
    signed: bool = False,
) -> Axes:
    """Draw a value for every pair of constants; the frame marks the pair of this report."""
    axes = canvas.new_axes(title, "A", "B")
    low, high = limits
    for i, j in np.ndindex(values.shape):
        value = float(values[i, j])
        strength = (value - low) / (high - low) if high > low else 0.5
        colour = ORANGE if signed and value < 0 else GREEN
        axes.add_patch(_cell(i, j, colour, 0.08 + 0.5 * float(np.clip(strength, 0, 1))))
        text = f"{value:+.1f}" if signed else f"{value:.1f}"
        axes.text(i, j, text, ha="center", va="center", fontsize=9.5, color=INK)
    i, j = list(a).index(own[0]), list(b).index(own[1])
    axes.add_patch(_cell(i, j, INK, None))
    axes.set_xticks(range(len(a)), [f"{one:g}" for one in a])
    axes.set_yticks(range(len(b)), [f"{one:g}" for one in b])
    axes.set_xlim(-0.5, len(a) - 0.5)
    axes.set_ylim(-0.5, len(b) - 0.5)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_color(GRID)
    return axes


def _cell(i: int, j: int, colour: str, alpha: float | None) -> Rectangle:
    if alpha is None:
        return Rectangle((i - 0.47, j - 0.47), 0.94, 0.94, fill=False, edgecolor=colour, linewidth=1.2)
    return Rectangle((i - 0.48, j - 0.48), 0.96, 0.96, facecolor=colour, alpha=alpha, linewidth=0)
