"""Example rows, chosen by a rule, with the models' suggestions and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import NamedTuple

import numpy as np

from longleaf.explain.mapped import explain_row
from longleaf.explain.records import SimilarRecord
from longleaf.explain.words import NameMatch, Span
from longleaf.report.answers import Answer
from longleaf.report.markup import Html, counted, folded, join, tag, text
from longleaf.report.problem import Problem
from longleaf.report.sections import Section
from longleaf.report.study import Study
from longleaf.text.fields import joined_text

WORDS = 6
"""Number of words or features listed that support a label, and that count against it."""
CHARACTERS = 700
"""Length of the excerpt shown in colour, taken where the contributions are largest."""
SHADES = 4
FAINT = 0.08
SMALL = 0.005
"""Smaller contributions, which would read 0.00, are not listed."""


Reasons = dict[tuple[str, int], Html]
"""Explanations of suggestions for a row, by model letter and label."""


class Column(NamedTuple):
    """One list of suggestions: a model and a value of tail."""

    study: Study
    answer: Answer

    @property
    def title(self) -> str:
        """The heading of the column."""
        return f"{self.study.letter}, tail {self.answer.tail:g}".removeprefix(", ")


def examples(problem: Problem, studies: Sequence[Study]) -> Section:
    """Show a few rows, chosen by a rule."""
    columns = [Column(study, one) for number in (0, 1) for study in studies for one in [study.ends[number]]]
    two = len(studies) > 1
    before, after = (columns[2], columns[3]) if two else (columns[0], columns[1])
    what = "B, compared with A at tail 1," if two else "Tail 1, compared with tail 0,"
    shown = [
        _example(problem, row, f"{what} {rule}", columns)
        for rule, row in choose_rows(problem, before.answer, after.answer).items()
    ]
    explained = (
        "Open a suggestion to see which words of the text support it (green) and count against it (orange)."
        if studies[0].side.tagger is not None
        else "Open a suggestion to see which features support it and which count against it."
    )
    lead = (
        "A check mark is a correct suggestion. Each is shown with its probability and the number of training "
        "rows of its label. " + explained
    )
    return Section("examples", "Example rows", lead, body=join(shown))


def choose_rows(problem: Problem, before: Answer, after: Answer) -> dict[str, int]:
    """Choose the rows where the summed gain of the hits grew most, fell most, and is the median."""
    gains = np.append(problem.inverse_propensity, 0.0)
    first, second = ((one.hits * gains[one.labels]).sum(axis=1) for one in (before, after))
    change = second - first
    chosen: dict[str, int] = {}
    if change.max() > 0:
        chosen["helps this row most"] = int(change.argmax())
    if change.min() < 0:
        chosen["harms this row most"] = int(change.argmin())
    n_true = np.diff(problem.truth.indptr)
    share = after.hits.sum(axis=1) / np.maximum(np.minimum(n_true, problem.k), 1)
    order = np.lexsort((np.arange(len(share)), share))
    free = [int(row) for row in order if n_true[row] and row not in chosen.values()]
    if free:
        chosen["has the median effect on this row: half of all rows fare better"] = free[len(free) // 2]
    return chosen


def _example(problem: Problem, row: int, rule: str, columns: Sequence[Column]) -> Html:
    true = problem.truth.indices[problem.truth.indptr[row] : problem.truth.indptr[row + 1]]
    found = {int(label) for one in columns for label in one.answer.labels[row]}
    chips = [
        tag("li", problem.names[label], class_="found" if label in found else "missed")
        for label in true.tolist()
    ]
    identity = problem.ids[row] if row < len(problem.ids) else None
    heading = f"Row {row}" if identity is None else f"Row {row}, {identity}"
    texts = columns[0].study.side.texts
    content = [tag("h3", heading), tag("p", f"{rule}.", class_="rule")]
    if texts:
        begin = shorten(joined_text(texts[row]), CHARACTERS // 2, placeholder=" …")
        content.append(tag("blockquote", begin))
    content.append(tag("p", "True labels; those that no list contains are crossed out:", class_="note"))
    content.append(tag("ul", join(chips), class_="chips"))
    reasons: Reasons = {}
    lists = [
        tag("div", join([tag("h4", one.title), _suggestions(problem, row, one, reasons, one is columns[-1])]))
        for one in columns
    ]
    content.append(tag("div", join(lists), class_="pair"))
    return tag("article", join(content))


def _suggestions(problem: Problem, row: int, column: Column, reasons: Reasons, is_last: bool) -> Html:
    side, answer = column.study.side, column.answer
    chance = answer.ranking.top.probabilities[row]
    lines: list[Html] = []
    for place, label in enumerate(answer.labels[row].tolist()):
        if label < 0:
            continue
        own = int(answer.ranking.own[row, place])
        right = bool(answer.hits[row, place])
        count = int(side.model.label_counts_[own])
        about = f"{100 * chance[place]:.1f} %, {counted(count, 'row') if count else 'no training row'}"
        name = tag("span", problem.names[label], class_="right" if right else "wrong")
        mark = tag("span", "✓" if right else "·", class_="mark")
        key = column.study.letter, own
        if key not in reasons:  # may already be explained for the other value of tail
            reasons[key] = _why(column, row, own)
        lines.append(
            folded(Html(f"{mark} {name} {tag('small', about)}"), reasons[key], is_open=is_last and not lines)
        )
    return join(lines)


def _why(column: Column, row: int, label: int) -> Html:
    side = column.study.side
    if side.tagger is None:
        found = explain_row(side.model, side.X[[row]], label)
        names = getattr(side.model, "feature_names_in_", None)
        pairs = [
            (str(names[one]) if names is not None else f"feature {one}", float(value))
            for one, value in zip(found.features.tolist(), found.contributions, strict=True)
        ]
        return _word_lists(sorted(pairs, key=lambda pair: -abs(pair[1])))
    whole = joined_text(side.texts[row])
    explained = side.tagger._suggester.explain(side.X, row, label, side.texts[row])
    words = _word_lists(explained.contributions, explained.match, explained.meaning)
    return join([words, _coloured(whole, explained.spans(whole)), _similar(explained.records)])


def _similar(records: Sequence[SimilarRecord]) -> Html:
    """List training records that carry the label, if the model keeps them."""
    if not records:
        return Html("")
    lines = [
        tag("li", join([tag("small", f"{one.similarity:.2f} · {one.id}"), Html(text(one.title))]))
        for one in records
    ]
    return join([tag("p", "Similar training records with this tag:", class_="words"), tag("ul", join(lines))])


def _word_lists(
    contributions: Sequence[tuple[str, float]],
    match: NameMatch | None = None,
    meaning: float | None = None,
) -> Html:
    content = []
    if match is not None:
        added = f": {match.value:+.2f}" if abs(match.value) >= SMALL else ""
        content.append(tag("p", match.sentence[0].upper() + match.sentence[1:] + added, class_="words"))
    if meaning is not None and abs(meaning) >= SMALL:
        content.append(tag("p", f"Meaning of the text: {meaning:+.2f}", class_="words"))
    for title, kind, sign in (("supports", "for", 1), ("counts against", "against", -1)):
        words = [(word, value) for word, value in contributions if sign * value >= SMALL][:WORDS]
        listed = join(
            (Html(f"<span class='{kind}'>{text(word)}</span> {value:+.2f}") for word, value in words), ", "
        )
        if words:
            content.append(tag("p", Html(f"<i>{title}:</i> {listed}"), class_="words"))
    return (
        join(content)
        if content
        else tag("p", "No feature of the row supports it: it is probable for any row.")
    )


def _coloured(whole: str, spans: Sequence[Span]) -> Html:
    """Colour the excerpt of a text with the largest contributions."""
    begin = _busiest(spans)
    if begin:  # start at a word boundary
        begin = whole.rfind(" ", 0, begin) + 1
    end = begin + CHARACTERS
    end = len(whole) if end >= len(whole) else max(whole.rfind(" ", begin, end), begin + CHARACTERS // 2)
    strongest = max((abs(span.value) for span in spans), default=0.0)
    pieces, at = [Html("… ") if begin else Html("")], begin
    for span in spans:
        share = abs(span.value) / strongest if strongest else 0.0
        if span.begin < at or span.end > end or share < FAINT:
            continue
        shade = min(SHADES, 1 + int(share * SHADES))
        kind = "f" if span.value > 0 else "a"
        pieces += [
            Html(text(whole[at : span.begin])),
            tag("mark", whole[span.begin : span.end], class_=f"{kind}{shade}"),
        ]
        at = span.end
    pieces.append(Html(text(whole[at:end]) + (" …" if end < len(whole) else "")))
    return tag("p", join(pieces, ""), class_="text")


def _busiest(spans: Sequence[Span]) -> int:
    """Return the start of the excerpt with the largest sum of contributions."""
    if not spans:
        return 0
    begins, ends = (np.array([span[side] for span in spans]) for side in (0, 1))
    whole = np.append(0.0, np.cumsum([abs(span.value) for span in spans]))
    starts, first = np.append(0, begins), np.append(0, np.arange(len(spans)))
    inside = whole[np.maximum(np.searchsorted(ends, starts + CHARACTERS, "right"), first)] - whole[first]
    return int(starts[inside.argmax()])
