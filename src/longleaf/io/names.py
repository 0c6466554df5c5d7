"""Files of names: JSON, tables, and SKOS vocabularies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from io import BytesIO
from pathlib import PurePath

from longleaf._validation import DataError, check_choice
from longleaf.io._formats import ARCHIVE, OLD_EXCEL
from longleaf.io._name_table import names_of_table
from longleaf.io._skos import read_skos
from longleaf.io.pairs import json_object, whole_lines
from longleaf.io.streams import MAGIC, Source, read_chunks, source_name
from longleaf.io.tag_names import Name, TagNames, language_rank, plain_language

FORMATS = ("json", "table", "turtle", "xml", "nt")
SUFFIXES = {
    ".json": "json",
    ".tsv": "table",
    ".csv": "table",
    ".ttl": "turtle",
    ".rdf": "xml",
    ".xml": "xml",
    ".owl": "xml",
    ".nt": "nt",
}
BEGINNINGS = {
    "json": re.compile(rb"\s*[{\[]"),
    "xml": re.compile(rb"\s*<(\?xml|rdf:RDF)\b"),
    "turtle": re.compile(rb"(\s*(#.*\n)?)*(@prefix\b|@base\b|(?i:prefix|base)\s[^\t;,]*<|<[^<>\s]*>\s+<)"),
}
"""How files of each format begin; others are tables."""
MOST_EXAMINED = 1 << 16


def read_names(source: Source, languages: Sequence[str] | None = None, format: str | None = None) -> TagNames:
    r"""Read the names of tags: from JSON, a table, or a SKOS vocabulary.

    Parameters
    ----------
    source : str, path-like or binary file object
        The file may be compressed (.gz, .xz, .bz2).
    languages : sequence of str, optional
        The languages to display, the best first, such as ``["de", "en"]``. By default, the first preferred
        name of a tag is displayed. Names in other languages stay names of their tags.
    format : {"json", "table", "turtle", "xml", "nt"}, optional
        By default, what the name of the file or else its beginning says:

        - ``json``: an object of names by tag; a list of names begins with the preferred one.
        - ``table``: two columns, a tag and its name, separated by tabs, semicolons or commas; or a first line
          that names the columns: ``tag`` (or ``id`` or ``label``), ``name``, and if there are, ``lang`` (or
          ``language``) and ``type`` (or ``kind``), which is ``pref`` or ``alt``. Of several lines with a tag
          and a language, the first is the preferred name, the others are alternatives.
        - ``turtle``, ``xml`` (RDF/XML) and ``nt`` (N-Triples): SKOS. Tags are the URIs of concepts, except
          those that are deprecated; needs the extra ``skos``.

    Returns
    -------
    TagNames

    Raises
    ------
    DataError
        If the file cannot be read, has no names, or none in any of the languages; the message names the line.

    Examples
    --------
    >>> import io
    >>> import longleaf as ll
    >>> file = io.BytesIO(b"tag\tlang\tname\n1264\ten\tolive oil\n1264\tde\tOliven\xc3\xb6l\n")
    >>> names = ll.read_names(file, languages=["de"])
    >>> names["1264"]
    'Olivenöl'
    >>> [name.text for name in names.all_names("1264")]
    ['Olivenöl', 'olive oil']
    """
    wanted = _checked(languages)
    if format is not None:
        check_choice(format, "format", FORMATS)
    name = source_name(source)
    with closing(read_chunks(source)) as chunks:
        data = b"".join(chunks)
    if data.startswith((ARCHIVE, OLD_EXCEL)):
        raise DataError(
            f"{name} must be a table of text, JSON or SKOS; workbooks are not read as names: save its "
            "sheet as CSV."
        )
    form = format or format_of(name, data[:MOST_EXAMINED])
    if form in ("json", "table"):
        lines = whole_lines(BytesIO(data))
        entries = _names_of_json("".join(lines), name) if form == "json" else names_of_table(lines, name)
        names = TagNames(entries, wanted)
    else:
        names = read_skos(data, form, name, wanted)
    if not names:
        raise DataError(f"{name} must name at least one tag; got none.")
    if wanted and all(language_rank(one, wanted) == len(wanted) for one in names.languages):
        raise DataError(f"{name} must have names in {' or '.join(wanted)}; got {_listed(names.languages)}.")
    return names


def format_of(name: str, beginning: bytes) -> str:
    """Return the format of a file, by its suffix or else by how it begins."""
    path = PurePath(name)
    if path.suffix.lower().removeprefix(".") in MAGIC.values():
        path = path.with_suffix("")
    known = SUFFIXES.get(path.suffix.lower())
    if known is not None:
        return known
    beginning = beginning.removeprefix(b"\xef\xbb\xbf")
    return next((form for form, start in BEGINNINGS.items() if start.match(beginning)), "table")


def _checked(languages: Sequence[str] | None) -> list[str]:
    if isinstance(languages, str | bytes) or not isinstance(languages, Iterable | None):
        single = type(languages).__name__
        raise TypeError(f'languages must be a list, such as ["de", "en"]; got a single {single}.')
    languages = list(languages or ())
    for language in languages:
        if not isinstance(language, str):
            raise TypeError(f"languages must hold strings; got {type(language).__name__}.")
    wanted = [plain_language(language) for language in languages]
    if "" in wanted:
        raise ValueError("languages must hold names of languages, such as de; got an empty one.")
    return wanted


def _listed(languages: list[str]) -> str:
    if languages == [""]:
        return "names without a language"
    return "names in " + ", ".join(language or "no language" for language in languages[:10])


def _names_of_json(text: str, name: str) -> Iterator[tuple[str, Name]]:
    for tag, value in json_object(text, name).items():
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list):
            raise DataError(
                f"{name} must hold a string for every tag, or a list of strings; "
                f"{tag!r:.80} has {type(value).__name__}."
            )
        for one in names:
            if not isinstance(one, str):
                raise DataError(f"{name} must hold strings; {tag!r:.80} has {type(one).__name__}.")
            if not one.strip():
                raise DataError(f"{name} must hold no empty name; {tag!r:.80} has one.")
            yield tag, Name(one)
        if not (names and tag.strip()):
            raise DataError(f"{name} must hold a tag and its names; got {tag!r:.80} and {value!r:.80}.")
