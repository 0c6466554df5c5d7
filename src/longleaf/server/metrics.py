"""The counters of all workers in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from longleaf.server.board import GAUGES, PATHS, ROWS, SECONDS, STATUSES, Board

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Numbers = npt.NDArray[np.float64]


def render(board: Board, version: str, n_labels: int) -> str:
    """Return the metrics in the text format of Prometheus."""
    return (
        "\n".join([*_requests(board), *_batches(board), *_gauges(board), *_model(version, n_labels)]) + "\n"
    )


def _requests(board: Board) -> Iterator[str]:
    yield from _head("longleaf_requests_total", "counter", "Requests by path and status.")
    counts = board.requests.sum(axis=0)
    for path, status in np.argwhere(counts):
        code = STATUSES[status] or "other"
        labels = f'path="{PATHS[path]}",status="{code}"'
        yield f"longleaf_requests_total{{{labels}}} {_number(counts[path, status])}"
    yield from _head("longleaf_request_seconds", "histogram", "Time from a request to its response.")
    for path, row in zip(PATHS, board.seconds.sum(axis=0), strict=True):
        if row[:-1].any():
            yield from _histogram("longleaf_request_seconds", f'path="{path}",', SECONDS, row)


def _batches(board: Board) -> Iterator[str]:
    yield from _head("longleaf_batch_rows", "histogram", "Rows that were searched together.")
    yield from _histogram("longleaf_batch_rows", "", ROWS, board.batches.sum(axis=0))
    name = "longleaf_embedding_seconds"
    yield from _head(name, "histogram", "Time that a request waited for the embeddings of its texts.")
    yield from _histogram(name, "", SECONDS, board.embeddings.sum(axis=0))


def _gauges(board: Board) -> Iterator[str]:
    total = dict(zip(GAUGES, board.gauges.sum(axis=0).tolist(), strict=True))
    total["failed_reloads"] = board.order("failures")
    for name, metric, kind, meaning in (
        ("search_seconds", "longleaf_search_seconds_total", "counter", "Time spent searching."),
        ("embedded_texts", "longleaf_embedded_texts_total", "counter", "Texts that were embedded."),
        ("in_flight", "longleaf_requests_in_flight", "gauge", "Requests being answered."),
        ("waiting_rows", "longleaf_waiting_rows", "gauge", "Rows waiting for the searcher."),
        ("reloads", "longleaf_reloads_total", "counter", "Models loaded by a reload, over all workers."),
        ("failed_reloads", "longleaf_failed_reloads_total", "counter", "Reloads that failed."),
        ("starts", "longleaf_worker_starts_total", "counter", "Workers started, replacements included."),
    ):
        yield from _head(metric, kind, meaning)
        yield f"{metric} {_number(total[name])}"
    yield from _head("longleaf_workers", "gauge", "Workers.")
    yield f"longleaf_workers {board.workers}"


def _model(version: str, n_labels: int) -> Iterator[str]:
    yield from _head("longleaf_model_info", "gauge", "The model of the worker that answered.")
    yield f'longleaf_model_info{{version="{version}",labels="{n_labels}"}} 1'


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _histogram(name: str, labels: str, bounds: tuple[float, ...], row: Numbers) -> Iterator[str]:
    """Yield a histogram; ``row`` has a count per bucket, one beyond the last, and the sum."""
    reached = np.cumsum(row[:-1])
    for bound, count in zip((*map(str, bounds), "+Inf"), reached, strict=True):
        yield f'{name}_bucket{{{labels}le="{bound}"}} {_number(count)}'
    own = f"{{{labels.rstrip(',')}}}" if labels else ""
    yield f"{name}_sum{own} {_number(row[-1])}"
    yield f"{name}_count{own} {_number(reached[-1])}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
