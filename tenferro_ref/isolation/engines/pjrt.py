"""XLA through a PJRT plugin, by this package's own client.

Requests are `{"code", "options", "parameters", "results", "input_sets"}`, answers `{"output_sets", "seconds"}`; with
`"opcodes": True` also what is left after optimisation, each once: "dot f64", "fusion f32 kLoop", ...
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import TypeAlias

from tenferro_ref.dtype import DType
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Message, Opened
from tenferro_ref.pjrt import Client, Executable, PluginRef, hlo_instructions, load_plugin

#: Executables that are kept: triage asks for what it asked a moment ago, reduced or alone.
_KEPT = 16

#: By code, and options and types in words.
Kept: TypeAlias = OrderedDict[tuple[str, str], Executable]


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
    kept: Kept = OrderedDict()
    return facts, lambda request: _run(client, kept, request)


def _words(value: object) -> str:
    return ".".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _compiled(client: Client, kept: Kept, request: Message) -> Executable:
    """The executable of a request, kept or made; the one that was not asked for longest goes."""
    key = request["code"], repr((request["options"], request["parameters"], request["results"]))
    executable = kept.pop(key, None)
    if executable is None:
        executable = client.compile(
            request["code"],
            request["options"],
            parameters=[(DType[d], tuple(s)) for d, s in request["parameters"]],
            results=[(DType[d], tuple(s)) for d, s in request["results"]],
        )
    kept[key] = executable
    if len(kept) > _KEPT:
        kept.popitem(last=False)[1].close()
    return executable


def _run(client: Client, kept: Kept, request: Message) -> Message:
    start = time.perf_counter()
    executable = _compiled(client, kept, request)
    compiled = time.perf_counter()
    output_sets = [executable.run([wire.unpack(a) for a in inputs]) for inputs in request["input_sets"]]
    done = time.perf_counter()
    opcodes = {}
    if request.get("opcodes"):
        found = hlo_instructions(*executable.optimized_program())
        opcodes["opcodes"] = sorted({" ".join(filter(None, instruction)) for instruction in found})
    return opcodes | {
        "output_sets": [[wire.pack(a) for a in outputs] for outputs in output_sets],
        "seconds": {"compile": compiled - start, "execute": done - compiled},
    }
