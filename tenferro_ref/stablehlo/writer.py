"""Writing StableHLO text: values, the lines of a function body, and the module around it.

Forms are those of SEMANTICS 7.2. Which op becomes which lines does not live here (`emit`). Several programs can be written into one `Body`, each
with its own parameters and results.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import Shape, literal, type_text
from tenferro_ref.tensor import Array


class SsaValue(NamedTuple):
    """An SSA value: its name (`%3`, `%arg0`) and concrete type."""

    name: str
    dtype: DType
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def type(self) -> str:
        return type_text(self.dtype, self.shape)


class Body:
    """Parameters and lines of one function; SSA names count up in the order of emission."""

    def __init__(self) -> None:
        self._parameters: list[SsaValue] = []
        self._lines: list[str] = []
        self._elements: dict[str, list[SsaValue]] = {}

    def parameter(self, dtype: DType, shape: Shape) -> SsaValue:
        """A further parameter of the function."""
        value = SsaValue(f"%arg{len(self._parameters)}", dtype, shape)
        self._parameters.append(value)
        return value

    def _append(self, text: str, dtype: DType, shape: Shape) -> SsaValue:
        name = f"%{len(self._lines)}"
        self._lines.append(f"{name} = {text}")
        return SsaValue(name, dtype, shape)

    def line(self, text: str, dtype: DType, shape: Shape) -> SsaValue:
        """Append `%n = stablehlo.TEXT`."""
        return self._append(f"stablehlo.{text}", dtype, shape)

    def same(self, op: str, *operands: SsaValue) -> SsaValue:
        """`OP %a, %b : T`, all of one type."""
        x = operands[0]
        return self.line(f"{op} {_names(operands)} : {x.type}", x.dtype, x.shape)

    def call(self, op: str, operands: Sequence[SsaValue], dtype: DType, shape: Shape, attrs: str = "") -> SsaValue:
        """`OP %a, %b, ATTRS : (Ta, Tb) -> T`."""
        out = type_text(dtype, shape)
        operand_types = ", ".join([v.type for v in operands])
        return self.line(f"{op} {_names(operands)}{attrs} : ({operand_types}) -> {out}", dtype, shape)

    def generic(
        self,
        op: str,
        operands: Sequence[SsaValue],
        attrs: str,
        dtype: DType,
        shape: Shape,
        region: str = "",
        dialect: str = "stablehlo",
    ) -> SsaValue:
        """`"stablehlo.OP"(%a, %b) <{ATTRS}> : (Ta, Tb) -> T`, for ops that have no other form."""
        types = f"({', '.join(v.type for v in operands)}) -> {type_text(dtype, shape)}"
        inner = f" ({{\n{region}    }})" if region else ""
        properties = f" <{{{attrs}}}>" if attrs else ""
        return self._append(f'"{dialect}.{op}"({_names(operands)}){properties}{inner} : {types}', dtype, shape)

    def several(
        self, op: str, operands: Sequence[SsaValue], attrs: str, results: Sequence[tuple[DType, Shape]]
    ) -> list[SsaValue]:
        """As `generic`, with any number of results."""
        types = f"({', '.join(v.type for v in operands)}) -> ({', '.join(type_text(*r) for r in results)})"
        name = f"%{len(self._lines)}"
        self._lines.append(f'{name}:{len(results)} = "stablehlo.{op}"({_names(operands)}) <{{{attrs}}}> : {types}')
        return [SsaValue(f"{name}#{i}", dtype, shape) for i, (dtype, shape) in enumerate(results)]

    def constant(self, value: np.generic, dtype: DType) -> SsaValue:
        """A rank-0 constant."""
        return self.line(f"constant dense<{literal(value)}> : {type_text(dtype, ())}", dtype, ())

    def vector(self, values: Sequence[complex], dtype: DType) -> SsaValue:
        """A rank-1 constant."""
        shape = (len(values),)
        text = ", ".join(literal(dtype.numpy.type(value)) for value in values)
        return self.line(f"constant dense<[{text}]> : {type_text(dtype, shape)}", dtype, shape)

    def array(self, array: Array) -> SsaValue:
        """A constant of any shape, bit for bit."""
        dtype = DType.of(array)
        bits = str(array.tolist()).lower() if dtype is DType.Bool else f'"0x{array.tobytes("C").hex().upper()}"'
        bits = bits if array.size else ""  # nested empty lists are of another shape
        return self.line(f"constant dense<{bits}> : {type_text(dtype, array.shape)}", dtype, array.shape)

    def filled(self, value: complex, dtype: DType, shape: Shape) -> SsaValue:
        """An array that is `value` everywhere."""
        scalar = self.constant(dtype.numpy.type(value), dtype)
        return self.broadcast(scalar, shape) if shape else scalar

    def iota(self, shape: Shape, dim: int) -> SsaValue:
        """I64 array whose elements are their positions along `dim`."""
        return self.line(f"iota dim = {dim} : {type_text(DType.I64, shape)}", DType.I64, shape)

    def convert(self, x: SsaValue, dtype: DType) -> SsaValue:
        return self.call("convert", [x], dtype, x.shape)

    def real(self, x: SsaValue) -> SsaValue:
        """The real part of a complex array."""
        return self.call("real", [x], x.dtype.real, x.shape)

    def compare(self, direction: str, x: SsaValue, y: SsaValue) -> SsaValue:
        """`direction` is EQ, NE, LT, LE, GT or GE."""
        kind = {"int": "SIGNED", "uint": "UNSIGNED", "bool": "UNSIGNED"}.get(x.dtype.kind, "FLOAT")
        types = f"({x.type}, {y.type}) -> {type_text(DType.Bool, x.shape)}"
        return self.line(f"compare {direction}, {x.name}, {y.name}, {kind} : {types}", DType.Bool, x.shape)

    def select(self, pred: SsaValue, on_true: SsaValue, on_false: SsaValue) -> SsaValue:
        names = _names((pred, on_true, on_false))
        return self.line(f"select {names} : {pred.type}, {on_true.type}", on_true.dtype, on_true.shape)

    def transpose(self, x: SsaValue, perm: Sequence[int]) -> SsaValue:
        return self.call("transpose", [x], x.dtype, tuple(x.shape[p] for p in perm), f", dims = {list(perm)}")

    def reshape(self, x: SsaValue, shape: Shape) -> SsaValue:
        """StableHLO's own reshape: row-major."""
        return self.call("reshape", [x], x.dtype, shape)

    def broadcast(self, x: SsaValue, shape: Shape, dims: Sequence[int] = ()) -> SsaValue:
        return self.call("broadcast_in_dim", [x], x.dtype, shape, f", dims = {list(dims)}")

    def elements(self, x: SsaValue) -> list[SsaValue]:
        """The elements of a rank-1 array, written once: compilers rewrite updates whose starts are the same values."""
        if x.name not in self._elements:
            self._elements[x.name] = [self.reshape(self.slice(x, (i,), (i + 1,)), ()) for i in range(x.shape[0])]
        return self._elements[x.name]

    def slice(self, x: SsaValue, starts: Shape, limits: Shape, strides: Shape | None = None) -> SsaValue:
        """Elements `start, start + stride, ...` below `limit` of each axis; strides are 1 unless given."""
        ranges = [
            (start, limit, stride)
            for start, limit, stride in zip(starts, limits, strides or (1,) * x.rank, strict=True)
        ]
        text = ", ".join(f"{a}:{b}" if step == 1 else f"{a}:{b}:{step}" for a, b, step in ranges)
        shape = tuple(len(range(*r)) for r in ranges)
        return self.call("slice", [x], x.dtype, shape, f" [{text}]")

    def pad(
        self, x: SsaValue, low: Sequence[int], high: Sequence[int], interior: Sequence[int], shape: Shape
    ) -> SsaValue:
        """`x` with zeros around it and between its elements; `shape` is the result's."""
        attrs = f", low = {list(low)}, high = {list(high)}, interior = {list(interior)}"
        return self.call("pad", [x, self.filled(0, x.dtype, ())], x.dtype, shape, attrs)

    def reshape_column_major(self, x: SsaValue, shape: Shape) -> SsaValue:
        """Element k of the column-major sequence stays element k.

        Both orders coincide where the extents other than 1 stay what they are, and where there is no element; an array
        with one such extent has no order to reverse.
        """
        if _proper(x.shape) == _proper(shape) or prod(shape) == 0:
            return self.reshape(x, shape)
        if len(_proper(x.shape)) > 1:
            x = self.transpose(x, range(x.rank)[::-1])
        if len(_proper(shape)) <= 1:
            return self.reshape(x, shape)
        return self.transpose(self.reshape(x, shape[::-1]), range(len(shape))[::-1])

    def function(self, results: Sequence[SsaValue], name: str = "main") -> str:
        """The function that takes the parameters and returns `results`."""
        parameters = ", ".join(f"{p.name}: {p.type}" for p in self._parameters)
        types = ", ".join(r.type for r in results)
        returned = types if len(results) == 1 else f"({types})"
        last = f"return {_names(results)} : {types}" if results else "return"
        lines = "".join(f"    {line}\n" for line in [*self._lines, last])
        return f"  func.func @{name}({parameters}) -> {returned} {{\n{lines}  }}\n"

    def module(self, results: Sequence[SsaValue]) -> str:
        """A module with this function as its `main`."""
        return f"module {{\n{self.function(results)}}}\n"


def _names(values: Sequence[SsaValue]) -> str:
    return ", ".join([v.name for v in values])


def _proper(shape: Shape) -> Shape:
    return tuple(extent for extent in shape if extent != 1)
