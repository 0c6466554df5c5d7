"""What people see while they wait: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import io
import json
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 100
"""Columns of a table that is not shown on a terminal, so that it reads the same in every file."""


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], None] | None]:
    """Show a bar on a terminal's standard error; give what to call with the share that is done, or None."""
    if not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda share: progress.update(task, completed=share)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal that something of unknown length is going on."""
    if not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def print_json(value: dict[str, Any]) -> None:
    """Write one line of JSON on standard output: strictly JSON, which has no infinity and no NaN."""
    typer.echo(json.dumps(value, allow_nan=False))


def note(sentence: str) -> None:
    """Say something in passing, on standard error."""
    if sys.stderr is not None:  # print would take None for standard output
        print(sentence, file=sys.stderr, flush=True)


def output() -> Console:
    """Give the console for results: as wide as the terminal, or of a fixed width when piped."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ✓ is no reason to fail
    return Console(highlight=False, width=None if is_terminal(sys.stdout) else PLAIN_WIDTH)


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a person reads a stream; one that was closed before Python began is None."""
    return stream is not None and stream.isatty()


def peak_memory() -> int:
    """Give the most bytes of memory that the process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def in_words(n_bytes: int) -> str:
    """Give a size as people read it.

    Examples
    --------
    >>> in_words(1_500_000)
    '1.5 MB'
    """
    size, unit = float(n_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
