"""Running the service: one process, or a supervisor and its workers.

The supervisor binds the port and loads the model, then forks: the workers share the socket, the mapped model
and the board. It never starts a thread or an event loop, so it may fork again whenever a worker dies.

SIGTERM and SIGINT drain and stop; SIGHUP reloads the model. A worker ends with its supervisor: it watches a
pipe that closes when the supervisor is gone.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from types import FrameType

import uvicorn
import uvloop

from longleaf.server.app import create_app
from longleaf.server.board import Board, Slot
from longleaf.server.engine import Engine
from longleaf.server.feedback import FeedbackFile
from longleaf.server.logs import complain, log, set_up
from longleaf.server.service import Service, open_engine
from longleaf.server.settings import Settings

KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048
SWITCH_SECONDS = 0.0005
"""How long one thread may keep the others from Python; the usual 5 ms would show in the answers' times."""
STOP, RELOAD = (signal.SIGTERM, signal.SIGINT), signal.SIGHUP
RESTART_SECONDS = 0.5
GRACE_SECONDS = 5
"""What workers get beyond their time to drain before they are killed."""


def run(settings: Settings, tell: Callable[[str], None] = lambda url: None) -> int:
    """Serve until told to stop.

    Parameters
    ----------
    settings : Settings
    tell : callable
        Called with the address once the port is bound.

    Returns
    -------
    int
        The exit status.
    """
    set_up()
    engine = open_engine(settings)
    if settings.feedback is not None:
        FeedbackFile(settings.feedback)  # say now, not at the first click, that it cannot be written
    listener = bind(settings.host, settings.port)
    url = address(listener)
    log("listening", url=url, model=settings.model, version=engine.version, workers=settings.workers)
    tell(url)
    board = Board(settings.workers)
    if settings.workers == 1:
        return serve(settings, engine, Slot(board, 0), listener)
    return Supervisor(settings, engine, board, listener).run()


def bind(host: str, port: int) -> socket.socket:
    """Open the port, or say in a sentence why not."""
    listener = None
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
    except OSError as error:
        if listener is not None:
            listener.close()
        reason = f"{host}:{port} says {error.strerror}"
        raise ValueError(f"host and port must be free to listen on; {reason}.") from None
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def address(listener: socket.socket) -> str:
    """Give the address to type into a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(
    settings: Settings,
    engine: Engine,
    slot: Slot,
    listener: socket.socket,
    supervisor: int | None = None,
    lifeline: int | None = None,
) -> int:
    """Answer requests in this process until told to stop."""
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # what is there now stays; the collector need not look through it while someone waits

    async def main() -> None:
        service = Service(settings, engine, slot, supervisor)
        config = uvicorn.Config(
            create_app(service),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
        )
        server = _Server(config, service)
        _listen_to_signals(server, service, lifeline)
        try:
            await server.serve(sockets=[listener])
        finally:
            service.close()
            log("stopped")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    return 0


class _Server(uvicorn.Server):
    """Knows when it drains."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.draining = True
        log("draining", in_flight=len(self.server_state.tasks))
        await super().shutdown(sockets)


def _listen_to_signals(server: uvicorn.Server, service: Service, lifeline: int | None) -> None:
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def stop(*_: object) -> None:
        server.should_exit = True

    def orphaned(pipe: int) -> None:
        loop.remove_reader(pipe)
        stop()

    def reload() -> None:
        task = loop.create_task(_reload_quietly(service))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    for (
        number
    ) in STOP:  # uvicorn sets its own on top and hands the signal back at the end: then it does nothing
        signal.signal(number, stop)
    loop.add_signal_handler(RELOAD, reload)
    if lifeline is not None:
        loop.add_reader(lifeline, orphaned, lifeline)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*STOP, RELOAD))


async def _reload_quietly(service: Service) -> None:
    """Reload by signal: the log says what went wrong, and the old model stays."""
    try:
        await service.reload()
    except (ValueError, OSError):
        return


class Supervisor:
    """Keeps the workers alive. It sleeps until a signal comes; meanwhile they are held, so none is lost."""

    WATCHED = (*STOP, RELOAD, signal.SIGCHLD, signal.SIGALRM)

    def __init__(self, settings: Settings, engine: Engine, board: Board, listener: socket.socket) -> None:
        self.settings, self.engine, self.board, self.listener = settings, engine, board, listener
        self.workers: dict[int, int] = {}
        self.stopping = False
        self.lifeline, self.hold = os.pipe()

    def run(self) -> int:
        """Fork the workers and see to them until all are gone."""
        signal.pthread_sigmask(signal.SIG_BLOCK, self.WATCHED)
        signal.signal(signal.SIGCHLD, _nothing)
        gc.collect()
        gc.freeze()  # the collector would touch, and so copy, every page that the workers share
        for worker in range(self.settings.workers):
            self._fork(worker)
        while self.workers or not self.stopping:
            self._heed(signal.sigwait(self.WATCHED))
        log("all workers stopped")
        return 0

    def _heed(self, number: int) -> None:
        if number in STOP:
            self._stop()
        elif number == RELOAD:
            self._reload()
        elif number == signal.SIGCHLD:
            self._reap()
        elif self.stopping:
            self._signal_all(signal.SIGKILL)
        else:
            for worker in set(range(self.settings.workers)) - set(self.workers.values()):
                self._fork(worker)

    def _stop(self) -> None:
        if not self.stopping:
            signal.alarm(max(1, round(self.settings.drain_seconds)) + GRACE_SECONDS)
        self.stopping = True
        self.listener.close()  # when the workers have closed theirs, callers are refused and do not wait
        self._signal_all(signal.SIGTERM)

    def _reload(self) -> None:
        """Load the new model here first: a broken one goes no further, and later workers start with it."""
        try:
            self.engine = open_engine(self.settings)
        except (ValueError, OSError) as error:
            complain("reload failed", reason=str(error))
            return
        self._signal_all(RELOAD)

    def _reap(self) -> None:
        while self.workers:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                break
            worker = self.workers.pop(process)
            if not self.stopping:
                complain("worker died", worker=worker, status=os.waitstatus_to_exitcode(status))
                signal.setitimer(signal.ITIMER_REAL, RESTART_SECONDS)

    def _signal_all(self, number: int) -> None:
        for process in self.workers:
            os.kill(process, number)

    def _fork(self, worker: int) -> None:
        supervisor = os.getpid()
        with warnings.catch_warnings():
            # Python sees threads, those of the BLAS: they are asleep, and none of them holds a lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process:
            self.workers[process] = worker
            return
        status = 1
        try:
            os.close(self.hold)
            slot = Slot(self.board, worker)
            status = serve(self.settings, self.engine, slot, self.listener, supervisor, self.lifeline)
        except BaseException:
            complain("worker failed")
        finally:
            os._exit(status)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Let a signal be waited for that would be ignored otherwise."""
