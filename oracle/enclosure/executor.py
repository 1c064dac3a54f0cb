"""`enclose`: a program run on enclosures, instruction by instruction, with the rules of `ENCLOSE` and `COMPLEX`.

Several input sets are enclosed at once, along one more axis of every value, its last. No rule knows of that axis:
`sets.widened` makes of each op the one that does the same with values of one more axis. A single set goes without, which
takes a tenth less time than an axis of extent 1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Literal, TypeAlias, overload

import numpy as np

from oracle.enclosure import (  # noqa: F401 - each fills its rows of a table
    arithmetic,
    complex_functions,
    extensions,
    factors,
    functions,
    indexing,
    integers,
    moves,
    narrowing,
    pieces,
    poles,
    products,
    reference,
    special,
    sums,
    unchanged,
)
from oracle.enclosure.complexes import MOVES
from oracle.enclosure.formats import NO_INFINITY, NO_NAN, UNSIGNED_ZERO
from oracle.enclosure.freedoms import conversion, flush, real
from oracle.enclosure.model import Model
from oracle.enclosure.rule import (
    COMPLEX,
    ENCLOSE,
    ComplexRule,
    Context,
    Rule,
    contexts_of,
    saturated,
    without_infinities,
)
from oracle.enclosure.sets import ALONE, one_by_one, repeated, widened
from oracle.enclosure.value import Enclosure, Interval, Rectangle, point
from tenferro_ref import memory, ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.ops import Op, TensorType
from tenferro_ref.program import GraphProgram, Instruction
from tenferro_ref.table import Table
from tenferro_ref.tensor import Array

#: Bytes for each element of a value that is kept (measured: two bounds and three flags), and while its op is computed.
_KEPT, _WORK = 24, 220
#: What gives a value of F8E8M0FNU that is one of its operands, or one rounded by the format's own conversion.
_OF_SCALES = (*MOVES, ops.Clamp, ops.Constant, ops.Convert, ops.Maximum, ops.Minimum, ops.Repeated, ops.Select)

Rules: TypeAlias = Table[Rule] | Table[ComplexRule]


@overload
def enclose(
    program: GraphProgram, inputs: Sequence[Array | Enclosure], model: Model, *, all_slots: Literal[False] = False,
    arguments: int | None = None,
) -> list[Enclosure]: ...  # fmt: skip
@overload
def enclose(
    program: GraphProgram, inputs: Sequence[Array | Enclosure], model: Model, *, all_slots: Literal[True],
    arguments: int | None = None,
) -> dict[int, Enclosure]: ...  # fmt: skip
def enclose(
    program: GraphProgram,
    inputs: Sequence[Array | Enclosure],
    model: Model,
    *,
    all_slots: bool = False,
    arguments: int | None = None,
) -> list[Enclosure] | dict[int, Enclosure]:
    """The enclosures of a program's outputs, or of every slot, for one input set.

    Parameters
    ----------
    inputs
        Known values, one array a program input; or an enclosure, for every value in it.
    model
        What the platform may do.
    arguments
        How many inputs are arguments of what an executor runs; None for all. The others are constants in it, which a
        compiler may fold.

    Returns
    -------
    list of Enclosure, or dict by slot
        Shapes are those of the values.

    Raises
    ------
    UnsupportedOp
        An op for which there is no rule, or an extent that is not decided.
    """
    values = _slots(program, [inputs], model, arguments)
    return values if all_slots else [values[s].plain() for s in program.output_slots]


def enclose_sets(
    program: GraphProgram, input_sets: Sequence[Sequence[Array]], model: Model, *, arguments: int | None = None
) -> list[Enclosure]:
    """The enclosures of a program's outputs for input sets of the same shapes, with the sets along a last axis.

    Parameters
    ----------
    arguments
        As in `enclose`.

    Raises
    ------
    UnsupportedOp
        As `enclose` does for one of the sets; or the sets cannot be enclosed at once, and each has to be for itself.
    """
    values = _slots(program, input_sets, model, arguments)
    outputs = [values[s].plain() for s in program.output_slots]
    return [repeated(e, 1) for e in outputs] if len(input_sets) == 1 else outputs


def of_set(x: Enclosure, i: int) -> Enclosure:
    """The enclosure of input set number `i`, without the axis of the sets."""
    return x.map(lambda a: a[..., i])


def some_sets(x: Enclosure, places: Sequence[int]) -> Enclosure:
    """The enclosure of some of the input sets, along the same axis."""
    return x if len(places) == x.shape[-1] else x.map(lambda a: a[..., places])


def _slots(
    program: GraphProgram,
    input_sets: Sequence[Sequence[Array | Enclosure]],
    model: Model,
    arguments: int | None = None,
) -> dict[int, Enclosure]:
    """The enclosure of each slot; of several input sets along the last axis."""
    types, contexts = program.slot_types, contexts_of(model, program.policy)
    n = len(input_sets)
    _check_size(types, n)
    _check_scales(program, types)
    makers, places = dict[int, Instruction](), pieces.Places()
    computed, earliest = dict[int, int](), dict[tuple[Op, tuple[int, ...]], int]()
    with np.errstate(all="ignore"):
        values = _of_inputs(program, input_sets, model, arguments)
        for ins in program.instructions:
            if isinstance(ins.op, ops.Extension) and factors.knows(model, ins.op):
                cs = [contexts[types[s].dtype] for s in ins.output_slots]
                values.update(
                    zip(
                        ins.output_slots,
                        factors.enclosed(ins.op, cs, [values[s] for s in ins.input_slots]),
                        strict=True,
                    )
                )
                continue
            slot = ins.output_slots[0]  # no other op with several has a rule
            operands = [conversion.of_operand(model, ins.op, _op_of(makers.get(s)), values[s]) for s in ins.input_slots]
            c = contexts[types[slot].dtype]
            back = unchanged.there_and_back(ins, makers, values)
            if back is not None:
                piece: pieces.Piece | None = pieces.Piece(values[back], back)
                result = values[back]
            else:
                piece = pieces.piece(ins, contexts[DType.I64], n, places, values)
                result = _given(ins.op, c, n, operands)
            if piece is not None:
                result = unchanged.read_as(result, piece.value)
            result = real.of_result(model, ins.op, result, tuple(operands))
            result = narrowing.of_result(ins.op, contexts, result, operands)
            made = derived(result, model, moves.read_of(ins.op, operands) if piece is None else [piece.value])
            if operands and moves.is_spread(ins.op, operands[0], made, n):
                made = made.known_as(const=made.const, repeated=True)
            # computed twice from the same is computed once
            alike = tuple(computed.get(s, s) for s in ins.input_slots)
            computed[slot] = earliest.setdefault((ins.op, alike), slot)
            if integers.is_known(ins.op, operands, alike) and np.all(made.decided):
                made = made.known_as(const=True, repeated=False)
            if made.const:
                made = values.get(computed[slot], made)  # a constant that is written twice is one
            values[slot], makers[slot] = made, ins
            if back is None and (k := unchanged.given_back(made, operands)) is not None:
                back = ins.input_slots[k]
            if back is not None:  # what reads the result reads that
                computed[slot] = computed.get(back, back)
                pieces.given_back(slot, back, n, places, values)
                makers[slot] = makers.get(back, ins)
            elif piece is not None and piece.whole is not None:
                makers[slot] = makers.get(piece.whole, ins)
    return values


def _of_inputs(
    program: GraphProgram, input_sets: Sequence[Sequence[Array | Enclosure]], model: Model, arguments: int | None
) -> dict[int, Enclosure]:
    """The enclosure of each input; those behind the first `arguments` are constants."""
    values = dict[int, Enclosure]()
    for slot, first, *others in zip(program.input_slots, *input_sets, strict=True):
        if isinstance(first, Enclosure):
            known = first
        else:  # column-major, as the arrays are
            known = point(np.stack([a.T for a in (first, *others)]).T if others else first)
        values[slot] = flush.of_known(model, known)
    for slot in program.input_slots[arguments:] if arguments is not None else ():
        values[slot] = values[slot].known_as(const=True, repeated=False)
    return values


def _op_of(ins: Instruction | None) -> Op | None:
    return None if ins is None else ins.op


def _check_size(types: Mapping[int, TensorType], n: int) -> None:
    """Refuse what would not fit into memory, before anything is computed."""
    parts = [n * prod(t.static_shape) * (1 + t.dtype.is_complex) for t in types.values() if t.is_static]
    size = _KEPT * sum(parts) + _WORK * max(parts, default=0)
    if size > memory.limit() // 2:
        reason = f"its enclosures take about {size >> 20} MiB, and there are {memory.limit() >> 20} MiB"
        raise UnsupportedOp(op="program", reason=reason)


def _check_scales(program: GraphProgram, types: Mapping[int, TensorType]) -> None:
    """Refuse arithmetic on F8E8M0FNU: it has powers of two alone, and rounding to it needs a zero and a sign for its bounds."""
    for ins in program.instructions:
        if types[ins.output_slots[0]].dtype is DType.F8E8M0FNU and not isinstance(ins.op, _OF_SCALES):
            raise UnsupportedOp(
                op=ins.op.name, reason="F8E8M0FNU has neither zero nor sign: its arithmetic has no enclosure"
            )


def _given(op: Op, c: Context, n: int, operands: Sequence[Enclosure]) -> Enclosure:
    """What an op gives of operands, which may be one of them."""
    if (k := integers.gives_back(op, operands)) is not None:
        return operands[k]
    return poles.by_sides(partial(_enclosed, op, c, n), op, operands)


def _enclosed(op: Op, c: Context, n: int, *operands: Enclosure) -> Enclosure:
    """What the rule of an op gives for `n` input sets."""
    rules = _rules(c, operands)
    made = rules[type(op)](op, c, *operands) if n == 1 else _of_sets(rules, op, c, operands, n)
    if isinstance(made, Interval):
        if c.dtype in NO_INFINITY:
            made = without_infinities(made, c.format.max)
        if c.dtype in NO_NAN:
            made = saturated(made, c.format.max)
        if c.dtype in UNSIGNED_ZERO:
            made = replace(made, pos_zero=made.pos_zero | made.neg_zero, neg_zero=np.zeros(made.shape, bool))
    return made


def _of_sets(rules: Rules, op: Op, c: Context, operands: Sequence[Enclosure], n: int) -> Enclosure:
    """The same, with an axis of the sets."""
    if isinstance(op, ops.Constant | ops.ShapeOf):
        return repeated(rules[type(op)](op, c, *operands), n)
    if not isinstance(op, ALONE):
        with contextlib.suppress(UnsupportedOp):  # of all sets together there may be too many possible starts
            wider, arguments = widened(op, operands, n)
            return rules[type(wider)](wider, c, *arguments)
    rule = rules[type(op)]
    return one_by_one(lambda *own: rule(op, c, *own), op, operands, n)


def _rules(c: Context, operands: Sequence[Enclosure]) -> Rules:
    """The rules for operands of these kinds."""
    if not c.dtype.is_complex:
        for x in operands:
            if isinstance(x, Rectangle):
                break
        else:
            return ENCLOSE
    return COMPLEX


def derived(result: Enclosure, model: Model, operands: Sequence[Enclosure]) -> Enclosure:
    """What a rule gave, with what follows from the operands whatever the op."""
    if not operands:
        result = flush.of_known(model, result)
    if unchanged.given_back(result, operands) is not None:
        return result
    if any(result is part for x in operands for part in x.parts):  # of a complex number, of which more may be known
        return result
    const = everywhere = True
    for x in operands:
        known = x.const or not x.size  # a compiler knows what there is to know of no element
        const = const and known
        everywhere = everywhere and (known or x.repeated)
    const = const or all(p.origin.fixed is not None and bool(np.all(p.origin.fixed)) for p in result.parts)
    return result.known_as(const=const, repeated=result.repeated or (everywhere and not const))


__all__ = ["ENCLOSE", "derived", "enclose", "enclose_sets", "of_set", "some_sets"]
