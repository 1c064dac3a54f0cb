"""What an extension family is: the record `Family`, its registration, and what the rules of families share (SEMANTICS 6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, cast

from tenferro_ref.dims import Extent
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.errors import Internal, InvalidArgument, InvalidCompiledGraph, Unsupported, UnsupportedOp
from tenferro_ref.ops import FAMILIES, Extension, Op, TensorType
from tenferro_ref.program import Value
from tenferro_ref.tensor import Array

Infer: TypeAlias = Callable[[Extension, tuple[TensorType, ...]], tuple[TensorType, ...]]
Execute: TypeAlias = Callable[[Extension, Sequence[Array]], Sequence[Array]]
StandardOps: TypeAlias = Callable[..., Sequence[Value]]
RequireEqual: TypeAlias = Callable[[Extension, tuple[TensorType, ...]], Iterable[tuple[Extent, Extent]]]


@dataclass(frozen=True, eq=False)
class Family:
    """An extension family, as the reference itself needs to know it.

    What other layers do with its ops (StableHLO, enclosures, JAX, backward-error checks) is in their tables, under
    `(family, op)`; the generator has one row a family.

    Attributes
    ----------
    name
        Its id in programs: "<crate>.<name>.v<major>".
    ops
        Names of its ops.
    infer
        `infer(op, input types) -> result types`. Raises a `ValidationError` where operands or configuration do not fit.
    execute
        `execute(op, inputs) -> results`: arrays of the types that `infer` gives; `inputs` must not be written to.
        None: the family has no runtime, and its ops are refused when they are executed.
    standard_ops
        `standard_ops(op, *operands) -> results`, for operands whose extents are all integers: appends standard ops to the
        operands' builder. None: its ops are not made of standard ops.
    require_equal
        `require_equal(op, input types) -> pairs of extents` that must be equal, known or not, of operands that `infer` has
        accepted: what symbols leave open becomes shape guards (SEMANTICS A.5).
    """

    name: str
    ops: Collection[str]
    infer: Infer
    execute: Execute | None = None
    standard_ops: StandardOps | None = None
    require_equal: RequireEqual | None = None

    @property
    def keys(self) -> list[tuple[str, str]]:
        """What its ops are under in the tables of other layers."""
        return [(self.name, op) for op in self.ops]

    def result_types(self, op: Extension, inputs: tuple[TensorType, ...], /) -> tuple[TensorType, ...]:
        """What `infer` gives.

        Raises
        ------
        UnsupportedOp
            The family has no such op.
        """
        if op.op not in self.ops:
            raise UnsupportedOp(op=op.op, reason=f"family {self.name!r} has no such op")
        return self.infer(op, inputs)

    def equal_extents(self, op: Extension, inputs: tuple[TensorType, ...], /) -> Iterable[tuple[Extent, Extent]]:
        """What `require_equal` gives."""
        return () if self.require_equal is None else self.require_equal(op, inputs)

    def run(self, op: Extension, inputs: Sequence[Array], outputs: int) -> Sequence[Array]:
        """What `execute` gives: `outputs` results. There is no fallback.

        Raises
        ------
        UnsupportedOp
            The family has no runtime.
        InvalidArgument
            The runtime gave another number of results.
        Internal
            The runtime failed with an error of its own; typed errors pass as they are.
        """
        if self.execute is None:
            raise UnsupportedOp(op=op.name, reason=f"extension family {self.name!r} has no registered runtime")
        try:
            results = self.execute(op, inputs)
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RuntimeError) as error:
            raise Internal(detail=f"extension {self.name!r} failed in {op.op}: {error}") from error
        if len(results) != outputs:
            detail = f"{self.name!r} {op.op} gave {len(results)} results for {outputs}"
            raise InvalidArgument(op=op.name, argument="outputs", detail=detail)
        return results


def register(family: Family) -> Family:
    """Make a family known to builders, readers and executors; the first registration of a name stays."""
    if family.name not in FAMILIES:
        FAMILIES[family.name] = family
    return family


def family_of(op: Extension) -> Family:
    """The record of an op's family, which must be registered."""
    return cast(Family, FAMILIES[op.family])  # `register` alone enters families


def standard_ops_of(op: Op) -> StandardOps | None:
    """What appends the standard ops that an extension op is made of; None for any other op."""
    return family_of(op).standard_ops if isinstance(op, Extension) else None


# --- for rules --------------------------------------------------------------------------------------------------------


def reject(op: Extension, detail: str, argument: str = "config") -> NoReturn:
    """Raise `InvalidArgument` in the name of the family's op."""
    raise InvalidArgument(op=op.op, argument=argument, detail=detail)


def read_config(op: Extension, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration, with `defaults` for what it leaves out.

    Raises
    ------
    InvalidArgument
        No JSON object, a key that is not in `defaults`, or a value of another type than its default (a default of None
        admits None and integers).
    """
    try:
        given = json.loads(op.config)
    except (ValueError, RecursionError) as error:
        reject(op, f"no JSON text: {error}")
    if not isinstance(given, dict):
        reject(op, f"{op.config} is no JSON object")
    for key, value in given.items():
        if key not in defaults:
            reject(op, f"unknown key {key!r}; known: {', '.join(defaults) or 'none'}")
        default = defaults[key]
        fits = value is None or type(value) is int if default is None else type(value) is type(default)
        if not fits:
            reject(op, f"{key}: {value!r} has the wrong type; an example is {default!r}")
    return {**defaults, **given}


def check_count(op: Extension, inputs: Sequence[TensorType], expected: int) -> None:
    """Raise `InvalidCompiledGraph` unless there are `expected` operands."""
    if len(inputs) != expected:
        raise InvalidCompiledGraph(detail=f"{op.op}: expected {expected} inputs, got {len(inputs)}")


def check_dtype(op: Extension, dtype: DType, admitted: Collection[DType]) -> None:
    """Raise `Unsupported` for a dtype that is not in `admitted`."""
    if dtype not in admitted:
        known = ", ".join(d.name for d in ENGINE_DTYPES if d in admitted)
        raise Unsupported(op=op.op, detail=f"dtype {dtype} is not supported; supported: {known}")
