"""`Tracer`: the program under construction while a module is read; `ROWS`: what each op of StableHLO becomes in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias, cast

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO, Op
from tenferro_ref.program import GraphBuilder, GraphProgram, Instruction, Value
from tenferro_ref.table import Table
from tenferro_ref.tensor import Array, column_major


class Tracer(GraphBuilder):
    """A GraphBuilder under StableHLO's policy. Equal instructions are made once, arrays become bound inputs.

    Attributes
    ----------
    made
        By slot of an instruction's first result: op and operands.
    imaginary
        By slot of an imaginary part: the complex value.
    parts
        By slot of a complex value: the real and imaginary part that it was made of.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, STABLEHLO)
        self.made: dict[int, tuple[Op, tuple[Value, ...]]] = {}
        self.imaginary: dict[int, Value] = {}
        self.parts: dict[int, tuple[Value, Value]] = {}
        self._known: dict[tuple[Op, tuple[int, ...]], tuple[Value, ...]] = {}
        self._bound: dict[tuple[DType, tuple[int, ...], bytes], Value] = {}

    def apply_many(self, op: Op, *operands: Value) -> tuple[Value, ...]:
        key = (op, tuple(v.slot for v in operands))
        if key not in self._known:
            self._known[key] = results = super().apply_many(op, *operands)
            self.made[results[0].slot] = (op, operands)
        return self._known[key]

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
        return self._bound[key]

    def finish(self, parameters: int, outputs: Sequence[Value]) -> tuple[GraphProgram, tuple[Array, ...]]:
        """The program that computes `outputs`, and the values of its bound inputs, which follow the first `parameters` ones.

        Instructions and bound inputs that no output depends on are left out.
        """
        program = self.build(*outputs)
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


#: `row(tracer, operation, *operands) -> result or results`: appends ops of the engine to the tracer's program.
Row: TypeAlias = Callable[..., Value | Sequence[Value]]
#: By the name of the op without the dialect; the sibling modules have the rows.
ROWS: Table[Row] = Table("StableHLO loader")
