"""JAX's derivatives of programs: traced, lowered to StableHLO, and read back as programs.

Requests are `{"program", "transforms", "inputs"}`: a primal program in JSON form; "jvp" and "vjp" in turn, each with the number
of inputs that it is applied to and which of its results the next one reads; and arrays of all inputs and seeds, of
which only the types matter. Answers are those of `tenferro_ref.isolation.engines.reader`.

JAX's products are bilinear; here the inner product is `Re(conj(a) b)`, so that cotangents are conjugated on their way in and out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, TypeAlias

from oracle.peers.engines.jax import evaluate
from oracle.peers.errors import EngineFault
from tenferro_ref.errors import TenferroError, UnsupportedOp
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.engine import Engine, library
from tenferro_ref.isolation.engines.reader import read
from tenferro_ref.isolation.wire import Message
from tenferro_ref.program import loads
from tenferro_ref.stablehlo.loader import MOST_OPERATIONS

Function: TypeAlias = Callable[..., tuple[Any, ...]]
_INEXACT = ("float32", "float64", "complex64", "complex128")
#: Programs after which what JAX keeps of them is dropped.
_KEEP = 400


def open(settings: Message) -> Engine:
    """Load JAX with 64-bit types."""
    os.environ.update(JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1")
    jax = library("jax", "jax")
    served = 0

    def answer(request: Message) -> Message:
        nonlocal served
        served += 1
        if served % _KEEP == 0:
            jax.clear_caches()
        graph = loads(request["program"]).to_graph()
        arrays = [wire.unpack(a) for a in request["inputs"]]
        lax = _Contract(jax.lax)
        function: Function = lambda *operands: evaluate(lax, graph, operands)  # noqa: E731
        for transform, count, kept in request["transforms"]:
            function = _some(_PRODUCTS[transform](jax, function, count), kept)
        try:
            text = jax.jit(function, keep_unused=True).lower(*arrays).as_text()
        except TenferroError:
            raise
        except NotImplementedError as error:
            raise UnsupportedOp(op="JAX's derivative", reason=str(error)) from None
        except (TypeError, ValueError, RuntimeError, IndexError) as error:  # what JAX raises
            raise EngineFault(engine="jax", detail=f"{type(error).__name__}: {error}") from None
        return read(
            {"ask": "load", "source": text, "where": "JAX's derivative", "inputs": None, "most": MOST_OPERATIONS}
        )

    return Engine({"jax": jax.__version__, "jaxlib": metadata.version("jaxlib")}, answer)


class _Contract:
    """`jax.lax`, with the contract's derivative where JAX has another one."""

    def __init__(self, lax: Any) -> None:
        self.lax = lax

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lax, name)

    def abs(self, x: Any) -> Any:
        """Of floats by way of the sign: the derivative at 0 is 0, and 1 in JAX."""
        return self.lax.mul(self.lax.sign(x), x) if x.dtype.kind == "f" else self.lax.abs(x)

    def scatter_add(self, x: Any, indices: Any, *more: Any, **options: Any) -> Any:
        """Without indices beyond I32: the transpose is a gather that wraps those (finding 0097)."""
        if indices.dtype.name == "int64":
            indices = self.lax.clamp(indices.dtype.type(-1), indices, indices.dtype.type(2**31 - 1))
        return self.lax.scatter_add(x, indices, *more, **options)

    def rem(self, x: Any, y: Any) -> Any:
        """Without a derivative, for floats too (SEMANTICS A.1)."""
        return self.lax.stop_gradient(self.lax.rem(x, y))


def _moving(arrays: Sequence[Any]) -> list[int]:
    """Which of these have a dtype with derivatives; narrow floats have none."""
    return [i for i, a in enumerate(arrays) if a.dtype.name in _INEXACT]


def _of_moving(function: Function, inputs: Sequence[Any]) -> tuple[Function, list[Any]]:
    """The function of those inputs that have derivatives, to those outputs that have; and these inputs."""
    places = _moving(inputs)

    def moving(*values: Any) -> tuple[Any, ...]:
        arguments = list(inputs)
        for place, value in zip(places, values, strict=True):
            arguments[place] = value
        outputs = function(*arguments)
        return tuple(outputs[i] for i in _moving(outputs))

    return moving, [inputs[i] for i in places]


def _jvp(jax: Any, function: Function, count: int) -> Function:
    def product(*arrays: Any) -> tuple[Any, ...]:
        moving, inputs = _of_moving(function, arrays[:count])
        tangents: tuple[Any, ...] = jax.jvp(moving, inputs, list(arrays[count:]))[1]
        return tangents

    return product


def _vjp(jax: Any, function: Function, count: int) -> Function:
    def product(*arrays: Any) -> tuple[Any, ...]:
        moving, inputs = _of_moving(function, arrays[:count])
        pull = jax.vjp(moving, *inputs)[1]
        return tuple(map(conj, pull(tuple(map(conj, arrays[count:])))))

    def conj(x: Any) -> Any:
        return jax.lax.conj(x) if x.dtype.kind == "c" else x

    return product


_PRODUCTS: dict[str, Callable[[Any, Function, int], Function]] = {"jvp": _jvp, "vjp": _vjp}


def _some(function: Function, kept: Sequence[int]) -> Function:
    def chosen(*arrays: Any) -> tuple[Any, ...]:
        outputs = function(*arrays)
        return tuple(outputs[i] for i in kept)

    return chosen
