"""The sections of a report: what each plot shows, how to read it, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes

from longleaf.metrics import FrequencyBin
from longleaf.report import canvas, plots
from longleaf.report.markup import NOTHING_TO_FIND, Html, folded, join, table, tag
from longleaf.report.measures import Bucket, calibration_error
from longleaf.report.problem import Floats, Problem
from longleaf.report.study import Study

EMPTY = Html("")


@dataclass(frozen=True, eq=False)
class Plot:
    """The same plot of every model, and how to read it in a sentence."""

    name: str
    read: str
    axes: Sequence[Axes]


@dataclass(frozen=True, eq=False)
class Section:
    """A heading, what it is about, plots, and what stands below them."""

    name: str
    title: str
    lead: str
    plots: list[Plot] = field(default_factory=list)
    body: Html = EMPTY


def draw(name: str, read: str, studies: Sequence[Study], one: Callable[[Study], Axes]) -> Plot:
    """Draw a plot for every model, all with the same axes, and name the model where there are two."""
    drawn = [one(study) for study in studies]
    canvas.share_limits(drawn)
    for axes, study in zip(drawn, studies, strict=True):
        if study.letter:
            canvas.retitle(axes, f"{study.letter}: {axes.get_title(loc='left')}")
    return Plot(name, read, drawn)


def long_tail(problem: Problem, studies: Sequence[Study]) -> Section:
    """How often labels occur."""
    read = (
        "Each point is a label. A straight fall on these two logarithmic axes is a long tail: "
        "a few labels have most of the training rows, and most labels have few."
    )
    rows = [
        (
            study.letter + " " + one.name if study.letter else one.name,
            f"{one.labels:,}",
            f"{one.min_count:,} to {one.max_count:,}" if one.max_count else "none",
            f"{one.share:.1f}",
        )
        for study in studies[:1]
        for one in study.answers[0].bins
    ]
    headings = ("labels", "number", "training rows each", "% of the true labels judged here")
    return Section(
        "labels",
        "The long tail",
        "The head is the fewest labels that hold half of all training assignments, head and torso hold "
        "80 %, and the tail is the rest, the rarest always. Unseen labels are only in the rows judged here; "
        "nobody can find them, and they count as missed.",
        [draw("label-frequency", read, studies, lambda s: plots.frequency(s.side.model.label_counts_))],
        table("frequency", headings, rows),
    )


def dial(problem: Problem, studies: Sequence[Study]) -> Section:
    """Quality against the tail dial."""
    places = problem.places
    p = "The share of the first k suggestions that is right: where it falls, that is the price of the dial."
    psp = (
        "The same, but a rare label counts for more (its inverse propensity), over the best reachable. "
        "Where it rises, that is what the dial buys."
    )
    drawn = [
        draw("precision", p, studies, lambda s: plots.dial(s.answers, "p", places, "Precision")),
        draw(
            "psp", psp, studies, lambda s: plots.dial(s.answers, "psp", places, "Propensity-scored precision")
        ),
    ]
    names = [f"{name}@{at}" for name in ("p", "psp") for at in places]
    tables = [
        folded(
            _titled("The numbers, with their bands", study),
            table(
                f"dial{study.letter}",
                ("tail", *names),
                ((f"{one.tail:g}", *(_banded(one.metrics[key], one.bands[key]) for key in names))
                for one in study.answers),
            ),
        )
        for study in studies
    ]  # fmt: skip
    return Section(
        "dial",
        "The tail dial",
        "One model, asked eleven times: at 0 it names the likeliest labels, at 1 rare labels count for more. "
        "Bands hold 95 % of resamples of the rows (bootstrap): where bands are far apart, other rows would "
        "hardly turn the order round.",
        drawn,
        join(tables),
    )


def recall(problem: Problem, studies: Sequence[Study]) -> Section:
    """Recall by frequency."""
    k = problem.k
    bars = f"How many of the true labels of each kind are among the first {k}; the thin bars are 95 % bands."
    lines = (
        "The same in finer steps of frequency, each twice as high as the one before: "
        "look where the curve begins to rise, that many examples a label needs."
    )
    drawn = [
        draw("recall-bins", bars, studies, lambda s: plots.bin_recall(s.shown, k)),
        draw(
            "recall-counts",
            lines,
            studies,
            lambda s: plots.count_recall(s.count_bins, [one.tail for one in s.shown], k),
        ),
    ]
    tables = []
    for study in studies:
        tails = [f"tail {one.tail:g}" for one in study.shown]
        rows = [
            (bins[0].name, f"{bins[0].labels:,}", *map(_recall, bins))
            for bins in zip(*(one.bins for one in study.shown), strict=True)
        ]
        rows += [
            (f"{one.name} rows", f"{one.labels:,}", *(f"{value:.2f}" for value in one.recall))
            for one in study.count_bins
        ]
        numbers = table(f"recall{study.letter}", ("labels", "number", *tails), rows)
        tables.append(folded(_titled(f"The numbers: recall@{k} in percent", study), numbers))
    lead = "Averages are ruled by frequent labels; here, labels of different frequency are judged apart."
    return Section("recall", "Frequent and rare labels", lead, drawn, join(tables))


def reliability(problem: Problem, studies: Sequence[Study]) -> Section:
    """Whether probabilities can be believed."""
    whole = (
        "Of all suggestions that the model gave about this probability, how many were right; on the dashed "
        "line probabilities are true, below it the model is too sure of itself, above it too shy. "
        f"Hollow points stand for fewer than {plots.FEW} suggestions."
    )
    apart = "The suggestions of both settings of the dial, apart for frequent and rare labels."
    drawn = [
        draw("reliability", whole, studies, lambda s: plots.reliability(s.by_dial, "Reliability by dial")),
        draw(
            "reliability-bins",
            apart,
            studies,
            lambda s: plots.reliability(s.by_bin, "Reliability by frequency"),
        ),
    ]
    rows = [
        (f"{study.letter} {name}".strip(), *_calibration(buckets))
        for study in studies
        for name, buckets in (study.by_dial | study.by_bin).items()
    ]
    headings = ("suggestions", "number", "mean probability, %", "right, %", "off by, points")
    lead = (
        "A threshold or an expected gain is only as good as the probabilities. The last column is the mean "
        "distance between a suggestion's probability and the share of right ones near it."
    )
    return Section(
        "reliability", "Can the probabilities be believed?", lead, drawn, table("calibration", headings, rows)
    )


def cost(problem: Problem, studies: Sequence[Study]) -> Section:
    """Nodes and time."""
    nodes = (
        "How many node classifiers were evaluated to find a row's provably best labels; the dashed line is "
        "what looking at every label would take."
    )
    times = "Each point is a row asked alone: the more nodes a row needs, the longer it takes."
    drawn = [
        draw("nodes", nodes, studies, lambda s: plots.nodes(s.ends, s.n_nodes)),
        draw("time", times, studies, lambda s: plots.row_times(s.costs)),
    ]
    rows = []
    for study in studies:
        for one, single in zip(study.ends, study.costs.values(), strict=True):
            visited, alone = one.ranking.evaluations, single.milliseconds
            rows.append(
                (
                    f"{study.letter} tail {one.tail:g}".strip(),
                    f"{visited.mean():,.1f}",
                    f"{np.percentile(visited, 95):,.0f}",
                    f"{100 * visited.mean() / study.n_nodes:.1f}",
                    f"{1000 * one.ranking.seconds / problem.n_rows:.3g}",
                    f"{np.median(alone):.3g}",
                    f"{np.percentile(alone, 95):.3g}",
                )
            )
    headings = (
        "dial", "nodes, mean", "95 % need at most", "% of all nodes", "ms a row, all at once",
        "ms alone, median", "ms alone, 95 %",
    )  # fmt: skip
    lead = (
        "Search stops as soon as nothing better can follow. Times are of the machine that wrote this report."
    )
    return Section("cost", "What a row costs", lead, drawn, table("costs", headings, rows))


def constants(problem: Problem, studies: Sequence[Study]) -> Section:
    """Sensitivity to A and B."""
    k = problem.k
    own = [study.sensitivity.own for study in studies]
    gains = [study.sensitivity.fixed - study.sensitivity.plain for study in studies]
    limits = min(one.min() for one in own), max(one.max() for one in own)
    most = max(float(np.abs(one).max()) for one in gains)
    read_own = (
        f"psp@{k} at tail 1 if both the dial and the judge use these constants; the frame is this report's."
    )
    read_gain = (
        f"What tail 1, dialled as in this report, gains in psp@{k} over tail 0 if the judge believes in "
        "other constants: where all are above 0, the gain does not hang on the choice."
    )

    def drawn(study: Study, values: Floats, title: str, scale: tuple[float, float], signed: bool) -> Axes:
        found = study.sensitivity
        return plots.grid(values, found.a, found.b, problem.propensity, title, scale, signed)

    titles = f"psp@{k} at tail 1", f"psp@{k}: tail 1 over tail 0"
    plots_of_both = [
        draw("constants", read_own, studies, lambda s: drawn(s, s.sensitivity.own, titles[0], limits, False)),
        draw(
            "constants-gain",
            read_gain,
            studies,
            lambda s: drawn(s, s.sensitivity.fixed - s.sensitivity.plain, titles[1], (0, most), True),
        ),
    ]
    return Section(
        "constants",
        "Does it hang on A and B?",
        "What a rare label is worth comes from a model of how often annotators forget labels, with two "
        f"constants. This report uses A = {problem.propensity[0]:g} and B = {problem.propensity[1]:g}; "
        "a larger A favours rare labels more.",
        plots_of_both,
        join(_pair_table(study, k) for study in studies),
    )


def _pair_table(study: Study, k: int) -> Html:
    """Give the numbers behind both plots of the constants."""
    found = study.sensitivity
    rows = [
        (
            f"{found.a[i]:g}, {found.b[j]:g}",
            *(f"{one[i, j]:.2f}" for one in (found.plain, found.fixed, found.own)),
        )
        for i, j in np.ndindex(found.own.shape)
    ]
    headings = (
        "judged by A, B",
        "tail 0",
        "tail 1, dialled as in this report",
        "tail 1, dialled by this pair",
    )
    return folded(
        _titled(f"The numbers: psp@{k} in percent", study), table(f"pairs{study.letter}", headings, rows)
    )


def _titled(title: str, study: Study) -> str:
    return f"{study.letter}: {title}" if study.letter else title


def _recall(one: FrequencyBin) -> str:
    return f"{one.recall:.2f}" if one.is_judged else NOTHING_TO_FIND


def _banded(value: float, band: tuple[float, float]) -> Html:
    low, high = band
    return Html(f"{value:.2f} " + tag("small", f"{low:.1f} to {high:.1f}"))


def _calibration(buckets: Sequence[Bucket]) -> tuple[str, ...]:
    """Give the number of suggestions, their mean probability, the share of right ones and the error."""
    pairs = max(sum(one.pairs for one in buckets), 1)
    said = 100.0 * sum(one.pairs * one.probability for one in buckets) / pairs
    right = 100.0 * sum(one.right for one in buckets) / pairs
    return f"{pairs:,}", f"{said:.1f}", f"{right:.1f}", f"{calibration_error(buckets):.2f}"
