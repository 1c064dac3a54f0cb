"""The reader of StableHLO in a worker of its own: the MLIR parser ends the process on some hostile inputs.

A request is `{"source", "where"}`, its answer `{"program", "bound"}` (program JSON and packed arrays) or
`{"refusal", "place"}`.
"""

from __future__ import annotations

from importlib import metadata

from tenferro_ref.errors import TenferroError
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Engine
from tenferro_ref.isolation.wire import Message
from tenferro_ref.program import dumps
from tenferro_ref.stablehlo.loader import bindings, load


def open(settings: Message) -> Engine:
    """Make the bindings' context."""
    bindings.context()
    return Engine({"jaxlib": metadata.version("jaxlib")}, lambda request: read(request["source"], request["where"]))


def read(source: str | bytes, where: str) -> Message:
    """The answer for one module."""
    try:
        loaded = load(source, where)
    except TenferroError as error:
        return {"refusal": wire.pack_error(error), "place": error.place}
    return {"program": dumps(loaded.program), "bound": [wire.pack(a) for a in loaded.bound]}
