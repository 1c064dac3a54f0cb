"""One op of the linalg family on a matrix that suits it, and an op that reads what it gives; the op once more with other settings.

Whether a matrix may be factored depends on its values: it is an input of a class that the op admits, or A A^H + I of a value
of the program. In hostile programs some are singular or hold a NaN, which the op may refuse. The motif `decomposed` makes a
few of these ops as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from fuzz.generate.choices import Weighted
from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.shapes import Shape, shape_of
from fuzz.generate.values import matrices as m
from fuzz.generate.values.recipes import Recipe
from tenferro_ref import ops
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.extensions import linalg
from tenferro_ref.program import Value

#: Classes of matrices that each op is drawn with; the ops that StableHLO has come first.
MATRICES: dict[str, tuple[str, ...]] = {
    "Cholesky": (*m.DEFINITE, *m.ONE_SIDED),
    "TriangularSolve": m.TRIANGULAR,
    "Qr": m.ANY,
    "Svd": m.ANY,
    "Eigh": (*m.ANY, *m.ONE_SIDED),
    "Lu": m.ANY,
    "Solve": (*m.REGULAR, *m.HERMITIAN),
    "SvdVals": m.ANY,
    "EighVals": (*m.ANY, *m.ONE_SIDED),
    "LuFactor": m.ANY,
    "LuSolvePrepared": (*m.REGULAR, *m.HERMITIAN),
    "FullPivLu": m.ANY,
    "FullPivLuSolve": (*m.REGULAR, *m.DEFINITE),
    "Eig": m.ANY,
    "EigVals": m.ANY,
    "SvdFull": m.ANY,
    "SignDetFromLuFactor": m.ANY,
    "LogAbsDetFromLuFactor": m.ANY,
    "RankRevealingQr": m.ANY,
    "HouseholderQrFactor": m.ANY,
    "HouseholderQrFromFactors": m.ANY,
    "HouseholderQrAppend": m.ANY,
    "HouseholderQrR": m.ANY,
    "HouseholderQrThinQ": m.ANY,
    "HouseholderQrQColumns": m.ANY,
}
_DETERMINANTS = ("SignDetFromLuFactor", "LogAbsDetFromLuFactor")
#: Ops that divide by pivots, and how many of their matrices there are for one of subnormal numbers.
_OF_SMALL, _ONE_IN = ("Lu", "LuFactor", "LuSolvePrepared", "Solve", "TriangularSolve"), 4
#: Ops for which a singular matrix is one like any other.
_OF_ANY_RANK = (
    *_DETERMINANTS,
    "Qr",
    "RankRevealingQr",
    "HouseholderQrR",
    "HouseholderQrThinQ",
    "HouseholderQrQColumns",
)
_FACTORED = ("HouseholderQrFactor", (0, 1))
_APPEND = "HouseholderQrAppend"
#: Ops that read what another op made of the matrix: which one, and which of its results; -1 is the matrix itself.
PREPARED: dict[str, tuple[str, tuple[int, ...]]] = {
    "LuSolvePrepared": ("LuFactor", (-1, 0, 1)),
    "SignDetFromLuFactor": ("LuFactor", (-1, 0, 2)),
    "LogAbsDetFromLuFactor": ("LuFactor", (-1, 0)),
    "HouseholderQrFromFactors": ("Qr", (0, 1)),
    _APPEND: _FACTORED,
    "HouseholderQrR": _FACTORED,
    "HouseholderQrThinQ": _FACTORED,
    "HouseholderQrQColumns": _FACTORED,
}
#: Ops that give one of the results of another alone.
_VALUES = {"Svd": "SvdVals", "Eigh": "EighVals", "Eig": "EigVals"}
_PORTABLE = tuple(MATRICES)[:2]
#: Ops with settings come more often, since each setting is more to see; so do these, which hardly any other op leads to.
_ALONE = ("HouseholderQrFromFactors", "RankRevealingQr", "FullPivLu", "Solve")
_NAMES: Weighted[str] = Weighted([(name, 4 + len(linalg.OPS[name].config) + 4 * (name in _ALONE)) for name in MATRICES])
_SIZES: Weighted[int] = Weighted([(3, 20), (2, 25), (1, 12), (4, 18), (5, 10), (7, 5), (8, 4), (6, 4), (0, 4)])
_BATCHES: Weighted[Shape] = Weighted([((), 54), ((2,), 20), ((1,), 5), ((3, 2), 12), ((0,), 3), ((5,), 6)])
#: What a rank is held to: of both thresholds the larger one counts, so that they are often of one size.
_THRESHOLDS = {"rtol": (0.375, 2.0**-10, 0.0), "atol": (0.75, 0.0)}
#: Exponents of two by which matrices are scaled for their determinants to leave the range, and the instructions that it takes.
_DETERMINANT, _SCALED = {DType.F32: 70.0, DType.F64: 520.0}, 4
#: A guess: inputs are at most about 10 in magnitude, and hardly any solution is much larger.
_PLAIN = Estimate(False, 5.0)


def factor(g: Growth) -> None:
    """Append an op of the family if the config has it and there is room; its operands before it, a reader behind it."""
    choices = g.choices
    admitted = [d for d in g.config.dtypes if d in INEXACT]
    if ops.Extension not in g.config.ops or not admitted or g.max_rank < 2:
        return
    name = choices.choose(_PORTABLE) if g.portable else _NAMES(choices)
    if name in PREPARED and g.room < 2:
        return
    dtype = choices.choose(admitted) if choices.chance(80) else g.dtype(admitted)
    beyond = choices.pick(3) if name in _DETERMINANTS else 0
    a = _matrix(g, name, dtype)
    if beyond and g.room >= _SCALED and g.has(ops.Multiply, ops.Constant):
        a = _scaled(g, a, 3 - 2 * beyond)
    op, operands, made = factored(g, name, a)
    changed = changed_settings(g, op, a)
    if g.room and changed != linalg.config_of(op):
        g.show(ops.Extension.of(linalg.FAMILY, name, changed), *operands)
    if name in _VALUES and g.room and choices.chance(60):
        g.show(ops.Extension.of(linalg.FAMILY, _VALUES[name], {}), *operands)
    if name in PREPARED and PREPARED[name][0] == "LuFactor":
        for other in _DETERMINANTS:
            if other != name and g.room:
                g.show(ops.Extension.of(linalg.FAMILY, other, {}), *_prepared(other, a, made))
    if PREPARED.get(name) == _FACTORED and name != _APPEND and g.room:
        rows, _, *batch = shape_of(a)
        columns = matrix_input(g, dtype, (rows, 1 + choices.pick(2), *batch), "integers")
        g.show(ops.Extension.of(linalg.FAMILY, _APPEND, {}), *operands[:2], columns)


def changed_settings(g: Growth, op: ops.Extension, a: Value) -> dict[str, Any]:
    """Another value of each setting that the same operands admit."""
    config = linalg.config_of(op)
    changed = {key: _otherwise(op.op, key, config) for key in config}
    if _kind(g, a) == m.UNREAD_DIAGONAL:
        changed["unit_diagonal"] = True
    return changed


def factored(g: Growth, name: str, a: Value) -> tuple[ops.Extension, list[Value], tuple[Value, ...]]:
    """Append that op of a matrix; its other operands before it, a reader behind it.

    Returns
    -------
    tuple
        The op, its operands, and what another op made of the matrix for it.
    """
    choices, dtype = g.choices, a.dtype
    shape, config = shape_of(a), _config(g, name)
    if name == "HouseholderQrQColumns":
        config["start"] = choices.pick(shape[0] + 1)
        config["end"] = config["start"] + choices.pick(shape[0] + 1 - config["start"])
    if config.get("unit_diagonal") and _kind(g, a) in m.TRIANGULAR and choices.chance(40):
        g.recipes[a.slot] = g.recipes[a.slot]._replace(kind=m.UNREAD_DIAGONAL)
    operands: list[Value] = [a]
    made: tuple[Value, ...] = ()
    if name in PREPARED:
        made = g.apply_many(ops.Extension.of(linalg.FAMILY, PREPARED[name][0], {}), a, estimate=_PLAIN)
        operands = _prepared(name, a, made)
    if len(linalg.OPS[name].operands) > len(operands):  # the last one is a right-hand side
        columns = 1 + choices.pick(3) if 3 * g.limit > 9 * _elements(shape) else 1
        sides = (shape[0], columns) if config.get("left_side", True) else (columns, shape[0])
        side = matrix_input(g, dtype, (*sides, *shape[2:]), "integers" if choices.chance(20) else "triangular")
        if _kind(g, a) in m.SMALL:  # for the solution to be of a usual size
            g.recipes[side.slot] = g.recipes[side.slot]._replace(kind="small triangular")
        operands.append(side)
    op = ops.Extension.of(linalg.FAMILY, name, config)
    if dtype.is_complex and config.get("gauge", "Raw") != "Raw":
        # a gauge is then a quotient, which XLA's fusions compute again for each reader of a factor: there must be none
        g.show(op, *operands)
    else:
        _read(g, g.apply_many(op, *operands, estimate=_PLAIN))
    return op, operands, made


def _kind(g: Growth, a: Value) -> str:
    """The class of a matrix that is an input, "" for another value."""
    return g.recipes[a.slot].kind if a.slot in g.recipes else ""


def _prepared(name: str, a: Value, made: tuple[Value, ...]) -> list[Value]:
    """The operands of an op that reads what another one made of the matrix."""
    return [a if place < 0 else made[place] for place in PREPARED[name][1]]


def _scaled(g: Growth, a: Value, sign: int) -> Value:
    """A matrix whose determinant is beyond the range of its dtype where it has two rows or more, in either direction."""
    exponent = _DETERMINANT[a.dtype.real]
    scale = g.apply(ops.Constant.of(2.0 ** (sign * exponent), a.dtype), estimate=Estimate(True, exponent))
    return g.apply(ops.Multiply(), a, scale, estimate=Estimate(False, exponent + 5.0))


def _config(g: Growth, name: str) -> dict[str, Any]:
    declared = linalg.OPS[name]
    config: dict[str, Any] = {
        key: g.choices.chance(50) for key, value in declared.config.items() if value is False or value is True
    }
    if "gauge" in declared.config:
        config["gauge"] = declared.gauge if g.choices.chance(40) else "Raw"
    config |= damped(g, name)
    if "rtol" in declared.config and g.choices.chance(50):
        config |= {key: g.choices.choose(values) for key, values in _THRESHOLDS.items()}
    return config


def damped(g: Growth, name: str) -> dict[str, float]:
    """How far tangents of vectors are kept small, which says nothing of values: as a rule not at all."""
    chosen = name in ("Eigh", "Svd") and g.choices.chance(35)
    return {"derivative_eps": g.choices.choose((0.5, 2.0))} if chosen else {}


def _otherwise(name: str, key: str, config: Mapping[str, Any]) -> Any:
    """Another value of a flag, a gauge or a threshold; the side stays, for which the right-hand side was made."""
    value, gauge = config[key], linalg.OPS[name].gauge
    if key == "gauge":
        return gauge if value == "Raw" else "Raw"
    if key in _THRESHOLDS:
        known = _THRESHOLDS[key]
        return known[(known.index(value) + 1) % len(known)]
    return not value if isinstance(value, bool) and key != "left_side" else value


def _elements(shape: Shape) -> int:
    """Elements of the largest result that an op may have for such a matrix."""
    largest = max(shape[:2]) ** 2
    for extent in shape[2:]:
        largest *= max(1, extent)
    return largest


def _matrix(g: Growth, op: str, dtype: DType) -> Value:
    choices, classes, square = g.choices, MATRICES[op], linalg.OPS[op].square
    has_gram = all(op in g.config.ops for op in (ops.DotGeneral, ops.Add, ops.Conj))
    if choices.chance(25) and g.room >= 6 and has_gram:
        return _definite(g, dtype)
    if classes is m.ANY and g.regime == "ordinary" and choices.chance(20):
        for value in reversed(g.pool):
            shape = shape_of(value)
            fits = value.dtype is dtype and len(shape) >= 2 and (shape[0] == shape[1] or not square)
            fits = fits and (len(shape) == 2 or linalg.OPS[op].batched)
            if fits and g.estimates[value.slot].size < 16 and max(shape[:2]) <= 16 and _elements(shape) <= g.limit:
                return value
    rows = _SIZES(choices)
    columns = _SIZES(choices) if not square and choices.chance(60) else rows
    batch = _BATCHES(choices)[: g.max_rank - 2] if linalg.OPS[op].batched else ()
    while _elements((rows, columns)) > g.limit:
        rows, columns = (rows + 1) // 2, (columns + 1) // 2
    batch = batch if _elements((rows, columns, *batch)) <= g.limit else ()
    hostile = g.regime == "hostile" and choices.chance(15)
    singular = choices.chance(50) if hostile else op in _OF_ANY_RANK and choices.chance(35)
    name = m.SINGULAR if singular else choices.choose(classes)
    overrides = ((choices.integer(2), 4),) if hostile and name != m.SINGULAR else ()
    value = matrix_input(g, dtype, (rows, columns, *batch), name, overrides)
    recipe = g.recipes[value.slot]
    if op in _OF_SMALL and recipe.seed % _ONE_IN == 0 and not overrides and name != m.SINGULAR:
        small = "small triangular" if op == "TriangularSolve" else "small regular"
        g.recipes[value.slot] = recipe._replace(kind=small)
    return value


def matrix_input(
    g: Growth, dtype: DType, shape: Shape, kind: str, overrides: tuple[tuple[int, int], ...] = ()
) -> Value:
    """A new input of that class of matrices."""
    value = g.fresh(dtype, shape, Recipe(kind, g.choices.integer(2), overrides=overrides))
    if not overrides:
        g.estimates[value.slot] = _PLAIN
    return value


def _definite(g: Growth, dtype: DType) -> Value:
    """A A^H + I."""
    n, k = 1 + g.choices.pick(4), 1 + g.choices.pick(4)
    small = [
        v for v in reversed(g.pool)
        if v.dtype is dtype and v.type.rank == 2 and 0 < max(shape_of(v)) <= 8 and g.estimates[v.slot].size <= 8
    ]  # fmt: skip
    a = small[0] if small and g.regime == "ordinary" else matrix_input(g, dtype, (n, k), "triangular")
    n = shape_of(a)[0]
    other = g.apply(ops.Conj(), a) if dtype.is_complex else a
    gram = g.apply(ops.DotGeneral((1,), (1,), (), ()), a, other)
    return g.apply(ops.Add(), gram, matrix_input(g, dtype, (n, n), "identity"), estimate=_PLAIN)


def _read(g: Growth, results: tuple[Value, ...]) -> None:
    """The product of two factors, or a sum, a square or a modulus of one of them; mostly."""
    choices = g.choices
    value = choices.choose(results)
    mode = choices.pick(5)
    pairs = [
        (a, b) for a, b in pairwise(results)
        if a.type.rank == b.type.rank == 2 and a.shape[1] == b.shape[0] and a.dtype is b.dtype
    ]  # fmt: skip
    if mode == 1 and pairs and g.has(ops.DotGeneral):
        g.apply(ops.DotGeneral((1,), (0,), (), ()), *pairs[-1])
    elif mode == 2 and value.type.rank and value.shape[0] != 0 and g.has(ops.ReduceSum):
        g.apply(ops.ReduceSum((0,)), value)
    elif mode == 3 and g.has(ops.Abs):
        g.apply(ops.Abs(), value)
    elif mode == 4 and g.has(ops.Multiply):
        g.apply(ops.Multiply(), value, value, estimate=Estimate(False, 10))
    g.wanted = None if mode else value  # what grows next reads it if it can
