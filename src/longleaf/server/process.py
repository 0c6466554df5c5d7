"""Running the service: a supervisor and its workers.

The supervisor binds the port, checks and loads the model, then forks: the workers share the socket, the
mapped model and the board.

SIGTERM and SIGINT drain and stop; SIGHUP reloads the model. A worker exits with its supervisor: it watches a
pipe that closes when the supervisor is gone.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address

from longleaf.server.feedback import FeedbackFile
from longleaf.server.logs import log, log_warning, set_up
from longleaf.server.models import models_of
from longleaf.server.settings import Settings
from longleaf.server.supervisor import Supervisor

BACKLOG = 2048


def run(settings: Settings, tell: Callable[[str], None] = lambda url: None) -> int:
    """Serve until stopped.

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
    with models_of(settings) as models:
        engine = models.open(models.check())
        models.tidy()
        if settings.feedback is not None:
            FeedbackFile(settings.feedback)  # fail now, not at the first feedback, if it cannot be written
        listener = bind(settings.host, settings.port)
        url = address(listener)
        log("listening", url=url, model=settings.model, version=engine.version, workers=settings.workers)
        if not settings.api_keys and not is_loopback(listener):
            log_warning("anyone who can reach this address may call: no API key is set", url=url)
        tell(url)
        return Supervisor(settings, models, engine, listener).run()


def bind(host: str, port: int) -> socket.socket:
    """Open the port; raise an error in one sentence if that fails."""
    listener = None
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
    except OSError as error:
        if listener is not None:
            listener.close()
        reason = f"got {host}:{port} ({error.strerror})"
        raise ValueError(f"host and port must be free to listen on; {reason}.") from None
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def is_loopback(listener: socket.socket) -> bool:
    """Return whether only this machine can reach a port."""
    where = ip_address(listener.getsockname()[0].partition("%")[0])
    return (getattr(where, "ipv4_mapped", None) or where).is_loopback


def address(listener: socket.socket) -> str:
    """Return the URL of the service."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
