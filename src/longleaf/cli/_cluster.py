"""The connection to a Dask cluster for ``--dask``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

SECONDS_TO_CONNECT = 10


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to the scheduler at an address and yield the client; yield None if there is no address."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise typer.BadParameter(
            "--dask needs the extra distributed, which is not installed: pip install 'longleaf[distributed]'."
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors are reported once, by us
    try:
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise typer.BadParameter(
            f"--dask must be the address of a Dask scheduler, like tcp://host:8786; got {address} ({reason})."
        ) from None
    with client:
        yield client
