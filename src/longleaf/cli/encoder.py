"""``longleaf encoder``: what an encoder is, embeddings of texts, what is kept of them, and fine-tuning."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from longleaf import encoders
from longleaf._validation import DataError
from longleaf.cli import _console, _options
from longleaf.cli._commands import Command, Group
from longleaf.cli._data import check_new_file, check_not_read
from longleaf.cli._encoder import reads_texts
from longleaf.cli._tables import given_fields, open_table, report
from longleaf.cli.encoder_tune import tune
from longleaf.encoders.cache import cache_sizes
from longleaf.encoders.places import cache_folder
from longleaf.io.streams import open_replacing

ENCODER_HELP = "minilm, the folder of a model, an .onnx file, or a name on the Hugging Face hub (owner/name)."
SUFFIX = ".npy"

EncoderName = Annotated[
    str,
    typer.Option("--encoder", metavar="ENCODER", help=ENCODER_HELP, callback=reads_texts),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", min=1, metavar="N", help="Cut longer texts; default: the encoder's own."),
]

app = typer.Typer(
    name="encoder",
    cls=Group,
    no_args_is_help=True,
    help="Turn texts into embeddings.",
)
app.command(cls=Command)(tune)


@app.command(cls=Command)
def info(
    encoder: Annotated[str, typer.Argument(metavar="ENCODER", help=ENCODER_HELP, callback=reads_texts)],
    max_tokens: MaxTokens = None,
    as_json: _options.Json = False,
) -> None:
    """Show what an encoder is."""
    facts = encoders.load(encoder, max_tokens=max_tokens).facts
    if as_json:
        _console.print_json(facts)
        return
    if "bytes" in facts:
        facts["bytes"] = f"{facts['bytes']} ({_console.in_words(facts['bytes'])})"
    for name, value in facts.items():
        typer.echo(f"  {name:<16} {value}")


@app.command(cls=Command)
def embed(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="JSONL, CSV, TSV, Parquet or Excel (.xlsx) with texts; may be compressed (.gz, .xz, .bz2); "
            "- reads standard input.",
            callback=_options.not_empty,
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE.npy",
            help="File to write: an array of float16 with a row per record.",
            callback=_options.not_empty,
        ),
    ],
    encoder: EncoderName,
    max_tokens: MaxTokens = None,
    text: _options.TextFields = None,
    strict: _options.Strict = False,
    threads: _options.Threads = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the embeddings of the texts of DATA; those already in the cache are not computed again."""
    if not out.endswith(SUFFIX):
        raise DataError(f"{out} must end in {SUFFIX}, as embeddings are written as an array of NumPy.")
    check_not_read(out, data)
    check_new_file(out, force)
    chosen = encoders.cached(encoders.load(encoder, max_tokens=max_tokens))
    fields = given_fields(text=text) | {"tags": None}
    with open_table(data, fields, strict=strict, keep_textless=True) as reader:
        texts = [record.text for record in reader]
    report(reader)
    with _console.progress_bar("embedding") as progress:
        vectors = chosen.embed(texts, threads=threads, progress=progress)
    with open_replacing(out) as file:
        np.save(file, vectors.astype(np.float16))
    rows, dimensions = vectors.shape
    _console.note(f"{out}: {rows} {'row' if rows == 1 else 'rows'} of {dimensions} dimensions written")


@app.command(cls=Command)
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove everything that encoders keep.")] = False,
    as_json: _options.Json = False,
) -> None:
    """Show how much encoders keep in the cache folder: embeddings, and models that were converted."""
    freed = encoders.clear_cache() if clear else 0
    facts = {"folder": str(cache_folder()), **cache_sizes()}
    if as_json:
        _console.print_json(facts | {"cleared": freed})
        return
    for name, value in facts.items():
        shown = _console.in_words(value) if isinstance(value, int) else value
        typer.echo(f"  {name:<16} {shown}")
    if clear:
        _console.note(f"{_console.in_words(freed)} removed")
