"""`Tracer`: the program under construction while a module is read; `ROWS`: what each op of StableHLO becomes in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias, cast

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO, Op, Policy
from tenferro_ref.program import GraphBuilder, GraphProgram, Instruction, Value
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.table import Table
from tenferro_ref.tensor import Array, column_major

#: `evaluate(op, policy, operands, number of results) -> results`.
Evaluate: TypeAlias = Callable[[Op, Policy, tuple[Array, ...], int], Sequence[Array]]


class Tracer(GraphBuilder):
    """A GraphBuilder under StableHLO's policy. Equal instructions are made once, arrays become bound inputs.

    Attributes
    ----------
    made
        By slot of a result: op and operands of its instruction.
    imaginary
        By slot of an imaginary part: the complex value.
    parts
        By slot of a complex value: the real and imaginary part that it was made of.
    cut
        By slot of what bits were cut into, or put together to: the value that they are of.
    evaluate
        Computes the results of an op: what the module does next may depend on them. None: nothing is computed.
    decisions
        Values that were computed while reading and that depend on floats, whose arithmetic platforms differ in: what the
        program is depends on them.
    """

    def __init__(self, name: str, evaluate: Evaluate | None = None) -> None:
        super().__init__(name, STABLEHLO)
        self.evaluate = evaluate
        self.decisions: list[Value] = []
        self._values: dict[int, Array] = {}
        self._rounded: set[int] = set()
        self.made: dict[int, tuple[Op, tuple[Value, ...]]] = {}
        self.imaginary: dict[int, Value] = {}
        self.parts: dict[int, tuple[Value, Value]] = {}
        self.cut: dict[int, Value] = {}
        self._known: dict[tuple[Op, tuple[int, ...]], tuple[Value, ...]] = {}
        self._bound: dict[tuple[DType, tuple[int, ...], bytes], Value] = {}

    def apply_many(self, op: Op, *operands: Value) -> tuple[Value, ...]:
        key = (op, tuple(v.slot for v in operands))
        if key not in self._known:
            self._known[key] = results = super().apply_many(op, *operands)
            self.made.update((v.slot, (op, operands)) for v in results)
            inexact = any(v.dtype.is_float or v.dtype.is_complex for v in (*operands, *results))
            if inexact or any(v.slot in self._rounded for v in operands):
                self._rounded.update(v.slot for v in results)
        return self._known[key]

    def given(self, x: Value, array: Array) -> None:
        """Note the value of an input."""
        self._values[x.slot] = array

    def decided(self, x: Value) -> Array | None:
        """The value of `x`, which becomes a decision if it depends on floats; None if it cannot be computed."""
        array = self.computed(x)
        if array is not None and x.slot in self._rounded and all(v is not x for v in self.decisions):
            self.decisions.append(x)
        return array

    def computed(self, x: Value) -> Array | None:
        """The value of `x`; None if an input that it depends on is not known, or nothing is computed here."""
        if self.evaluate is None:
            return None
        stack = [x]
        while stack:
            top = stack[-1]
            if top.slot in self._values:
                stack.pop()
                continue
            if top.slot not in self.made:
                return None
            op, operands = self.made[top.slot]
            missing = [v for v in operands if v.slot not in self._values]
            if missing:
                stack += missing
                continue
            results = self._known[op, tuple(v.slot for v in operands)]
            arrays = self.evaluate(op, STABLEHLO, tuple(self._values[v.slot] for v in operands), len(results))
            for value, array in zip(results, arrays, strict=True):
                self._values[value.slot] = array
        return self._values[x.slot]

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        """Two transposes in a row are one, or none."""
        op, operands = self.made.get(x.slot, (None, ()))
        if isinstance(op, ops.Transpose):
            return self.transpose(operands[0], [op.perm[p] for p in perm])
        return x if list(perm) == list(range(x.ndim)) else self.apply(ops.Transpose(tuple(perm)), x)

    def reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        """StableHLO's row-major reshape: the engine's, which is column-major, between reversed axes.

        The two orders differ only where several extents other than 1 change.
        """
        proper = [tuple(e for e in s if e != 1) for s in (x.shape, shape)]
        if proper[0] == proper[1] or max(map(len, proper)) < 2 or prod(shape) == 0:
            return x if x.shape == shape else self.apply(ops.Reshape(shape), x)
        x = self.transpose(x, range(x.ndim)[::-1])
        if x.shape != shape[::-1]:
            x = self.apply(ops.Reshape(shape[::-1]), x)
        return self.transpose(x, range(len(shape))[::-1])

    def array(self, array: Array) -> Value:
        """An array of the module: one constant if all elements are the same bits, else a bound input."""
        dtype, raw = DType.of(array), array.tobytes()
        first = raw[: dtype.itemsize] or bytes(dtype.itemsize)
        if first * array.size == raw:
            scalar = self.apply(ops.Constant(dtype, first))
            return self.apply(ops.BroadcastInDim(array.shape, ()), scalar) if array.shape else scalar
        key = (dtype, array.shape, raw)
        if key not in self._bound:
            self._bound[key] = self.input(dtype, array.shape)
            self._values[self._bound[key].slot] = column_major(array)
        return self._bound[key]

    def finish(self, parameters: int, outputs: Sequence[Value]) -> tuple[GraphProgram, tuple[Array, ...]]:
        """The program that computes `outputs`, then the decisions, and the values of its bound inputs, which follow the first
        `parameters` ones.

        Instructions and bound inputs that no output depends on are left out.
        """
        program = self.build(*outputs, *self.decisions)
        used = set(program.output_slots)
        kept: list[Instruction] = []
        for ins in reversed(program.instructions):
            if used.intersection(ins.output_slots):
                kept.append(ins)
                used.update(ins.input_slots)
        bound = {v.slot: key for key, v in self._bound.items() if v.slot in used}
        inputs = [*program.input_slots[:parameters], *bound]
        number = {slot: i for i, slot in enumerate(inputs)}
        for ins in reversed(kept):
            for slot in ins.output_slots:
                number[slot] = len(number)
        arrays = tuple(
            column_major(np.frombuffer(raw, dtype.numpy).reshape(shape)) for dtype, shape, raw in bound.values()
        )
        return replace(
            program,
            instructions=tuple(
                Instruction(i.op, tuple(number[s] for s in i.input_slots), tuple(number[s] for s in i.output_slots))
                for i in reversed(kept)
            ),
            input_slots=tuple(range(len(inputs))),
            input_types=(*program.input_types[:parameters], *(v.type for v in self._bound.values() if v.slot in bound)),
            output_slots=tuple(number[s] for s in program.output_slots),
            n_slots=len(number),
        ), arrays


def tracer(x: Value) -> Tracer:
    """The tracer that a value belongs to."""
    return cast(Tracer, x.builder)


def numbers(b: Tracer, op: Operation, x: Value) -> tuple[int, ...]:
    """The values of an operand that says a shape or a place.

    Raises
    ------
    UnsupportedOp
        They are not known where the module is read.
    """
    array = b.decided(x)
    if array is None:
        raise op.refusal("what it asks for depends on inputs that are not known where the module is read")
    return tuple(int(v) for v in array.ravel())


#: `row(tracer, operation, *operands) -> result or results`: appends ops of the engine to the tracer's program.
Row: TypeAlias = Callable[..., Value | Sequence[Value]]
#: By the name of the op without the dialect; the sibling modules have the rows.
ROWS: Table[Row] = Table("StableHLO loader")
