"""`enclose`: a program run on enclosures, instruction by instruction, with the rules of `ENCLOSE` and `COMPLEX`.

Every value has the input sets along one more axis, its last, of extent 1 where there is one set. No rule knows of that axis:
`sets.widened` makes of each op the one that does the same with values of one more axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

import numpy as np

from oracle.enclosure import (  # noqa: F401 - each fills its rows of a table
    arithmetic,
    complex_functions,
    extensions,
    functions,
    indexing,
    moves,
    sums,
)
from oracle.enclosure.model import Model
from oracle.enclosure.rule import COMPLEX, ENCLOSE, ComplexRule, Context, contexts_of
from oracle.enclosure.sets import ALONE, one_by_one, repeated, widened
from oracle.enclosure.value import Enclosure, Interval, admit_flush, each_part, point
from tenferro_ref import ops
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.ops import Op
from tenferro_ref.program import GraphProgram
from tenferro_ref.tensor import Array


@overload
def enclose(
    program: GraphProgram, inputs: Sequence[Array], model: Model, *, all_slots: Literal[False] = False
) -> list[Enclosure]: ...
@overload
def enclose(
    program: GraphProgram, inputs: Sequence[Array], model: Model, *, all_slots: Literal[True]
) -> dict[int, Enclosure]: ...
def enclose(
    program: GraphProgram, inputs: Sequence[Array], model: Model, *, all_slots: bool = False
) -> list[Enclosure] | dict[int, Enclosure]:
    """The enclosures of a program's outputs, or of every slot, for one input set.

    Parameters
    ----------
    inputs
        Known values, one array a program input.
    model
        What the platform may do.

    Returns
    -------
    list of Enclosure, or dict by slot
        Shapes are those of the values.

    Raises
    ------
    UnsupportedOp
        An op for which there is no rule, or an extent that is not decided.
    """
    values = _slots(program, [inputs], model)
    if all_slots:
        return {slot: of_set(e, 0) for slot, e in values.items()}
    return [of_set(values[s].plain(), 0) for s in program.output_slots]


def enclose_sets(program: GraphProgram, input_sets: Sequence[Sequence[Array]], model: Model) -> list[Enclosure]:
    """The enclosures of a program's outputs for input sets of the same shapes, with the sets along a last axis.

    Raises
    ------
    UnsupportedOp
        As `enclose` does for one of the sets; or the sets cannot be enclosed at once, and each has to be for itself.
    """
    values = _slots(program, input_sets, model)
    return [values[s].plain() for s in program.output_slots]


def of_set(x: Enclosure, i: int) -> Enclosure:
    """The enclosure of input set number `i`, without the axis of the sets."""
    return x.map(lambda a: a[..., i])


def some_sets(x: Enclosure, places: Sequence[int]) -> Enclosure:
    """The enclosure of some of the input sets, along the same axis."""
    return x if len(places) == x.shape[-1] else x.map(lambda a: a[..., places])


def _slots(program: GraphProgram, input_sets: Sequence[Sequence[Array]], model: Model) -> dict[int, Enclosure]:
    types, contexts = program.slot_types, contexts_of(model, program.policy)
    values: dict[int, Enclosure] = {}
    with np.errstate(all="ignore"):
        for slot, *arrays in zip(program.input_slots, *input_sets, strict=True):
            # column-major, as the arrays are
            known = point(np.stack([a.T for a in arrays]).T)
            values[slot] = each_part(admit_flush, known) if model.flush else known
        for ins in program.instructions:
            slot = ins.output_slots[0]  # an op with several has no rule
            operands = [values[s] for s in ins.input_slots]
            result = _applied(ins.op, contexts[types[slot].dtype], operands, len(input_sets))
            values[slot] = derived(result, model, operands)
    return values


def _applied(op: Op, c: Context, operands: Sequence[Enclosure], n: int) -> Enclosure:
    """What the rule of an op gives for `n` input sets."""
    rule = rule_of(op, c, operands)
    if isinstance(op, ops.Constant | ops.ShapeOf):
        return repeated(rule(op, c, *operands), n)
    if not isinstance(op, ALONE):
        try:
            wider, arguments = widened(op, operands, n)
            return rule_of(wider, c, arguments)(wider, c, *arguments)
        except UnsupportedOp:
            if n == 1:
                raise  # of all sets together there may be too many possible starts
    return one_by_one(lambda *own: rule(op, c, *own), op, operands, n)


def rule_of(op: Op, c: Context, operands: Sequence[Enclosure]) -> ComplexRule:
    """The rule for operands of these kinds.

    Raises
    ------
    UnsupportedOp
        There is none.
    """
    real = not c.dtype.is_complex and all(isinstance(x, Interval) for x in operands)
    return ENCLOSE[type(op)] if real else COMPLEX[type(op)]


def derived(result: Enclosure, model: Model, operands: Sequence[Enclosure]) -> Enclosure:
    """What a rule gave, with what follows from the operands whatever the op."""
    if model.flush and not operands:
        result = each_part(admit_flush, result)
    const = all(x.const for x in operands)
    everywhere = all(x.const or x.repeated for x in operands)
    return result.known_as(const=const, repeated=result.repeated or (everywhere and not const))


__all__ = ["ENCLOSE", "derived", "enclose", "enclose_sets", "of_set", "rule_of", "some_sets"]
