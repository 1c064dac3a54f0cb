"""XLA through a PJRT plugin, by this package's own client.

Requests are `{"code", "options", "parameters", "results", "input_sets"}`, answers `{"output_sets", "seconds"}`.
"""

from __future__ import annotations

import os
import time

from oracle.engines import Message, Opened
from oracle.isolation import wire
from tenferro_ref.dtype import DType
from tenferro_ref.pjrt import Client, PluginRef, load_plugin


def open(settings: Message) -> Opened:
    """Load the plugin (`settings` are the fields of a PluginRef) and make a client."""
    ref = PluginRef(**settings)
    os.environ.update(ref.environment)
    client = Client(load_plugin(ref))
    facts = {
        "platform": client.platform_name,
        "platform version": client.platform_version,
        "PJRT API": ".".join(map(str, client.api_version)),
        **{name: _words(value) for name, value in sorted(client.attributes.items())},
        "honours host_layout": "yes" if client.capabilities.host_layout else "no (C-order download)",
    }
    return facts, lambda request: _run(client, request)


def _words(value: object) -> str:
    return ".".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _run(client: Client, request: Message) -> Message:
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
