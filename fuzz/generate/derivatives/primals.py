"""Programs to be differentiated, each grown around one op that has a derivative rule.

A short program: an op before that one now and then, and one after it, so that tangents come in and cotangents come back as those of
a program do. Values are those at which derivatives are known: ordinary ones, matrices that are far from singular, and for ops
with kinks small integers, among which there are zeros and ties.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from fuzz.generate.choices import Choices
from fuzz.generate.config import Config, admitted
from fuzz.generate.decode import GENE
from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.header import HEADER
from fuzz.generate.ops import STRATEGY, usable
from fuzz.generate.ops.extensions import contracted, transformed
from fuzz.generate.ops.linalg import changed_settings, damped, factored, matrix_input
from fuzz.generate.ops.structural import broadcast
from fuzz.generate.shapes import shape_of
from fuzz.generate.values import matrices as m
from fuzz.generate.values.recipes import Recipe, array_of
from oracle.case import Case
from oracle.derivation import replayed
from tenferro_ref import ops
from tenferro_ref.autodiff import JVP
from tenferro_ref.dtype import ANY, INEXACT, DType
from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.ops import DEFAULT_POLICY, STABLEHLO
from tenferro_ref.program import GraphBuilder, Value
from tenferro_ref.table import Key

#: Results that do not change with the operands, so that something must be there that does.
_FLAT = (ops.Sign, ops.Compare, ops.Remainder, ops.ShapeOf, ops.Constant)
#: Ops whose derivative has no values of its own at zeros and where operands are equal.
_KINKED = (
    ops.ReduceProd, ops.ReduceMax, ops.ReduceMin, ops.Maximum, ops.Minimum, ops.Abs, ops.Clamp, ops.Select, ops.Compare,
    ops.Sign,
)  # fmt: skip
#: What may come before an op; before one with kinks nothing that rounds, so that ties stay.
_BEFORE = (ops.Sin, ops.Multiply, ops.Transpose)
_MOVES = (ops.Negate, ops.Reshape, ops.Transpose)
_POSITIVE = (ops.Log, ops.Log1p, ops.Sqrt, ops.Rsqrt, ops.Pow)
#: Ops whose rules depend on extents that are symbols.
_EXTENTS = (ops.Scatter, ops.PadToMatch, ops.BroadcastInDim, ops.Reshape, ops.ReduceSum, ops.ReduceMax, ops.ExtractDiag)
#: Classes of matrices that have the factors of their neighbours, but for a little.
_MATRICES = {
    "Cholesky": ("definite", *m.ONE_SIDED),
    "TriangularSolve": ("triangular", "dominant"),
    "Eigh": ("indefinite", "definite", *m.ONE_SIDED),
    "EighVals": ("indefinite", "definite", *m.ONE_SIDED),
    "FullPivLu": ("regular",),
}
_REGULAR = ("regular", "triangular", "dominant")
#: Decompositions whose vectors have any phase.
_PHASED = ((linalg.FAMILY, "Eigh"), (linalg.FAMILY, "Svd"))
#: How often an op has its turn where that is not once: rules that are several, by shapes and attributes.
_OFTEN: dict[str, int] = {
    "Qr": 3, "Lu": 3, "TriangularSolve": 4, "Svd": 4, "LuSolvePrepared": 4, "FullPivLuSolve": 2, "FullPivLu": 3,
    "SignDetFromLuFactor": 2, "LogAbsDetFromLuFactor": 2, "Cholesky": 2, "Solve": 2, "irfft": 3, "rfft": 2, "einsum": 4,
    "Scatter": 4, "Gather": 3, "Pad": 3, "PadToMatch": 2, "BroadcastInDim": 3, "Transpose": 2, "DotGeneral": 8, "ReduceProd": 4, "Add": 2, "EighVals": 2, "Eigh": 2, "SvdVals": 2, "ReduceMax": 2, "Slice": 3, "ExtractDiag": 2, "EmbedDiag": 2, "Abs": 2, "Pow": 2,
    "Concatenate": 2, "Clamp": 2,
}  # fmt: skip
#: Axes that an operand should have for a rule to have something to do: of a contraction, several of each kind.
_AXES: dict[Any, int] = {
    ops.Transpose: 3,
    ops.BroadcastInDim: 3,
    ops.ExtractDiag: 3,
    ops.Reverse: 2,
    ops.ReduceProd: 2,
    ops.DotGeneral: 3,
    ops.DotGeneralWithConj: 3,
}
#: The largest tensor: rules are about places and axes, of which few show as much as many.
_ELEMENTS, _MATRIX = 32, 20
#: How often the op is in its program, each time with attributes of its own: a matrix is decomposed once.
_TIMES = 3
#: Instructions of a program at most, and the bytes of decisions beside those of header and genes.
_ROOM, _DECISIONS = 20, 24
#: Ops whose rules give each operand a part of the cotangent, which operands without a tangent must not disturb.
_PARTED = (ops.Concatenate, ops.DynamicUpdateSlice, ops.Scatter, ops.Select, ops.Clamp)
#: Room that the op takes, with what its operands need and its reader.
_LEEWAY = 6
#: Ops whose rules depend on what becomes of a start outside the bounds.
_BOUNDED = (ops.Gather, ops.GatherDynamicSliceSizes, ops.Scatter)
_KINDS = ("simple", "positive", "unit", "ordinary", "exact")


class Stream(Protocol):
    """A source of any number of bytes."""

    def digest(self, length: int, /) -> bytes: ...


class Entry(NamedTuple):
    """One turn of an op: which one of those that it has in a round."""

    key: Any
    place: int

    @property
    def name(self) -> str:
        return _name(self.key)

    def number(self, round_: int) -> int:
        """How many turns the op had before."""
        return round_ * _OFTEN.get(self.name, 1) + self.place


@lru_cache(64)
def entries(config: Config) -> tuple[Entry, ...]:
    """The turns of all ops, in an order that looks random and is the same everywhere."""
    drawn = [d for d in config.dtypes if d in INEXACT]
    known = [key for key in JVP if drawn and _usable(key, config) and _name(key) != "LuFactor"]  # read by others
    turns = [Entry(key, i) for key in known for i in range(_OFTEN.get(_name(key), 1))]
    return tuple(sorted(turns, key=lambda turn: hashlib.sha256(f"{turn.name} {turn.place}".encode()).digest()))


def _name(key: Key) -> str:
    return key[1] if isinstance(key, tuple) else key.__name__ if isinstance(key, type) else key


def _usable(key: Any, config: Config) -> bool:
    op = ops.Extension if isinstance(key, tuple) else key
    if not usable(op, config) or not _dtypes(key, config):
        return False
    if key is ops.DynamicTruncate and not usable(ops.DotGeneral, config):
        return False
    return not isinstance(key, tuple) or key[0] != linalg.FAMILY or config.max_rank > 1


def _dtypes(key: Any, config: Config) -> list[DType]:
    """The inexact dtypes of a config that the operands of an op may have."""
    drawn = [d for d in config.dtypes if d in INEXACT]
    if isinstance(key, tuple):
        known = fft.DTYPES.get(key[1], drawn) if key[0] == fft.FAMILY else drawn
        pairs = {d for d in drawn if d.is_float} & {d.real for d in drawn if d.is_complex}
        return [d for d in drawn if d in known and (key[0] != fft.FAMILY or d.real in pairs)]
    return [d for d in drawn if d in admitted(key, config.dtypes) or not key.same_dtype]


def primal(config: Config, entry: Entry, round_: int, stream: Stream) -> Case:
    """A program with the op of an entry. Turn by turn complex numbers, if it takes them, policies, symbols, and shapes of matrices."""
    data = stream.digest(HEADER + (1 + 2 * _TIMES) * GENE + _DECISIONS)
    genes = [Choices(data[HEADER + GENE * i :][:GENE]) for i in range(1 + 2 * _TIMES)]
    decisions, key, number = Choices(data[-_DECISIONS:]), entry.key, entry.number(round_)
    matrix = isinstance(key, tuple) and key[0] == linalg.FAMILY
    limit = _MATRIX if matrix else _ELEMENTS
    config = replace(
        config,
        regime="ordinary" if config.regime is None and not decisions.chance(10) else config.regime,
        usual_elements=min(limit, config.usual_elements),
        max_elements=min(limit, config.max_elements),
        usual_rank=min(3, config.usual_rank),
        policies=config.policies / 2,
        folded=0,
    )
    # each by the number of the turn, and all four combinations in four turns
    complex_, odd = (number + len(entry.name)) % 2, (number + number // 2) % 2
    known = _dtypes(key, config)
    spectra = [d for d in known if d.is_complex]
    dtype = decisions.choose(spectra if spectra and complex_ else [d for d in known if not d.is_complex] or spectra)
    policy = STABLEHLO if key in _BOUNDED and odd and config.policies else DEFAULT_POLICY
    g = Growth(config, data[:HEADER], _ROOM, policy)
    g.output_style = "leaves"
    if matrix:
        g.symbols = 0  # rules of factors cut them by their extents
    elif (
        key in _EXTENTS and odd != (key in _BOUNDED) and config.symbolic
    ):  # windows that are left out have known extents
        g.symbols = 1 + decisions.pick(255)
    whole = key is ops.Pow and dtype.is_float and decisions.chance(40)
    _grow(g, key, dtype, genes, decisions, number, whole)
    _set_values(g, key, number, whole)
    return _partly_still(g.case(), g.config, decisions, 60 if key in _PARTED else 20)


def _grow(
    g: Growth, key: Any, dtype: DType, genes: list[Choices], decisions: Choices, number: int, whole: bool
) -> None:
    """An op before, the op, and one that reads it; then the op on other operands, and its reader, once more.

    `whole` has powers with a constant whole exponent, which have a derivative at 0, too.
    """
    first, *others = genes
    g.choices = first
    if not isinstance(key, tuple) and key not in _FLAT and decisions.chance(35):
        positive = key in _POSITIVE and not whole
        before = ops.Exp if positive else decisions.choose(_MOVES if whole or key in _KINKED else _BEFORE)
        if usable(before, g.config):
            g.wanted_dtype = dtype
            _append(g, before)
            g.wanted = g.pool[-1]
    earlier: list[Value] = []
    for place in range(_TIMES if not isinstance(key, tuple) or key[0] != linalg.FAMILY else 1):
        if place:
            if g.room < _LEEWAY:
                break
            earlier += g.pool
            g.pool.clear()
        g.wanted_dtype, g.wanted_rank = dtype, min(_AXES.get(key, 1), g.max_rank)
        g.choices = others[2 * place]
        made = _raised(g, dtype) if whole else _grown(g, key, dtype, number)
        g.wanted, g.wanted_dtype, g.wanted_rank = None, None, 0
        g.choices = others[2 * place + 1]
        _read(g, key, dtype, made, decisions)
    g.pool[:0] = earlier


def _append(g: Growth, op: Any) -> Value:
    return STRATEGY[op](g, op)


def _grown(g: Growth, key: Any, dtype: DType, number: int) -> Value:
    if key is ops.DynamicTruncate:
        return _truncated(g)
    if key is ops.BroadcastInDim:
        return broadcast(g, g.operand(ANY, lambda v: v.type.rank <= g.max_rank), provably=g.symbols > 0)
    if not isinstance(key, tuple):
        return _append(g, key)
    family, name = key
    if family == linalg.FAMILY:
        a = _matrix(g, name, dtype, number)
        if key in _PHASED and dtype.is_complex:
            # with a gauge, or a reader that sees the phases of the vectors, the tangent is not determined
            config = {"gauge": "Raw", **damped(g, name)}
            return g.apply_many(ops.Extension.of(family, name, config), a, estimate=Estimate(False, 2))[-1]
        op, operands, _ = factored(g, name, a)
        made, config = g.pool[-1], linalg.config_of(op)
        # flags, which choose what the rule reads, the other way round; a gauge may leave the tangent undetermined
        flags = {key: value for key, value in changed_settings(g, op, a).items() if isinstance(value, bool)}
        if g.room and not flags.items() <= config.items():
            g.show(ops.Extension.of(family, name, config | flags), *operands)
        return made
    if family == einsum.FAMILY:
        return contracted(g)
    n, others = 4 + g.choices.pick(5), (2,) if g.max_rank > 1 and g.choices.chance(40) else ()
    g.wanted = g.fresh(dtype, (n, *others))  # short spectra have no frequencies but those that are real
    return transformed(g, name)


def _raised(g: Growth, dtype: DType) -> Value:
    """A power with a constant exponent of 1 to 4."""
    x = g.operand((dtype,))
    exponent = g.apply(ops.Constant.of(1 + g.choices.pick(4), dtype), estimate=Estimate(True, 2))
    return g.apply(ops.Pow(), x, exponent, estimate=Estimate(False, 4 * g.estimates[x.slot].size + 4))


def _matrix(g: Growth, name: str, dtype: DType, number: int) -> Value:
    """A matrix of a class that suits the op; turn by turn tall, wide and square."""
    choices = g.choices
    n, more = choices.choose((2, 3, 2, 1)), 1 + choices.pick(2)
    sides = ((n + more, n), (n, n + more), (n + 1, n + 1))[number % 3]
    if linalg.OPS[name].square:
        sides = (
            (n + choices.pick(2),) * 2 if name != "FullPivLu" else (4, 4)
        )  # whose exchanges are their inverse in small ones
    batch = (2,) if linalg.OPS[name].batched and choices.chance(20) and g.max_rank > 2 and max(sides) < 4 else ()
    kind = choices.choose(_MATRICES.get(name, _REGULAR))
    if not choices.chance(40) or not usable(ops.Transpose, g.config):
        return matrix_input(g, dtype, (*sides, *batch), kind)
    other = matrix_input(g, dtype, (*sides[::-1], *batch), kind if kind not in m.ONE_SIDED else "definite")
    return g.apply(ops.Transpose((1, 0, *range(2, 2 + len(batch)))), other, estimate=g.estimates[other.slot])


def _truncated(g: Growth) -> Value:
    """The product of a DynamicTruncate with itself: what is left has extents that are known before the program runs."""
    x = g.operand(INEXACT, lambda v: 1 <= v.type.rank <= 2)
    axis = g.choices.pick(x.type.rank)
    size = g.fresh(
        DType.F64 if DType.F64 in g.config.dtypes else x.dtype.real, (), Recipe("indices", g.choices.integer(2))
    )
    cut = g.apply(ops.DynamicTruncate(axis), x, size)
    return g.apply(ops.DotGeneral((axis,), (axis,), (), ()), cut, cut)


def _read(g: Growth, key: Any, dtype: DType, made: Value, decisions: Choices) -> None:
    """What reads the result: nothing, a product, or a sum of all elements, of products or squares, whose gradient is asked for."""
    if key in _PHASED and dtype.is_complex:
        made = _without_phases(g, key, made, decisions)
    if key in _FLAT and usable(ops.Convert, g.config):
        made = made if made.dtype in INEXACT else g.convert(made, dtype)
    # an output whose extents are computed has no cotangent; one of a plain sum is the same in all places
    modes = ("square", "square", "sum") if g.symbols else ("", "product", "product sum", "product sum", "square", "sum")
    mode = decisions.choose(modes)
    if made.dtype not in INEXACT:
        return
    if ("product" in mode or key in _FLAT) and usable(ops.Multiply, g.config):
        other = g.fresh(made.dtype, shape_of(made), Recipe("ordinary", g.choices.integer(2)))
        made = g.apply(ops.Multiply(), made, other, estimate=Estimate(False, 10))
    if mode == "square" and usable(ops.Multiply, g.config):
        made = g.apply(ops.Multiply(), made, made, estimate=Estimate(not made.dtype.is_complex, 10))
    if ("sum" in mode or mode == "square") and usable(ops.ReduceSum, g.config) and 0 not in shape_of(made):
        g.apply(ops.ReduceSum(tuple(range(made.ndim))), made)


def _without_phases(g: Growth, key: Any, made: Value, decisions: Choices) -> Value:
    """Append what gives the same for any phases of the vectors, U V^H or moduli: what nothing reads is an output."""
    made_here = [v for v in g.pool if v.dtype.is_complex and v.slot not in g.recipes]
    if key[1] == "Svd" and decisions.chance(60) and usable(ops.DotGeneral, g.config):
        u, vh = made_here[-2:]
        batch = tuple(range(2, u.type.rank))
        return g.apply(ops.DotGeneral((1,), (0,), batch, batch), u, vh, estimate=g.estimates[u.slot])
    for value in made_here if usable(ops.Abs, g.config) else ():
        made = g.apply(ops.Abs(), value)
    return made


def _set_values(g: Growth, key: Any, number: int, whole: bool) -> None:
    """Zeros and ties for an op that has kinks, in three turns of four; positive numbers where others have no derivative."""
    simple = whole or (key in _KINKED and number % 4 != 3)
    kind = "simple" if simple else "positive" if key in _POSITIVE else ""
    if not kind:
        return
    dtypes = {v.slot: v.dtype for v in g.pool}
    for slot, recipe in g.recipes.items():
        if recipe.kind in _KINDS and dtypes[slot] in INEXACT and (kind == "simple" or dtypes[slot].is_float):
            g.recipes[slot] = recipe._replace(kind=kind)


def _partly_still(case: Case, config: Config, decisions: Choices, percent: float) -> Case:
    """The case, or in so many of a hundred cases one of its inputs made of integers, so that an operand has no tangent."""
    program, integers = case.program, [d for d in (DType.I64, DType.I32) if d in config.dtypes]
    moving = [i for i, t in enumerate(program.input_types) if t.dtype in INEXACT and t.rank]
    if not (decisions.chance(percent) and len(moving) > 1 and integers and usable(ops.Convert, config)):
        return case
    number, dtype = decisions.choose(moving), integers[0]
    builder = GraphBuilder(program.name, program.policy, symbols=program.symbols)
    types = [t.with_dtype(dtype) if i == number else t for i, t in enumerate(program.input_types)]
    values = [builder.typed_input(t) for t in types]
    values[number] = values[number].astype(program.input_types[number].dtype)
    inputs = list(case.inputs)
    recipe = Recipe("small", decisions.integer(2))
    inputs[number] = array_of(recipe, dtype, inputs[number].shape)
    return Case.of(builder.build(*replayed(builder, program, values)), inputs)
