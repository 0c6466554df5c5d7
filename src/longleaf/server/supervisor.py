"""The supervisor, which keeps the workers alive and verifies new models before they load them.

It never starts a thread or an event loop, so it may fork again whenever a worker dies, or for long work.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
import warnings
from collections.abc import Callable
from functools import partial
from types import FrameType

from longleaf.server.board import Board, Slot, version_number, version_text
from longleaf.server.engine import Engine
from longleaf.server.logs import log, log_error
from longleaf.server.models import Models
from longleaf.server.service import Service
from longleaf.server.settings import Settings
from longleaf.server.worker import RELOAD, STOP, serve

RESTART_SECONDS = 0.5
GRACE_SECONDS = 5
"""Extra time after draining before workers are killed."""


class Supervisor:
    """Keep the workers alive. It waits for blocked signals one at a time, so none is lost."""

    WATCHED = (*STOP, RELOAD, signal.SIGCHLD, signal.SIGALRM)

    def __init__(self, settings: Settings, models: Models, engine: Engine, listener: socket.socket) -> None:
        self.settings, self.models, self.engine, self.listener = settings, models, engine, listener
        self.board = Board(settings.workers)
        self.board.set_order("target", version_number(engine.version))
        self.workers: dict[int, int] = {}
        self.copier: int | None = None
        self.requests = 0.0
        self.again = self.moving = self.stopping = False
        self.lifeline, self.hold = os.pipe()

    def run(self) -> int:
        """Fork the workers and supervise them until all have exited."""
        signal.pthread_sigmask(signal.SIG_BLOCK, self.WATCHED)
        signal.signal(signal.SIGCHLD, _nothing)
        gc.collect()
        gc.freeze()  # the garbage collector would touch, and so copy, every page shared with the workers
        self._fill_up()
        while self.workers or not self.stopping:
            self._handle(signal.sigwait(self.WATCHED))
        log("all workers stopped")
        return 0

    def _handle(self, number: int) -> None:
        if number in STOP:
            self._stop()
        elif number == RELOAD:
            self._reload()
        elif number == signal.SIGCHLD:
            self._reap()
        elif self.stopping:
            self._signal_all(signal.SIGKILL)
        else:
            self._fill_up()
            self._tidy()

    def _stop(self) -> None:
        if not self.stopping:
            signal.alarm(max(1, round(self.settings.drain_seconds)) + GRACE_SECONDS)
        self.stopping = True
        self.listener.close()  # once the workers close theirs too, clients are rejected at once
        if self.copier is not None:
            os.kill(self.copier, signal.SIGKILL)
        self._signal_all(signal.SIGTERM)

    def _reload(self) -> None:
        """Verify the new model in another process, which may take long: this one must handle signals."""
        if self.copier is not None or self.stopping:
            self.again = True
            return
        self.again, self.requests = False, self.board.requested_reloads
        self.copier = _fork(self._check)

    def _check(self) -> int:
        begin = time.perf_counter()
        try:
            version = self.models.check()
        except (ValueError, OSError) as error:
            log_error("reload failed", reason=str(error))
            return 1
        self.board.set_order("copied", version_number(version))
        log("model checked", version=version, seconds=round(time.perf_counter() - begin, 3))
        return 0

    def _checked(self, passed: bool) -> None:
        """Load the new model here first, so that later workers start with it."""
        self.copier = None
        if self.stopping:
            return
        version = version_text(self.board.order("copied"))
        if passed and version != self.engine.version:
            try:
                self.engine = self.models.open(version)
            except (ValueError, OSError) as error:
                log_error("reload failed", reason=str(error))
                passed = False
        self._answer(failed=not passed)
        if passed:
            self._signal_all(RELOAD)
        self.moving = True
        signal.setitimer(signal.ITIMER_REAL, RESTART_SECONDS)
        if self.again:
            self._reload()

    def _answer(self, failed: bool) -> None:
        """Publish the outcome of the workers' reload requests."""
        self.board.set_order("target", version_number(self.engine.version))
        self.board.set_order("failed", failed)
        self.board.set_order("failures", self.board.order("failures") + failed)
        self.board.set_order("answered", self.requests)

    def _tidy(self) -> None:
        """Remove the copy of the model once all workers have loaded it; until then, check again later."""
        if self.moving and self.copier is None and self.board.agree:
            self.models.tidy()
            self.moving = False
        if self.moving:
            signal.setitimer(signal.ITIMER_REAL, RESTART_SECONDS)

    def _reap(self) -> None:
        while self.workers or self.copier is not None:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                break
            if process == self.copier:
                self._checked(status == 0)
                continue
            worker = self.workers.pop(process)
            if not self.stopping:
                log_error("worker died", worker=worker, status=os.waitstatus_to_exitcode(status))
                signal.setitimer(signal.ITIMER_REAL, RESTART_SECONDS)

    def _signal_all(self, number: int) -> None:
        for process in self.workers:
            os.kill(process, number)

    def _fill_up(self) -> None:
        for worker in set(range(self.settings.workers)) - set(self.workers.values()):
            self.workers[_fork(partial(self._work, worker, os.getpid()))] = worker

    def _work(self, worker: int, supervisor: int) -> int:
        os.close(self.hold)
        service = Service(self.settings, self.models, self.engine, Slot(self.board, worker), supervisor)
        return serve(service, self.listener, self.lifeline)


def _fork(work: Callable[[], int]) -> int:
    """Run work in a new process, which exits with the status that work returns."""
    with warnings.catch_warnings():
        # Python warns about the threads of the BLAS; they are idle, and none holds a lock
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return process
    status = 1
    try:
        status = work()
    except BaseException:
        log_error("worker failed")
    finally:
        os._exit(status)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Do nothing; a handler makes it possible to wait for a signal that is ignored by default."""
