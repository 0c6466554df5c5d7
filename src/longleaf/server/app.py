"""The routes of the service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from longleaf import __version__
from longleaf.server import metrics
from longleaf.server.answers import error_answer
from longleaf.server.engine import UNPROCESSABLE, Engine
from longleaf.server.feedback import FeedbackFile
from longleaf.server.guard import CLOSED, INTERNAL, INTERNAL_ERROR, Guard, KeyCheck
from longleaf.server.highlights import spans_of
from longleaf.server.page import page_routes
from longleaf.server.reader import stop_if_abandoned, while_connected
from longleaf.server.requests import (
    JsonObject,
    ReadText,
    SuggestRequest,
    check_explained,
    check_fields,
    read_json,
    required,
    required_text,
    unprocessable,
)
from longleaf.server.service import UNAVAILABLE, Service
from longleaf.server.settings import Refusal
from longleaf.server.tree_view import TreeView
from longleaf.suggest import short

TIMEOUT, TOO_LARGE, WRONG_TYPE = 408, 413, 415
MOST_TAGS = 100
CLOSE = {"Connection": "close"}
"""Header of a response sent before the request was read to its end; the rest is not read."""

Handler = Callable[[Service, Request], Awaitable[Response]]


def create_app(service: Service) -> ASGIApp:
    """Create the ASGI application of one worker."""
    posts = {"suggest": suggest, "explain": explain, "tree": tree, "reload": reload}
    if service.feedback is not None:
        posts["feedback"] = feedback
    gets = {"/v1/model": model, "/v1/tags": tags, "/healthz": healthz, "/readyz": readyz}
    gets |= {"/metrics": prometheus, "/openapi.json": openapi}
    routes = [
        *(
            Route(f"/v1/{name}", _bound(handler, service), methods=["POST"])
            for name, handler in posts.items()
        ),
        *(Route(path, _bound(handler, service), methods=["GET"]) for path, handler in gets.items()),
        *page_routes(),
    ]
    app = Starlette(
        routes=routes,
        middleware=_middleware(service),
        exception_handlers={
            Refusal: _refuse,
            HTTPException: _not_found,
            ClientDisconnect: _gone,
            Exception: _fail,
        },
    )
    return Guard(app, service)


def _middleware(service: Service) -> Sequence[Middleware]:
    settings, layers = service.settings, []
    if settings.cors:
        headers = ["authorization", "content-type", "x-api-key"]
        layers.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(settings.cors),
                allow_methods=["GET", "POST"],
                allow_headers=headers,
            )
        )
    if settings.api_keys:
        layers.append(Middleware(KeyCheck, keys=settings.api_keys))
    return layers


def _bound(handler: Handler, service: Service) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        seconds = service.settings.limits.seconds
        try:
            async with asyncio.timeout(None if handler is reload else seconds):
                return await handler(service, request)
        except TimeoutError:
            sentence = f"A request must be answered within {seconds:g} s; this one was not."
            raise Refusal(TIMEOUT, sentence, CLOSE) from None

    return endpoint


async def suggest(service: Service, request: Request) -> Response:
    """Suggest tags."""
    body = await _body(service, request)
    parsed = SuggestRequest.parse(body, service.engine, service.settings.limits)
    facts = {"rows": parsed.n_rows, "k": parsed.k, "explain": parsed.explain}
    request.scope["longleaf"] = facts
    return _json(await while_connected(request, service.suggest(parsed, facts)))


async def explain(service: Service, request: Request) -> Response:
    """Explain a tag by the words of the text, and where they occur."""
    body = await _body(service, request)
    check_fields(body, ("text", "tag", "meaning_by_word"))
    engine = service.engine
    text, tag = required_text(body, engine), required(body, "tag", str)
    by_word = required({"meaning_by_word": False} | body, "meaning_by_word", bool)
    check_explained([text], service.settings.limits)
    work = service.reader.run(_explanation, engine, text, tag, by_word)
    return _json(await while_connected(request, work))


def _explanation(engine: Engine, text: ReadText, tag: str, meaning_by_word: bool) -> JsonObject:
    with unprocessable():
        X = engine.rows([text])
        found = engine.explain(X, text, tag, meaning_by_word)
    stop_if_abandoned()
    spans = spans_of(engine.suggester, X, text, found)
    stop_if_abandoned()
    return {
        "tag": found.tag,
        "name": found.name,
        "probability": found.probability,
        "baseline": found.baseline,
        "words": found.contributions,
        "match": None if found.match is None else asdict(found.match),
        "meaning": found.meaning,
        "spans": spans,
        "levels": [asdict(level) for level in found.levels],
        "decided": found.decided.depth,
        "records": [
            {"id": one.id, "title": one.title, "similarity": short(one.similarity)} for one in found.records
        ],
        "model": engine.version,
    }


async def tree(service: Service, request: Request) -> Response:
    """Describe a node of a label tree."""
    body = await _body(service, request)
    check_fields(body, ("tree", "node", "text"))
    tree, node = (required({"tree": 0, "node": 0} | body, name, int) for name in ("tree", "node"))
    engine = service.engine
    text = None if body.get("text") is None else required_text(body, engine)
    work = service.reader.run(lambda: TreeView(engine, tree, node, text).to_json())
    return _json(await while_connected(request, work))


async def feedback(service: Service, request: Request) -> Response:
    """Store accepted and rejected suggestions."""
    body, file = await _body(service, request), service.feedback
    assert isinstance(file, FeedbackFile)
    return _json(await service.reader.run(file.add, body, service.engine))


async def reload(service: Service, request: Request) -> Response:
    """Reload the model in all workers."""
    await _bytes(service, request)
    return _json(await while_connected(request, service.reload_all()))


async def model(service: Service, request: Request) -> Response:
    """Describe the model that is served."""
    return _json(service.facts())


async def tags(service: Service, request: Request) -> Response:
    """Search tags by name."""
    try:
        limit = int(request.query_params.get("limit", "20"))
    except ValueError:
        limit = 0
    if not 1 <= limit <= MOST_TAGS:
        raise Refusal(UNPROCESSABLE, f"limit must be a whole number from 1 to {MOST_TAGS}.")
    engine = service.engine
    work = service.reader.run(engine.tag_search.find, request.query_params.get("q", ""), limit)
    found = await while_connected(request, work)
    return _json({"tags": [engine.describe(label) for label in found], "model": engine.version})


async def healthz(service: Service, request: Request) -> Response:
    """Report that the process responds."""
    return _json({"status": "ok"})


async def readyz(service: Service, request: Request) -> Response:
    """Report whether the service accepts new requests."""
    if service.draining:
        raise Refusal(UNAVAILABLE, "The service is shutting down.")
    return _json({"status": "ready", "model": service.engine.version})


async def prometheus(service: Service, request: Request) -> Response:
    """Return the metrics of all workers."""
    engine = service.engine
    page = metrics.render(service.slot.board, engine.version, engine.model.n_labels_)
    return Response(page, headers={"content-type": metrics.CONTENT_TYPE})


async def openapi(service: Service, request: Request) -> Response:
    """Return the OpenAPI description."""
    described = json.loads(files("longleaf.server").joinpath("openapi.json").read_text("utf-8"))
    described["info"]["version"] = __version__
    if service.feedback is None:
        del described["paths"]["/v1/feedback"]
    return _json(described)


async def _body(service: Service, request: Request) -> JsonObject:
    """Read the JSON object of a request, reading at most the limit."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # forms on other sites cannot send this type
        raise Refusal(WRONG_TYPE, f"Content-Type must be application/json; got {kind or 'none'}.")
    return read_json(await _bytes(service, request))


async def _bytes(service: Service, request: Request) -> bytes:
    most, chunks, size = service.settings.limits.body_bytes, [], 0
    if _exceeds(request.headers.get("content-length", "0"), most):
        raise _too_large(most)
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        chunks.append(chunk)
    return b"".join(chunks)


def _exceeds(digits: str, most: int) -> bool:
    """Return whether the digits of a header, possibly thousands, are a number above the limit."""
    digits, limit = digits.strip().lstrip("0"), str(most)
    return digits.isdecimal() and (len(digits), digits) > (len(limit), limit)


def _too_large(most: int) -> Refusal:
    return Refusal(TOO_LARGE, f"The body must be at most {most} bytes.", CLOSE)


def _json(value: Any) -> Response:
    return Response(json.dumps(value, allow_nan=False), media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return error_answer(error.status, error.sentence, error.headers)


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_answer(error.status_code, f"{error.detail}.", error.headers)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=CLOSED)  # only for the log: the client is gone


async def _fail(request: Request, error: Exception) -> Response:
    return error_answer(INTERNAL, INTERNAL_ERROR)
