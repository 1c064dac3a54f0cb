"""The worker's side: `python -m oracle.isolation.worker FD PRELOAD`, one PJRT plugin, requests until the harness goes away.

Requests are `{"plugin": {...}}` once, then `{"code", "options", "parameters", "results", "input_sets"}`; the answers are
`{"facts"}`, `{"output_sets", "seconds"}` or `{"error"}`.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from oracle.isolation import wire
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.pjrt import Client, PluginRef, load_plugin

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
        client = _answer(connection, lambda: _open(wire.receive(connection)))
        while client is not None:
            request = wire.receive(connection)
            _answer(connection, lambda request=request: (_run(client, request), None))
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


def _open(request: wire.Message) -> tuple[wire.Message, Client]:
    ref = PluginRef(**request["plugin"])
    os.environ.update(ref.environment)
    plugin = load_plugin(ref)
    client = Client(plugin)
    facts = {
        "platform": client.platform_name,
        "platform version": client.platform_version,
        "PJRT API": ".".join(map(str, client.api_version)),
        **{name: _words(value) for name, value in sorted(client.attributes.items())},
        "honours host_layout": "yes" if client.capabilities.host_layout else "no (C-order download)",
    }
    return {"facts": facts}, client


def _words(value: object) -> str:
    return ".".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _run(client: Client, request: wire.Message) -> wire.Message:
    start = time.perf_counter()
    with client.compile(
        request["code"],
        request["options"],
        parameters=[(DType[d], tuple(s)) for d, s in request["parameters"]],
        results=[(DType[d], tuple(s)) for d, s in request["results"]],
    ) as executable:
        compiled = time.perf_counter()
        output_sets = [executable.run([wire.unpack(a) for a in inputs]) for inputs in request["input_sets"]]
    done = time.perf_counter()
    return {
        "output_sets": [[wire.pack(a) for a in outputs] for outputs in output_sets],
        "seconds": {"compile": compiled - start, "execute": done - compiled},
    }


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
