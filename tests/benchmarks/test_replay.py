"""The replay of recorded tasks on other numbers of workers, against schedules worked out by hand."""

import pytest

from benchmarks.scaleout.replay import Costs, Task, critical_path, replay

FREE = Costs(bytes_per_second=1e30, seconds_per_fetch=0.0, seconds_per_task=0.0)


def task(number, kind, seconds, needs=(), phase=0, size=0):
    return Task(f"longleaf-{kind}-{number}-x", seconds, size, tuple(needs), phase, number)


ROWS = [task(1, "rows", 2.0, size=100), task(2, "rows", 3.0, size=100)]
TRAIN = task(3, "train", 4.0, [one.key for one in ROWS])
LATER = task(4, "train", 1.0, phase=1)


def test_one_worker_takes_the_sum_and_many_the_longest_chain():
    tasks = [*ROWS, TRAIN, LATER]
    assert replay(tasks, 1, FREE).seconds == 10.0
    assert replay(tasks, 2, FREE).seconds == 8.0  # 3, then 4, then the next phase
    assert replay(tasks, 9, FREE).seconds == critical_path(tasks) == 8.0
    assert replay(tasks, 2, FREE).phase_seconds == [7.0, 1.0]


def test_what_is_not_there_is_fetched():
    costs = Costs(bytes_per_second=100.0, seconds_per_fetch=0.5, seconds_per_task=0.0)
    found = replay([*ROWS, TRAIN], 2, costs)
    assert found.moved_bytes == 100  # one of the two blocks
    assert found.seconds == 3.0 + 1.0 + 0.5 + 4.0
    assert replay([*ROWS, TRAIN], 1, costs).moved_bytes == 0


def test_the_scheduler_takes_one_task_after_another():
    costs = Costs(bytes_per_second=1e30, seconds_per_fetch=0.0, seconds_per_task=1.0)
    tasks = [task(number, "train", 0.0) for number in range(10)]
    assert replay(tasks, 64, costs).seconds == pytest.approx(10.0)
