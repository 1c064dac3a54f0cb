"""`enclose`: a program run on enclosures, instruction by instruction, with the rules of `ENCLOSE`."""

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
from oracle.enclosure.complexes import COMPLEX
from oracle.enclosure.model import Model
from oracle.enclosure.rule import ENCLOSE, Context, Rule, contexts_of
from oracle.enclosure.value import Enclosure, admit_flush, point
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
    """The enclosures of a program's outputs, or of every slot.

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
    types = program.slot_types
    values: dict[int, Enclosure] = {}
    contexts = contexts_of(model, program.policy)
    with np.errstate(all="ignore"):
        for slot, array in zip(program.input_slots, inputs, strict=True):
            values[slot] = admit_flush(point(array)) if model.flush else point(array)
        for ins in program.instructions:
            op, slot = ins.op, ins.output_slots[0]  # an op with several has no rule
            operands = [values[s] for s in ins.input_slots]
            c = contexts[types[slot].dtype]
            values[slot] = derived(rule_of(op, c, operands)(op, c, *operands), model, operands)
    return values if all_slots else [values[s].plain() for s in program.output_slots]


def rule_of(op: Op, c: Context, operands: Sequence[Enclosure]) -> Rule:
    """The rule for operands of these kinds.

    Raises
    ------
    UnsupportedOp
        There is none.
    """
    if not c.dtype.is_complex:
        for x in operands:
            if x.imag is not None:
                break
        else:
            return ENCLOSE[type(op)]
    return COMPLEX[type(op)]


def derived(result: Enclosure, model: Model, operands: Sequence[Enclosure]) -> Enclosure:
    """What a rule gave, with what follows from the operands whatever the op."""
    if model.flush and not operands:
        result = admit_flush(result)
    const = everywhere = True
    for x in operands:
        const = const and x.const
        everywhere = everywhere and (x.const or x.repeated)
    repeated = result.repeated or (everywhere and not const)
    if result.const == const and result.repeated == repeated:
        return result
    return Enclosure(
        result.dtype,
        result.lo,
        result.hi,
        result.nan,
        result.pos_zero,
        result.neg_zero,
        const,
        result.unrounded,
        result.terms,
        repeated,
        result.imag,
    )


__all__ = ["ENCLOSE", "derived", "enclose", "rule_of"]
