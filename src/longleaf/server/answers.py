"""JSON responses. Every error of the service is written here, so none quotes a request at length."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response

MOST_CHARACTERS = 320
"""Maximum length of an error message; from a longer one the middle, which quotes the request, is cut."""
END_CHARACTERS = 100
CUT = " … "


def brief(sentence: str) -> str:
    """Shorten a sentence to a bounded length, keeping its beginning and end."""
    if len(sentence) <= MOST_CHARACTERS:
        return sentence
    return sentence[: MOST_CHARACTERS - END_CHARACTERS - len(CUT)] + CUT + sentence[-END_CHARACTERS:]


def error_body(sentence: str) -> bytes:
    """Return the JSON of an error, in ASCII: a sentence may quote what UTF-8 cannot encode."""
    return json.dumps({"error": brief(sentence)}).encode("ascii")


def error_answer(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error response."""
    return Response(error_body(sentence), status, headers, media_type="application/json")
