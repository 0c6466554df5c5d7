"""The log: one JSON object per line on standard error, without any content of requests."""

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
    """Format records as JSON objects, with the extra fields of ``extra={"facts": {…}}``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line: dict[str, Any] = {
            "time": _moment(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "process": os.getpid(),
        }
        line |= getattr(record, "facts", {})
        if record.exc_info and record.exc_info[0] is not None:
            # messages of exceptions may quote a text: log only the type and the locations
            frames = traceback.extract_tb(record.exc_info[2])
            line["error"] = record.exc_info[0].__name__
            line["at"] = [
                f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames
            ]
        return json.dumps(line, ensure_ascii=True)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def set_up() -> None:
    """Send the log, and the warnings of the HTTP server, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in LEVELS.items():
        one = logging.getLogger(name)
        one.handlers[:], one.propagate = [handler], False
        one.setLevel(level)


def log(event: str, **facts: Any) -> None:
    """Log an event."""
    logger.info(event, extra={"facts": facts})


def log_warning(event: str, **facts: Any) -> None:
    """Log a warning for the operator."""
    logger.warning(event, extra={"facts": facts})


def log_error(event: str, **facts: Any) -> None:
    """Log an error, with its location if an exception is being handled."""
    failing = sys.exc_info()[0] is not None
    logger.error(event, extra={"facts": facts}, exc_info=failing)
