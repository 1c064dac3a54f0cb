"""JAX on the CPU: programs as calls of `jax.lax` (the table `JAX`), traced and compiled as one, or called one by one.

Requests are `{"program", "jit", "options", "input_sets"}` with the program in JSON form and XLA's debug options, or with `"code"`, a
module that jaxlib's client compiles as it is; answers as those of `tenferro_ref.isolation.engines.pjrt`.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import metadata
from typing import Any

import numpy as np

from oracle.peers.engines.lax import JAX
from oracle.peers.errors import EngineFault
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Engine, library, run_sets
from tenferro_ref.isolation.wire import Message
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphProgram, loads
from tenferro_ref.tensor import Array, column_major

#: JAX keeps what it compiled, 15 MB a program where each op is compiled by itself; after so much all of it is dropped.
_KEEP = 400
#: Modules that are kept compiled: they are run again with other values.
_KEPT = 16
_COST = {"jit": 1, "eager": 20}


def open(settings: Message) -> Engine:
    """Load JAX with its own CPU client and 64-bit types."""
    os.environ.update(JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1")
    jax = library("jax", "jax")
    compiler, xla_bridge = (library(f"jax._src.{name}", "jax") for name in ("compiler", "xla_bridge"))
    library("jaxlib.lapack", "jax").prepare_lapack_call(
        "potrf_ffi", np.float32
    )  # or LAPACK's custom calls find no functions
    served = 0

    @lru_cache(_KEPT)
    def compile_module(code: str | bytes, flags: tuple[tuple[str, Any], ...]) -> Any:
        options = compiler.get_compile_options(1, 1, env_options_overrides=dict(flags))
        client = xla_bridge.get_backend("cpu")
        return client.compile_and_load(code, client.devices()[:1], options)

    def run_module(executable: Any, inputs: list[Array]) -> list[Array]:
        return [column_major(np.array(result)) for result in executable.execute([*map(jax.device_put, inputs)])]

    def answer(request: Message) -> Message:
        try:
            if "code" in request:
                return run_sets(
                    request, lambda: compile_module(request["code"], tuple(request["options"].items())), run_module
                )
            return answer_program(request)
        except TenferroError:
            raise
        except (TypeError, ValueError, RuntimeError, IndexError) as error:  # what JAX raises, XLA's errors among them
            raise EngineFault(engine="jax", detail=f"{type(error).__name__}: {error}") from None

    def answer_program(request: Message) -> Message:
        nonlocal served
        served += _COST["jit" if request["jit"] else "eager"]
        if served > _KEEP:
            served = 0
            jax.clear_caches()
        program = loads(request["program"])
        graph = program.to_graph()

        def function(*arrays: Any) -> tuple[Any, ...]:
            return evaluate(jax.lax, graph, arrays)

        def compile() -> Any:
            if not request["jit"]:
                return function
            first = [wire.unpack(a) for a in request["input_sets"][0]]
            return jax.jit(function).lower(*first).compile(request["options"])

        def execute(call: Any, inputs: list[Array]) -> list[Array]:
            return [column_major(np.array(result)) for result in call(*map(jax.device_put, inputs))]

        return run_sets(request, compile, execute)

    facts = {"jax": jax.__version__, "jaxlib": metadata.version("jaxlib"), "platform": jax.default_backend()}
    return Engine(facts, answer)


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
    return TensorType(DType.of(x), tuple(x.shape))
