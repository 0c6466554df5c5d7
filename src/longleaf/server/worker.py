"""A worker: one event loop that answers requests until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys

import uvicorn
import uvloop

from longleaf.server.app import create_app
from longleaf.server.logs import log, log_error
from longleaf.server.protocol import bounded_protocol
from longleaf.server.service import Service

KEEP_ALIVE_SECONDS = 75
SWITCH_SECONDS = 0.0005
"""Thread switch interval in seconds; the default of 5 ms would be visible in response times."""
STOP, RELOAD = (signal.SIGTERM, signal.SIGINT), signal.SIGHUP


def serve(service: Service, listener: socket.socket, lifeline: int) -> int:
    """Answer requests in this process until stopped, or until the supervisor's pipe closes."""
    settings = service.settings
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # existing objects stay; the garbage collector need not scan them during requests

    async def main() -> None:
        config = uvicorn.Config(
            create_app(service),
            http=bounded_protocol(settings.limits, service.slot),
            ws="none",
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
    """A server that knows when it drains."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.draining = True
        log("draining", in_flight=len(self.server_state.tasks))
        await super().shutdown(sockets)


def _listen_to_signals(server: uvicorn.Server, service: Service, lifeline: int) -> None:
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def stop(*_: object) -> None:
        server.should_exit = True

    def orphaned(pipe: int) -> None:
        loop.remove_reader(pipe)
        stop()

    async def reload_model() -> None:
        try:
            await service.reload()
        except (ValueError, OSError) as error:
            log_error("reload failed", reason=str(error))
            stop()  # the worker that replaces this one starts with the new model

    def reload() -> None:
        task = loop.create_task(reload_model())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    for number in STOP:  # uvicorn overrides these and re-raises the signal at the end, when they do nothing
        signal.signal(number, stop)
    loop.add_signal_handler(RELOAD, reload)
    loop.add_reader(lifeline, orphaned, lifeline)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*STOP, RELOAD))
