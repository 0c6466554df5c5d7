"""Accepted and rejected suggestions, kept for the next training."""

from __future__ import annotations

import fcntl
import json
import os
from datetime import UTC, datetime
from typing import Any

from longleaf.server.engine import UNPROCESSABLE, Engine
from longleaf.server.requests import JsonObject, check_fields, required, unprocessable
from longleaf.server.settings import Refusal

FIELDS = ("text", "accepted", "rejected")


class FeedbackFile:
    """A JSONL file that several workers add to. ``longleaf train`` reads it as it is.

    Parameters
    ----------
    path : str
        Made if it is not there, readable by its owner only: it holds people's texts.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        os.close(self._open())

    def add(self, asked: JsonObject, engine: Engine) -> JsonObject:
        """Check what came in and write it down; give the line."""
        check_fields(asked, FIELDS)
        engine.needs_texts()
        text = required(asked, "text", str)
        accepted, rejected = (_tags(asked.get(name, []), name, engine) for name in FIELDS[1:])
        if not text.strip() or not accepted + rejected:
            raise Refusal(UNPROCESSABLE, "text and at least one accepted or rejected tag must be given.")
        both = set(accepted) & set(rejected)
        if both:
            raise Refusal(UNPROCESSABLE, f"A tag must be accepted or rejected; {min(both)!r} is both.")
        line = {
            "text": text,
            "tags": accepted,
            "rejected": rejected,
            "model": engine.version,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self._write(json.dumps(line).encode() + b"\n")
        return line

    def _write(self, line: bytes) -> None:
        file = self._open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # a long line may take several writes
            while line:
                line = line[os.write(file, line) :]
        finally:
            os.close(file)

    def _open(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _tags(value: Any, name: str, engine: Engine) -> list[str]:
    """Give the tags, which may be called by their readable names."""
    words = [required({name: word}, name, str) for word in required({name: value}, name, list)]
    with unprocessable():
        labels = engine.tags.numbers(words, name)
    return [engine.tags.tags[label] for label in dict.fromkeys(labels)]
