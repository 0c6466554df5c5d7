"""Counters in shared memory: each worker writes its own row, and all processes read them all.

The memory is mapped before the workers are forked. A row has one writer, the worker's event loop, and every
number is one aligned word, so nothing needs a lock.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left

import numpy as np

PATHS = (
    "/v1/suggest",
    "/v1/explain",
    "/v1/tree",
    "/v1/tags",
    "/v1/model",
    "/v1/feedback",
    "/v1/reload",
    "/healthz",
    "/readyz",
    "/metrics",
    "/",
    "other",
)
STATUSES = (200, 204, 304, 400, 401, 404, 405, 408, 409, 413, 415, 422, 429, 431, 500, 503, 507, 0)
"""Status 0 stands for any other."""
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
GAUGES = (
    *("version", "in_flight", "waiting_rows", "reloads", "requested", "search_seconds", "starts"),
    "embedded_texts",
)
ORDERS = ("target", "copied", "answered", "failed", "failures")
"""Numbers written by the supervisor: the version that all workers must load, the version of the last copy,
the number of finished reload requests (of ``requested_reloads``), whether the last one failed, and how many
failed."""


_PLACES = {path: place for place, path in enumerate(PATHS)}
_STATUS_PLACES = {status: place for place, status in enumerate(STATUSES)}


class Board:
    """Counters of all workers.

    Parameters
    ----------
    workers : int
        Number of rows.

    Attributes
    ----------
    requests : float64 array [workers, paths, statuses]
    seconds : float64 array [workers, paths, len(SECONDS) + 2]
        Counts per bucket, then the sum.
    batches : float64 array [workers, len(ROWS) + 2]
        The same for the number of rows of a batch.
    embeddings : float64 array [workers, len(SECONDS) + 2]
        The same for the seconds that requests waited for the embeddings of their texts.
    gauges : float64 array [workers, gauges]
    orders : float64 array [orders]
        Written by the supervisor; ``copied`` by the process that copies a model for it.
    """

    def __init__(self, workers: int) -> None:
        shapes = {
            "requests": (workers, len(PATHS), len(STATUSES)),
            "seconds": (workers, len(PATHS), len(SECONDS) + 2),
            "batches": (workers, len(ROWS) + 2),
            "embeddings": (workers, len(SECONDS) + 2),
            "gauges": (workers, len(GAUGES)),
            "orders": (len(ORDERS),),
        }
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        memory = np.frombuffer(mmap.mmap(-1, 8 * sum(sizes)), np.float64)
        arrays = np.split(memory, np.cumsum(sizes)[:-1])
        self.requests, self.seconds, self.batches, self.embeddings, self.gauges, self.orders = (
            array.reshape(shape) for array, shape in zip(arrays, shapes.values(), strict=True)
        )
        self.workers = workers

    def order(self, name: str) -> float:
        """Return one of the supervisor's numbers."""
        return float(self.orders[ORDERS.index(name)])

    def set_order(self, name: str, value: float) -> None:
        """Set one of the supervisor's numbers."""
        self.orders[ORDERS.index(name)] = value

    @property
    def requested_reloads(self) -> float:
        """The number of requested reloads, over all workers."""
        return float(self.gauges[:, GAUGES.index("requested")].sum())

    @property
    def agree(self) -> bool:
        """Whether all workers have the version that the supervisor ordered."""
        return bool((self.gauges[:, GAUGES.index("version")] == self.order("target")).all())


class Slot:
    """One worker's row of the board."""

    def __init__(self, board: Board, worker: int) -> None:
        self.board, self.worker = board, worker
        board.gauges[worker, GAUGES.index("in_flight")] = 0  # a worker that died may have left some
        board.gauges[worker, GAUGES.index("waiting_rows")] = 0
        self.add("starts")

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        place = _PLACES.get(path, len(PATHS) - 1)
        self.board.requests[self.worker, place, _STATUS_PLACES.get(status, len(STATUSES) - 1)] += 1
        row = self.board.seconds[self.worker, place]
        row[bisect_left(SECONDS, seconds)] += 1
        row[-1] += seconds

    def batch(self, rows: int, seconds: float) -> None:
        """Count a searched batch."""
        row = self.board.batches[self.worker]
        row[bisect_left(ROWS, rows)] += 1
        row[-1] += rows
        self.add("search_seconds", seconds)

    def embedded(self, texts: int, seconds: float) -> None:
        """Count a request whose texts were embedded."""
        row = self.board.embeddings[self.worker]
        row[bisect_left(SECONDS, seconds)] += 1
        row[-1] += seconds
        self.add("embedded_texts", texts)

    def add(self, gauge: str, amount: float = 1) -> None:
        """Add to a gauge."""
        self.board.gauges[self.worker, GAUGES.index(gauge)] += amount

    def set(self, gauge: str, value: float) -> None:
        """Set a gauge."""
        self.board.gauges[self.worker, GAUGES.index(gauge)] = value


def version_number(version: str) -> int:
    """Return a model's version as a number that a float64 holds exactly."""
    return int(version, 16)  # 12 hexadecimal digits: 48 bits


def version_text(number: float) -> str:
    """Return the version of a number; the inverse of `version_number`."""
    return f"{int(number):012x}"
