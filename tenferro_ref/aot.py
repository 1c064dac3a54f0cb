"""The commands `compile` and `run`: a program compiled ahead of time by a plugin, and run from the file that this gives."""

from __future__ import annotations

import contextlib
import re

import click

from tenferro_ref.console import at_sizes, read_graph, save_or_print
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, PjrtPluginNotLoaded, PluginLoad, UsageError
from tenferro_ref.files import destination, read_bytes, write_atomically
from tenferro_ref.isolation import Worker, WorkerSpec, wire
from tenferro_ref.ops import TensorType
from tenferro_ref.pjrt import PluginRef, discover, header_of, plugin_from_env, resolve
from tenferro_ref.stablehlo.loader import Loaded, lower_loaded
from tenferro_ref.tensor import load_npz

_REQUEST_SECONDS = 600.0


def _option(text: str) -> tuple[str, str | int | bool | float]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(detail=f"--option {text}: expected NAME=VALUE")
    if value in ("true", "false"):
        return name, value == "true"
    if re.fullmatch(r"-?\d+", value):
        if len(value) > 20 or not -(2**63) <= int(value) < 2**63:
            raise UsageError(detail=f"--option {name}: {value[:30]} is beyond integers of 64 bits")
        return name, int(value)
    if re.fullmatch(r"-?\d+\.\d*(e-?\d+)?", value):
        return name, float(value)
    return name, value


@click.command("compile")
@click.argument("file")
@click.option("--plugin", metavar="NAME_OR_PATH", help="Compile with this plugin; TENFERRO_PJRT_PLUGIN by default.")
@click.option("--out", required=True, metavar="PJRT", help="Where the serialised executable goes.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="A debug option of XLA. Repeatable.")
@click.option("--sizes", metavar="NAME=SIZE,...", help="Sizes of the symbolic extents, such as n=10,m=3.")
def compile_(file: str, plugin: str | None, out: str, options: tuple[str, ...], sizes: str | None) -> None:
    """Compile FILE with a PJRT plugin, ahead of time.

    The result runs with the same plugin file, on a processor with the same features: `tenferro-ref run`. It is machine code.
    """
    ref = plugin_from_env() if plugin is None else resolve(plugin)
    program, bound = read_graph(file)
    loaded = Loaded(at_sizes(program, sizes, file), bound)
    request = {
        "code": lower_loaded(loaded),
        "options": {**ref.compile_options, **dict(map(_option, options))},
        "parameters": _types(loaded.arguments),
        "results": _types(loaded.program.output_types),
        "input_sets": [],
        "serialize": True,
    }
    with _worker(ref) as worker:
        write_atomically(destination(out), worker.request(request, lambda answer: bytes(answer["executable"])))


@click.command("run")
@click.argument("file")
@click.option("--inputs", metavar="NPZ", help="Inputs in0, in1, ...; not needed by a program without inputs.")
@click.option("--out", metavar="NPZ", help="Where the outputs out0, out1, ... go; without it they are printed.")
@click.option("--plugin", metavar="NAME_OR_PATH", help="The plugin that compiled FILE; found by its hash if left out.")
def run(file: str, inputs: str | None, out: str | None, plugin: str | None) -> None:
    """Run FILE, which `tenferro-ref compile` made.

    FILE is machine code: run only what you compiled, or somebody whom you trust.
    """
    data = read_bytes(file)
    try:
        header = header_of(data)
    except FormatError as error:
        raise FormatError(file, error.detail) from None
    ref = _plugin_of(header.plugin, header.plugin_sha256) if plugin is None else resolve(plugin)
    if plugin is not None and ref.sha256() != header.plugin_sha256:
        detail = f"{file} was compiled by another plugin than {plugin}: leave --plugin out, or compile it again"
        raise UsageError(detail=detail)
    if inputs is None and header.parameters:
        raise UsageError(detail=f"{file} has {len(header.parameters)} inputs: run needs --inputs NPZ")
    types = None if header.parameters is None else [TensorType(DType[name], shape) for name, shape in header.parameters]
    arrays = [] if inputs is None else load_npz(inputs, "in", types)
    with _worker(ref) as worker:
        message = {"executable": data, "input_sets": [[wire.pack(array) for array in arrays]]}
        ((outputs,), _) = worker.request(message, wire.output_sets)
    save_or_print(outputs, out)


def _plugin_of(name: str, sha256: str) -> PluginRef:
    """The plugin found here with that hash; a file says no path that is loaded."""
    for ref in discover():
        with contextlib.suppress(PluginLoad):  # another one that cannot be read is not the one
            if ref.sha256() == sha256:
                return ref
    raise PjrtPluginNotLoaded(name, f"no plugin found here has the SHA-256 {sha256}: name its file with --plugin")


def _types(types: tuple[TensorType, ...]) -> list[list[object]]:
    return [[t.dtype.name, list(t.static_shape)] for t in types]


def _worker(ref: PluginRef) -> Worker:
    return Worker(ref.name, WorkerSpec(ref, request_seconds=_REQUEST_SECONDS))
