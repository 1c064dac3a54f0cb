"""What an extension family is: the record `Family`, its registration, and what the rules of families share (SEMANTICS 6)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np

from tenferro_ref.dims import Extent
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.errors import Internal, InvalidArgument, InvalidCompiledGraph, Unsupported, UnsupportedOp, UsageError
from tenferro_ref.ops import FAMILIES, Extension, Op, TensorType
from tenferro_ref.ops.attributes import misfit
from tenferro_ref.program import Value
from tenferro_ref.program.program import TYPE_FIELDS
from tenferro_ref.tensor import Array

Infer: TypeAlias = Callable[[Extension, tuple[TensorType, ...]], tuple[TensorType, ...]]
Execute: TypeAlias = Callable[[Extension, Sequence[Array]], Sequence[Array]]
StandardOps: TypeAlias = Callable[..., Sequence[Value]]
RequireEqual: TypeAlias = Callable[[Extension, tuple[TensorType, ...]], Iterable[tuple[Extent, Extent]]]

_ID = re.compile(r"[^\s.]+\.[^\s.]+\.v[0-9]+")
#: What a family's own code raises where it has a defect; typed errors pass as they are.
_FOREIGN = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RuntimeError)


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
        `execute(op, inputs) -> results`: arrays of the types that `infer` gives; `inputs` are read-only.
        None: the family has no runtime, and its ops are refused when they are executed.
    standard_ops
        `standard_ops(op, *operands) -> results`, for operands whose extents are all integers: appends standard ops to the
        operands' builder. None: its ops are not made of standard ops.
    require_equal
        `require_equal(op, input types) -> pairs of extents` that must be equal, known or not, of operands that `infer` has
        accepted: what symbols leave open becomes shape guards (SEMANTICS A.5).

    Raises
    ------
    UsageError
        A name that is no id, ops that are no collection of names, or a rule that cannot be called.
    """

    name: str
    ops: Collection[str]
    infer: Infer
    execute: Execute | None = None
    standard_ops: StandardOps | None = None
    require_equal: RequireEqual | None = None

    def __post_init__(self) -> None:
        """Refuse what would break whoever looks for a family later."""
        if not isinstance(self.name, str) or not _ID.fullmatch(self.name):
            raise UsageError(detail=f'Family: name: {self.name!r} is no id "<crate>.<name>.v<major>"')
        names = () if isinstance(self.ops, str) or not isinstance(self.ops, Collection) else self.ops
        if not names or not all(isinstance(op, str) for op in names):
            raise UsageError(detail=f"Family {self.name!r}: ops: {self.ops!r} is no collection of names")
        for rule in ("infer", "execute", "standard_ops", "require_equal"):
            value = getattr(self, rule)
            if not callable(value) and (rule == "infer" or value is not None):
                raise UsageError(detail=f"Family {self.name!r}: {rule}: {value!r} cannot be called")

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
        Internal
            The rule failed with an error of its own, or gave something else than types.
        """
        if op.op not in self.ops:
            raise UnsupportedOp(op=op.op, reason=f"family {self.name!r} has no such op")
        try:
            types = self.infer(op, inputs)
        except _FOREIGN as error:
            self._fail("infer", op, error)
        if not isinstance(types, tuple) or not all(isinstance(t, TensorType) for t in types):
            self._fail("infer", op, types, "a tuple of TensorTypes")
        for type_ in types:
            if wrong := misfit(type_, TYPE_FIELDS):
                self._fail("infer", op, TypeError(f"TensorType.{wrong[0]}: {wrong[1]}"))
        return types

    def equal_extents(self, op: Extension, inputs: tuple[TensorType, ...], /) -> Iterable[tuple[Extent, Extent]]:
        """What `require_equal` gives; Internal as in `result_types`."""
        if self.require_equal is None:
            return ()
        try:
            return list(self.require_equal(op, inputs))
        except _FOREIGN as error:
            self._fail("require_equal", op, error)

    def run(self, op: Extension, inputs: Sequence[Array], outputs: int) -> Sequence[Array]:
        """What `execute` gives: `outputs` results. There is no fallback.

        Raises
        ------
        UnsupportedOp
            The family has no runtime.
        InvalidArgument
            The runtime gave another number of results.
        Internal
            The runtime failed with an error of its own, or gave something else than arrays.
        """
        if self.execute is None:
            raise UnsupportedOp(op=op.name, reason=f"extension family {self.name!r} has no registered runtime")
        try:
            results = self.execute(op, [_read_only(x) for x in inputs])
        except _FOREIGN as error:
            self._fail("execute", op, error)
        if not isinstance(results, Sequence) or not all(isinstance(x, np.ndarray) for x in results):
            self._fail("execute", op, results, "a list of arrays")
        if len(results) != outputs:
            detail = f"{self.name!r} {op.op} gave {len(results)} results for {outputs}"
            raise InvalidArgument(op=op.name, argument="outputs", detail=detail)
        return results

    def decomposed(self, op: Extension, *operands: Value) -> Sequence[Value]:
        """What `standard_ops` gives; Internal as in `run`."""
        try:
            results = cast(StandardOps, self.standard_ops)(op, *operands)
        except _FOREIGN as error:
            self._fail("standard_ops", op, error)
        if not isinstance(results, Sequence) or not all(isinstance(v, Value) for v in results):
            self._fail("standard_ops", op, results, "a list of Values")
        return results

    def _fail(self, rule: str, op: Extension, found: object, due: str = "") -> NoReturn:
        """Raise `Internal`: a rule of the family raised `found`, or gave that where `due` is needed."""
        where = f"extension {self.name!r} failed in {rule} of {op.op}"
        if isinstance(found, Exception):
            raise Internal(detail=f"{where}: {type(found).__name__}: {found}") from found
        kinds = [type(entry).__name__ for entry in found] if isinstance(found, list | tuple) else type(found).__name__
        raise Internal(detail=f"{where}: it gave {kinds}, not {due}")


def _read_only(array: Array) -> Array:
    """A view that cannot be written to: what an op reads belongs to the caller, or to other instructions."""
    view = array.view()
    view.flags.writeable = False
    return view


def register(family: Family) -> Family:
    """Make a family known to builders, readers and executors.

    Raises
    ------
    UsageError
        It is no `Family`, or another one has its name.
    """
    if not isinstance(family, Family):
        raise UsageError(detail=f"{type(family).__name__} where a Family is needed")
    if family.name not in FAMILIES:
        FAMILIES[family.name] = family
    elif vars(FAMILIES[family.name]) != vars(family):
        raise UsageError(detail=f"family {family.name!r} is registered already, with other rules; choose another name")
    return family


def family_of(op: Extension) -> Family:
    """The record of an op's family, which must be registered."""
    return cast(Family, FAMILIES[op.family])  # `register` alone enters families


def standard_ops_of(op: Op) -> StandardOps | None:
    """What appends the standard ops that an extension op is made of; None for any other op."""
    if not isinstance(op, Extension):
        return None
    family = family_of(op)
    return None if family.standard_ops is None else family.decomposed


# --- for rules --------------------------------------------------------------------------------------------------------


def reject(op: Extension, detail: str, argument: str = "config") -> NoReturn:
    """Raise `InvalidArgument` in the name of the family's op."""
    raise InvalidArgument(op=op.op, argument=argument, detail=detail)


def read_config(op: Extension, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration, with `defaults` for what it leaves out.

    Raises
    ------
    InvalidArgument
        A key that is not in `defaults`, or a value of another type than its default (a default of None
        admits None and integers).
    """
    given = json.loads(op.config)
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
