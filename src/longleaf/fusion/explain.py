"""What a name that stands in a record added to a tag's probability, beside the words that the trees read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from longleaf.explain.row import Level, RowExplanation
from longleaf.fusion.fusion import Fusion
from longleaf.fusion.weights import LIMIT
from longleaf.io.tag_names import TagNames
from longleaf.search.rows import RecordRows
from longleaf.search.score_map import ScoreMap
from longleaf.text.phrases import PhraseIndex

Line = tuple[float, float]
"""Slope and offset on log-odds."""


def fused_explanation(
    found: RowExplanation | None, score_map: ScoreMap, rows: RecordRows, row: int, label: int
) -> tuple[RowExplanation, float | None]:
    """Turn an explanation of the trees' probability into one of the fused probability.

    What words add to the one, they add to the other in proportion; a match adds the rest.

    Parameters
    ----------
    found : RowExplanation or None
        What the trees say; None if no tree has the label.
    score_map : ScoreMap
        What becomes of probabilities of labels without a match.
    rows : RecordRows
        With the maps of labels with a match.
    row, label : int

    Returns
    -------
    found : RowExplanation
    value : float or None
        What the match of the label added; None if there is none.
    """
    if found is None:
        nothing = math.log(1e-6)
        found = RowExplanation(
            np.empty(0, np.int64), np.empty(0), nothing, nothing, (Level(1, nothing, 0.0),)
        )
    plain = float(score_map.slope[label]), float(score_map.offset[label])
    own = _own_line(rows, row, label)
    baseline, words = (_log_mapped(log, plain) for log in (found.log_baseline, found.log_probability))
    change = found.log_probability - found.log_baseline
    scale = (words - baseline) / change if abs(change) > 1e-9 else plain[0]
    final = words if own is None else _log_mapped(found.log_probability, own)
    levels = tuple(replace(level, change=scale * level.change) for level in found.levels)
    mapped = RowExplanation(found.features, scale * found.contributions, final, baseline, levels)
    return mapped, None if own is None else final - words


def matched_name(
    fusion: Fusion,
    texts: Sequence[str],
    fields: Sequence[str],
    label: int,
    label_counts: Any,
    names: TagNames,
    tag: str,
) -> tuple[str, str] | None:
    """Return the name of a tag that speaks for it in a record, and the field that it stands in."""
    evidence = fusion.evidence(fusion.index.find([texts]), label_counts)
    places = np.flatnonzero(evidence.labels == label)
    if not len(places):
        return None
    index = fusion.index
    phrase = int(np.searchsorted(index.entry_ptr, evidence.entries[places[0]], side="right")) - 1
    words = index.phrase(phrase)
    known = [name.text for name in names.all_names(tag)] if tag in names else []
    same = (name for name in known if _words(name) == words)
    there = (place for place, text in enumerate(texts) if phrase in index.find([[text]]).phrases)
    place = next(there, 0)
    return next(same, words), fields[place] if place < len(fields) else ""


def _own_line(rows: RecordRows, row: int, label: int) -> Line | None:
    own = rows.overrides
    inside = slice(int(own.indptr[row]), int(own.indptr[row + 1]))
    place = int(np.searchsorted(own.labels[inside], label)) + inside.start
    if place >= inside.stop or own.labels[place] != label:
        return None
    return float(own.slope[place]), float(own.offset[place])


def _log_mapped(log_probability: float, line: Line) -> float:
    log = min(log_probability, -1e-12)
    odds = min(max(log - math.log(-math.expm1(log)), -LIMIT), LIMIT)
    z = line[0] * odds + line[1]
    return -math.log1p(math.exp(-z)) if z > 0 else z - math.log1p(math.exp(z))


def _words(name: str) -> str:
    index = PhraseIndex([name], [0])
    return index.phrase(0) if len(index) else ""
