"""``longleaf serve``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from longleaf._validation import DataError
from longleaf._validation.numbers import MOST_THREADS
from longleaf.cli import _options
from longleaf.cli._groups import takes
from longleaf.cli._names import NameFile, name_file
from longleaf.training.params import MOST_K

KEY_VARIABLE = "LONGLEAF_API_KEY"
MISSING = "longleaf serve needs the extra serve, which is not installed: pip install 'longleaf[serve]'."

MOST_SECONDS = 86_400
"""A day; an event loop takes no infinity."""


@takes(names=name_file)
def serve(
    model: _options.ModelPath,
    host: Annotated[
        str,
        typer.Option("--host", metavar="HOST", help="Address to listen on; by default, this machine only."),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, metavar="PORT", help="Port to listen on; 0 picks a free one."
        ),
    ] = 8000,
    workers: Annotated[
        int,
        typer.Option(
            "--workers", min=1, max=256, metavar="N", help="Worker processes; they share one model."
        ),
    ] = 1,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            min=1,
            max=MOST_THREADS,
            metavar="N",
            help="Threads per search; default: cores / workers.",
        ),
    ] = None,
    *,
    names: NameFile | None,
    feedback: Annotated[
        str | None,
        typer.Option(
            "--feedback", metavar="FILE", help="Append accepted and rejected tags to this JSONL file."
        ),
    ] = None,
    api_key: Annotated[
        list[str] | None,
        typer.Option(
            "--api-key",
            metavar="KEY",
            envvar=KEY_VARIABLE,
            help="API key that clients must send; may be repeated. Prefer the variable: other users of the "
            "machine can see a command line.",
        ),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            "--cors", metavar="ORIGIN", help="Origin whose pages may call the service; may be repeated."
        ),
    ] = None,
    max_body: Annotated[
        int, typer.Option("--max-body", min=1, metavar="BYTES", help="Maximum size of a request.")
    ] = 8_000_000,
    max_texts: Annotated[
        int, typer.Option("--max-texts", min=1, metavar="N", help="Maximum texts or vectors per request.")
    ] = 256,
    max_k: Annotated[
        int, typer.Option("--max-k", min=1, max=MOST_K, metavar="N", help="Maximum suggestions per text.")
    ] = 100,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", min=0.001, max=MOST_SECONDS, metavar="S", help="Maximum seconds per request."
        ),
    ] = 30.0,
    max_waiting: Annotated[
        int, typer.Option("--max-waiting", min=1, metavar="N", help="Maximum rows waiting in a worker.")
    ] = 4096,
    max_explained: Annotated[
        int,
        typer.Option(
            "--max-explained", min=1, metavar="N", help="Maximum characters to explain per request."
        ),
    ] = 1_000_000,
    max_connections: Annotated[
        int,
        typer.Option("--max-connections", min=1, metavar="N", help="Maximum open connections per worker."),
    ] = 512,
    drain: Annotated[
        float,
        typer.Option(
            "--drain",
            min=0,
            max=MOST_SECONDS,
            metavar="S",
            help="Seconds for running requests to finish on shutdown.",
        ),
    ] = 30.0,
    snapshots: Annotated[
        str | None,
        typer.Option(
            "--snapshots",
            metavar="DIR",
            help="Folder for the copy of the model that is served; default: the system's temporary folder.",
        ),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Serve the model's own files, which must then not change.")
    ] = False,
    access_log: Annotated[
        bool, typer.Option("--access-log/--no-access-log", help="Log each request as a line of JSON.")
    ] = True,
) -> None:
    """Serve a model over HTTP, with a web page for trying it at /."""
    try:
        from longleaf.server.process import run
        from longleaf.server.settings import Limits, Settings
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("longleaf"):
            raise
        raise DataError(MISSING) from None
    if snapshots is not None and in_place:
        raise DataError("At most one of --snapshots and --in-place must be given; got both.")
    if not api_key and KEY_VARIABLE in os.environ:  # a key was meant to be set
        raise DataError(
            f"{KEY_VARIABLE} must hold an API key; got nothing (unset it to serve without a key)."
        )
    run(
        Settings(
            model=model,
            host=host,
            port=port,
            workers=workers,
            threads=threads,
            names=None if names is None else names.path,
            names_languages=() if names is None else names.languages,
            feedback=feedback,
            api_keys=tuple(api_key or ()),
            cors=tuple(cors or ()),
            limits=Limits(max_body, max_texts, max_k, timeout, max_waiting, max_explained, max_connections),
            drain_seconds=drain,
            access_log=access_log,
            snapshots=snapshots,
            in_place=in_place,
        ),
        tell=_announce,
    )


def _announce(url: str) -> None:
    typer.echo(f"longleaf serves at {url} (press Ctrl-C to stop).")
