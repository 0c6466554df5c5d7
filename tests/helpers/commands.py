"""Running the command line in this process, which saves the imports of a new one."""

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

import longleaf as ll
from longleaf.cli import main

COMMAND = [sys.executable, "-m", "longleaf.cli"]
"""For the few tests that need a process of its own."""


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it wrote."""

    status: int
    stdout: str
    stderr: str


def run(*arguments: object, stdin: bytes = b"") -> Result:
    """Run a command with streams of its own, none of them a terminal."""
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (stdin, b"", b"")]
    with mock.patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]):
        status = main([str(argument) for argument in arguments])
    for stream in streams[1:]:
        stream.flush()
    stdout, stderr = (stream.buffer.getvalue().decode() for stream in streams[1:])
    return Result(status, stdout, stderr)


def run_well(*arguments: object, stdin: bytes = b"") -> str:
    """Give what a command prints that must succeed."""
    result = run(*arguments, stdin=stdin)
    assert result.status == 0, result.stderr
    return result.stdout


def complaint(*arguments: object, stdin: bytes = b"") -> str:
    """Give the one sentence that a command refuses with."""
    result = run(*arguments, stdin=stdin)
    assert result.status == 2, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("longleaf: ")
    assert result.stderr.endswith(".\n")
    assert result.stderr.count("\n") == 1
    return result.stderr


def fill(folder: Path) -> Path:
    """Write train.txt and test.txt with 12 features and 9 labels, and a model; label 8 is new in test.txt."""
    random = np.random.RandomState(0)
    for name, n_rows, n_used in (("train.txt", 120, 8), ("test.txt", 30, 9)):
        Y = np.zeros((n_rows, 9))
        Y[np.arange(n_rows), np.minimum(random.geometric(0.3, n_rows) - 1, n_used - 1)] = 1
        Y[:n_used, :n_used] += np.eye(n_used)
        X = np.hstack([Y[:, :8], np.ones((n_rows, 4))]) + 0.3 * random.rand(n_rows, 12)
        ll.save_xmlc(folder / name, X, Y)
    run_well("train", folder / "train.txt", "-o", folder / "model.ll", "--max-leaf", 2, "--threads", 1)
    return folder
