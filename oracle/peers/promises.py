"""What the engine promises beside numbers (SEMANTICS 5): buffers, layouts, refusals, the same result twice.

A promise that is broken is an `Internal` error, which no case has due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from oracle.peers.layouts import data_of, memory_of
from tenferro_ref.dims import evaluate, expr_of, is_exact
from tenferro_ref.errors import (
    Internal,
    InvalidArgument,
    InvalidCompiledGraph,
    ShapeConstraintEvaluation,
    ShapeConstraintViolation,
    ShapeMismatch,
    TenferroError,
)
from tenferro_ref.extensions.family import family_of
from tenferro_ref.ops import Extension, TensorType
from tenferro_ref.program import ExecProgram
from tenferro_ref.program.guards import ShapeGuard
from tenferro_ref.tensor import Array, Tensor, same_bits, type_of

Inputs: TypeAlias = Sequence[Tensor | Array]
Evaluate: TypeAlias = Callable[[ExecProgram, Inputs], Sequence[Array]]
Refused: TypeAlias = type[TenferroError] | tuple[type[TenferroError], ...]

#: What broken guards raise.
_GUARD = (ShapeConstraintViolation, ShapeConstraintEvaluation)


def check_buffers(before: Sequence[bytes], taken: Inputs, given: Sequence[Array]) -> None:
    """Refuse what `eval_exec_ir` rules out of memory.

    Parameters
    ----------
    before
        What the memory of the inputs `taken` held.

    Raises
    ------
    Internal
        An input has changed; an output is in memory of an input or another output, cannot be written to, or is not column-major.
    """
    for number, (memory, array) in enumerate(zip(before, taken, strict=True)):
        if memory != memory_of(data_of(array)):
            raise Internal(detail=f"the native executor wrote into input {number}")
    for number, output in enumerate(given):
        others = (*map(data_of, taken), *given[:number])
        if any(np.may_share_memory(output, other) for other in others):
            raise Internal(
                detail=f"output {number} of the native executor shares memory with an input or another output"
            )
        if not (output.flags.f_contiguous and output.flags.writeable and output.flags.aligned):
            raise Internal(detail=f"output {number} of the native executor is no column-major array of its own")


def check_types(program: ExecProgram, taken: Inputs, given: Sequence[Array]) -> None:
    """Refuse outputs of other dtypes or shapes than the rules give for these inputs, and symbols that stand for other extents.

    Raises
    ------
    Internal
        An output has another type, or is no array: a result of rank 0 is one, too. Or what the rules make of symbols is,
        at the shapes of these inputs, not what they make of integers.
    """
    types = program.slot_types
    if not program.is_static:
        types = program.at([type_of(data_of(x)) for x in taken]).types
        _check_extents(program, types, [data_of(x).shape for x in taken])
    for number, (slot, output) in enumerate(zip(program.output_slots, given, strict=True)):
        due = types[slot]
        fits = type(output) is np.ndarray and type_of(output).dtype is due.dtype and output.ndim == due.rank
        if not fits or (due.is_static and output.shape != due.static_shape):
            raise Internal(detail=f"output {number} of the native executor is {output.dtype}{output.shape}, not {due}")


def _check_extents(program: ExecProgram, types: Mapping[int, TensorType], shapes: Sequence[Sequence[int]]) -> None:
    """Refuse an extent by symbols whose value at these shapes of the inputs is not the extent in `types`."""
    for ins in program.instructions:
        for slot, symbolic in zip(ins.output_slots, ins.types, strict=True):
            for extent, due in zip(symbolic.shape, types[slot].shape, strict=True):
                if is_exact(extent) and isinstance(due, int) and evaluate(expr_of(extent), shapes) != due:
                    detail = f"{ins.op.called} gives {types[slot]} for these inputs, where its rule says {symbolic} of symbols"
                    raise Internal(detail=detail)


def check_again(evaluate: Evaluate, program: ExecProgram, taken: Inputs, given: Sequence[Array]) -> None:
    """Run the program once more: what it gave must be as it was, and be given again.

    Raises
    ------
    Internal
        An output has changed, or has other bits.
    """
    first = [memory_of(output) for output in given]
    again = evaluate(program, taken)
    for number, (memory, output, other) in enumerate(zip(first, given, again, strict=True)):
        if memory != memory_of(output):
            raise Internal(detail=f"output {number} of the native executor changed when the program ran again")
        if not same_bits(output, other):
            raise Internal(detail=f"output {number} of the native executor has other bits the second time")


def check_refusals(
    evaluate: Evaluate, program: ExecProgram, inputs: Sequence[Array], before_passes: ExecProgram
) -> None:
    """Run the program on inputs that do not fit it, made of some that do; of others nothing is asked.

    Parameters
    ----------
    before_passes
        The same program as no pass has changed it: what it refuses must be refused, dead instructions included.

    Raises
    ------
    Internal
        They were not refused, or with another error than is documented.
    """
    try:
        program.check_inputs([type_of(a) for a in inputs])
    except TenferroError:
        return
    for what, wrong, due in _wrong_inputs(before_passes, inputs):
        try:
            evaluate(program, wrong)
        except due:
            continue
        except TenferroError as error:
            raise Internal(detail=f"the native executor refuses {what} with {error.kind}: {error}") from None
        raise Internal(detail=f"the native executor does not refuse {what}")


def _wrong_inputs(program: ExecProgram, inputs: Sequence[Array]) -> Iterator[tuple[str, list[Array], Refused]]:
    """Inputs with what is wrong with them, and the errors that are due."""
    if not inputs:
        return
    guarded = bool(program.shape_guards)
    yield "one input less", list(inputs[:-1]), InvalidCompiledGraph
    other = np.zeros(inputs[0].shape, np.float32 if inputs[0].dtype == np.float64 else np.float64)
    yield "an input of another dtype", [other, *inputs[1:]], (InvalidCompiledGraph, *(_GUARD if guarded else ()))
    declared = program.input_types[-1].shape
    if inputs[-1].ndim and isinstance(declared[-1], int):
        longer = np.zeros((*inputs[-1].shape[:-1], inputs[-1].shape[-1] + 1), inputs[-1].dtype)
        yield "an axis that is too long", [*inputs[:-1], longer], (ShapeMismatch, *(_GUARD if guarded else ()))
    if program.is_static:
        return
    larger = _larger(program, inputs)
    for guard in program.shape_guards:
        if (arrays := next((a for a in larger if _breaks(guard, a)), None)) is not None:
            yield f"extents of which {guard.lhs} is not {guard.rhs}", arrays, _GUARD
    for arrays in (a for a in larger if _contradicts(program, a)):
        yield f"shapes {', '.join(str(a.shape) for a in arrays)}, which an extension does not take", arrays, _GUARD


def _larger(program: ExecProgram, inputs: Sequence[Array]) -> list[list[Array]]:
    """For each symbol zeros of the shapes that the inputs have where it is larger by one."""
    symbols = {e for t in program.input_types for e in t.shape if not isinstance(e, int)}
    return [
        [
            np.zeros([n + (e == symbol) for e, n in zip(t.shape, a.shape, strict=True)], a.dtype)
            for t, a in zip(program.input_types, inputs, strict=True)
        ]
        for symbol in sorted(symbols, key=str)
    ]


def _breaks(guard: ShapeGuard, arrays: Sequence[Array]) -> bool:
    shapes = [a.shape for a in arrays]
    try:
        return evaluate(guard.lhs, shapes) != evaluate(guard.rhs, shapes)
    except InvalidArgument:
        return False


def _contradicts(program: ExecProgram, arrays: Sequence[Array]) -> bool:
    """Whether the first rule that does not hold of these shapes is one about exact extents that its family has guards for."""
    given = tuple(map(type_of, arrays))
    resolved = replace(program.to_graph(), input_types=given, symbols=()).at(given)
    if not isinstance(resolved.error, ShapeMismatch):
        return False
    instruction, types = program.instructions[resolved.count], program.slot_types
    if not isinstance(instruction.op, Extension) or family_of(instruction.op).require_equal is None:
        return False
    return all(is_exact(extent) for slot in instruction.input_slots for extent in types[slot].shape)
