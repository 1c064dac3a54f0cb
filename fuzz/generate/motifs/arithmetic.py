"""Motifs of arithmetic: constants, conversions and their ties, softmax."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import inf

import numpy as np

from fuzz.generate.config import FOREIGN_DTYPES, Regime, directions, may_have
from fuzz.generate.describe import has_path, maker, varying
from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.motifs.table import Found, motif
from fuzz.generate.shapes import Shape, shape_of
from fuzz.generate.values.recipes import Recipe
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES, INEXACT, DType
from tenferro_ref.ops import ARITHMETIC, DEFAULT_POLICY, ELEMENTWISE, INTEGER_FAULTS, STABLEHLO
from tenferro_ref.program import Instruction, Value

#: Numbers that compilers have rules for, or lose.
_CONSTANTS = (
    0.0, 1.0, -0.0, -1.0, 2.0, 0.5, 3.0, -2.0, 1e-40, np.inf, np.nan, 7.0, 0.1, 1e30, np.nan, -np.inf,
)  # fmt: skip
#: Functions of one number that round or branch.
_FUNCTIONS = (
    ops.Exp, ops.Expm1, ops.Log, ops.Log1p, ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Rsqrt, ops.Abs, ops.Sign,
)  # fmt: skip


def _real_float(g: Growth, rank: int = 0) -> Value:
    return g.operand([d for d in g.config.dtypes if d.is_float], lambda v: v.type.rank >= rank)


@motif(
    3,
    4,
    lambda case: any(has_path(case.program, ("Constant", op.__name__)) for op in ARITHMETIC),
    ops.Constant,
    *ARITHMETIC,
)
def with_constant(g: Growth) -> None:
    """x + 0, x * 0, x / c, ... with the constant on either side, and perhaps broadcast; perhaps a function of that."""
    x = g.operand([d for d in g.config.dtypes if d in INEXACT])
    number = g.choices.choose(_CONSTANTS)
    constant = g.apply(ops.Constant.of(number, x.dtype), estimate=Estimate(number > 0, 3))
    other = g.adapt(constant, shape_of(x)) if g.choices.chance(40) and g.has(ops.BroadcastInDim) else constant
    other = constant if other is None else other
    operands = (x, other) if not g.choices.chance(30) else (other, x)
    fitting = [op for op in ARITHMETIC if x.dtype in op.dtypes]
    y = g.apply(g.choices.choose(fitting)(), *operands, estimate=g.estimates[x.slot])
    exp = number != number and g.choices.chance(60)  # what a NaN makes NaN is fused with its exponential
    functions = [op for op in (_FUNCTIONS[:1] if exp else _FUNCTIONS) if op in g.config.ops and x.dtype in op.dtypes]
    if functions and g.choices.chance(50):
        g.show(g.choices.choose(functions)(), y)


#: Ops that take a real number of rank 0 beside complex ones.
_MIXING = (ops.Add, ops.Subtract, ops.Multiply, ops.Divide)


def _mixes(case: Case) -> bool:
    """Whether arithmetic has a real operand beside a complex one."""
    dtypes = {slot: type_.dtype for slot, type_ in case.program.slot_types.items()}
    return any(
        type(i.op) in _MIXING and dtypes[i.input_slots[0]] is not dtypes[i.input_slots[1]]
        for i in case.program.instructions
    )


@motif(2, 3, _mixes, *_MIXING)
def real_beside_complex(g: Growth) -> None:
    """A real number of rank 0 on either side of complex ones, which are of rank 0 as well or have a shape."""
    pairs = [d for d in g.dtypes_of(ops.Add) if d.is_complex and d.real in g.config.dtypes]
    if pairs:
        x = g.operand(pairs) if g.choices.chance(60) else g.fresh(g.choices.choose(pairs), ())
        scalar, op = g.rank_0(x.dtype.real), g.choices.choose(_MIXING)
        g.apply(op(), *((x, scalar) if g.choices.chance(60) else (scalar, x)))


def _has_computed_scalar(case: Case) -> bool:
    """Whether a function is asked of arithmetic between an array and a number of rank 0 that is computed itself."""
    program, types = case.program, case.program.slot_types

    def computed(slot: int, rank: bool) -> Instruction | None:
        made = maker(program, slot) if (types[slot].rank > 0) is rank else None
        return made if made and type(made.op) in _MIXING else None

    read = {ins.input_slots[0] for ins in program.instructions if type(ins.op) in _FUNCTIONS}
    met = [made for slot in read if (made := computed(slot, rank=True))]
    return any(computed(slot, rank=False) for made in met for slot in made.input_slots)


@motif(3, 3, _has_computed_scalar, *_MIXING, *_FUNCTIONS)
def computed_scalar(g: Growth) -> None:
    """f(s * t + x): a number of rank 0 that is computed beside the array that it meets, in one run of elementwise ops."""
    x = g.operand([d for d in g.config.dtypes if d in INEXACT], lambda v: v.type.rank > 0)
    if not shape_of(x):
        return
    number = g.apply(g.choices.choose(_MIXING)(), g.rank_0(x.dtype), g.rank_0(x.dtype))
    operands = (x, number) if g.choices.chance(50) else (number, x)
    y = g.apply(g.choices.choose(_MIXING)(), *operands, estimate=g.estimates[x.slot])
    g.apply(g.choices.choose([op for op in _FUNCTIONS if x.dtype in op.dtypes])(), y)


#: Two dtypes, and the third one to which the front end brings values of both.
_MEETING = (
    (DType.I32, DType.F32, DType.F64),
    (DType.I64, DType.F32, DType.F64),
    (DType.I32, DType.C32, DType.C64),
    (DType.I64, DType.C32, DType.C64),
    (DType.F64, DType.C32, DType.C64),
)


def _meets(case: Case) -> bool:
    """Whether arithmetic has operands that were converted from other dtypes each."""
    types = case.program.slot_types
    for ins in case.program.instructions:
        made = [maker(case.program, slot) for slot in ins.input_slots] if type(ins.op) in _MIXING else []
        before = [types[m.input_slots[0]].dtype for m in made if m and m.op.name == "Convert"]
        if any((*pair, types[ins.output_slots[0]].dtype) in _MEETING for pair in (before, before[::-1])):
            return True
    return False


@motif(3, 2, _meets, ops.Convert, *_MIXING)
def meeting(g: Growth) -> None:
    """Values of two dtypes, in a third one, as the front end writes what has operands of two dtypes."""
    known = [row for row in _MEETING if set(row) <= {*g.config.dtypes}]
    if known:
        one, other, both = g.choices.choose(known)
        x = g.operand([one, other])
        pair = g.convert(x, both), g.convert(g.typed(other if x.dtype is one else one, shape_of(x)), both)
        g.apply(g.choices.choose(_MIXING)(), *pair)


def _divides_integers(case: Case) -> bool:
    """Whether integers are divided or raised where a fault is an error."""
    types = case.program.slot_types
    return case.program.policy.integer_faults == "error" and any(
        type(i.op) in INTEGER_FAULTS and types[i.input_slots[0]].dtype.is_int for i in case.program.instructions
    )


#: Instructions that an op on a divisor or exponent within limits takes.
_SOUND = 4


@motif(_SOUND, 1, _divides_integers, ops.Maximum, ops.Minimum, ops.Constant, ops.BroadcastInDim, *INTEGER_FAULTS)
def sound_integers(g: Growth) -> None:
    """Integers by divisors that are not zero, or to exponents that are not negative, where anything else is an error."""
    integers = [d for d in g.config.dtypes if d.is_int]
    if g.policy.integer_faults != "error" or g.portable or not integers:
        return
    x = g.operand(integers)
    for place in g.choices.permutation(len(INTEGER_FAULTS)):
        if g.room >= _SOUND:
            _apply_soundly(g, (*INTEGER_FAULTS,)[place], x)


def _apply_soundly(g: Growth, op: type[ops.Op], x: Value) -> None:
    least = (ops.Maximum, 0) if op is ops.Pow else g.choices.choose(((ops.Maximum, 1), (ops.Minimum, -1)))
    limit = g.apply(ops.Constant.of(least[1], x.dtype))
    if x.type.rank:
        limit = g.apply(ops.BroadcastInDim(shape_of(x), ()), limit)
    g.apply(op(), x, g.apply(least[0](), g.typed(x.dtype, shape_of(x)), limit))


_FOLDABLE = (*ELEMENTWISE, ops.Convert)


def _is_folded(case: Case) -> bool:
    """Whether all operands of an elementwise op are constants."""
    slots = varying(case.program)
    return any(type(ins.op) in _FOLDABLE and slots.isdisjoint(ins.input_slots) for ins in case.program.instructions)


@motif(12, 3, _is_folded, ops.Constant, ops.BroadcastInDim, ops.Concatenate)
def folded(g: Growth) -> None:
    """An elementwise op on constants alone, special values among them, which compilers compute themselves."""
    known = [op for op in _FOLDABLE if op in g.config.ops and g.dtypes_of(op)]
    if not known:
        return
    op = g.choices.choose(known)
    dtype, shape = g.dtype(g.dtypes_of(op)), (2 + g.choices.pick(3),) if g.max_rank and g.choices.chance(60) else ()

    def fixed(dtype: DType, regime: Regime = "hostile") -> Value:
        return g.constant_array(dtype, shape, regime) if shape else g.constant(dtype, regime)

    def alike(dtype: DType) -> Value:
        return g.apply(ops.BroadcastInDim(shape, ()), g.constant(dtype, "hostile")) if shape else fixed(dtype)

    if op is ops.Convert:
        g.show(ops.Convert(g.choices.choose(g.config.dtypes)), fixed(dtype))
    elif op is ops.Compare:
        g.show(ops.Compare(g.choices.choose(directions(dtype, g.policy))), fixed(dtype), alike(dtype))
    elif op is ops.Select:
        g.show(op(), fixed(DType.Bool), alike(dtype), alike(dtype))
    else:
        g.show(op(), fixed(dtype), *(alike(dtype) for _ in range(op.arity - 1)))


def _is_log_of_zero(case: Case) -> bool:
    """Whether a complex function is asked of `x + -x`, which is zero for integers."""
    return has_path(case.program, ("Negate", "Add", "Convert", "Log"))


@motif(4, 1, _is_log_of_zero, ops.Negate, ops.Add, ops.Convert, ops.Log)
def log_of_zero(g: Growth) -> None:
    """The logarithm of a complex zero that nobody but the code generator knows to be one: x + -x of integers."""
    integers = [d for d in g.dtypes_of(ops.Negate) if d.is_int]
    targets = [d for d in g.dtypes_of(ops.Log) if d.is_complex and d in g.config.dtypes]
    if not integers or not targets:
        return
    x = g.operand(integers)
    zero = g.apply(ops.Add(), x, g.apply(ops.Negate(), x), estimate=Estimate(False, 0))
    g.apply(ops.Log(), g.convert(zero, g.choices.choose(targets)), estimate=Estimate(False, inf))


@motif(2, 2, "Convert > Convert")
def narrowed(g: Growth) -> None:
    """Converted and converted back: F64 to F32 rounds, I64 to I32 wraps, float to integer truncates."""
    x = g.operand(g.config.dtypes)
    g.convert(g.convert(x, g.choices.choose(g.config.dtypes)), x.dtype)


@motif(6, 2, "ReduceMax > BroadcastInDim > Negate > Add > Exp > ReduceSum")
def softmax(g: Growth) -> None:
    """exp(x - max x), normalised as far as there is room: what users write."""
    if not any(d.is_float for d in g.config.dtypes):
        return
    x = _real_float(g, 1)
    shape = shape_of(x)
    if not shape or 0 in shape:
        return
    axis = g.choices.pick(len(shape))
    kept: Shape = tuple(a for a in range(len(shape)) if a != axis)
    top = g.apply(ops.BroadcastInDim(shape, kept), g.apply(ops.ReduceMax((axis,)), x))
    e = g.apply(ops.Exp(), g.apply(ops.Add(), x, g.apply(ops.Negate(), top)), estimate=Estimate(True, 0))
    g.apply(ops.ReduceSum((axis,)), e, estimate=Estimate(True, 6))


@motif(
    4,
    1,
    "Constant > BroadcastInDim > Reshape > ReduceSum",
    ops.Constant,
    ops.BroadcastInDim,
    ops.Reshape,
    ops.ReduceSum,
    name="sum of negative zeros",
)
def sum_of_negative_zeros(g: Growth) -> None:
    """A sum begins with +0, of however many lines it is."""
    dtypes = [d for d in g.dtypes_of(ops.ReduceSum) if d.is_float and d in g.config.dtypes]
    if dtypes and g.max_rank:
        n, nothing = 1 + g.choices.pick(6), Estimate(False, 0)
        zero = g.apply(ops.Constant.of(-0.0, g.choices.choose(dtypes)), estimate=nothing)
        x = g.apply(ops.BroadcastInDim((n,), ()), zero, estimate=nothing)
        shape = g.choices.choose([s for s in ((n,), (1, n), (n, 1)) if len(s) <= g.max_rank])
        y = g.apply(ops.Reshape(shape), x, estimate=nothing)
        g.apply(ops.ReduceSum(tuple(range(len(shape)))), y, estimate=nothing)


_NEVER_NEGATIVE: tuple[type[ops.Op], ...] = (ops.Abs, ops.Exp, ops.Sqrt, ops.Multiply, ops.Maximum)


@motif(
    5,
    2,
    lambda case: any(has_path(case.program, (op.__name__, "Compare")) for op in _NEVER_NEGATIVE),
    *_NEVER_NEGATIVE,
    ops.Compare,
    ops.Constant,
    name="never negative",
)
def never_negative(g: Growth) -> None:
    """What is at least zero, compared with zero: true of every number, but not of NaN."""
    x = _real_float(g)
    op = g.choices.choose(_NEVER_NEGATIVE)
    zero = g.apply(ops.Constant.of(0.0, x.dtype), estimate=Estimate(False, 0))
    zeros = g.adapt(zero, shape_of(x)) if shape_of(x) and g.has(ops.BroadcastInDim) else zero
    if zeros is None or shape_of(zeros) != shape_of(x):
        return
    other = {ops.Multiply: (x,), ops.Maximum: (zeros,)}.get(op, ())
    y = g.apply(op(), x, *other, estimate=g.estimates[x.slot])
    test = g.choices.choose(
        ((ops.CompareDir.Ge, y, zeros), (ops.CompareDir.Lt, y, zeros), (ops.CompareDir.Le, zeros, y))
    )
    g.apply(ops.Compare(test[0]), *test[1:], estimate=Estimate(True, 1))


#: Integers that only StableHLO's policy has.
_FOREIGN_INTEGERS = tuple([d for d in FOREIGN_DTYPES if d.is_int])


def _saturates(case: Case) -> bool:
    """Whether finite numbers that are inputs are converted to an integer that cannot hold one of them."""
    inputs = dict(zip(case.program.input_slots, case.inputs, strict=True))
    for ins in case.program.instructions:
        if isinstance(ins.op, ops.Convert) and ins.op.to in _FOREIGN_INTEGERS and ins.input_slots[0] in inputs:
            x = inputs[ins.input_slots[0]]
            wide = x.astype(np.float64) if x.dtype.kind == "f" else np.zeros(0)
            least, most = ins.op.to.limits
            if np.any(np.isfinite(wide) & ((wide > most + 1.0) | (wide < least - 1.0))):
                return True
    return False


@motif(1, 1, _saturates, ops.Convert, policy=STABLEHLO)
def saturated(g: Growth) -> None:
    """Numbers of every size converted to an integer that has no room for most of them."""
    target = g.choices.choose(_FOREIGN_INTEGERS)
    if g.policy == STABLEHLO and may_have(g.config, target):
        sources = [d for d in g.config.dtypes if d.is_float]
        kind = g.choices.choose(("wide", "corners", "halves"))
        if sources:
            x = g.fresh(
                g.dtype(sources), g.fit((8 + g.choices.pick(60),)[: g.max_rank]), Recipe(kind, g.choices.integer(2))
            )
            g.convert(x, target)


@motif(3, 1, "Convert > Convert > Convert", policy=STABLEHLO)
def wrapped(g: Growth) -> None:
    """A float as a signed integer, that as an unsigned one, which wraps, and that as a float."""
    sources = [d for d in g.config.dtypes if d.is_float]
    signed, unsigned = g.choices.choose(((DType.I32, DType.U32), (DType.I64, DType.U64)))
    if g.policy == STABLEHLO and sources and all(may_have(g.config, d) for d in (signed, unsigned)):
        x = g.operand(sources)
        g.convert(g.convert(g.convert(x, signed), unsigned), g.choices.choose(sources))


@motif(6, 1, "Constant > BroadcastInDim > Compare > Select", ops.Convert)
def rectified(g: Growth) -> None:
    """Zero where a number is negative, and else that number as a wider one: both zeros are kept."""
    pairs = [(a, b) for a, b in ((DType.F32, DType.F64), (DType.F16, DType.F32)) if {a, b} <= {*g.config.dtypes}]
    if not pairs:
        return
    narrow, wide = g.choices.choose(pairs)
    both = g.choices.chance(40)
    x = g.fresh(narrow, g.shape(), Recipe("zeros", g.choices.integer(2))) if both else g.operand([narrow])
    zero = g.apply(ops.Constant.of(0.0, narrow), estimate=Estimate(False, 0))
    zeros = g.apply(ops.BroadcastInDim(shape_of(x), ()), zero)
    negative = g.apply(ops.Compare(g.choices.choose((ops.CompareDir.Lt, ops.CompareDir.Le))), x, zeros)
    g.apply(ops.Select(), negative, g.convert(zeros, wide), g.convert(x, wide), estimate=g.estimates[x.slot])


# --- ties of rounding -------------------------------------------------------------------------------------------------


def _ties(source: DType, target: DType) -> Found:
    """Finds a Convert of an input that has a number halfway between two of the target."""

    def found(case: Case) -> bool:
        types, inputs = case.program.slot_types, dict(zip(case.program.input_slots, case.inputs, strict=True))
        converted = [
            inputs[ins.input_slots[0]] for ins in case.program.instructions
            if isinstance(ins.op, ops.Convert) and ins.op.to is target and ins.input_slots[0] in inputs
            and types[ins.input_slots[0]].dtype is source
        ]  # fmt: skip
        return any(_halfway(x, target) for array in converted for x in array.ravel()[:500] if np.isfinite(x))

    return found


def _halfway(x: np.generic, target: DType) -> bool:
    number = Fraction(x.item())
    if target.is_int:
        return number.denominator == 2
    with np.errstate(over="ignore"):
        near = x.astype(target.numpy)
    step = np.spacing(np.abs(near)) if np.isfinite(near) else 0
    return step > 0 and 2 * abs(number - Fraction(float(near))) == Fraction(float(step))


def _rounded(g: Growth, source: DType, target: DType) -> None:
    """Numbers halfway between two of the target, or close to that, converted to it."""
    if may_have(g.config, target) and source in g.config.dtypes and (target in ENGINE_DTYPES or g.policy == STABLEHLO):
        kind = "halves" if target.is_int else "midpoints"
        g.convert(
            g.fresh(source, g.fit((8 + g.choices.pick(60),)[: g.max_rank]), Recipe(kind, g.choices.integer(2))), target
        )


for _source, _target in (
    (DType.I64, DType.F32), (DType.I64, DType.F64), (DType.I32, DType.F32), (DType.F64, DType.F32), (DType.F64, DType.I32),
    (DType.F64, DType.I64), (DType.F32, DType.I32), (DType.F32, DType.I64), (DType.F64, DType.F16), (DType.F64, DType.BF16),
    (DType.F32, DType.F16), (DType.F32, DType.BF16), (DType.I32, DType.BF16), (DType.I64, DType.BF16),
):  # fmt: skip
    motif(
        1, 1, _ties(_source, _target), ops.Convert, name=f"ties of {_source} to {_target}", group="ties",
        policy=DEFAULT_POLICY if _target in ENGINE_DTYPES else STABLEHLO,
    )(partial(_rounded, source=_source, target=_target))  # fmt: skip
