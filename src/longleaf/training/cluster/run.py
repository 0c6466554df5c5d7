"""One piece of work on a cluster: what was submitted, how long it may take, what its faults are called."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar
from weakref import WeakSet

import dask
from distributed import Client, default_client, wait
from distributed.scheduler import KilledWorker

FAN_IN = 8
"""How many numbers a task sums at a time; more would ask for more memory."""

POLL_SECONDS = 1.0
"""How often is looked whether the workers that a task may run on are still there."""

FETCH_SECONDS = 5.0
"""After how long is looked whether the worker that holds a result is still there."""

SECONDS_FOR_WORKERS = 60
"""How long to wait for a first worker."""

T = TypeVar("T")


class ClusterError(RuntimeError, ValueError):
    """The cluster could not do the work; a ValueError too, since the command line tells these as they are."""


@dataclass(frozen=True)
class Worker:
    """A worker process and the memory that each of its threads may use for a task."""

    address: str
    threads: int
    memory: float


@dataclass(frozen=True, eq=False)
class Job:
    """A task that is heavy enough to look where it fits."""

    name: str
    need: float  # bytes
    submit: Callable[[list[str] | None], Any]  # given the workers that it may run on, None for all
    work: float = 1.0
    about: Any = None


Active: TypeAlias = dict[Any, tuple[Job, list[str] | None]]
"""Jobs that were submitted, by their futures, and the workers that they may run on, None for all."""


class Run:
    """Submits tasks; when the work fails, is interrupted or takes too long, all of them are cancelled."""

    def __init__(self, client: Client | None, timeout: float | None = None) -> None:
        self.client = _check_client(client)
        self.timeout = timeout
        self._token = uuid.uuid4().hex[:12]
        self._submitted = 0
        self._futures: WeakSet[Any] = WeakSet()
        self._end = None if timeout is None else time.monotonic() + timeout

    def __enter__(self) -> Self:
        # data of the caller's own travel inside tasks, so that Dask can send them again when a worker dies
        self._config = dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"})
        self._config.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._config.__exit__(kind, error, trace)
        if kind is not None:
            for future in list(self._futures):
                _cancel(future)

    def submit(
        self, name: str, function: Callable[..., Any], *arguments: Any, workers: list[str] | None = None
    ) -> Any:
        """Return the future of a call; arguments that are futures are what they stand for."""
        self._submitted += 1
        key = f"longleaf-{name}-{self._submitted}-{self._token}"
        future = self.client.submit(function, *arguments, key=key, workers=workers)
        self._futures.add(future)
        return future

    def compute(self, delayed: Sequence[Any]) -> list[Any]:
        """Return the futures of delayed values."""
        futures = self.client.compute(list(delayed))
        self._futures.update(futures)
        return list(futures)

    def keep(self, name: str, value: T) -> Any:
        """Return a future of a value of the caller's; it survives the worker that holds it."""
        return self.submit(name, _same, value)

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Wait for the results."""
        self._wait(list(futures), None, "ALL_COMPLETED")
        return [self.result(future) for future in futures]

    def result(self, future: Any, seconds: float | None = None) -> Any:
        """Return the result of a future that is done, or say in one sentence what went wrong."""
        try:
            return future.result(timeout=seconds)
        except KilledWorker as error:
            raise ClusterError(
                f"Workers must live through a task; {error.allowed_failures + 1} died in {_task(future)}, "
                "so it may need more memory than they have."
            ) from None
        except MemoryError:
            raise ClusterError(
                f"A worker's memory must hold a task's data; it ran out in {_task(future)}."
            ) from None
        except (ValueError, TimeoutError, KeyboardInterrupt):
            raise  # a sentence already
        except Exception as error:
            raise ClusterError(
                f"{_task(future)} failed on a worker: {type(error).__name__}: {error}"
            ) from error

    def reduce(self, name: str, function: Callable[..., Any], futures: Sequence[Any]) -> Any:
        """Return the future of ``function(*results)``, taken a few results at a time, again and again."""
        level = list(futures)
        while True:
            level = [
                self.submit(name, function, *level[at : at + FAN_IN]) for at in range(0, len(level), FAN_IN)
            ]
            if len(level) == 1:
                return level[0]

    def workers(self, share: float = 1.0) -> list[Worker]:
        """Return the present workers, each with the memory that a thread may use: this share of its own."""
        found = self._identities()
        if not found:  # as in a cluster that grows when there is something to do
            try:
                self.client.wait_for_workers(1, timeout=SECONDS_FOR_WORKERS)
            except TimeoutError:
                raise ClusterError("The cluster must have at least one worker; got none.") from None
            found = self._identities()
        return [
            Worker(address, int(one["nthreads"]), _room(one, share)) for address, one in sorted(found.items())
        ]

    def _identities(self) -> dict[str, Any]:
        """Ask the scheduler itself: the client's `scheduler_info` forgets workers now and then."""
        workers: dict[str, Any] = self.client.sync(self.client.scheduler.identity, n_workers=-1)["workers"]
        return workers

    def stream(
        self, jobs: Sequence[Job], share: float, in_flight: int, *, fetch: bool = True
    ) -> Iterator[tuple[Job, Any]]:
        """Run jobs, so many at a time, each only where it fits; return them as they end with what came out.

        Without ``fetch``, that is a future, and the result stays where it is.

        Raises
        ------
        ClusterError
            If no worker has the memory for one of them.
        """
        workers = self.workers(share)
        for job in jobs:
            _check_fit(job, workers)  # better now than after hours
        waiting: list[Job] = list(reversed(jobs))
        active: Active = {}
        while waiting or active:
            while waiting and len(active) < in_flight and (places := _places(waiting[-1], workers)):
                job = waiting.pop()
                allowed = None if len(places) == len(workers) else places
                active[job.submit(allowed)] = job, allowed
            if not active:
                workers = self._wait_for_room(waiting[-1], share)
                continue
            left = len(waiting)
            done = self._wait(list(active), POLL_SECONDS, "FIRST_COMPLETED")
            for future in done:
                job, _ = active.pop(future)
                there, value = self._fetch(future) if fetch else (True, future)
                if there:
                    yield job, value
                else:
                    _cancel(future)
                    waiting.append(job)
            if not done or len(waiting) > left:
                workers = self.workers(share)
                self._move_orphans(active, workers)

    def _fetch(self, future: Any) -> tuple[bool, Any]:
        """Return whether the result is available, and the result: its worker may have died since."""
        seconds = FETCH_SECONDS
        while future.status == "error" or any(self.client.who_has([future]).values()):
            try:
                return True, self.result(future, seconds)
            except TimeoutError:
                seconds *= 2  # it is only large, or its worker has just died
        return False, None

    def _wait_for_room(self, job: Job, share: float) -> list[Worker]:
        """Return the workers once a job fits on one again: those that had the memory died, and may return."""
        for _ in range(int(SECONDS_FOR_WORKERS / POLL_SECONDS)):
            workers = self.workers(share)
            if _places(job, workers):
                break
            time.sleep(POLL_SECONDS)
        _check_fit(job, workers)
        return workers

    def _move_orphans(self, active: Active, workers: list[Worker]) -> None:
        """Submit again what may only run on workers that are gone: one that comes back has a new address."""
        there = {worker.address for worker in workers}
        for future, (job, allowed) in list(active.items()):
            if allowed is None or there.intersection(allowed):
                continue
            fits = _places(job, workers)
            if fits:  # until then, wait for one to come back
                del active[future]
                _cancel(future)
                active[job.submit(fits)] = job, fits

    def _wait(self, futures: list[Any], seconds: float | None, until: str) -> list[Any]:
        left = None if self._end is None else max(0.0, self._end - time.monotonic())
        limit = min((s for s in (seconds, left) if s is not None), default=None)
        try:
            with self.client.as_current():  # wait() asks the current client, which need not be this one
                wait(futures, timeout=limit, return_when=until)
        except TimeoutError:
            if left is not None and limit == left:
                raise TimeoutError(f"The work must end within {self.timeout:g} s; it did not.") from None
        except CancelledError:
            raise ClusterError("Some tasks were cancelled before they finished.") from None
        return [future for future in futures if future.status != "pending"]


def _cancel(future: Any) -> None:
    """Release a task: Dask forgets what nothing waits for, also while it runs.

    `Client.cancel` would also cancel what depends on it; the scheduler fails if nothing waits for that.
    """
    future.release()


def _check_client(client: Any) -> Client:
    if client is None:
        try:
            return default_client()
        except ValueError:
            raise ValueError("client must be given where no dask.distributed.Client is open.") from None
    if not isinstance(client, Client) or client.asynchronous:
        raise ValueError(
            f"client must be a dask.distributed.Client that is not asynchronous; got {type(client).__name__}."
        )
    return client


def _room(worker: dict[str, Any], share: float) -> float:
    limit = worker.get("memory_limit") or float("inf")
    return share * float(limit) / max(1, int(worker["nthreads"]))


def _places(job: Job, workers: list[Worker]) -> list[str]:
    """Return the workers that a job fits on."""
    return [worker.address for worker in workers if job.need <= worker.memory]


def _check_fit(job: Job, workers: list[Worker]) -> None:
    if not _places(job, workers):
        most = max(worker.memory for worker in workers)
        raise ClusterError(
            f"A worker's thread must have {job.need / 2**20:.3g} MiB to itself for {job.name}; "
            f"the largest has {most / 2**20:.3g} MiB."
        )


def _task(future: Any) -> str:
    """Name a task as its key does: longleaf-train-17-1f0c... is train 17."""
    words = str(future.key).split("-")
    return " ".join(words[1:3]) if words[0] == "longleaf" else f"the task {words[0]}"


def _same(value: T) -> T:
    return value
