"""Readable names of tags: ``--names`` and ``--names-language``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import typer

from longleaf.cli import _console
from longleaf.cli._options import not_empty
from longleaf.io.names import read_names
from longleaf.io.tag_names import TagNames
from longleaf.text.tags import quoted


@dataclass(frozen=True)
class NameFile:
    """A file of names, and the languages to display, the best first."""

    path: str
    languages: tuple[str, ...] = ()

    def read(self) -> TagNames:
        """Read the file."""
        return read_names(self.path, self.languages)

    def note_unused(self, names: TagNames, tags: Iterable[str]) -> None:
        """Write a note if the file names none of the tags that occur in training."""
        if not any(tag in names for tag in tags):
            _console.note(
                f"{self.path}: no tag in it occurs in training; the first of {len(names)} is "
                f"{quoted(names.tags[0])}"
            )


def name_file(
    names: Annotated[
        str | None,
        typer.Option(
            "--names",
            metavar="FILE",
            help="Readable names: a tag and its name per line, a table of tag, lang and name, JSON, or SKOS "
            "(.ttl, .rdf, .nt); may be compressed.",
            callback=not_empty,
        ),
    ] = None,
    names_language: Annotated[
        str | None,
        typer.Option(
            "--names-language",
            metavar="LANG,…",
            help="Languages of the names to display, the best first, such as de,en; needs --names.",
        ),
    ] = None,
) -> NameFile | None:
    """Return the file of names, if one was given."""
    if names_language is None:
        return None if names is None else NameFile(names)
    if names is None:
        raise typer.BadParameter("--names-language needs --names.")
    languages = tuple(language.strip() for language in names_language.split(","))
    if not all(languages):
        raise typer.BadParameter(
            f"--names-language must be languages, such as de,en; got {names_language!r:.80}."
        )
    return NameFile(names, languages)
