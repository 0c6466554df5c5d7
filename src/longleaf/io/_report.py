"""Problems with the rows of a table: counts, and the first examples."""

from __future__ import annotations

from dataclasses import dataclass, field

from longleaf._validation import DataError
from longleaf.io._lines import Line

FIRST = 3
"""Number of examples listed per kind of problem."""

SKIPPED = {
    "broken": "could not be read",
    "too long": "were too long",
    "wrong type": "had text or tags that are not strings",
    "no text": "had no text",
    "no tags": "had no tags",
}
KEPT = {
    "encoding": "were not UTF-8 and read as Windows-1252",
    "missing field": "lacked a text field and were read without it",
    "duplicate id": "had the id of an earlier row",
    "no id": "had no id",
    "no embedding": "had no usable embedding and were read by their words alone",
    "textless": "had no text, and get no suggestions",
}
PROBLEMS = SKIPPED | KEPT
"""The kinds of problems, and how a summary describes the rows that have them."""


@dataclass
class ReadReport:
    """The problems found while a table was read.

    Attributes
    ----------
    source : str
        Name of the file.
    rows : int
        Rows read so far.
    records : int
        Rows returned to the caller; the others were skipped.
    counts : dict of str to int
        Number of rows with each kind of problem, by the keys of `PROBLEMS`.
    first : dict of str to list of str
        The first few rows with each kind, one sentence each.
    strict : bool
        Whether the first problem is an error.
    """

    source: str
    rows: int = 0
    records: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, list[str]] = field(default_factory=dict)
    strict: bool = False

    @property
    def problems(self) -> int:
        """The total number of problems."""
        return sum(self.counts.values())

    def add(self, kind: str, place: str, what: str) -> None:
        """Count a problem, or raise it as a DataError if reading is strict.

        Parameters
        ----------
        kind : str
            One of `PROBLEMS`.
        place : str
            The line or row of the source.
        what : str
            What must hold, and what was found.
        """
        sentence = f"{self.source}, {place}: {what}"
        if self.strict:
            raise DataError(sentence)
        self.counts[kind] = self.counts.get(kind, 0) + 1
        named = self.first.setdefault(kind, [])
        if len(named) < FIRST:
            named.append(sentence)

    def summary(self) -> str:
        """Return the problems in a few lines; empty if there are none."""
        lines = []
        for kind, description in PROBLEMS.items():
            if kind in self.counts:
                outcome = "skipped" if kind in SKIPPED else "kept"
                lines.append(f"{self.counts[kind]} of {self.rows} rows {description} ({outcome}); the first:")
                lines += [f"  {sentence}" for sentence in self.first[kind]]
        return "\n".join(lines)


def add_line_problem(line: Line, longest: int, report: ReadReport) -> None:
    """Count a line that is longer than ``longest`` bytes, or else not UTF-8."""
    place = f"line {line.number}"
    if line.text is None:
        report.add("too long", place, f"must have at most {longest} bytes; got more.")
    else:
        report.add("encoding", place, "must be UTF-8; got other bytes.")
