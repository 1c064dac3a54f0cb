"""The worker's side: `python -m tenferro_ref.isolation.worker FD PRELOAD`, one engine, requests until the harness goes away.

The first request is `{"engine", "settings"}` and answered with `{"facts"}`; the others are the engine's. An error is
answered with `{"error"}`.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import sys

from tenferro_ref.errors import TenferroError
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Engine


def main(descriptor: int, preload: str) -> None:
    """Answer requests until the other end of the socket is closed."""
    if preload:
        module, function, argument = preload.split(":")
        getattr(importlib.import_module(module), function)(argument)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the harness' business
    os.set_inheritable(descriptor, False)  # what a plugin starts would keep it open after this process has ended
    channel = wire.Channel(socket.socket(fileno=descriptor))
    engine: Engine | None = None
    try:
        while True:
            request = channel.receive()
            try:
                if engine is None:
                    engine = importlib.import_module(request["engine"]).open(request["settings"])
                    answer = {"facts": engine.facts}
                else:
                    answer = engine.answer(request)
            except TenferroError as error:
                answer = {"error": wire.pack_error(error)}
            channel.send(answer)
    except (EOFError, ConnectionError):
        pass
    # no interpreter shutdown: destructors of native libraries are no part of any verdict
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
