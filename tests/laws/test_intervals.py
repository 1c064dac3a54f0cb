"""What operands may be gives what results may be, and of operations that are rounded once not more than that."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import IEEE, NUMPY, XLA, Enclosure, enclose
from oracle.enclosure.model import Model
from oracle.peers import Execution, NativeExecutor, attempt
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError, UnsupportedOp
from tenferro_ref.ops import ELEMENTWISE, STABLEHLO, CompareDir, Op, Policy
from tenferro_ref.program import Instruction, Value
from tenferro_ref.runtime.kernels import run_kernel
from tests.laws.answers import SLOW
from tests.laws.cases import SMALL, Array, apply, case_of, generated
from tests.laws.corners import corners
from tests.laws.freedoms import contraction, either

pytestmark = pytest.mark.once


#: Whose operands' values decide on each element alone.
POINTWISE = tuple(op for op in ELEMENTWISE if op is not ops.Conj)
#: Of these, rounded once and monotonic in each operand, so that the corners of intervals give the ends of the result.
MONOTONIC = (
    ops.Abs, ops.Add, ops.Clamp, ops.Maximum, ops.Minimum, ops.Multiply, ops.Negate, ops.Sign, ops.Sqrt, ops.Subtract,
)  # fmt: skip

Values = dict[int, Enclosure]


@cache
def enclosed(model: Model) -> list[tuple[Case, Values]]:
    """Real programs with the enclosures of all their slots."""
    real = replace(SMALL, dtypes=(DType.F32, DType.F64, DType.I32), max_instructions=12)
    found = []
    for case in (*generated(9, 48, real), *(c.case for c in corners())):
        large = sum(a.size for a in case.inputs) > SLOW
        if large or any(t.dtype.is_complex for t in case.program.slot_types.values()):
            continue
        if not isinstance(attempt(NativeExecutor(), case), Execution):
            continue
        try:
            found.append((case, enclose(case.program, case.inputs, model, all_slots=True)))
        except UnsupportedOp:
            continue
    assert len(found) > 80
    return found


def instructions(model: Model) -> list[tuple[Case, Instruction, list[Enclosure], Enclosure]]:
    return [
        (case, ins, [values[s] for s in ins.input_slots], values[ins.output_slots[0]])
        for case, values in enclosed(model)
        for ins in case.program.instructions
    ]


def samples(e: Enclosure) -> list[Array]:
    """Both ends and something finite between, with NaN where nothing else is possible, and NaN wherever it is possible."""
    ends = [np.where(e.empty, np.nan, a) if e.dtype.is_float else a for a in ((e.lo,) if e.is_point else (e.lo, e.hi))]
    if e.dtype.is_float:
        if len(ends) > 1 and not np.isfinite(ends).all():
            ends.append(np.clip(1.0, *ends))
        # a zero of a sign that is possible; another value where none is
        zero = np.where(e.pos_zero, 0.0, np.where(e.neg_zero, -0.0, np.where(e.hi > 0, e.hi, e.lo)))
        ends = [np.where(a == 0, zero, a) for a in ends]
        if np.any(e.nan & ~e.empty):
            ends.append(np.where(e.nan, np.nan, ends[0]))
    return [np.asfortranarray(a.astype(e.dtype.numpy)) if a.ndim else a.astype(e.dtype.numpy) for a in ends]


def check_corners(op: Op, policy: Policy, operands: Sequence[Enclosure], result: Enclosure, *, exact: bool) -> None:
    """Corners of the operands' intervals, and what is between: `exact` says that the model rounds each operation once."""
    try:
        # an operand that is read twice has one value
        picks = itertools.product(*(samples(e) for e in {id(e): e for e in operands}.values()))
        places = [list({id(e): e for e in operands}).index(id(e)) for e in operands]
        corner = [run_kernel(op, policy, *(pick[i] for i in places))[0] for pick in picks]
    except TenferroError:
        return
    assert all(np.all(result.contains(c)) for c in corner), "a value of the operands gives one that is left out"
    fixed = np.all([np.broadcast_to(np.where(e.nan, e.empty, e.lo == e.hi), result.shape) for e in operands], axis=0)
    ends = np.stack(corner).astype(np.float64 if result.dtype.is_float else np.int64)
    tight = (ends.min(axis=0) == result.lo) & (ends.max(axis=0) == result.hi)
    if not result.dtype.is_float:
        assert np.all(tight | ~fixed) or isinstance(op, ops.Pow), "known values give more than one"
        return
    if not (exact and isinstance(op, (*MONOTONIC, ops.Divide))):
        return
    some, none = np.isnan(ends).any(axis=0), np.isnan(ends).all(axis=0)
    known = fixed if isinstance(op, ops.Divide) else ~some & ~result.nan
    assert np.all(tight | ~known | some), "nothing gives an end of the result"
    assert not np.any(fixed & result.nan & ~some), "nothing gives NaN"
    assert not np.any(none & fixed & ~result.empty), "nothing gives a number"
    if isinstance(op, ops.Add | ops.Subtract | ops.Multiply | ops.Divide):
        other = np.where(np.signbit(ends).all(axis=0), result.pos_zero, result.neg_zero)
        assert not np.any(fixed & (ends == 0).all(axis=0) & other), "a zero may have the other sign"


@pytest.mark.parametrize("model", [NUMPY, XLA], ids=lambda m: m.name)
def test_values_of_operands_give_values_of_results(model: Model) -> None:
    for case, ins, operands, result in instructions(model):
        if isinstance(ins.op, POINTWISE):
            check_corners(ins.op, case.program.policy, operands, result, exact=model is NUMPY)


def test_a_sum_in_any_order_is_within_as_many_roundings_of_the_sum_of_magnitudes() -> None:
    """Under NUMPY, since XLA merges sums."""
    for _, ins, (x, *_), result in (i for i in instructions(NUMPY) if isinstance(i[1].op, ops.ReduceSum)):
        if not x.dtype.is_float or x.nan.any() or not (np.isfinite(x.lo).all() and np.isfinite(x.hi).all()):
            continue
        info, axes = x.dtype.finfo, ins.op.axes
        with np.errstate(over="ignore"):
            sizes = np.maximum(np.abs(x.lo), np.abs(x.hi)).sum(axis=axes)
        if np.any(sizes > float(info.max) / 2):  # may overflow on the way
            continue
        slack = 2 * math.prod(x.shape[a] for a in axes) * (float(info.eps) * sizes + float(info.tiny))
        low, high = x.lo.sum(axis=axes), x.hi.sum(axis=axes)
        assert not np.any((result.hi < low - slack) | (result.lo > high + slack) | result.nan), "the sum is left out"
        finite = np.isfinite(result.lo) & np.isfinite(result.hi)
        wide = (result.lo < low - slack) | (result.hi > high + slack)
        assert not np.any(finite & wide), "more than rounding can do"


def test_what_is_right_by_the_strict_model_is_right_by_all() -> None:
    wide = {case.fingerprint: values for case, values in enclosed(XLA)}
    for case, strict in enclosed(IEEE):
        for slot in case.program.output_slots:
            a, b = strict[slot], wide[case.fingerprint][slot]
            assert np.all(a.empty | ((b.lo <= a.lo) & (a.hi <= b.hi))), case.program
            assert np.all(b.nan | ~a.nan), case.program
            if a.dtype.is_float:
                assert np.all((b.pos_zero | ~a.pos_zero) & (b.neg_zero | ~a.neg_zero)), case.program


@pytest.mark.parametrize("model", [NUMPY, XLA], ids=lambda m: m.name)
def test_native_results_are_right(model: Model) -> None:
    for case, values in enclosed(model):
        for slot, array in zip(case.program.output_slots, NativeExecutor().run(case).outputs, strict=True):
            assert np.all(values[slot].contains(array)), case.program


def test_integers_of_which_one_is_unknown_may_wrap_to_anything() -> None:
    """One of two integers, and what many of them come to."""
    x, y = np.array([3, 5, -7], np.int32), np.array([2**30, -9, 1], np.int32)
    for many in (lambda a: apply(ops.ReduceProd((0,)), a), lambda a: contraction(a, a)):
        case = case_of(lambda a, b, many=many: many(either(a, b)), x, y, policy=STABLEHLO)
        (found,) = enclose(case.program, case.inputs, XLA)
        for picks in itertools.product(*zip(x, y, strict=True)):
            (given,) = (
                NativeExecutor().run(case_of(lambda a, many=many: many(a), np.array(picks), policy=STABLEHLO)).outputs
            )
            assert np.all(found.contains(given))


@pytest.mark.parametrize("model", [IEEE, NUMPY, XLA], ids=lambda m: m.name)
def test_a_value_equals_itself_and_its_square_is_not_negative(model: Model) -> None:
    """Though it may be of either sign, and though of two values with these bounds neither would hold."""

    def trace(x: Value) -> tuple[Value, ...]:
        wave = apply(ops.Sin(), apply(ops.Exp(), x))  # of an angle that nobody knows
        near, below = apply(ops.Exp(), x), -apply(ops.Exp(), x)
        compared = [apply(ops.Compare(way), v, v) for v in (near, wave) for way in CompareDir]
        return (below * below, wave, wave * wave, *compared)

    case = case_of(trace, np.log(np.array([2.0**40, 2.0**41], np.float32)))
    of_negative, wave, square, *compared = enclose(case.program, case.inputs, model)
    assert np.all(of_negative.lo > 0)
    assert np.all((wave.lo < 0) & (wave.hi > 0))
    assert np.all((square.lo == 0) & (square.hi == np.maximum(wave.lo**2, wave.hi**2)))
    # of a wave that is a subnormal one reading may be zero
    for way, result in zip([*CompareDir] * (1 if model.flush else 2), compared, strict=False):
        holds = way in (CompareDir.Eq, CompareDir.Le, CompareDir.Ge)
        assert np.all((result.lo == holds) & (result.hi == holds)), way
