"""Rows that threads compute: each once, and none after something failed."""

import threading

import pytest

from longleaf.encoders.threads import run_rows


class Counting:
    def __init__(self, rows):
        self.rows = rows
        self.cancelled = threading.Event()

    def run(self, row):
        self.rows.append(row)

    def cancel(self):
        self.cancelled.set()


class Failing(Counting):
    def run(self, row):
        raise ValueError("it broke")


class Waiting(Counting):
    def run(self, row):
        super().run(row)
        assert self.cancelled.wait(60)


def test_each_row_is_computed_once():
    rows = []
    run_rows([Counting(rows) for _ in range(4)], 1000, None)
    assert sorted(rows) == list(range(1000))


def test_a_failure_is_raised_and_stops_what_runs():
    waiting = Waiting([])
    with pytest.raises(ValueError, match="it broke"):
        run_rows([waiting, Failing([])], 1000, None)
    assert waiting.cancelled.is_set()
    assert len(waiting.rows) <= 1


def test_the_caller_can_stop_what_runs():
    waiting = Waiting([])

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_rows([waiting], 10, stop)
    assert len(waiting.rows) == 1
