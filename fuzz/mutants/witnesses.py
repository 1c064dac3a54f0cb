"""Who can see a fault beside the executors: witnesses that only the hunt for mutants needs.

A judge that is broken shows when a planted error passes; the loader, when what it reads back computes something else; the
algebras, when they disagree with a few lines of NumPy (`tropical`); the executor's care of memory, by counting (`ownership`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np

from oracle.case import Case
from oracle.peers import Execution, NativeExecutor
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.errors import Internal, MissingDependency, TenferroError
from tenferro_ref.ops import (
    OPS,
    Add,
    BroadcastInDim,
    Category,
    DotGeneral,
    EmbedDiag,
    Multiply,
    Op,
    Pad,
    Policy,
    ReduceSum,
    TensorType,
    Tril,
    Triu,
    free_axes,
)
from tenferro_ref.program import ExecProgram, LoweringView
from tenferro_ref.runtime import GraphExecutor, SemiringBackend
from tenferro_ref.runtime.backend import NumpyBackend, NumpySession
from tenferro_ref.runtime.fusion import FusionPlan, evaluate_plan
from tenferro_ref.runtime.kernels import bind, indexing
from tenferro_ref.runtime.segment import Segment, segment_exec_program
from tenferro_ref.runtime.semiring import ALGEBRAS, SEMIRING, NumpyCore
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import Array, same_bits

# --- planted errors: a judge that accepts them is broken --------------------------------------------------------------


@dataclass(frozen=True)
class Planted(NativeExecutor):
    """Gives the native answer with one element made wrong beyond any rounding.

    Attributes
    ----------
    bits
        It is to be judged bit for bit.
    """

    name: str = "planted"
    bits: bool = False

    def run(self, case: Case) -> Execution:
        execution = NativeExecutor.run(self, case)
        digest = int(case.fingerprint[:12], 16)
        filled = [i for i, a in enumerate(execution.outputs) if a.size]
        if not filled:
            raise Internal(detail="no element to plant an error in")
        chosen = filled[digest % len(filled)]
        outputs = [a.copy("F") for a in execution.outputs]
        flat = outputs[chosen].reshape(-1, order="F")
        at = digest // 7 % flat.size
        flat[at] = wrong_value(flat[at], digest // 1009 % 6)
        outputs[chosen] = flat.reshape(outputs[chosen].shape, order="F")
        return dataclasses.replace(execution, outputs=tuple(outputs))

    def bit_exact(self, case: Case) -> bool:
        return self.bits


def wrong_value(value: Any, kind: int) -> Any:
    """Another value: a number elsewhere, its negative, NaN or infinity for a number, a number for NaN."""
    dtype = value.dtype.type
    if value.dtype.kind == "b":
        return not value
    if value.dtype.kind == "i":
        return dtype(0 if value == np.iinfo(dtype).max else value + 1)
    if value.dtype.kind == "c":
        return (
            complex(value.real, wrong_value(value.imag, kind))
            if kind % 2
            else complex(wrong_value(value.real, kind), value.imag)
        )
    if not np.isfinite(value):
        return dtype(1)
    with np.errstate(over="ignore"):
        near = dtype(value * dtype(1.01) + dtype(1))
    return (near, dtype(-value - dtype(0.5)), dtype(np.nan), dtype(np.inf), dtype(-np.inf), dtype(value - 1))[kind]


@dataclass(frozen=True)
class Planter(NativeExecutor):
    """Gives the native answers, but one too many, one too few, another shape or another dtype."""

    name: str = "planted-shape"
    bits: bool = False

    def run(self, case: Case) -> Execution:
        execution = NativeExecutor.run(self, case)
        first, *rest = execution.outputs
        wrong = (
            (*execution.outputs, first),
            tuple(rest),
            (first[np.newaxis], *rest),
            (np.zeros(first.shape, np.int32 if first.dtype != np.int32 else np.int64, order="F"), *rest),
        )
        return dataclasses.replace(execution, outputs=wrong[int(case.fingerprint[:12], 16) % len(wrong)])

    def bit_exact(self, case: Case) -> bool:
        return self.bits


# --- memory -----------------------------------------------------------------------------------------------------------


class _Session(NumpySession):
    __slots__ = ("reclaimed",)

    def __init__(self, reclaimed: list[int]) -> None:
        self.reclaimed = reclaimed

    def reclaim_buffer(self, array: Array) -> None:
        self.reclaimed.append(id(array))


class _Counting(NumpyBackend):
    """Keeps account of the buffers that the executor gives back."""

    def __init__(self) -> None:
        self.reclaimed: list[int] = []

    def with_backend_session(self) -> NumpySession:
        return _Session(self.reclaimed)

    def reclaim_buffer(self, array: Array) -> None:
        self.reclaimed.append(id(array))


def memory(case: Case) -> tuple[int, ...]:
    """What the executor does with memory, one instruction at a time and without poisoning: buffers that it gives back too
    few; outputs that share memory with an input or another output, or cannot be written to; inputs that it changed.
    """
    program = compile_std_to_exec(case.program)
    backend = _Counting()
    given = [a.copy("F") for a in case.inputs]
    outputs = GraphExecutor(backend, checking=False).eval_unsegmented(program, given)
    written = {slot for ins in program.instructions for slot in ins.output_slots}
    read = {slot for ins in program.instructions for slot in ins.input_slots}
    dead = (written & read) - set(program.output_slots)
    everything = [*given, *outputs]
    shared = sum(
        np.may_share_memory(a, b)
        for i, a in enumerate(everything)
        for b in everything[max(i + 1, len(given)) :]
        if a.size and b.size
    )
    changed = sum(not same_bits(a, b) for a, b in zip(given, case.inputs, strict=True))
    fixed = sum(not a.flags.writeable for a in outputs)
    return len(dead) - len(backend.reclaimed), shared, fixed, changed


def ownership(case: Case) -> str:
    """What is wrong in `memory`, "" for nothing."""
    try:
        kept, shared, fixed, changed = memory(case)
    except TenferroError as error:
        return f"{error.kind}: {error}"
    if kept or shared or fixed or changed:
        return f"{kept} buffers kept, {shared} shared, {fixed} read-only outputs, {changed} inputs changed"
    return ""


# --- segments ---------------------------------------------------------------------------------------------------------


def segments(case: Case) -> tuple[ExecProgram, tuple[Segment, ...]]:
    """The compiled program and how it falls into segments."""
    program = compile_std_to_exec(case.program, ())
    return program, segment_exec_program(program)


def segmentation(case: Case) -> str:
    """Where the segments are not those of SEMANTICS 5, "" for nowhere."""
    program, found = segments(case)
    instructions = program.instructions
    if [i for s in found for i in s.instructions] != list(range(len(instructions))):
        return "the segments are not the program in order"
    if any(a.kind == b.kind == "fused" for a, b in pairwise(found)):
        return "a run of backend instructions is in two segments"
    for segment in found:
        first, behind = segment.instructions[0], segment.instructions[-1] + 1
        inside = [instructions[i] for i in segment.instructions]
        alone = {Category.HOST: "host", Category.FFI: "ffi"}.get(inside[0].op.category)
        if (alone or segment.kind) != segment.kind or (alone and len(inside) > 1):
            return f"instruction {first} is in a {segment.kind} segment of {len(inside)}"
        starts = range(first, behind) if segment.kind == "fused" else [first]
        kinds = [_pattern(program, at) for at in starts]
        wanted = segment.kind if segment.kind in ("pair", "triplet") else ""
        if set(kinds) != {wanted}:
            return f"the pattern at instruction {first} is {kinds}, not {segment.kind}"
        made = [slot for ins in inside for slot in ins.output_slots]
        later = {*program.output_slots, *(slot for ins in instructions[behind:] for slot in ins.input_slots)}
        read = {slot: False for ins in inside for slot in ins.input_slots if slot not in made}
        for ins in inside:
            for slot, last in zip(ins.input_slots, ins.last_use, strict=True):
                if slot in read:
                    read[slot] |= last
        expected = (tuple(read), tuple(slot for slot in made if slot in later), tuple(read.values()))
        if (segment.inputs, segment.outputs, segment.last_use) != expected:
            return f"the segment at instruction {first} reads, gives and ends other slots than {expected}"
    return ""


def _pattern(program: ExecProgram, at: int) -> str:
    """The pattern that stands alone at an instruction: none of its results is read behind it."""
    for kind, ops in (
        ("triplet", (BroadcastInDim, BroadcastInDim, Multiply)),
        ("pair", (BroadcastInDim, Multiply)),
    ):
        window = program.instructions[at : at + len(ops)]
        if [type(ins.op) for ins in window] != list(ops):
            continue
        *spread, product = window
        results = tuple(ins.output_slots[0] for ins in spread)
        fits = product.input_slots == results if kind == "triplet" else results[0] in product.input_slots
        behind = {slot for ins in program.instructions[at + len(ops) :] for slot in ins.input_slots}
        if fits and behind.isdisjoint((*results, *product.output_slots)):
            return kind
    return ""


# --- what is for large tensors, on small ones ------------------------------------------------------------------------

#: Elements of a block of a fused run, and of a window of Scatter that is added by itself.
_FEW = 5


class _BlockSession(NumpySession):
    __slots__ = ()

    def execute_fused(
        self, plan: FusionPlan, policy: Policy, type_: TensorType, values: Mapping[int, Array]
    ) -> Mapping[int, Array]:
        return evaluate_plan(plan, policy, type_, values, block=_FEW)


class _BlockBackend(NumpyBackend):
    def with_backend_session(self) -> NumpySession:
        return _BlockSession()


@dataclass(frozen=True)
class Small(NativeExecutor):
    """The native executor with the ways that it has for large tensors taken by small ones."""

    name: str = "native-small"

    def run(self, case: Case) -> Execution:
        executor = GraphExecutor(_BlockBackend(), checking=True, fusion_threshold=0)
        with mock.patch.object(indexing, "_LARGE_WINDOW", _FEW):
            return Execution(tuple(executor.eval_exec_ir(compile_std_to_exec(case.program), case.inputs)))

    def bit_exact(self, case: Case) -> bool:
        return True


# --- the loader -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reloaded(NativeExecutor):
    """Emits the program, reads the module back, and runs what was read natively."""

    name: str = "reloaded"

    def run(self, case: Case) -> Execution:
        loaded = read_back(module_text(case))
        return NativeExecutor.run(self, Case.of(loaded.program, loaded.inputs(case.inputs)))

    def bit_exact(self, case: Case) -> bool:
        return False


def module_text(case: Case) -> str:
    """The program's module."""
    return lower_to_stablehlo(LoweringView.of(case.program, case.shapes))


def read_back(text: str) -> Any:
    """The module as `tenferro_ref.stablehlo.loader.Loaded`.

    Raises
    ------
    MissingDependency
        The extra `jax` is not installed.
    """
    from tenferro_ref.stablehlo.loader import load  # its parser is an extra

    return load(text)


@cache
def can_read_back() -> bool:
    """Whether the loader's parser is installed."""
    try:
        read_back("func.func @main() { return }")
    except MissingDependency:
        return False
    except TenferroError:
        pass
    return True


# --- algebras ---------------------------------------------------------------------------------------------------------

_TROPICAL = {
    "max-plus": (np.maximum, np.add, -np.inf),
    "min-plus": (np.minimum, np.add, np.inf),
    "max-times": (np.maximum, np.multiply, 0.0),
    "boolean": (np.logical_or, np.logical_and, False),
}


def semiring_ops() -> tuple[type[Op], ...]:
    """Generated ops that mean something in every algebra."""
    return tuple(op for op in OPS if op in SEMIRING)


def run_algebra(name: str, case: Case, *, fast: bool) -> tuple[Array, ...] | TenferroError:
    """The program over an algebra, by the fast path or the required one."""
    backend = SemiringBackend.of(name) if fast else SemiringBackend(NumpyCore(ALGEBRAS[name]))
    try:
        program = compile_std_to_exec(case.program)
        return tuple(GraphExecutor(backend, checking=True).eval_exec_ir(program, case.inputs))
    except TenferroError as error:
        return error


@dataclass(frozen=True)
class Standard(NativeExecutor):
    """The semiring engine over the standard algebra."""

    name: str = "semiring-standard"
    fast: bool = False

    def run(self, case: Case) -> Execution:
        result = run_algebra("standard", case, fast=self.fast)
        if isinstance(result, TenferroError):
            raise result
        return Execution(result)

    def bit_exact(self, case: Case) -> bool:
        return False


def tropical(case: Case) -> str:
    """How the engine of the algebras differs from their definitions, "" if it does not; the sign of zeros is open."""
    for name in algebras_of(case):
        with np.errstate(all="ignore"):
            expected = _definition(name, case)
        for fast in (True, False):
            path = f"{name}, {'fast' if fast else 'required'} path"
            outputs = run_algebra(name, case, fast=fast)
            if isinstance(outputs, TenferroError):
                return f"{path}: {outputs.kind}: {outputs}"
            for i, (a, b) in enumerate(zip(outputs, expected, strict=True)):
                if a.shape != b.shape or a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                    return f"{path}: output {i} is not what the definition gives"
    return ""


def algebras_of(case: Case) -> list[str]:
    """Algebras that all values of a program are elements of."""
    dtypes = {type_.dtype for type_ in case.program.slot_types.values()}
    return [name for name in _TROPICAL if dtypes <= ALGEBRAS[name].dtypes]


def _definition(name: str, case: Case) -> list[Array]:
    """The program's outputs, instruction by instruction from the definition of the algebra."""
    program = case.program
    values: dict[int, Array] = dict(zip(program.input_slots, case.inputs, strict=True))
    for ins in program.instructions:
        operands = [values[slot] for slot in ins.input_slots]
        values[ins.output_slots[0]] = _one(name, ins.op, program.policy, operands)
    return [values[slot] for slot in program.output_slots]


def _one(name: str, op: Op, policy: Policy, operands: Sequence[Array]) -> Array:
    plus, times, zero = _TROPICAL[name]
    if isinstance(op, Add | Multiply):
        return np.asarray((plus if isinstance(op, Add) else times)(*operands))
    if isinstance(op, ReduceSum):
        return _total(plus, operands[0], op.axes, zero)
    if isinstance(op, DotGeneral):
        x, y = operands
        left = free_axes(x.ndim, op.lhs_contracting_dims, op.lhs_batch_dims)
        right = free_axes(y.ndim, op.rhs_contracting_dims, op.rhs_batch_dims)
        x = x.transpose([*left, *op.lhs_batch_dims, *op.lhs_contracting_dims])
        y = y.transpose([*right, *op.rhs_batch_dims, *op.rhs_contracting_dims])
        n = len(op.lhs_contracting_dims)
        x = x.reshape([*x.shape[: len(left)], *(1,) * len(right), *x.shape[len(left) :]])
        y = y.reshape([*(1,) * len(left), *y.shape])
        product = times(x, y)
        return _total(plus, product, tuple(range(product.ndim - n, product.ndim)), zero)
    kernel = bind(op, policy)
    if isinstance(op, EmbedDiag | Tril | Triu | Pad):
        (x,) = operands
        kept = kernel(np.ones(x.shape, np.bool_, order="F"))
        return np.asarray(np.where(kept, kernel(x), x.dtype.type(zero)))
    return kernel(*operands)


def _total(plus: np.ufunc, x: Array, axes: tuple[int, ...], zero: float) -> Array:
    """The sum over axes; that of no element is zero, which is neutral only to elements that the algebra has."""
    if 0 in (x.shape[axis] for axis in axes):
        return np.full([e for axis, e in enumerate(x.shape) if axis not in axes], zero, x.dtype)
    return np.asarray(plus.reduce(x, axis=axes)) if axes else x


__all__ = [
    "Planted",
    "Planter",
    "Reloaded",
    "Small",
    "Standard",
    "algebras_of",
    "can_read_back",
    "memory",
    "module_text",
    "ownership",
    "read_back",
    "run_algebra",
    "segmentation",
    "segments",
    "semiring_ops",
    "tropical",
]
