"""Progress bars, notes and results on the console."""

from __future__ import annotations

import io
import json
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 100
"""Width of tables in columns when the output is not a terminal."""


class Bar:
    """A progress bar, called with the share of the work that is done."""

    def __init__(self, update: Callable[..., None], what: str) -> None:
        self._update, self._what = update, what

    def __call__(self, share: float) -> None:
        self._update(completed=share)

    def say(self, more: str) -> None:
        """Add something to what is shown before the bar."""
        self._update(description=f"{self._what}, {more}")


@contextmanager
def progress_bar(what: str) -> Iterator[Bar | None]:
    """Show a progress bar on standard error if it is a terminal; yield it, or None without a terminal."""
    if not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=1.0)
        yield Bar(partial(progress.update, task), what)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show a spinner on a terminal while something of unknown length is running."""
    if not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def print_json(value: dict[str, Any]) -> None:
    """Write one line of strict JSON (no infinity, no NaN) to standard output."""
    typer.echo(json.dumps(value, allow_nan=False))


def note(sentence: str) -> None:
    """Write a line to standard error."""
    if sys.stderr is not None:  # print(file=None) would write to standard output
        print(sentence, file=sys.stderr, flush=True)


def output() -> Console:
    """Return the console for results: as wide as the terminal, or of a fixed width when piped."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # do not fail on a terminal that cannot show ✓
    return Console(highlight=False, width=None if is_terminal(sys.stdout) else PLAIN_WIDTH)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; a stream that was closed before Python started is None."""
    return stream is not None and stream.isatty()


def peak_memory() -> int:
    """Return the peak memory of the process in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def in_words(n_bytes: int) -> str:
    """Format a size for people.

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
