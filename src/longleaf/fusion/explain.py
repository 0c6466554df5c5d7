"""What a name that stands in a record added to a tag's probability, beside the words that the trees read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from longleaf.explain.mapped import LOG_LEAST, LabelLine, RefinedTerms
from longleaf.explain.row import RowExplanation
from longleaf.fusion.fusion import Fusion
from longleaf.io.tag_names import TagNames
from longleaf.search.rows import RecordRows
from longleaf.text.phrases import PhraseIndex


def match_value(
    found: RowExplanation | None,
    words: RowExplanation,
    line: LabelLine,
    refined: RefinedTerms | None,
    rows: RecordRows,
    row: int,
    label: int,
) -> float | None:
    """Return what the match of a label in a record adds to the logarithm of its probability; None for none.

    Parameters
    ----------
    found, words : RowExplanation
        What the trees say, if a tree has the label, and what becomes of it without the match.
    line : LabelLine
        What becomes of it for labels without a match.
    refined : RefinedTerms or None
    rows : RecordRows
        With the maps of labels with a match.
    row, label : int
    """
    own = rows.overrides
    inside = slice(int(own.indptr[row]), int(own.indptr[row + 1]))
    place = int(np.searchsorted(own.labels[inside], label)) + inside.start
    if place >= inside.stop or own.labels[place] != label:
        return None
    matched = LabelLine(float(own.slope[place]), float(own.offset[place]), own.refined, line.shape)
    log_h = 0.0 if refined is None else refined.log_h[1]
    log_probability = LOG_LEAST if found is None else found.log_probability
    return matched.log_probability(matched.z(log_probability, log_h)) - words.log_probability


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


def _words(name: str) -> str:
    index = PhraseIndex([name], [0])
    return index.phrase(0) if len(index) else ""
