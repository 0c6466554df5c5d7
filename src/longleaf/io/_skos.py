"""Names and relations of SKOS vocabularies, through rdflib."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from longleaf._validation import DataError
from longleaf.io.tag_names import Name, TagNames, plain_language

SKOS = "http://www.w3.org/2004/02/skos/core#"
LABELS = {"prefLabel": True, "altLabel": False, "hiddenLabel": False}
"""The properties that name a concept, and whether as its preferred name."""
NO_CONCEPTS = ("ConceptScheme", "Collection", "OrderedCollection")
MISSING = "needs the extra skos, which is not installed: pip install 'longleaf[skos]'."
WRITTEN = {"turtle": "Turtle", "xml": "RDF/XML", "nt": "N-Triples"}


def read_skos(data: bytes, format: str, name: str, languages: list[str]) -> TagNames:
    """Read the labels of concepts, and which are broader, narrower and related.

    Concepts are whatever has a label and a URI, except schemes and collections. Those that are deprecated
    (``owl:deprecated``) are omitted. Everything is sorted, as RDF has no order.

    Parameters
    ----------
    data : bytes
    format : {"turtle", "xml", "nt"}
    name : str
        The name of the file in messages.
    languages : list of str
        The languages to display.
    """
    try:
        from rdflib import OWL, RDF, Graph, Literal, URIRef
    except ImportError:
        raise DataError(f"{name} is {WRITTEN[format]}, which {MISSING}") from None
    graph = Graph()
    try:
        with _silent():
            graph.parse(data=data, format=format)
    except Exception as error:  # each of rdflib's parsers raises its own
        raise DataError(_complaint(error, data, format, name)) from None

    def pairs(*properties: str) -> Iterator[tuple[Any, Any]]:
        for name in properties:
            yield from graph.subject_objects(URIRef(SKOS + name))

    omitted = {
        concept
        for concept, value in graph.subject_objects(OWL.deprecated)
        if str(value).strip().lower() in ("true", "1")
    }
    for kind in NO_CONCEPTS:
        omitted.update(graph.subjects(RDF.type, URIRef(SKOS + kind)))
    found: list[tuple[str, bool, str, str]] = []
    for label, preferred in LABELS.items():
        for concept, text in pairs(label):
            if not isinstance(concept, URIRef) or concept in omitted or not isinstance(text, Literal):
                continue
            if not (words := str(text).strip()):
                raise DataError(f"{name} must hold no empty name; <{concept:.200}> has one.")
            found.append((str(concept), not preferred, plain_language(text.language or ""), words))
    above = {(str(one), str(other)) for one, other in pairs("broader")}
    above |= {(str(other), str(one)) for one, other in pairs("narrower")}
    beside = {(str(one), str(other)) for one, other in pairs("related")}
    named = ((tag, Name(text, language, not after)) for tag, after, language, text in sorted(found))
    return TagNames(named, languages, broader=above, related=beside)


@contextmanager
def _silent() -> Iterator[None]:
    """Keep rdflib from logging what it thinks of dates and addresses that nobody asked for."""
    logger = logging.getLogger("rdflib")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _complaint(error: Exception, data: bytes, format: str, name: str) -> str:
    """Say in one sentence what a parser found, and where."""
    line: Any = None
    why = str(error)
    if format == "turtle" and hasattr(error, "_why"):
        text, place = error._str, error._i  # type: ignore[attr-defined]
        place += len(text[place:]) - len(text[place:].lstrip())
        line, why = text[:place].count(b"\n") + 1, error._why
    elif format == "xml" and hasattr(error, "getLineNumber"):
        line, why = error.getLineNumber(), error.getMessage()  # type: ignore[attr-defined]
    elif format == "nt":
        line, why = _bad_line(data), why.split(":")[0]
    where = name if line is None else f"{name}, line {line}"
    why = " ".join(why.split())[:200].rstrip(".")
    return f"{where} must be {WRITTEN[format]}; {why or type(error).__name__}."


def _bad_line(data: bytes) -> int | None:
    """Return the number of the first line that is no N-Triples; its parser does not tell."""
    from rdflib import Graph

    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        try:
            Graph().parse(data=line, format="nt")
        except Exception:
            return number
    return None
