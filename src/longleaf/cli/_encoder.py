"""The encoder of a tagger: ``--encoder`` and ``--encoder-weight``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from longleaf import encoders
from longleaf.cli import _console, _options
from longleaf.encoders.column import PREFIX
from longleaf.encoders.components import DEFAULT_WEIGHT, MOST_WEIGHT

NONE = "none"
PANEL = "Meaning of texts"


def reads_texts(value: str | None) -> str | None:
    """Check the name of an encoder for a command that embeds texts; a column of embeddings does not."""
    if value is not None and value.startswith(PREFIX):
        raise typer.BadParameter(f"it must be an encoder that reads texts; got {value}.")
    return _options.not_empty(value)


@dataclass(frozen=True)
class EncoderOptions:
    """An encoder by name, and the weight of its columns."""

    name: str | None
    weight: float

    @property
    def given(self) -> dict[str, Any]:
        """What was given, by option without leading dashes; only a table of texts takes these options."""
        return {} if self.name is None else {"encoder": self.name}

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a table that it needs, as `open_table` takes them."""
        is_column = self.name is not None and self.name.startswith(PREFIX)
        return {"embedding": self.name.removeprefix(PREFIX)} if self.name and is_column else {}

    def parameters(self, progress: _console.Bar | None) -> dict[str, Any]:
        """Return the parameters of a tagger; on a terminal, the bar says how many texts are embedded."""
        if self.name is None:
            return {}
        count = None if progress is None else lambda number: progress.say(f"{number} texts embedded")
        encoder = encoders.cached(encoders.load(self.name), count)
        return {"encoder": encoder, "encoder_weight": self.weight}


def encoder_options(
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="NAME|FOLDER|none",
            help="Add what texts mean to their words: minilm, the folder of a model, an .onnx file, a name "
            "on the Hugging Face hub (owner/name), or column:FIELD for embeddings in a field; default: none.",
            rich_help_panel=PANEL,
            callback=_options.not_empty,
        ),
    ] = None,
    encoder_weight: Annotated[
        float | None,
        typer.Option(
            "--encoder-weight",
            min=0,
            max=MOST_WEIGHT,
            metavar="W",
            help=f"How much meaning counts beside words, which have 1; default: {DEFAULT_WEIGHT:g}.",
            rich_help_panel=PANEL,
        ),
    ] = None,
) -> EncoderOptions:
    """Return the encoder, if one was given."""
    name = None if encoder == NONE else encoder
    if name is None and encoder_weight is not None:
        raise typer.BadParameter("--encoder-weight needs --encoder.")
    return EncoderOptions(name, DEFAULT_WEIGHT if encoder_weight is None else encoder_weight)
