"""The reader of StableHLO in a worker of its own: the MLIR parser ends the process on some hostile inputs.

A request is `{"ask", "source", "where", ...}`, its answer as the function in `_ASKED` says, or `{"refusal", "place"}`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import metadata

from tenferro_ref.errors import TenferroError, defects_in
from tenferro_ref.extensions import family_of
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Engine
from tenferro_ref.isolation.wire import Message
from tenferro_ref.ops import Extension, Op, Policy, TensorType
from tenferro_ref.program import dumps
from tenferro_ref.runtime.kernels import run_kernel
from tenferro_ref.stablehlo.loader import bindings, load, signature
from tenferro_ref.stablehlo.loader.statements import stating
from tenferro_ref.stablehlo.serialized import serialize
from tenferro_ref.stablehlo.smaller import one_result, smaller
from tenferro_ref.stablehlo.source import Source
from tenferro_ref.stablehlo.twin import twin
from tenferro_ref.stablehlo.watched import watched
from tenferro_ref.tensor import Array


def open(settings: Message) -> Engine:
    """Make the bindings' context."""
    bindings.context()
    return Engine({"jaxlib": metadata.version("jaxlib")}, read)


def read(request: Message) -> Message:
    """The answer to a request."""
    try:
        with defects_in("the reader of StableHLO"):
            return _ASKED[request["ask"]](request)
    except TenferroError as error:
        return {"refusal": wire.pack_error(error), "place": error.place}


def _signature(request: Message) -> Message:
    """`{"code", "arguments", "results", "ops", "demands"}`, the fields of a `Source`."""
    return _packed(signature(request["source"], request["where"]))


def _twin(request: Message) -> Message:
    """The twin of the module, as `_signature`."""
    return _packed(twin(request["source"], request["where"], narrow=request["narrow"]))


def _watched(request: Message) -> Message:
    """The watched form of the module, as `_signature`."""
    inputs = [wire.unpack(packed) for packed in request["inputs"]]
    return _packed(watched(request["source"], request["where"], evaluate, inputs))


def _packed(source: Source) -> Message:
    return {
        "code": source.code,
        "arguments": _types(source.arguments),
        "results": _types(source.results),
        "ops": sorted(source.ops),
        "demands": list(source.demands),
    }


def _load(request: Message) -> Message:
    """`{"program", "bound", "deciding"}`: the fields of `Loaded`, as program JSON and packed arrays."""
    inputs = None if request["inputs"] is None else [wire.unpack(packed) for packed in request["inputs"]]
    loaded = load(request["source"], request["where"], evaluate=evaluate, inputs=inputs, most=request["most"])
    deciding = None if loaded.deciding is None else dumps(loaded.deciding)
    bound = [wire.pack(a) for a in loaded.bound]
    return {"program": dumps(loaded.program), "bound": bound, "deciding": deciding}


def evaluate(op: Op, policy: Policy, operands: tuple[Array, ...], outputs: int) -> Sequence[Array]:
    """The results of an op, by its kernel or the runtime of its family."""
    if isinstance(op, Extension):
        return family_of(op).run(op, operands, outputs)
    return run_kernel(op, policy, *operands)


def _serialize(request: Message) -> Message:
    """`{"code"}`: the module in the form `"form"`."""
    return {"code": serialize(request["source"], request["form"], request["where"])}


def _stating(request: Message) -> Message:
    """`{"functions"}`: the fields of each `Stating`."""
    return {"functions": [asdict(function) for function in stating(request["source"], request["where"])]}


def _smaller(request: Message) -> Message:
    """`{"modules"}`: the fields of each `Smaller`; of that with the result `"result"` alone if this is a number."""
    source, where, number = request["source"], request["where"], request["result"]
    modules = smaller(source, where) if number is None else one_result(source, where, number)
    return {"modules": [asdict(module) for module in modules]}


def _types(types: tuple[TensorType, ...]) -> list[list[object]]:
    return [[t.dtype.name, list(t.shape)] for t in types]


_ASKED: dict[str, Callable[[Message], Message]] = {
    "signature": _signature,
    "load": _load,
    "serialize": _serialize,
    "twin": _twin,
    "watched": _watched,
    "stating": _stating,
    "smaller": _smaller,
}
