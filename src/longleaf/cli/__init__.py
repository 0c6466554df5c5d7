"""The command line: ``longleaf`` and its commands, each in a file of its own."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.core

from longleaf import __version__, _core
from longleaf.cli import _console
from longleaf.cli.compare import compare
from longleaf.cli.convert import convert
from longleaf.cli.demo import demo
from longleaf.cli.evaluate import evaluate
from longleaf.cli.explain import explain
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

DONE, BAD, INTERRUPTED = 0, 2, 130
"""Exit status; 130 is what shells expect after Ctrl-C."""


def _with_plain_flags(parameters: list[Any]) -> list[Any]:
    """Let the help show flags as they are typed, without a word for a value that they do not take."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class _Command(typer.core.TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _with_plain_flags(super().get_params(ctx))


class _Group(typer.core.TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _with_plain_flags(super().get_params(ctx))


app = typer.Typer(name="longleaf", cls=_Group, no_args_is_help=True, add_completion=False)
for command in (
    demo,
    train,
    update,
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
    app.command(cls=_Command)(command)
app.command("import", cls=_Command)(import_)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"longleaf {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and leave.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Find the few right labels among millions, the rare ones included."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit status; whatever goes wrong is said in one sentence."""
    logging.basicConfig(format="longleaf: %(message)s", level=logging.WARNING)
    try:
        _core.simd()  # refuses a LONGLEAF_SIMD that there is not, before any work
        status = app(arguments, standalone_mode=False)
        if sys.stdout is not None:  # as it is where the caller closed it
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # Typer and Rich leave by SystemExit when a pipe breaks
        _forget_output()  # the reader has had enough: that is no error
        return DONE
    except (typer.Abort, EOFError):
        return INTERRUPTED
    except Exception as error:
        return _complain(error)
    return status if isinstance(status, int) else DONE


def _complain(error: Exception) -> int:
    """Say in one line what was wrong."""
    if hasattr(error, "format_message"):  # bad usage, as the argument parser found it
        sentence = error.format_message()
    elif isinstance(error, MemoryError):
        sentence = "There is not enough memory for this."
    elif isinstance(error, OSError) and error.strerror and not isinstance(error, ValueError):
        sentence = f"{error.filename or 'The operating system'}: {error.strerror}."
    elif isinstance(error, ValueError):
        sentence = str(error)
    else:  # a fault of ours
        if os.environ.get("LONGLEAF_DEBUG"):
            raise error
        sentence = f"Unexpected {type(error).__name__}: {error} (LONGLEAF_DEBUG=1 shows where)."
    line = " ".join(sentence.split())
    if line:  # empty where the help was shown instead
        _console.note(f"longleaf: {line if line.endswith('.') else line + '.'}")
    return BAD


def _forget_output() -> None:
    """Let nothing more be written to a closed pipe, not even when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
