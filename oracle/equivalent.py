"""A program written another way: by laws that hold exactly, so that any executor must give what it gives for the first form.

Every instruction is rewritten in every way that fits it. An elementwise op is applied to both pieces of its cut operands, each
transposed or reversed, and the pieces are put back; another op reads its first operand as a slice of a concatenation. Integers
are added and negated in other ways, which wrap alike; a float that is added to itself is doubled by a constant that is a sum. What a
second instruction reads is computed once more for it. Contractions, decompositions and transforms keep their operands as they
are: there an order of summation may follow from a layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import ELEMENTWISE, Op, TensorType
from tenferro_ref.program import GraphProgram, Instruction

#: What reads its first operand as it is: sums in an order that may depend on how it lies in memory, or an op's own checks.
_KEPT = (
    ops.DotGeneral,
    ops.DotGeneralWithConj,
    ops.Extension,
    ops.Constant,
    ops.ReduceSum,
    ops.ReduceProd,
    ops.ReduceSumSquares,
)


def equivalent(case: Case) -> Case:
    """The case with its program written another way; as it is if it is invalid, a module as given, or has extents that are no integers.

    Examples
    --------
    >>> from tenferro_ref.program import GraphBuilder
    >>> b = GraphBuilder()
    >>> x = b.input("I64", (1,))
    >>> import numpy as np
    >>> other = equivalent(Case.of(b.build(-x), [np.ones(1, np.int64)]))
    >>> [i.op.name for i in other.program.instructions]
    ['Reverse', 'Constant', 'BroadcastInDim', 'Subtract', 'Reverse']
    """
    program = case.program
    if case.refusal is not None or case.source is not None or not all(t.is_static for t in program.slot_types.values()):
        return case
    return replace(case, program=_Rewriting(program).rewritten(), derivation=None)


def equivalents(cases: Sequence[Case]) -> list[Case]:
    """Each case's equivalent; those of cases of one program share a program, too."""
    known: dict[int, Case] = {}
    for case in cases:
        known.setdefault(id(case.program), equivalent(case))
    return [replace(known[id(c.program)], inputs=c.inputs, refusal=c.refusal) if c.source is None else c for c in cases]


@dataclass
class _Rewriting:
    """A program being written another way; `lines` are the new instructions."""

    program: GraphProgram
    lines: list[Instruction] = field(default_factory=list)
    #: The next free slot; what has been read of the results so far.
    n_slots: int = 0
    read: set[int] = field(default_factory=set)

    def rewritten(self) -> GraphProgram:
        """The whole program with the same inputs and outputs."""
        self.n_slots = self.program.n_slots
        for ins in self.program.instructions:
            self._write(replace(ins, input_slots=tuple(self._again(slot) for slot in ins.input_slots)), ins)
        return replace(self.program, instructions=tuple(self.lines), n_slots=self.n_slots)

    def _put(self, op: Op, *slots: int, out: int | None = None) -> int:
        if out is None:
            out, self.n_slots = self.n_slots, self.n_slots + 1
        self.lines.append(Instruction(op, slots, (out,)))
        return out

    def _again(self, slot: int) -> int:
        """The slot, or, for its second reader, what the same instruction gives once more."""
        producer = self.program.producers.get(slot)
        ins = None if producer is None else self.program.instructions[producer]
        if slot not in self.read or ins is None or len(ins.output_slots) > 1 or isinstance(ins.op, _KEPT):
            self.read.add(slot)
            return slot
        return self._put(ins.op, *ins.input_slots)

    def _write(self, ins: Instruction, original: Instruction) -> None:
        types = [self.program.slot_types[slot] for slot in original.input_slots]
        if not types or len(ins.output_slots) > 1 or isinstance(ins.op, _KEPT):
            self.lines.append(ins)
        elif isinstance(ins.op, ELEMENTWISE):
            self._elementwise(ins, types)
        else:
            first = self._sliced(ins.input_slots[0], types[0])
            self._put(ins.op, first, *ins.input_slots[1:], out=ins.output_slots[0])

    def _sliced(self, slot: int, type_: TensorType) -> int:
        """A slice of the value behind itself."""
        shape = type_.static_shape
        if not shape:
            return slot
        twice = self._put(ops.Concatenate(0), slot, slot)
        starts, ones = (shape[0], *(0,) * (len(shape) - 1)), (1,) * len(shape)
        return self._put(ops.Slice(starts, (2 * shape[0], *shape[1:]), ones), twice)

    def _elementwise(self, ins: Instruction, types: list[TensorType]) -> None:
        """Applied to each piece; an operand of rank 0 beside a tensor is read by both."""
        (out,), slots = ins.output_slots, ins.input_slots
        shape = max((t.static_shape for t in types), key=len)
        if not shape:
            self._other(ins.op, types[0].dtype, (), slots, out)
            return
        half = shape[0] // 2
        cuts = [(0, half), (half, shape[0])] if half else [(0, shape[0])]
        parts = [self._part(ins.op, types, slots, shape, cut, whole=len(cuts) == 1, out=out) for cut in cuts]
        if len(parts) > 1:
            self._put(ops.Concatenate(0), *parts, out=out)

    def _part(
        self, op: Op, types: list[TensorType], slots: tuple[int, ...], shape: tuple[int, ...], cut: tuple[int, int],
        *, whole: bool, out: int,
    ) -> int:  # fmt: skip
        """The op on one piece of its operands, turned and turned back."""
        rank = len(shape)
        turned: Op = (
            ops.Transpose(tuple(reversed(range(rank)))) if rank > 1 and cut[0] == 0 else ops.Reverse((rank - 1,))
        )
        starts, limits = (cut[0], *(0,) * (rank - 1)), (cut[1], *shape[1:])
        operands = []
        for slot, type_ in zip(slots, types, strict=True):
            if type_.rank:
                piece = slot if whole else self._put(ops.Slice(starts, limits, (1,) * rank), slot)
                operands.append(self._put(turned, piece))
            else:
                operands.append(slot)
        piece_shape = (cut[1] - cut[0], *shape[1:])
        inner = piece_shape[::-1] if isinstance(turned, ops.Transpose) else piece_shape
        value = self._other(op, types[0].dtype, inner, tuple(operands), None)
        return self._put(turned, value, out=out if whole else None)

    def _other(self, op: Op, dtype: DType, shape: tuple[int, ...], slots: tuple[int, ...], out: int | None) -> int:
        """The op, or what is equal to it for such numbers."""
        law = _LAWS.get(type(op)) if dtype.is_int and not dtype.is_unsigned else None
        if law is not None:
            return law(self, dtype, shape, slots, out)
        if isinstance(op, ops.Add) and slots[0] == slots[1] and dtype.is_float:
            one = self._put(ops.Constant.of(1.0, dtype))
            return self._put(ops.Multiply(), slots[0], self._put(ops.Add(), one, one), out=out)
        return self._put(op, *slots, out=out)

    def constant(self, number: int, dtype: DType, shape: tuple[int, ...]) -> int:
        """An array of one integer."""
        scalar = self._put(ops.Constant.of(number, dtype))
        return self._put(ops.BroadcastInDim(shape, ()), scalar) if shape else scalar


_Law = Callable[[_Rewriting, DType, tuple[int, ...], tuple[int, ...], int | None], int]


def _negated(w: _Rewriting, dtype: DType, shape: tuple[int, ...], slots: tuple[int, ...], out: int | None) -> int:
    return w._put(ops.Subtract(), w.constant(0, dtype, shape), *slots, out=out)


def _swapped(op: type[Op]) -> _Law:
    return lambda w, dtype, shape, slots, out: w._put(op(), *reversed(slots), out=out)


def _subtracted(w: _Rewriting, dtype: DType, shape: tuple[int, ...], slots: tuple[int, ...], out: int | None) -> int:
    return w._put(ops.Add(), slots[0], w._put(ops.Negate(), slots[1]), out=out)


#: What integers allow; they wrap.
_LAWS: dict[type[Op], _Law] = {
    ops.Negate: _negated, ops.Subtract: _subtracted, ops.Add: _swapped(ops.Add), ops.Multiply: _swapped(ops.Multiply),
    ops.Maximum: _swapped(ops.Maximum), ops.Minimum: _swapped(ops.Minimum),
}  # fmt: skip
