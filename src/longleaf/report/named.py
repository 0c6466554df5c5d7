"""The sections that list labels by name: overview, gained and lost, hardest labels."""

from __future__ import annotations

from collections.abc import Sequence

from longleaf.metrics import Difference, compare
from longleaf.metrics._frequency import BINS
from longleaf.report import plots
from longleaf.report.answers import Answer
from longleaf.report.markup import NOTHING_TO_FIND, Html, counted, join, table, tag
from longleaf.report.measures import LEAST_TRUE, LabelChange, label_changes
from longleaf.report.problem import Problem
from longleaf.report.sections import Section, confidence, draw
from longleaf.report.study import Study

LISTED = 15
"""Number of labels listed on each side."""


def difference(problem: Problem, a: Answer, b: Answer, samples: int, seed: int) -> dict[str, Difference]:
    """Compare two answers with paired bootstrap intervals."""
    return compare(
        problem.truth,
        a.labels,
        b.labels,
        inverse_propensity=problem.inverse_propensity,
        counts=problem.counts,
        k=problem.places,
        n_samples=samples,
        random_state=seed,
    )


def overview(problem: Problem, studies: Sequence[Study], samples: int, seed: int) -> Section:
    """Return the most important metrics and the effect of tail on them."""
    keys = [f"{name}@{at}" for name in ("p", "f1", "psp") for at in problem.places]
    keys += [f"{name}_recall@{problem.k}" for name in BINS]
    content = []
    for study in studies:
        plain, rare = study.ends
        found = difference(problem, plain, rare, samples, seed)
        headings = (f"{study.letter}, percent" if study.letter else "percent", "tail 0", "tail 1", "change")
        empty = {f"{one.name}_recall@{problem.k}" for one in plain.bins if not one.is_judged}
        nothing = (NOTHING_TO_FIND,) * 3
        rows = [(_metric(key), *(nothing if key in empty else _cells(found[key]))) for key in keys]
        content += [tag("p", _sentence(problem, study, found), class_="headline")]
        content += [tag("p", one) for one in (_reliable(problem, study), _likely(study))]
        content += [table(f"overview{study.letter}", headings, rows)]
    return Section(
        "overview",
        "At a glance",
        "p@k is the share of the first k suggestions that is correct; f1@k, averaged over rows, also counts "
        "true labels that are missed; psp@k gives rare labels more weight, as a share of the best possible; "
        "recall@k is the share of the true labels that is found. A coloured change is clear: its 95 % "
        "interval, in small print, excludes 0.",
        body=join(content),
    )


def against(problem: Problem, studies: Sequence[Study], samples: int, seed: int) -> Section:
    """Compare two models on the same rows: differences, and the labels each finds more often."""
    a, b = studies
    content = []
    for number, tail in ((0, "tail 0"), (-1, "tail 1")):
        found = difference(problem, a.answers[number], b.answers[number], samples, seed)
        rows = [(_metric(key), *_cells(one)) for key, one in found.items() if one.a or one.b]
        name = f"against{tail[-1]}"
        content.append(table(name, (f"{tail}, percent", "A", "B", "B - A"), rows))
    changes = label_changes(problem, a.ends[1], b.ends[1])
    lists = _both_lists(problem, changes, ("A", "B"), ("found by B", "found by A"), "labels-against")
    return Section(
        "against",
        "A against B",
        f"Both models on the same rows, resampled together {samples:,} times (paired bootstrap). A coloured "
        "difference has an interval that excludes 0. Below are the labels that one model finds more often "
        "than the other at tail 1.",
        body=join([tag("div", join(content), class_="pair"), lists]),
    )


def changed(problem: Problem, studies: Sequence[Study]) -> Section:
    """List the labels gained and lost between tail 0 and tail 1."""
    k = problem.k
    read = (
        f"Each point is a label: how many more of its rows have it among the first {k} at tail 1 than at "
        "tail 0. Ideally, labels on the left (rare) gain and those on the right (frequent) lose little; "
        "large points are several labels."
    )
    content = []
    for study in studies:
        if study.letter:
            content.append(tag("h3", f"{study.letter}: {study.side.name}"))
        words = ("gained at tail 1", "lost at tail 1")
        content.append(
            _both_lists(problem, study.changes, ("tail 0", "tail 1"), words, f"changes{study.letter}")
        )
    title = f"Hits in the first {k}, tail 0 to 1"
    return Section(
        "changes",
        "Labels gained and lost",
        "The effect of tail 1 compared with tail 0 on each label.",
        [draw("changes", read, studies, lambda s: plots.gained_and_lost(s.changes, title))],
        join(content),
    )


def hardest(problem: Problem, studies: Sequence[Study]) -> Section:
    """List the labels that are missed most."""
    content = []
    for study in studies:
        if study.letter:
            content.append(tag("h3", f"{study.letter}: {study.side.name}"))
        rows = [
            (
                problem.names[one.change.label],
                "" if one.instead is None else f"{problem.names[one.instead]} ({one.times})",
                f"{one.change.count:,}",
                f"{one.change.true:,}",
                f"{one.change.before:,}",
                f"{one.change.after:,}",
            )
            for one in study.hardest
        ]
        headings = (
            "label",
            "most often suggested instead",
            "training rows",
            "true rows",
            "found, tail 0",
            "tail 1",
        )
        named = table(f"hardest{study.letter}", headings, rows, words=2)
        none = tag(
            "p", f"Every such label with at least {LEAST_TRUE} true rows is found in at least half of them."
        )
        content.append(named if rows else none)
    return Section(
        "hardest",
        "The hardest labels",
        f"Labels seen in training, with at least {LEAST_TRUE} true rows here, that are found in less than "
        "half of them both at tail 0 and at tail 1, worst first. The label suggested instead is the wrong "
        f"one that was most often among the first {problem.k} (times in brackets) where this one was missed "
        "at tail 1: it may be a near synonym, or the true labels may be incomplete.",
        body=join(content),
    )


def _both_lists(
    problem: Problem,
    changes: Sequence[LabelChange],
    columns: tuple[str, str],
    titles: tuple[str, str],
    name: str,
) -> Html:
    lists = []
    falling = sorted(changes, key=lambda one: (one.gained, one.count, one.label))
    for title, ordered, sign in ((titles[0], changes, 1), (titles[1], falling, -1)):
        moved = [one for one in ordered if sign * one.gained > 0]
        rows = [
            (
                problem.names[one.label],
                f"{one.count:,}",
                f"{one.true:,}",
                f"{one.before:,} → {one.after:,}",
                tag("b", f"{one.gained:+d}", class_="up" if sign > 0 else "down"),
            )
            for one in moved[:LISTED]
        ]
        headings = (title, "training rows", "true rows", f"hits: {columns[0]} → {columns[1]}", "")
        shown = table(f"{name}-{'gained' if sign > 0 else 'lost'}", headings, rows)
        total = sum(one.gained for one in moved)
        note = "No label."
        if moved:
            which = "all" if len(moved) <= LISTED else f"the first {LISTED}"
            hits = "hit" if abs(total) == 1 else "hits"
            note = f"{counted(len(moved), 'label')} in total, {total:+,d} {hits}; {which} shown."
        lists.append(tag("div", Html(shown + tag("p", note, class_="note"))))
    return tag("div", join(lists), class_="pair")


def _metric(key: str) -> str:
    """Return ``recall@5, tail`` for ``tail_recall@5``."""
    bin_name, _, rest = key.partition("_")
    return f"{rest}, {bin_name}" if rest else key


def _cells(one: Difference) -> tuple[str, str, Html]:
    kind = "" if not one.is_clear else "up" if one.difference > 0 else "down"
    interval = tag("small", f"{one.low:+.1f} to {one.high:+.1f}")
    change = Html(tag("b", f"{one.difference:+.2f}", class_=kind) + " " + interval)
    return f"{one.a:.2f}", f"{one.b:.2f}", change


def _sentence(problem: Problem, study: Study, found: dict[str, Difference]) -> Html:
    at, k = problem.places[0], problem.k
    first, scored, rare = (found[key] for key in (f"p@{at}", f"psp@{k}", f"tail_recall@{k}"))
    prefix = f"{study.letter}: at" if study.letter else "At"
    right = "the first suggestion is correct for" if at == 1 else f"the first {at} suggestions are correct in"
    rows = f"of {counted(problem.n_rows, 'row')}" if at == 1 else "of all cases"
    change = round(scored.b, 1) - round(scored.a, 1)
    moves = "stays at" if not change else f"{'rises' if change > 0 else 'falls'} from {scored.a:.1f} to"
    tail = f"recall of tail labels goes from {rare.a:.1f} to <b>{rare.b:.1f}&nbsp;%</b>, "
    tail = tail if study.answers[0].bins[2].is_judged else ""
    return Html(
        f"{prefix} tail 0, {right} <b>{first.a:.1f}&nbsp;%</b> {rows}. At tail 1, psp@{k} {moves} "
        f"<b>{scored.b:.1f}</b>, {tail}and p@{at} goes to {first.b:.1f}&nbsp;%."
    )


def _reliable(problem: Problem, study: Study) -> Html:
    """Say whether the probabilities of the suggestions at tail 0 are reliable."""
    found = study.by_place[problem.k]
    below, above = confidence(found)
    verdict = f"<b>{below}</b>"
    if below != above:
        verdict = f"<b>{below}</b> below 50&nbsp;%, <b>{above}</b> above"
        if NOTHING_TO_FIND in (below, above):
            verdict = f"<b>{below if above == NOTHING_TO_FIND else above}</b>"
    prefix = f"{study.letter}: the" if study.letter else "The"
    return Html(
        f"{prefix} <a href='#reliability'>probabilities</a> are {verdict}: of the first {problem.k} "
        f"suggestions at tail 0, {100 * found.share:.1f}&nbsp;% are correct, their mean probability is "
        f"{100 * found.probability:.1f}&nbsp;%, and the calibration error (ECE@{problem.k}) is "
        f"{found.ece:.1f} points."
    )


def _likely(study: Study) -> Html:
    """Say what suggesting as many labels as are likely leads to, beside the best fixed number."""
    found, change = study.sizes, study.sizes.over_best
    prefix = f"{study.letter}: suggesting" if study.letter else "Suggesting"
    many = "1 label" if found.best.name == "1" else f"{found.best.name} labels"
    none = "no row gets none" if not found.auto.none else f"{found.auto.none:.1f}&nbsp;% of the rows get none"
    clear = "" if change.is_clear else " (the difference is not clear)"
    return Html(
        f"{prefix} <a href='#sizes'>as many labels as are likely</a> leads to an F1 of "
        f"<b>{found.auto.f1:.1f}&nbsp;%</b> with {found.auto.labels:.1f} labels per row on average, and "
        f"{none}; {many} for every row, the best fixed number, leads to {found.best.f1:.1f}&nbsp;%{clear}."
    )
