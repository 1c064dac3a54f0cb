"""JAX on the CPU: programs as calls of `jax.lax` (the table `JAX`), traced and compiled as one, or called one by one.

Requests are `{"program", "jit", "options", "input_sets"}` with the program in JSON form and XLA's debug options; answers as those
of `tenferro_ref.isolation.engines.pjrt`.
"""

from __future__ import annotations

import os
import time
from importlib import metadata
from typing import Any

import numpy as np

from oracle.peers.engines.lax import JAX
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import EngineFault, TenferroError
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Message, Opened, library
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphProgram, loads
from tenferro_ref.tensor import column_major

#: JAX keeps what it compiled, 15 MB a program where each op is compiled by itself; after so much all of it is dropped.
_KEEP = 400
_COST = {"jit": 1, "eager": 20}


def open(settings: Message) -> Opened:
    """Load JAX for its own CPU client, with 64-bit types."""
    os.environ.update(JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1")
    jax = library("jax", "jax")
    served = 0

    def serve(request: Message) -> Message:
        nonlocal served
        served += _COST["jit" if request["jit"] else "eager"]
        if served > _KEEP:
            served = 0
            jax.clear_caches()
        program = loads(request["program"])
        graph = program.to_graph()
        input_sets = [[wire.unpack(a) for a in inputs] for inputs in request["input_sets"]]
        try:
            output_sets, seconds = _run(jax, graph, input_sets, request["jit"], request["options"])
        except TenferroError:
            raise
        except (TypeError, ValueError, RuntimeError, IndexError) as error:  # what JAX raises, XLA's errors among them
            raise EngineFault(engine="jax", detail=f"{type(error).__name__}: {error}") from None
        return {"output_sets": [[wire.pack(a) for a in outputs] for outputs in output_sets], "seconds": seconds}

    return {"jax": jax.__version__, "jaxlib": metadata.version("jaxlib"), "platform": jax.default_backend()}, serve


def _run(
    jax: Any, program: GraphProgram, input_sets: list[list[np.ndarray[Any, Any]]], jit: bool, options: Message
) -> tuple[list[list[np.ndarray[Any, Any]]], dict[str, float]]:
    def function(*arrays: Any) -> tuple[Any, ...]:
        return evaluate(jax.lax, program, arrays)

    start = time.perf_counter()
    call = jax.jit(function).lower(*input_sets[0]).compile(options) if jit else function
    compiled = time.perf_counter()
    results = [[column_major(np.array(r)) for r in call(*map(jax.device_put, arrays))] for arrays in input_sets]
    return results, {"compile": compiled - start, "execute": time.perf_counter() - compiled}


def evaluate(lax: Any, program: GraphProgram, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """The program on JAX arrays or tracers.

    Raises
    ------
    UnsupportedOp
        An op that `JAX` does not have.
    ValidationError
        At these shapes a rule breaks that symbols left open.
    """
    values = dict(zip(program.input_slots, arrays, strict=True))
    for ins in program.instructions:
        operands = [values[s] for s in ins.input_slots]
        types = ins.op.result_types(tuple(map(_type, operands)), program.policy)
        several = isinstance(ins.op, ops.Extension)
        made = JAX[type(ins.op)](lax, ins.op, types if several else types[0], program.policy, *operands)
        values.update(zip(ins.output_slots, made if several else [made], strict=True))
    return tuple(values[s] for s in program.output_slots)


def _type(x: Any) -> TensorType:
    return TensorType(DType(str(x.dtype)), tuple(x.shape))
