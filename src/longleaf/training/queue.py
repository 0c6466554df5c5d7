"""Which nodes are trained next."""

from __future__ import annotations

import threading
import time

import numpy as np
import numpy.typing as npt

SECONDS, SHARE = 1.0, 0.001
"""What a range takes, about: so many seconds, and such a share of the time that has passed."""

LEAST_SECONDS = 0.1


class UnitQueue:
    """Hands out ranges of units to several threads, the costliest remaining unit first, until none remains.

    A range is as large as possible while it takes about ``SECONDS`` (so that little is lost when the
    training is killed) and leaves enough for the other threads (so that all finish together). The time of a
    range is estimated from the ranges before it; until one has ended, ranges are single units.

    Parameters
    ----------
    first_node : int32 array [units + 1]
        Where each unit's nodes begin, and last where all end.
    cost : float64 array [units]
        What each takes, on any scale.
    threads : int
        How many take ranges.
    """

    def __init__(
        self, first_node: npt.NDArray[np.int32], cost: npt.NDArray[np.float64], threads: int
    ) -> None:
        self._first_node = first_node
        self._cost = np.maximum(cost, 1.0)
        self._left = self._cost.copy()  # 0 where a unit is taken
        self._threads = threads
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._done, self._trained, self._seconds = 0.0, 0.0, 0.0
        self._running: dict[int, float] = {}  # by first unit of a range, the cost that is done

    def skip(self, first_node: int, last_node: int) -> None:
        """Leave out the units of these nodes, which are done."""
        units = (self._first_node[:-1] >= first_node) & (self._first_node[1:] <= last_node)
        self._done += float(self._left[units].sum())
        self._left[units] = 0.0

    def take(self) -> tuple[int, int] | None:
        """Return a run of units [first, last) to train, or None if nothing is left."""
        with self._lock:
            first = int(np.argmax(self._left))
            if self._left[first] == 0.0:
                return None
            last, spare = first + 1, self._most() - self._left[first]
            while last < len(self._left) and 0.0 < self._left[last] <= spare:
                spare -= self._left[last]
                last += 1
            while first > 0 and 0.0 < self._left[first - 1] <= spare:
                first -= 1
                spare -= self._left[first]
            self._left[first:last] = 0.0
            self._running[first] = 0.0
            return first, last

    def nodes(self, first: int, last: int) -> tuple[int, int]:
        """Return the nodes of a run of units."""
        return int(self._first_node[first]), int(self._first_node[last])

    def note(self, first: int, last: int, share: float) -> None:
        """Hear how far the training of a range is."""
        with self._lock:
            self._running[first] = min(share, 1.0) * float(self._cost[first:last].sum())

    def finish(self, first: int, last: int, seconds: float) -> None:
        """Hear that a range is trained, and how long it took."""
        cost = float(self._cost[first:last].sum())
        with self._lock:
            del self._running[first]
            self._done += cost
            self._trained += cost
            self._seconds += seconds

    def share(self) -> float:
        """Return the share of the whole that is done."""
        with self._lock:
            return (self._done + sum(self._running.values())) / float(self._cost.sum())

    def _most(self) -> float:
        """Return the cost that a range may have."""
        if not self._seconds:
            return 0.0
        speed = self._trained / self._seconds
        wanted = SECONDS + SHARE * (time.monotonic() - self._start)
        fair = float(self._left.sum()) / (2 * self._threads)
        return max(speed * LEAST_SECONDS, min(speed * wanted, fair))
