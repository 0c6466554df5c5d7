"""``longleaf explain``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from longleaf._validation import DataError
from longleaf.cli import _console, _options
from longleaf.cli._data import STANDARD_INPUT, open_source
from longleaf.cli._filters import Filters
from longleaf.cli._groups import takes
from longleaf.cli._names import NameFile, name_file
from longleaf.cli._worth import Worth, worth_settings
from longleaf.explain.records import SimilarRecord
from longleaf.explain.words import Explanation
from longleaf.io.streams import read_chunks
from longleaf.models import load
from longleaf.tagger import Tagger, suggester_of
from longleaf.text.fields import field_texts, joined_text
from longleaf.training.params import MOST_K

if TYPE_CHECKING:
    from rich.text import Text

MOST_WORDS = 8
"""Number of words listed for and against a tag."""
LEAST = 0.005
"""Smallest effect of a listed word; smaller ones would round to 0.00."""
MOST_CHARACTERS = 1500
"""Maximum length of the coloured text."""
LEAST_OF_NAME = 0.05
"""Smallest effect of a name that is mentioned."""
FAINT = 0.1
"""Words weaker than this share of the strongest are not coloured."""


@takes(worth=worth_settings, names=name_file)
def explain(
    model: _options.ModelPath,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Text to tag; - reads standard input.")
    ] = None,
    record: Annotated[
        str | None,
        typer.Option(
            "--record",
            metavar="JSON",
            help='Record to tag instead of --text, such as \'{"title": "…", "text": "…"}\'.',
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(
            "--tag", metavar="TAG", help="Tag to explain, or its name; default: the best suggestions."
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", min=1, max=MOST_K, metavar="K", help="Number of suggestions without --tag.")
    ] = 3,
    *,
    worth: Worth,
    names: NameFile | None,
    only: _options.Only = None,
    never: _options.Never = None,
    groups: _options.Groups = None,
    meaning_by_word: Annotated[
        bool,
        typer.Option(
            "--meaning-by-word",
            help="Of a model with an encoder, divide what the meaning of the text added among its words.",
        ),
    ] = False,
) -> None:
    """Suggest tags for a text and show which of its words support them and which count against them.

    A model trained with --keep-records also shows the most similar training
    records that carry the tag.
    """
    if text is None and record is None:
        raise typer.BadParameter("Either --text or --record must be given.")
    if text is not None and record is not None:
        raise typer.BadParameter("--text and --record cannot be given together.")
    if tag is not None and (only or never or groups or any(worth.files)):
        raise typer.BadParameter(
            "--gain, --utility, --only, --never and --groups choose tags; --tag already names one."
        )
    tagger = load(model)
    if not isinstance(tagger, Tagger):
        raise DataError(f"{model} must be trained on texts to explain one; got a {tagger.kind} of features.")
    if names is not None:
        tagger.names = known = names.read()
        names.note_unused(known, tagger.classes_)
    content = _record(record, suggester_of(tagger).fields) if record is not None else _text(text)
    tags = suggester_of(tagger).tags
    scores: dict[str, str | None] = {}
    if tag is not None:
        scores[tags.tags[tags.number(tag, "--tag")]] = None
    if tag is None:
        filters = Filters.read(tags, only=only, never=never, groups=groups)
        suggester = suggester_of(tagger)
        query = suggester.query(k, **worth.arguments(suggester), **vars(filters))
        found = suggester.suggest(suggester.rows([content]), query)[0]
        scores = {one.tag: worth.described(one.score) for one in found}
    console = _console.output()
    for place, (one, score) in enumerate(scores.items()):
        if place:
            console.print()
        explanation = tagger.explain(content, one, meaning_by_word=meaning_by_word)
        console.print(_in_brief(explanation, score), soft_wrap=True)
        if console.is_terminal:
            console.print(
                _coloured(joined_text(suggester_of(tagger).without_embedding(content)), explanation)
            )


def _text(text: str | None) -> str:
    if text == STANDARD_INPUT:
        text = b"".join(read_chunks(open_source(text))).decode("utf-8", "replace")
    if not text or not text.strip():
        raise typer.BadParameter("--text must hold at least one word; got none.")
    return text


def _record(text: str, fields: list[str]) -> dict[str, str]:
    """Parse a record, and check that the model can read it."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"--record must be a JSON object of fields: {error}.") from None
    if found == {}:
        raise typer.BadParameter("--record must have at least one field; got none.")
    if not isinstance(found, dict):
        raise typer.BadParameter(f"--record must be a JSON object of fields; got {text!r:.80}.")
    try:
        field_texts(found, fields, 0)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error).replace("texts[0]", "--record", 1)) from None
    return found


def _in_brief(found: Explanation, score: str | None) -> Text:
    """Return the tag, its probability, the words for and against it, and the decisive level."""
    from rich.text import Text

    brief = Text().append(_printable(found.tag), style="bold")
    if found.name != found.tag:
        brief.append(f"  {_printable(found.name)}", style="bold")
    brief.append(f"\n  probability  {found.probability:.4g} ({found.baseline:.4g} for an empty text)")
    if score is not None:
        brief.append(f"\n  score        {score}")
    if found.match is not None and abs(found.match.value) >= LEAST_OF_NAME:
        side = "supports it" if found.match.value > 0 else "counts against it"
        brief.append(f"\n  name         {_printable(found.match.sentence)}, which {side}: ")
        brief.append(f"{found.match.value:+.2f}", style="green" if found.match.value > 0 else "red")
    if found.meaning is not None:
        brief.append("\n  meaning      ")
        brief.append(f"{found.meaning:+.2f}", style="green" if found.meaning > 0 else "red")
    against = [(word, value) for word, value in found.contributions if value < 0]
    for heading, words, style in (
        ("for", list(found.words_for), "green"),
        ("against", against, "red"),
    ):
        brief.append(f"\n  {heading:<11}  ")
        _append_words(brief, words, style)
    level = found.decided
    whole = sum(one.change for one in found.levels)
    brief.append(f"\n  decided      at level {level.depth} of {len(found.levels)}", style="dim")
    brief.append(f", where {level.change:+.2f} of {whole:+.2f} came about", style="dim")
    _append_records(brief, found.records)
    return brief


def _append_records(brief: Text, records: Sequence[SimilarRecord]) -> None:
    """Append a table of training records, if there are any."""
    if not records:
        return
    ids = [_printable(one.id) for one in records]
    width = max(len("id"), *map(len, ids))
    brief.append("\n\n  Similar training records")
    brief.append(f"\n  similarity   {'id':<{width}}  title", style="dim")
    for one, identity in zip(records, ids, strict=True):
        brief.append(f"\n  {one.similarity:<11.2f}  {identity:<{width}}  {_printable(one.title)}")


def _append_words(brief: Text, words: list[tuple[str, float]], style: str) -> None:
    """Append words with what each added to the log probability, and the sum of the rest."""
    if not words:
        brief.append("no word")
    listed = [(word, value) for word, value in words[:MOST_WORDS] if abs(value) >= LEAST] or words[:1]
    for place, (word, value) in enumerate(listed):
        brief.append(", " if place else "").append(_printable(word), style=style).append(f" {value:+.2f}")
    rest = words[len(listed) :]
    if rest:
        total = math.fsum(value for _, value in rest)
        brief.append(f", {len(rest)} more {total:+.2f}", style="dim")


def _coloured(text: str, found: Explanation) -> Text:
    """Colour the words of the text: green for the tag, red against it; the strongest are bold."""
    from rich.text import Text

    spans = found.spans(text)
    strongest = max((abs(span.value) for span in spans), default=0.0)
    shown = Text(_printable(text[:MOST_CHARACTERS]), style="dim")
    for span in spans:
        share = abs(span.value) / strongest if strongest else 0.0
        if share >= FAINT and span.begin < MOST_CHARACTERS:
            colour = "green" if span.value > 0 else "red"
            weight = "bold" if share >= 0.5 else "not bold"
            shown.stylize(f"not dim {weight} {colour}", span.begin, span.end)
    return shown.append(" …", style="dim") if len(text) > MOST_CHARACTERS else shown


def _printable(text: str) -> str:
    """Replace control characters, which could harm a terminal; the length stays the same."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)
