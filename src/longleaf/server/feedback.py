"""Accepted and rejected suggestions, stored for later training."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Container
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longleaf.io._replace import sync_directory
from longleaf.server.engine import UNPROCESSABLE, Engine
from longleaf.server.logs import log_error
from longleaf.server.requests import (
    JsonObject,
    ReadText,
    check_fields,
    required,
    required_text,
    unprocessable,
)
from longleaf.server.settings import Refusal
from longleaf.text.fields import LANGUAGE, field_texts

INSUFFICIENT_STORAGE, UNAVAILABLE = 507, 503
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FIELDS = ("text", "accepted", "rejected")
PREFIX = "feedback_"
"""Begins the name of a stored fact that would otherwise have the name of a field of text."""


class FeedbackFile:
    """A JSONL file to which several workers append. ``longleaf train`` reads it unchanged.

    Parameters
    ----------
    path : str
        Created if needed, readable only by its owner because it contains users' texts.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        file = self._open()
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise ValueError(f"The feedback file must be a regular file; got {path}.")
            os.fsync(file)
        finally:
            os.close(file)
        with suppress(PermissionError):  # the folder may be searchable but not readable
            sync_directory(Path(path).parent)

    def add(self, body: JsonObject, engine: Engine) -> JsonObject:
        """Check a request and append it to the file; return how many tags it accepts and rejects."""
        check_fields(body, FIELDS)
        text = required_text(body, engine)
        accepted, rejected = (_tags(body.get(name, []), name, engine) for name in FIELDS[1:])
        if engine.is_blank(text) or not accepted + rejected:
            raise Refusal(UNPROCESSABLE, "text and at least one accepted or rejected tag must be given.")
        both = set(accepted) & set(rejected)
        if both:
            raise Refusal(UNPROCESSABLE, f"A tag must be accepted or rejected; {min(both)!r} is both.")
        facts = {
            "tags": accepted,
            "rejected": rejected,
            "model": engine.version,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        fields = row_fields(text, engine)
        line = fields | {free_name(name, fields): value for name, value in facts.items()}
        self._write(json.dumps(line).encode() + b"\n")
        return {"accepted": len(accepted), "rejected": len(rejected)}

    def _write(self, line: bytes) -> None:
        """Append a whole line and sync it to disk, or leave the file unchanged."""
        try:
            file = self._open()
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                _append(file, line)
            finally:
                os.close(file)
        except OSError as error:
            log_error("feedback not kept", reason=error.strerror)
            full = error.errno in FULL
            raise Refusal(
                INSUFFICIENT_STORAGE if full else UNAVAILABLE,
                "Feedback cannot be stored now, because "
                + ("there is no space left." if full else "its file cannot be written."),
            ) from None

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def row_fields(text: ReadText, engine: Engine) -> dict[str, str]:
    """Return the fields of a row to train on: those of the model, or else ``text``; and the language."""
    names = engine.suggester.fields
    fields = dict(zip(names or ["text"], field_texts(text, names, 0), strict=True))
    return fields if isinstance(text, str) or LANGUAGE not in text else {LANGUAGE: text[LANGUAGE]} | fields


def free_name(name: str, fields: Container[str]) -> str:
    """Return a name that no field has."""
    while name in fields:
        name = PREFIX + name
    return name


def _append(file: int, line: bytes) -> None:
    """Append a line after a line end and sync; on failure, restore the file."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":  # a writer was killed, or an editor omitted it
        line = b"\n" + line
    try:
        while line:
            line = line[os.write(file, line) :]
        os.fsync(file)
    except OSError:
        os.ftruncate(file, size)
        raise


def _tags(value: Any, name: str, engine: Engine) -> list[str]:
    """Return the tags, which may be given by their readable names."""
    words = [required({name: word}, name, str) for word in required({name: value}, name, list)]
    with unprocessable():
        labels = engine.tags.numbers(words, name)
    return [engine.tags.tags[label] for label in dict.fromkeys(labels)]
