"""How long a training will take."""

from __future__ import annotations

import time

SECONDS_TO_MEASURE = 20.0
"""After so long there is an estimate."""


class Clock:
    """Estimates how long all tokens will take from how long some took; the first piece warms up."""

    def __init__(self, tokens: int) -> None:
        self.total = 0.0
        self._tokens, self._done, self._begin = tokens, -1, 0.0

    def has_measured(self, tokens: int) -> bool:
        """Count tokens that are done; return True once, when there is an estimate."""
        now = time.perf_counter()
        if self.total:
            return False
        if self._done < 0:
            self._done, self._begin, self._tokens = 0, now, self._tokens - tokens
            return False
        self._done += tokens
        if now - self._begin < SECONDS_TO_MEASURE and self._done < self._tokens // 10:
            return False
        self.total = (now - self._begin) * self._tokens / self._done
        return True
