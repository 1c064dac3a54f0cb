"""What an executor has run before: its caches must not take one program, or one set of extents, for another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from oracle.peers.promises import Evaluate, check_refusals
from tenferro_ref.errors import Internal, TenferroError
from tenferro_ref.program import ExecProgram
from tenferro_ref.tensor import Array, same_bits


def warm_up(evaluate: Evaluate, program: ExecProgram, inputs: Sequence[Array], before_passes: ExecProgram) -> None:
    """Run something else on the executor that is to run `program` on `inputs` next; what that gives counts for nothing.

    A program with symbolic extents runs at others. Before any other program one runs that gives its inputs back, and has the same
    inputs, and then the program itself on other values. Last it is asked for inputs that do not fit it.

    Raises
    ------
    Internal
        A defect, which is none of the errors that other values or extents may raise, or what does not fit is not refused.
    """
    for other, arrays in _before(program, inputs):
        try:
            evaluate(other, arrays)
        except Internal:
            raise
        except TenferroError:
            continue
    check_refusals(evaluate, program, inputs, before_passes)


def _before(program: ExecProgram, inputs: Sequence[Array]) -> Iterator[tuple[ExecProgram, list[Array]]]:
    if not program.is_static:
        shapes = (
            [extent + (not isinstance(declared, int)) for declared, extent in zip(type_.shape, a.shape, strict=True)]
            for type_, a in zip(program.input_types, inputs, strict=True)
        )
        yield program, [np.resize(a, shape) for a, shape in zip(inputs, shapes, strict=True)]
        return
    yield replace(program, instructions=(), output_slots=program.input_slots), list(inputs)
    yield program, [_others(a) for a in inputs]


def _others(array: Array) -> Array:
    """Other values: those of the array backwards, or zeros."""
    backwards = np.flip(array)
    return np.zeros_like(array) if same_bits(backwards, array) else backwards
