"""The sections of a report: plots, how to read them, and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes

from longleaf.metrics import Calibration, FrequencyBin, ReliabilityBin
from longleaf.report import canvas, plots
from longleaf.report.markup import NOTHING_TO_FIND, Html, folded, join, table, tag
from longleaf.report.measures import CountBin
from longleaf.report.problem import Floats, Problem
from longleaf.report.study import Study
from longleaf.search.auto_k import DEFAULT_MOST

EMPTY = Html("")
SMALL_GAP = 0.02
"""A distance between mean probability and correct share that is too small to speak of."""
RELIABLE = "reliable"


@dataclass(frozen=True, eq=False)
class Plot:
    """The same plot for every model, and a sentence on how to read it."""

    name: str
    read: str
    axes: Sequence[Axes]


@dataclass(frozen=True, eq=False)
class Section:
    """A heading, a lead text, plots, and what follows them."""

    name: str
    title: str
    lead: str
    plots: list[Plot] = field(default_factory=list)
    body: Html = EMPTY


def draw(name: str, read: str, studies: Sequence[Study], one: Callable[[Study], Axes]) -> Plot:
    """Draw a plot for every model with the same axis limits; with two models, titles name the model."""
    drawn = [one(study) for study in studies]
    canvas.share_limits(drawn)
    for axes, study in zip(drawn, studies, strict=True):
        if study.letter:
            canvas.retitle(axes, f"{study.letter}: {axes.get_title(loc='left')}")
    return Plot(name, read, drawn)


def long_tail(problem: Problem, studies: Sequence[Study]) -> Section:
    """Show how often labels occur."""
    read = (
        "Each point is a label. A straight line falling on the two logarithmic axes is a long tail: "
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
    headings = ("labels", "number", "training rows each", "% of the true labels evaluated here")
    return Section(
        "labels",
        "The long tail",
        "The head is the fewest labels that hold half of all training assignments, head and torso hold "
        "80 %, and the tail is the rest, the rarest always. Unseen labels have no training row: they can "
        "only be found by their names, if the model was trained with names, and otherwise count as missed.",
        [draw("label-frequency", read, studies, lambda s: plots.frequency(s.side.model.label_counts_))],
        table("frequency", headings, rows),
    )


def dial(problem: Problem, studies: Sequence[Study]) -> Section:
    """Show quality against tail."""
    places = problem.places
    p = "The share of the first k suggestions that is correct. Its fall is the cost of a higher tail."
    psp = (
        "The same, but rare labels have more weight (their inverse propensity), as a share of the best "
        "possible. Its rise is the benefit of a higher tail."
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
        "Favour common or rare labels",
        "The tail dial: one model with eleven values of tail. At 0 it suggests the most probable labels, at "
        "1 rare labels have more weight. Bands contain 95 % of bootstrap resamples of the rows: where bands "
        "are far apart, the order is unlikely to change on other rows.",
        drawn,
        join(tables),
    )


def recall(problem: Problem, studies: Sequence[Study]) -> Section:
    """Show recall by frequency."""
    k = problem.k
    bars = f"The share of the true labels of each kind among the first {k}; thin bars are 95 % bands."
    lines = (
        "The same in finer steps of frequency, doubling each time: the curve rises where labels have "
        "enough training rows."
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
            (
                f"{one.name} {_rows(one)}",
                f"{one.labels:,}",
                *(f"{value:.2f}" for value in one.recall),
            )
            for one in study.count_bins
        ]
        numbers = table(f"recall{study.letter}", ("labels", "number", *tails), rows)
        tables.append(folded(_titled(f"The numbers: recall@{k} in percent", study), numbers))
    lead = "Averages are dominated by frequent labels; here, labels are evaluated separately by frequency."
    return Section("recall", "Frequent and rare labels", lead, drawn, join(tables))


def reliability(problem: Problem, studies: Sequence[Study]) -> Section:
    """Show whether probabilities are calibrated."""
    whole = (
        "How many of the suggestions with about this probability are correct. On the dashed line "
        "probabilities are reliable, above it the model is under-confident, below it over-confident. "
        f"Hollow points stand for fewer than {plots.FEW} suggestions."
    )
    apart = "The suggestions for both values of tail, by how frequent the label is in training."
    drawn = [
        draw("reliability", whole, studies, lambda s: plots.reliability(s.by_dial, "Reliability by dial")),
        draw(
            "reliability-bins",
            apart,
            studies,
            lambda s: plots.reliability(s.by_bin, "Reliability by frequency, with ECE", ""),
        ),
    ]
    rows = [
        (f"{study.letter} {name}".strip(), *_calibration(found))
        for study in studies
        for name, found in (
            {f"tail 0, first {at}": one for at, one in study.by_place.items() if at < problem.k}
            | study.by_dial
            | study.by_bin
        ).items()
    ]
    headings = (
        "suggestions", "below 50 %", "above 50 %", "number", "mean probability, %", "correct, %",
        "ECE, points", "Brier, %",
    )  # fmt: skip
    lead = (
        "A number of labels, a threshold or an expected gain is only as good as the probabilities that it is "
        "based on. ECE, the expected calibration error, is the mean distance between the probability of "
        "suggestions and the share of them that is correct, in ten bins of equal width; the Brier score is "
        "the mean squared error of the probabilities. Both are better if smaller. Unless the table says "
        f"otherwise, the first {problem.k} suggestions of each row are counted."
    )
    return Section(
        "reliability",
        "Are the probabilities reliable?",
        lead,
        drawn,
        table("calibration", headings, rows, words=3),
    )


def confidence(found: Calibration) -> tuple[str, str]:
    """Say in a word how reliable the probabilities below 50 % are, and those from 50 % up."""
    below, above = ([one for one in found.bins if (one.low < 0.5) is low] for low in (True, False))
    return _confidence(below), _confidence(above)


def _confidence(bins: Sequence[ReliabilityBin]) -> str:
    if not bins:
        return NOTHING_TO_FIND
    pairs = sum(one.pairs for one in bins)
    gap = sum(one.right - one.pairs * one.probability for one in bins) / pairs
    variance = sum(one.pairs * one.probability * (1 - min(one.probability, 1.0)) for one in bins)
    if abs(gap) < max(SMALL_GAP, 1.96 * variance**0.5 / pairs):
        return RELIABLE
    return "under-confident" if gap > 0 else "over-confident"


def sizes(problem: Problem, studies: Sequence[Study]) -> Section:
    """Show fixed numbers of labels beside as many as are likely."""
    read = (
        f"The curve suggests the same number of labels, 1 to {len(studies[0].sizes.fixed)}, for every row. "
        "The diamond chooses the number for each row: it should be above the curve."
    )
    rows = []
    for study in studies:
        found = study.sizes
        kept = [one for at, one in enumerate(found.fixed, 1) if at in problem.places or one is found.best]
        for one in (*kept, found.auto):
            name = "as many as are likely" if one is found.auto else one.name
            best = " (the best number)" if one is found.best else ""
            figures = (one.precision, one.recall, one.f1)
            rows.append(
                (
                    f"{study.letter} {name}{best}".strip(),
                    *(f"{value:.2f}" for value in figures),
                    f"{one.labels:.2f}",
                    f"{one.none:.1f}",
                )
            )
    headings = (
        "labels per row", "precision, %", "recall, %", "F1, %", "labels, mean", "rows without labels, %",
    )  # fmt: skip
    return Section(
        "sizes",
        "How many labels?",
        "As many as are likely (-k auto) returns, for each row, the first labels up to the number whose "
        f"expected F1 is largest by their probabilities, at most {DEFAULT_MOST}; a row for which nothing is "
        "likely gets none. It relies on reliable probabilities, such as those of a model trained with names. "
        "Precision, recall and F1 are means over rows, at tail 0.",
        [draw("sizes", read, studies, lambda s: plots.sizes(s.sizes))],
        table("sizes", headings, rows),
    )


def cost(problem: Problem, studies: Sequence[Study]) -> Section:
    """Show nodes visited and time."""
    nodes = (
        "How many node classifiers were evaluated to find a row's provably best labels, some of them more "
        "than once; the dashed line is each of them once."
    )
    times = "Each point is a row searched alone: the more nodes a row needs, the longer it takes."
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
        "dial", "nodes, mean", "95 % need at most", "% of all nodes", "ms per row, all at once",
        "ms alone, median", "ms alone, 95 %",
    )  # fmt: skip
    lead = "Search stops as soon as no better label can follow. Times are those of the machine that ran it."
    return Section("cost", "Cost per row", lead, drawn, table("costs", headings, rows))


def constants(problem: Problem, studies: Sequence[Study]) -> Section:
    """Show the sensitivity to A and B."""
    k = problem.k
    own = [study.sensitivity.own for study in studies]
    gains = [study.sensitivity.fixed - study.sensitivity.plain for study in studies]
    limits = min(one.min() for one in own), max(one.max() for one in own)
    most = max(float(np.abs(one).max()) for one in gains)
    read_own = (
        f"psp@{k} at tail 1 if prediction and evaluation use these constants; the frame marks this report's."
    )
    read_gain = (
        f"The gain in psp@{k} of tail 1, predicted as in this report, over tail 0 when evaluated with "
        "other constants: where all values are above 0, the gain does not depend on the choice."
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
        "Sensitivity to A and B",
        "The weight of rare labels comes from a model of how often annotators miss labels, with two "
        f"constants. This report uses A = {problem.propensity[0]:g} and B = {problem.propensity[1]:g}; "
        "a larger A favours rare labels more.",
        plots_of_both,
        join(_pair_table(study, k) for study in studies),
    )


def _pair_table(study: Study, k: int) -> Html:
    """Return the numbers behind both plots of the constants."""
    found = study.sensitivity
    rows = [
        (
            f"{found.a[i]:g}, {found.b[j]:g}",
            *(f"{one[i, j]:.2f}" for one in (found.plain, found.fixed, found.own)),
        )
        for i, j in np.ndindex(found.own.shape)
    ]
    headings = (
        "evaluated with A, B",
        "tail 0",
        "tail 1, constants of this report",
        "tail 1, constants of this row",
    )
    return folded(
        _titled(f"The numbers: psp@{k} in percent", study), table(f"pairs{study.letter}", headings, rows)
    )


def _titled(title: str, study: Study) -> str:
    return f"{study.letter}: {title}" if study.letter else title


def _rows(one: CountBin) -> str:
    return "row" if one.high == 1 else "rows"


def _recall(one: FrequencyBin) -> str:
    return f"{one.recall:.2f}" if one.is_judged else NOTHING_TO_FIND


def _banded(value: float, band: tuple[float, float]) -> Html:
    low, high = band
    return Html(f"{value:.2f} " + tag("small", f"{low:.1f} to {high:.1f}"))


def _calibration(found: Calibration) -> tuple[str, ...]:
    """Return verdicts, number of suggestions, mean probability, correct share, ECE and Brier score."""
    shares = f"{100 * found.probability:.1f}", f"{100 * found.share:.1f}"
    return *confidence(found), f"{found.pairs:,}", *shares, f"{found.ece:.2f}", f"{found.brier:.2f}"
