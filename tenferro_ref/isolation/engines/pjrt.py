"""XLA through a PJRT plugin, by this package's own client.

Requests are `{"code", "options", "parameters", "results", "input_sets"}`, answers `{"output_sets", "seconds"}`; with
`"opcodes": True` also what is left after optimisation, each once: "dot f64", "fusion f32 kLoop", ... With `"reloaded": True` the
executable is serialised, loaded and then run; with `"serialize": True` its bytes are in the answer as `"executable"`, and a request may have
these in place of code, options and types. With `"kernels": True` the program may call our kernels. A request `{"knows": [OPTION, VALUE]}` is answered with `{"knows": BOOL}`, see
`Client.knows`.

Executables are kept in memory, and in the folder that TENFERRO_PJRT_CACHE names. The phase in which one is found is called "compile", or
"keep" if it was in memory, "load" if it came from the disk or with the request, "heal" if it was damaged there and compiled again.
"""

from __future__ import annotations

from tenferro_ref.dtype import DType
from tenferro_ref.isolation.engine import Engine, run_sets
from tenferro_ref.isolation.engines import kernels
from tenferro_ref.isolation.wire import Message
from tenferro_ref.pjrt import Client, DiskCache, Executable, ExecutableCache, PluginRef, hlo_instructions, load_plugin

#: Executables that are kept: triage asks again for what it asked a moment ago.
_KEPT = 16
#: Phases by what the cache's statistics count; an executable that is healed is compiled as well.
_PHASES = {"healed": "heal", "loaded": "load", "compiled": "compile", "kept": "keep"}


def open(settings: Message) -> Engine:
    """Load the plugin (`settings` are the fields of a PluginRef) and make a client."""
    ref = PluginRef(**settings)
    client = Client(load_plugin(ref))
    facts = {
        **{
            name: _words(value) for name, value in sorted(client.attributes.items())
        },  # first, so that none replaces a fact below
        "platform": client.platform_name,
        "platform version": client.platform_version,
        "PJRT API": ".".join(map(str, client.api_version)),
        "honours host_layout": "yes" if client.host_layout else "no (C-order download)",
    }
    disk = DiskCache.from_environment()
    if disk is not None:
        facts["executable cache"] = "{}: {} executables, {} bytes of at most {}".format(
            disk.folder, *disk.usage(), disk.limit
        )
    cache = ExecutableCache(client, _KEPT, disk)

    def answer(request: Message) -> Message:
        if "knows" in request:
            return {"knows": client.knows(*request["knows"])}

        if request.get("kernels"):
            kernels.register(client)

        def compile() -> Executable:
            if "executable" in request:
                return client.deserialize(request["executable"])
            parameters, results = (
                [(DType[dtype], tuple(shape)) for dtype, shape in request[name]] for name in ("parameters", "results")
            )
            made = cache.compile(request["code"], request["options"], parameters=parameters, results=results)
            return client.deserialize(made.serialize()) if request.get("reloaded") else made

        before = cache.statistics.copy()
        answered = run_sets(request, compile, Executable.run)
        phase = next((p for what, p in _PHASES.items() if cache.statistics[what] > before[what]), "load")
        answered["seconds"][phase] = answered["seconds"].pop("compile")
        if request.get("serialize"):
            answered["executable"] = compile().serialize()
        if request.get("opcodes"):
            instructions = hlo_instructions(*compile().optimized_program())
            answered["opcodes"] = sorted({" ".join(filter(None, instruction)) for instruction in instructions})
        return answered

    return Engine(facts, answer)


def _words(value: object) -> str:
    return ".".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
