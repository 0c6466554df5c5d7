"""Answers as JSON; every error of the service is written here, so none of them quotes a request at length."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response

MOST_CHARACTERS = 320
"""Of an error's sentence; of a longer one the middle is cut out, which is what it quotes."""
END_CHARACTERS = 100
CUT = " … "


def brief(sentence: str) -> str:
    """Return a sentence of bounded length, with its beginning and its end."""
    if len(sentence) <= MOST_CHARACTERS:
        return sentence
    return sentence[: MOST_CHARACTERS - END_CHARACTERS - len(CUT)] + CUT + sentence[-END_CHARACTERS:]


def error_body(sentence: str) -> bytes:
    """Return the JSON of an error. It is ASCII: a sentence may quote what UTF-8 cannot hold."""
    return json.dumps({"error": brief(sentence)}).encode("ascii")


def error_answer(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as an answer."""
    return Response(error_body(sentence), status, headers, media_type="application/json")
