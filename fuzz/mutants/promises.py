"""Parts held to what they promise, where no answer of an executor tells: passes, memory layout, comparison, enclosures.

Each function looks at one case and says what is broken, "" for nothing. Promises are written here a second time, as plainly
as possible and element by element, so that they share no code with what they are about.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fuzz.mutants.elements import SLOW, by_bits, by_element, distances, facts
from fuzz.mutants.witnesses import Planted, Planter
from oracle.case import Case
from oracle.compare import compare, compare_bits
from oracle.enclosure import IEEE, NUMPY, XLA, Enclosure, enclose
from oracle.judge import Reference
from oracle.peers import NativeExecutor, attempt
from tenferro_ref import ops
from tenferro_ref.compiler import PASSES, PassResult, compile_std_to_exec
from tenferro_ref.dims import equal_extents as same_extent
from tenferro_ref.errors import Internal, TenferroError, UnsupportedOp
from tenferro_ref.ops import Op, Policy, free_axes
from tenferro_ref.program import ExecProgram, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.runtime.kernels import run_kernel
from tenferro_ref.tensor import Array, Tensor, column_major

# --- passes -----------------------------------------------------------------------------------------------------------


def rewritten(case: Case) -> dict[str, PassResult]:
    """What every pass makes of the program."""
    program = to_exec(case.program)
    return {name: run(program) for name, run in PASSES.items()}


def passes(case: Case) -> str:
    """Every pass leaves a well-formed program of its form, in which it finds nothing more to do, and says what it did."""
    before = to_exec(case.program)
    for name, result in rewritten(case).items():
        result.program.verify()
        if bool(result.changes) != (result.program.instructions != before.instructions):
            return f"{name} reports {len(result.changes)} changes, which is not what it did"
        # of a product's two lists of contracting axes only one can be sorted
        if name != "DotDimensionSorter" and PASSES[name](result.program).changes:
            return f"{name} finds more to do in what it made"
        fault = _FORMS[name](result.program) if name in _FORMS else ""
        if fault:
            return f"{name}: {fault}"
    return ""


def _products(program: ExecProgram) -> Iterator[tuple[int, ops.DotGeneral, Sequence[int]]]:
    for ins in program.instructions:
        if isinstance(ins.op, ops.DotGeneral):
            yield ins.output_slots[0], ins.op, ins.input_slots


def _matrices(program: ExecProgram) -> str:
    """`[M, K, B...] x [K, N, B...]`, but for several pairs of extents that are not known to be equal."""
    for slot, op, slots in _products(program):
        lhs, rhs = (program.slot_types[s].shape for s in slots)
        pairs = list(zip(op.lhs_contracting_dims, op.rhs_contracting_dims, strict=True))
        known = all(same_extent(lhs[i], rhs[j]) is True for i, j in pairs)
        batch = len(op.lhs_batch_dims)
        m, n = len(lhs) - batch - len(pairs), len(rhs) - batch - len(pairs)
        wanted = ops.DotGeneral((m,), (0,), tuple(range(m + 1, len(lhs))), tuple(range(n + 1, len(rhs))))
        if pairs and (len(pairs) == 1 or known) and not (m <= 1 and n <= 1 and op == wanted):
            return f"the product in slot {slot} is not one of matrices: {op}"
    return ""


def _untransposed(program: ExecProgram) -> str:
    """No product reads a transpose that keeps the order of its free, contracting and batch axes."""
    transposes = {i.output_slots[0]: i.op.perm for i in program.instructions if isinstance(i.op, ops.Transpose)}
    for slot, op, slots in _products(program):
        for source, contracting, batch in (
            (slots[0], op.lhs_contracting_dims, op.lhs_batch_dims),
            (slots[1], op.rhs_contracting_dims, op.rhs_batch_dims),
        ):
            perm = transposes.get(source)
            if perm is None:
                continue
            groups = (contracting, batch, free_axes(len(perm), contracting, batch))
            if all([perm[a] for a in axes] == sorted(perm[a] for a in axes) for axes in groups):
                return f"the product in slot {slot} reads a transpose that folds"
    return ""


def _alive(program: ExecProgram) -> str:
    needed = set(program.output_slots)
    for ins in reversed(program.instructions):
        if needed.isdisjoint(ins.output_slots):
            return f"slot {ins.output_slots[0]} is of no use"
        needed.update(ins.input_slots)
    return ""


_FORMS: dict[str, Callable[[ExecProgram], str]] = {
    "DotDecomposer": _matrices,
    "TransposeFolding": _untransposed,
    "DeadCodeElimination": _alive,
}

# --- memory layout ----------------------------------------------------------------------------------------------------


def views(x: Array) -> Iterator[Tensor]:
    """The same tensor in other strides: row-major, reversed, every second element, transposed, unaligned."""
    yield Tensor(np.ascontiguousarray(x).reshape(x.shape))
    axes = range(x.ndim)
    yield Tensor(np.flip(x, tuple(axes)).copy()).reverse(axes)
    yield Tensor(np.ascontiguousarray(x.transpose()).reshape(x.shape[::-1])).transpose(tuple(reversed(axes)))
    wide = np.zeros([2 * e for e in x.shape], x.dtype)
    wide[(slice(None, None, 2),) * x.ndim] = x
    yield Tensor(wide)[(slice(None, None, 2),) * x.ndim]
    shifted = np.frombuffer(b"\0" + x.tobytes("F"), x.dtype, offset=1) if x.size else np.empty(0, x.dtype)
    yield Tensor(shifted.reshape(x.shape, order="F"))
    yield Tensor(x).broadcast_to(x.shape)


def _others(x: Tensor) -> Iterator[Tensor]:
    """Of another shape, of another dtype, and with another bit."""
    data = np.asfortranarray(x.data).reshape(x.shape)
    yield Tensor(data[np.newaxis])
    if data.itemsize % 4 == 0 and data.dtype.kind != "c":
        yield Tensor(data.view({"f": "i", "i": "f"}[data.dtype.kind] + str(data.itemsize)))
    if data.size:
        bits = np.frombuffer(data.tobytes("F"), np.uint8).copy()
        bits[0] ^= 1
        yield Tensor(bits.view(data.dtype).reshape(x.shape, order="F"))


def dense(case: Case) -> tuple[str, ...]:
    """Kernels whose result is not dense and column-major."""
    values = dict(zip(case.program.input_slots, case.inputs, strict=True))
    found = []
    for ins in case.program.instructions:
        if isinstance(ins.op, ops.Extension):
            break
        try:
            results = run_kernel(ins.op, case.program.policy, *(values[slot] for slot in ins.input_slots))
        except TenferroError:
            break
        for slot, array in zip(ins.output_slots, results, strict=True):
            if not array.flags.f_contiguous:
                found.append(ins.op.name)
            values[slot] = column_major(array)
    return tuple(found)


def strided(case: Case) -> tuple[str, ...]:
    """What is wrong with the outputs where inputs come in other strides."""
    program = compile_std_to_exec(case.program)
    plain = GraphExecutor().eval_exec_ir(program, case.inputs)
    found = []
    for number, inputs in enumerate(zip(*map(views, case.inputs), strict=True)):
        if not all(
            same(v.materialize(), x) and v.same_bits(Tensor(x)) for v, x in zip(inputs, case.inputs, strict=True)
        ):
            found.append(f"strides {number}: other inputs")
        if any(view.same_bits(other) for view in inputs for other in _others(view)):
            found.append(f"strides {number}: the same bits as another tensor")
        outputs = GraphExecutor().eval_exec_ir(program, inputs)
        if not all(map(same, plain, outputs)):
            found.append(f"strides {number}: other outputs")
        if not all(a.flags.f_contiguous for a in (*(v.materialize() for v in inputs), *outputs)):
            found.append(f"strides {number}: not column-major")
    return tuple(found)


def same(a: Array, b: Array) -> bool:
    """`same_bits` by other means."""
    return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes("C") == b.tobytes("C")


def layout(case: Case) -> str:
    """Kernels give dense column-major arrays, and strides of inputs do not show."""
    try:
        return ", ".join((*strided(case), *dense(case)))
    except TenferroError:
        return ""


# --- what executors remember ------------------------------------------------------------------------------------------


def again(case: Case) -> str:
    """A program with symbols gives the same on an executor that has run it on tensors of other extents before."""
    types = case.program.input_types
    if all(t.is_static for t in types):
        return ""
    program = compile_std_to_exec(case.program)
    fewer = [
        x[tuple(slice(None) if isinstance(extent, int) else slice(1) for extent in t.shape)]
        for x, t in zip(case.inputs, types, strict=True)
    ]
    for used in (GraphExecutor(), GraphExecutor(fusion_threshold=0)):
        before: Sequence[Array] = fewer
        now: Sequence[Array] = case.inputs
        for _ in range(2):  # then on what it gave, where that is something to run on
            try:
                used.eval_exec_ir(program, before)
                expected = GraphExecutor().eval_exec_ir(program, now)
            except TenferroError:
                break
            try:
                outputs = used.eval_exec_ir(program, now)
            except TenferroError as error:
                return f"run again: {error.kind}: {error}"
            if not all(map(same, outputs, expected)):
                return "run again: other outputs"
            before, now = now, outputs
    return ""


# --- comparison -------------------------------------------------------------------------------------------------------


def comparison(case: Case) -> str:
    """The counts of a comparison are what going through the elements one by one gives."""
    reference = Reference(case, NativeExecutor())
    if isinstance(reference.execution, TenferroError):
        return ""
    fault = distances()
    if fault:
        return fault
    native = reference.execution.outputs
    if sum(a.size for a in native) > SLOW:
        return ""
    answers = {"native": native}
    for executor in (Planted(), Planter()):
        try:
            answers[executor.name] = executor.run(case).outputs
        except Internal:  # no element
            continue
    try:
        models = list(_models(reference))
    except UnsupportedOp:  # factors are judged by residuals
        models = []
    for name, got in answers.items():
        for what, found, expected in (
            ("bits", facts(compare_bits(native, got)), by_bits(native, got)),
            *((m, facts(compare(e, s, got, native)), by_element(e, s, got, native)) for m, e, s in models),
        ):
            if found != expected:
                return f"{name} by {what}: (elements, decided, outside, forgiven, worst, output, index) {found}, not {expected}"
    return ""


def _models(reference: Reference) -> Iterator[tuple[str, list[Enclosure], list[Enclosure] | None]]:
    ieee = reference.enclosures(IEEE.name)
    yield IEEE.name, ieee, None
    yield XLA.name, reference.enclosures(XLA.name), ieee


# --- enclosures -------------------------------------------------------------------------------------------------------

#: Whose operands' values decide on each element alone.
_POINTWISE = (
    ops.Abs, ops.Add, ops.Clamp, ops.Compare, ops.Cos, ops.Divide, ops.Exp, ops.Expm1, ops.Log, ops.Log1p, ops.Maximum, ops.Minimum, ops.Multiply, ops.Negate, ops.Pow, ops.Rsqrt, ops.Select,
    ops.Sign, ops.Sin, ops.Sqrt, ops.Tanh,
)  # fmt: skip
#: Of these, rounded once and monotonic in each operand, so that the corners of intervals give the ends of the result.
_MONOTONIC = (ops.Abs, ops.Add, ops.Clamp, ops.Maximum, ops.Minimum, ops.Multiply, ops.Negate, ops.Sign, ops.Sqrt)


def enclosed(case: Case) -> str:
    """What operands may be gives what results may be, and of rounded operations not more than that."""
    if isinstance(attempt(NativeExecutor(), case), TenferroError) or sum(a.size for a in case.inputs) > SLOW:
        return ""
    if any(t.dtype.is_complex for t in case.program.slot_types.values()):
        return ""
    for model in (NUMPY, XLA):
        try:
            values = enclose(case.program, case.inputs, model, all_slots=True)
        except UnsupportedOp:
            return ""
        for ins in case.program.instructions:
            operands, result = [values[s] for s in ins.input_slots], values[ins.output_slots[0]]
            fault = ""
            if isinstance(ins.op, _POINTWISE):
                fault = _corners(ins.op, case.program.policy, operands, result, exact=model is NUMPY)
            elif isinstance(ins.op, ops.ReduceSum) and operands[0].dtype.is_float and model is NUMPY:  # XLA merges sums
                fault = _summed(ins.op, operands[0], result)
            if fault:
                return f"{ins.op.name} under {model.name}: {fault}"
    return ""


def _corners(op: Op, policy: Policy, operands: Sequence[Enclosure], result: Enclosure, *, exact: bool) -> str:
    sides = [samples(e) for e in operands]
    try:
        corners = [run_kernel(op, policy, *pick)[0] for pick in itertools.product(*sides)]
    except TenferroError:
        return ""
    if not all(np.all(result.contains(corner)) for corner in corners):
        return "a value of the operands gives one that is left out"
    fixed = np.all([np.broadcast_to((e.lo == e.hi) & ~e.nan, result.shape) for e in operands], axis=0)
    ends = np.stack(corners).astype(np.float64 if result.dtype.is_float else np.int64)
    tight = (ends.min(axis=0) == result.lo) & (ends.max(axis=0) == result.hi)
    if not result.dtype.is_float:
        return "" if np.all(tight | ~fixed) or isinstance(op, ops.Pow) else "known values give more than one"
    if not (exact and isinstance(op, (*_MONOTONIC, ops.Divide))):
        return ""
    some, none = np.isnan(ends).any(axis=0), np.isnan(ends).all(axis=0)
    known = fixed if isinstance(op, ops.Divide) else ~some & ~result.nan
    if not np.all(tight | ~known | some) or np.any(fixed & result.nan & ~some) or np.any(none & fixed & ~result.empty):
        return "nothing gives an end of the result"
    minus = np.signbit(ends).all(axis=0)
    if isinstance(op, ops.Add | ops.Multiply | ops.Divide) and np.any(
        fixed & (ends == 0).all(axis=0) & np.where(minus, result.pos_zero, result.neg_zero)
    ):
        return "a zero may have the other sign"
    return ""


def samples(e: Enclosure) -> list[Array]:
    """Both ends and something finite between, with NaN where nothing else is possible, and NaN wherever it is possible."""
    ends = [np.where(e.empty, np.nan, a) if e.dtype.is_float else a for a in ((e.lo,) if e.is_point else (e.lo, e.hi))]
    if e.dtype.is_float and len(ends) > 1 and not np.isfinite(ends).all():
        ends.append(np.clip(1.0, *ends))
    if e.dtype.is_float:
        ends = [_signed(e, a) for a in ends]
        if np.any(e.nan & ~e.empty):
            ends.append(np.where(e.nan, np.nan, ends[0]))
    return [np.asfortranarray(a.astype(e.dtype.numpy)) if a.ndim else a.astype(e.dtype.numpy) for a in ends]


def _signed(e: Enclosure, a: Array) -> Array:
    """A zero of a sign that is possible; another value where none is."""
    zero = np.where(e.pos_zero, 0.0, np.where(e.neg_zero, -0.0, np.where(e.hi > 0, e.hi, e.lo)))
    return np.where(a == 0, zero, a)


def _summed(op: ops.ReduceSum, x: Enclosure, result: Enclosure) -> str:
    """A sum in whatever order is within `count` roundings of the sum of magnitudes."""
    if x.nan.any() or not (np.isfinite(x.lo).all() and np.isfinite(x.hi).all()):
        return ""
    info = np.finfo(x.dtype.value)
    with np.errstate(over="ignore"):
        sizes = np.maximum(np.abs(x.lo), np.abs(x.hi)).sum(axis=op.axes)
    if np.any(sizes > float(info.max) / 2):  # may overflow on the way
        return ""
    count = math.prod(x.shape[a] for a in op.axes)
    slack = 2 * count * (float(info.eps) * sizes + float(info.tiny))
    low, high = x.lo.sum(axis=op.axes), x.hi.sum(axis=op.axes)
    if np.any(result.hi < low - slack) or np.any(result.lo > high + slack) or np.any(result.nan):
        return "the sum is left out"
    finite = np.isfinite(result.lo) & np.isfinite(result.hi)
    if np.any(finite & ((result.lo < low - slack) | (result.hi > high + slack))):
        return "more than rounding can do"
    return ""


__all__ = [
    "again",
    "comparison",
    "dense",
    "enclosed",
    "layout",
    "passes",
    "rewritten",
    "same",
    "samples",
    "strided",
    "views",
]
