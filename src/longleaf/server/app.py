"""The routes."""

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
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from longleaf import __version__
from longleaf.server import metrics
from longleaf.server.engine import UNPROCESSABLE, Engine
from longleaf.server.feedback import FeedbackFile
from longleaf.server.guard import INTERNAL, Guard, KeyCheck
from longleaf.server.page import page_routes
from longleaf.server.requests import (
    JsonObject,
    SuggestRequest,
    check_fields,
    read_json,
    required,
    unprocessable,
)
from longleaf.server.service import UNAVAILABLE, Service
from longleaf.server.settings import Refusal
from longleaf.server.tree_view import TreeView

TIMEOUT, TOO_LARGE, WRONG_TYPE = 408, 413, 415
MOST_TAGS = 100

Handler = Callable[[Service, Request], Awaitable[Response]]


def create_app(service: Service) -> ASGIApp:
    """Make the ASGI application of one worker."""
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
        exception_handlers={Refusal: _refuse, HTTPException: _not_found, Exception: _fail},
    )
    return Guard(app, service)


def _middleware(service: Service) -> Sequence[Middleware]:
    settings, wanted = service.settings, []
    if settings.cors:
        headers = ["authorization", "content-type", "x-api-key"]
        wanted.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(settings.cors),
                allow_methods=["GET", "POST"],
                allow_headers=headers,
            )
        )
    if settings.api_keys:
        wanted.append(Middleware(KeyCheck, keys=settings.api_keys))
    return wanted


def _bound(handler: Handler, service: Service) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        seconds = service.settings.limits.seconds
        try:
            async with asyncio.timeout(seconds):
                return await handler(service, request)
        except TimeoutError:
            raise Refusal(
                TIMEOUT, f"A request must be answered within {seconds:g} s; this one was not."
            ) from None

    return endpoint


async def suggest(service: Service, request: Request) -> Response:
    """Suggest tags."""
    asked = await _body(service, request)
    wish = SuggestRequest.parse(asked, service.engine, service.settings.limits)
    request.scope["longleaf"] = {"rows": wish.n_rows, "k": wish.query.k, "explain": wish.explain}
    return _json(await service.suggest(wish))


async def explain(service: Service, request: Request) -> Response:
    """Say which words spoke for a tag, and where they stand."""
    asked = await _body(service, request)
    check_fields(asked, ("text", "tag"))
    text, tag = required(asked, "text", str), required(asked, "tag", str)
    engine = service.engine
    engine.needs_texts()
    return _json(await service.aside(_explanation, engine, text, tag))


def _explanation(engine: Engine, text: str, tag: str) -> JsonObject:
    with unprocessable():
        found = engine.explain(text, tag)
    return {
        "tag": found.tag,
        "name": found.name,
        "probability": found.probability,
        "baseline": found.baseline,
        "words": found.contributions,
        "spans": found.spans(text),
        "levels": [asdict(level) for level in found.levels],
        "decided": found.decided.depth,
        "model": engine.version,
    }


async def tree(service: Service, request: Request) -> Response:
    """Show a node of a label tree."""
    asked = await _body(service, request)
    check_fields(asked, ("tree", "node", "text"))
    tree, node = (required({"tree": 0, "node": 0} | asked, name, int) for name in ("tree", "node"))
    text = None if asked.get("text") is None else required(asked, "text", str)
    if text is not None:
        service.engine.needs_texts()
    return _json(await service.aside(lambda: TreeView(service.engine, tree, node, text).to_json()))


async def feedback(service: Service, request: Request) -> Response:
    """Keep accepted and rejected suggestions."""
    asked, file = await _body(service, request), service.feedback
    assert isinstance(file, FeedbackFile)
    line = await service.aside(file.add, asked, service.engine)
    return _json({"accepted": len(line["tags"]), "rejected": len(line["rejected"])})


async def reload(service: Service, request: Request) -> Response:
    """Take up a new model in all workers."""
    return _json(await service.reload_all())


async def model(service: Service, request: Request) -> Response:
    """Say what is served."""
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
    found = await service.aside(engine.tag_search.find, request.query_params.get("q", ""), limit)
    return _json({"tags": [engine.describe(label) for label in found], "model": engine.version})


async def healthz(service: Service, request: Request) -> Response:
    """Say that the process answers."""
    return _json({"status": "ok"})


async def readyz(service: Service, request: Request) -> Response:
    """Say whether new requests are welcome."""
    if service.draining:
        raise Refusal(UNAVAILABLE, "The service is shutting down.")
    return _json({"status": "ready", "model": service.engine.version})


async def prometheus(service: Service, request: Request) -> Response:
    """Give the counts of all workers."""
    engine = service.engine
    page = metrics.render(service.slot.board, engine.version, engine.model.n_labels_)
    return Response(page, headers={"content-type": metrics.CONTENT_TYPE})


async def openapi(service: Service, request: Request) -> Response:
    """Describe all this."""
    described = json.loads(files("longleaf.server").joinpath("openapi.json").read_text("utf-8"))
    described["info"]["version"] = __version__
    if service.feedback is None:
        del described["paths"]["/v1/feedback"]
    return _json(described)


async def _body(service: Service, request: Request) -> JsonObject:
    """Read the JSON object of a request, never more than the limit."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # no form of another site's page can send this
        raise Refusal(WRONG_TYPE, f"Content-Type must be application/json; got {kind or 'none'}.")
    most, parts, size = service.settings.limits.body_bytes, [], 0
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise _too_large(most)
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
    return read_json(b"".join(parts))


def _too_large(most: int) -> Refusal:
    return Refusal(TOO_LARGE, f"The body must be at most {most} bytes.", {"Connection": "close"})


def _json(value: Any) -> Response:
    return Response(json.dumps(value, allow_nan=False), media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return JSONResponse({"error": error.sentence}, error.status, error.headers)


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": f"{error.detail}."}, error.status_code, error.headers)


async def _fail(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "Something went wrong inside."}, INTERNAL)
