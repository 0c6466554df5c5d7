"""Which tags may be suggested: files of ``--only``, ``--never`` and ``--groups``."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from longleaf._validation import DataError
from longleaf.cli import _console
from longleaf.cli._data import open_source
from longleaf.io._lines import read_lines
from longleaf.io.pairs import read_pairs
from longleaf.io.streams import read_chunks
from longleaf.text.tags import TagIndex, quoted


@dataclass(frozen=True)
class Filters:
    """The only tags to suggest, tags never to suggest, and groups of which at most one tag is suggested."""

    only: list[str] | None = None
    never: list[str] | None = None
    groups: dict[str, str] | None = None

    @classmethod
    def read(
        cls,
        tags: TagIndex,
        *,
        only: str | None,
        never: str | None,
        groups: str | None,
        strict: bool = False,
    ) -> Filters:
        """Read the given files; tags unknown to the model are skipped with a note.

        Parameters
        ----------
        tags : TagIndex
            The tags of the model; for a model of features, the numbers of its labels.
        only, never, groups : str, optional
            Paths; the first two hold a tag per line, the third a tag and its group. A tag may be given by
            its readable name.
        strict : bool
            Whether an unknown tag is an error.
        """
        filters = cls(
            None if only is None else _known(only, _read_tags(only), tags, strict),
            None if never is None else _known(never, _read_tags(never), tags, strict),
            None if groups is None else _known_groups(groups, tags, strict),
        )
        if filters.only == []:
            raise DataError(f"{only} must name a tag of the model; got none.")
        return filters


def _read_tags(path: str) -> dict[str, int]:
    """Read one tag per line; return the line number of each."""
    with closing(read_chunks(open_source(path))) as chunks:
        lines = [(line.number, (line.text or "").strip()) for line in read_lines(chunks)]
    tags: dict[str, int] = {}
    for number, tag in lines:
        if tag:
            tags.setdefault(tag, number)
    return tags


def _known(path: str, lines: dict[str, int], tags: TagIndex, strict: bool) -> list[str]:
    """Return the tags known to the model, each once; note how many lines are unknown."""
    unusable = [word for word in lines if word not in tags]
    if unusable:
        word = unusable[0]
        where = f"{quoted(word)} in line {lines[word]}" if lines[word] else quoted(word)
        why = tags.unusable(word)
        if strict:
            raise DataError(f"{path} must name tags of the model; {where} {why}.")
        _console.note(f"{path}: {len(unusable)} of {len(lines)} tags cannot be used; {where} {why}")
    return list(dict.fromkeys(tags.tags[tags.number(word)] for word in lines if word in tags))


def _known_groups(path: str, tags: TagIndex, strict: bool) -> dict[str, str]:
    groups = read_pairs(open_source(path), "its group")
    _known(path, dict.fromkeys(groups, 0), tags, strict)
    return {tags.tags[tags.number(word)]: group for word, group in groups.items() if word in tags}
