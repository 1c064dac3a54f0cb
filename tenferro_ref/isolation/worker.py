"""The worker's side: `python -m tenferro_ref.isolation.worker FD PRELOAD`, one engine, requests until the harness goes away.

The first request is `{"engine", "settings"}` and answered with `{"facts"}`; the others are the engine's. An error is
answered with `{"error"}`.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from tenferro_ref.errors import TenferroError
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Serve

_PR_SET_PDEATHSIG = 1


def main(descriptor: int, preload: str) -> None:
    """Serve until the other end of the socket is closed."""
    if preload:
        module, function, argument = preload.split(":")
        getattr(importlib.import_module(module), function)(argument)
    # native code may hang where no EOF is noticed: let the kernel end this process with its parent
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the harness' business
    connection = Connection(descriptor)
    try:
        serve = _answer(connection, lambda: _open(wire.receive(connection)))
        while serve is not None:
            request = wire.receive(connection)
            _answer(connection, lambda request=request: (serve(request), None))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    # no interpreter shutdown: destructors of native libraries are no part of any verdict
    os._exit(0)


def _answer(connection: Connection, work: Any) -> Any:
    try:
        message, value = work()
    except TenferroError as error:
        message, value = {"error": wire.pack_error(error)}, None
    wire.send(connection, message)
    return value


def _open(request: wire.Message) -> tuple[wire.Message, Serve]:
    facts, serve = importlib.import_module(request["engine"]).open(request["settings"])
    return {"facts": facts}, serve


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
