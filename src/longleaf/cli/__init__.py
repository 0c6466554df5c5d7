"""The command line: ``longleaf`` and its commands, one file each."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from longleaf import __version__, _core
from longleaf.cli import _console, encoder
from longleaf.cli._commands import Command, Group
from longleaf.cli.calibrate import calibrate
from longleaf.cli.compare import compare
from longleaf.cli.convert import convert
from longleaf.cli.demo import demo
from longleaf.cli.evaluate import evaluate
from longleaf.cli.explain import explain
from longleaf.cli.fit_sets import fit_sets
from longleaf.cli.import_ import import_
from longleaf.cli.info import info
from longleaf.cli.plan import plan
from longleaf.cli.predict import predict
from longleaf.cli.report import report
from longleaf.cli.serve import serve
from longleaf.cli.split import split
from longleaf.cli.train import train
from longleaf.cli.tune import tune
from longleaf.cli.update import update

DONE, BAD, INTERRUPTED, TERMINATED = 0, 2, 130, 143
"""Exit status; 130 is what shells expect after Ctrl-C, and 143 after SIGTERM."""


app = typer.Typer(name="longleaf", cls=Group, no_args_is_help=True, add_completion=False)
for command in (
    demo,
    train,
    update,
    calibrate,
    fit_sets,
    predict,
    evaluate,
    explain,
    serve,
    split,
    tune,
    compare,
    report,
    info,
    convert,
    plan,
):
    app.command(cls=Command)(command)
app.command("import", cls=Command)(import_)
app.add_typer(encoder.app)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"longleaf {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Find the few right labels among millions, the rare ones included."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; errors are reported in one sentence."""
    logging.basicConfig(format="longleaf: %(message)s", level=logging.WARNING)
    try:
        _core.simd()  # rejects an unknown LONGLEAF_SIMD before any work
        with _cleaning_up_when_terminated():
            status = app(arguments, standalone_mode=False)
        if sys.stdout is not None:  # None if the caller closed it
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except _Terminated:
        return TERMINATED
    except (BrokenPipeError, SystemExit):  # Typer and Rich exit when a pipe breaks
        _discard_output()  # the reader stopped reading, which is not an error
        return DONE
    except (typer.Abort, EOFError):
        return INTERRUPTED
    except Exception as error:
        return _report_error(error)
    return status if isinstance(status, int) else DONE


class _Terminated(BaseException):
    """Ends a command that got SIGTERM; unfinished files are removed on the way."""


@contextmanager
def _cleaning_up_when_terminated() -> Iterator[None]:
    """Raise `_Terminated` on SIGTERM, unless someone else handles it; `serve` replaces this."""
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    ):
        yield
        return

    def terminate(number: int, _: object) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)  # `timeout` sends it twice
        raise _Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _report_error(error: Exception) -> int:
    """Report an error in one line on standard error and return the exit status."""
    if hasattr(error, "format_message"):  # bad usage, found by the argument parser
        sentence = error.format_message()
    elif isinstance(error, MemoryError):
        sentence = "There is not enough memory for this."
    elif isinstance(error, OSError) and error.strerror and not isinstance(error, ValueError):
        sentence = f"{error.filename or 'The operating system'}: {error.strerror}."
    elif isinstance(error, ValueError):
        sentence = str(error)
    else:  # a bug in longleaf
        if os.environ.get("LONGLEAF_DEBUG"):
            raise error
        sentence = f"Unexpected {type(error).__name__}: {error} (set LONGLEAF_DEBUG=1 for the traceback)."
    line = " ".join(sentence.split())
    if line:  # empty if the help was shown instead
        _console.note(f"longleaf: {line if line.endswith('.') else line + '.'}")
    return BAD


def _discard_output() -> None:
    """Redirect standard output to the null device, so that Python does not flush to a closed pipe at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
