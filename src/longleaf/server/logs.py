"""The log: one JSON object a line, on standard error, and never a word of what was sent."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

logger = logging.getLogger("longleaf.server")

LEVELS = {"longleaf.server": logging.INFO, "uvicorn": logging.WARNING, "asyncio": logging.WARNING}


class JsonLines(logging.Formatter):
    """Records as JSON objects; extra facts go by ``extra={"facts": {…}}``."""

    def format(self, record: logging.LogRecord) -> str:
        """Give one line."""
        line: dict[str, Any] = {
            "time": _moment(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "process": os.getpid(),
        }
        line |= getattr(record, "facts", {})
        if record.exc_info and record.exc_info[0] is not None:
            # Messages of exceptions may quote a text: only the kind and the places are told.
            frames = traceback.extract_tb(record.exc_info[2])
            line["error"] = record.exc_info[0].__name__
            line["at"] = [
                f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames
            ]
        return json.dumps(line, ensure_ascii=True)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def set_up() -> None:
    """Send our lines, and the HTTP server's complaints, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in LEVELS.items():
        one = logging.getLogger(name)
        one.handlers[:], one.propagate = [handler], False
        one.setLevel(level)


def log(event: str, **facts: Any) -> None:
    """Write a line."""
    logger.info(event, extra={"facts": facts})


def caution(event: str, **facts: Any) -> None:
    """Write a line about something that the operator should look at."""
    logger.warning(event, extra={"facts": facts})


def complain(event: str, **facts: Any) -> None:
    """Write a line about something that went wrong, with where it happened if an error is being handled."""
    failing = sys.exc_info()[0] is not None
    logger.error(event, extra={"facts": facts}, exc_info=failing)
