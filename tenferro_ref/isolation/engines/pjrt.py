"""XLA through a PJRT plugin, by this package's own client.

Requests are `{"code", "options", "parameters", "results", "input_sets"}`, answers `{"output_sets", "seconds"}`; with
`"opcodes": True` also what is left after optimisation, each once: "dot f64", "fusion f32 kLoop", ... A request
`{"knows": FLAG}` is answered with `{"knows": BOOL}`, see `Client.knows`.
"""

from __future__ import annotations

import time

from tenferro_ref.dtype import DType
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Engine
from tenferro_ref.isolation.wire import Message
from tenferro_ref.pjrt import Client, ExecutableCache, PluginRef, hlo_instructions, load_plugin

#: Executables that are kept: triage asks again for what it asked a moment ago.
_KEPT = 16


def open(settings: Message) -> Engine:
    """Load the plugin (`settings` are the fields of a PluginRef) and make a client."""
    ref = PluginRef(**settings)
    client = Client(load_plugin(ref))
    facts = {
        "platform": client.platform_name,
        "platform version": client.platform_version,
        "PJRT API": ".".join(map(str, client.api_version)),
        **{name: _words(value) for name, value in sorted(client.attributes.items())},
        "honours host_layout": "yes" if client.host_layout else "no (C-order download)",
    }
    cache = ExecutableCache(client, _KEPT)

    def answer(request: Message) -> Message:
        return {"knows": client.knows(request["knows"])} if "knows" in request else _run(cache, request)

    return Engine(facts, answer)


def _words(value: object) -> str:
    return ".".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _run(cache: ExecutableCache, request: Message) -> Message:
    start = time.perf_counter()
    executable = cache.compile(
        request["code"],
        request["options"],
        parameters=[(DType[d], tuple(s)) for d, s in request["parameters"]],
        results=[(DType[d], tuple(s)) for d, s in request["results"]],
    )
    compiled = time.perf_counter()
    output_sets = [executable.run([wire.unpack(a) for a in inputs]) for inputs in request["input_sets"]]
    done = time.perf_counter()
    opcodes = {}
    if request.get("opcodes"):
        instructions = hlo_instructions(*executable.optimized_program())
        opcodes["opcodes"] = sorted({" ".join(filter(None, instruction)) for instruction in instructions})
    return opcodes | {
        "output_sets": [[wire.pack(a) for a in outputs] for outputs in output_sets],
        "seconds": {"compile": compiled - start, "execute": done - compiled},
    }
