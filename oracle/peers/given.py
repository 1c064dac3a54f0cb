"""Modules that are run as they were handed in: the request for a worker, and what an executor says where it lacks something."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from oracle.peers.errors import EngineFault
from oracle.peers.lanes import Options
from tenferro_ref.errors import PjrtCall, TenferroError, UnsupportedOp, WorkerDied
from tenferro_ref.isolation import wire
from tenferro_ref.ops import TensorType
from tenferro_ref.stablehlo import Source
from tenferro_ref.stablehlo.source import needs_host
from tenferro_ref.tensor import Array

#: With these words compilers say that they do not know an operation, a dialect, or the target of a custom call.
_LACKS = re.compile(
    r"unregistered (operation|dialect)|No registered implementation for|No FFI handler registered|[Ff]ailed to parse"
    r"|can't be translated to XLA HLO|failed to legalize operation|[Uu]nsupported|[Nn]ot implemented|NYI|UNIMPLEMENTED"
    r"|Invalid XLA PrimitiveType|Dialect `\w+' not found"
)
#: Last words of StableHLO's interpreter, which ends its process at an operation that it lacks.
_ENDS_FOR_LACK = re.compile(
    r"LLVM ERROR: (Unsupported (op|element type)|dynamic result types are not supported)|possible to transform it into supported form"
)
_LACKING_CODES = ("UNIMPLEMENTED", "NOT_FOUND")


def refuse_host_calls(source: Source) -> None:
    """Refuse a module that needs a host, before it is compiled: JAX would follow a pointer of another process, XLA wait for ever.

    Raises
    ------
    UnsupportedOp
        The operation.
    """
    for name, _ in sorted(source.ops):
        if reason := needs_host(name):
            raise UnsupportedOp(op=name, reason=reason)


def message(source: Source, options: Options, input_sets: Sequence[Sequence[Array]]) -> wire.Message:
    """The request that runs `main` of a module; the arrays are its arguments. Errors as `refuse_host_calls`."""
    refuse_host_calls(source)
    return {
        "code": source.code,
        "options": options,
        "parameters": types(source.arguments),
        "results": types(source.results),
        "input_sets": [[wire.pack(a) for a in arrays] for arrays in input_sets],
    }


def types(of: Sequence[TensorType]) -> list[list[Any]]:
    """Types as they travel."""
    return [[t.dtype.name, list(t.shape)] for t in of]


def lacking(error: TenferroError) -> TenferroError:
    """The error of an executor that was given a module; `UnsupportedOp` with its words where it lacks what is in there."""
    lacks = isinstance(error, PjrtCall) and error.code in _LACKING_CODES
    lacks = lacks or (isinstance(error, PjrtCall | EngineFault) and _LACKS.search(str(error)) is not None)
    lacks = lacks or (isinstance(error, WorkerDied) and _ENDS_FOR_LACK.search(error.last_words) is not None)
    return UnsupportedOp(op="module", reason=" ".join(str(error).split())) if lacks else error
