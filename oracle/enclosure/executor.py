"""`enclose`: a program run on enclosures, instruction by instruction, with the rules of `ENCLOSE`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, overload

import numpy as np

from oracle.enclosure import arithmetic, functions, moves, sums  # noqa: F401 - each fills its rows of the table
from oracle.enclosure.model import Model
from oracle.enclosure.rule import ENCLOSE, Context
from oracle.enclosure.value import Enclosure, admit_flush, point
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.ops import (
    DynamicSlice,
    DynamicTruncate,
    DynamicUpdateSlice,
    Extension,
    Gather,
    GatherDynamicSliceSizes,
    Scatter,
)
from tenferro_ref.program import GraphProgram
from tenferro_ref.tensor import Array

ENCLOSE.unsupported(
    "an index may be undecided", Gather, GatherDynamicSliceSizes, DynamicSlice, DynamicUpdateSlice, Scatter
)
ENCLOSE.unsupported("the extent of the result may be undecided", DynamicTruncate)
ENCLOSE.unsupported("results are judged by residuals, not by element", Extension)


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
        An op, or complex numbers, for which there is no rule.
    """
    types = program.slot_types
    values: dict[int, Enclosure] = {}
    with np.errstate(all="ignore"):
        for slot, array in zip(program.input_slots, inputs, strict=True):
            values[slot] = _known(model, array, "program input")
        for ins in program.instructions:
            op = ins.op
            rule = ENCLOSE[type(op)]
            operands = [values[s] for s in ins.input_slots]
            (slot,) = ins.output_slots
            dtype = types[slot].dtype
            if dtype.is_complex:
                raise UnsupportedOp(op=op.name, reason=f"enclosure: no rules for complex numbers ({dtype}) yet")
            result = rule(op, Context(model, program.policy, dtype), *operands)
            if model.flush and not operands and dtype.is_float:
                result = admit_flush(result)
            const = all(x.const for x in operands)
            repeated = result.repeated or (not const and all(x.const or x.repeated for x in operands))
            if result.const != const or result.repeated != repeated:
                result = replace(result, const=const, repeated=repeated)
            values[slot] = result
    return values if all_slots else [values[s].plain() for s in program.output_slots]


def _known(model: Model, array: Array, what: str) -> Enclosure:
    if np.iscomplexobj(array):
        raise UnsupportedOp(op=what, reason=f"enclosure: no rules for complex numbers ({array.dtype}) yet")
    known = point(array)
    return admit_flush(known) if model.flush and known.dtype.is_float else known


__all__ = ["ENCLOSE", "enclose"]
