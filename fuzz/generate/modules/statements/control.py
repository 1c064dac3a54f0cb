"""Control flow, calls of functions and of a body on scalars, random bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuzz.generate.modules.draft import INTS, NUMBERS, REAL, Draft, array, region
from fuzz.generate.modules.statements.reductions import neutral
from fuzz.generate.modules.statements.table import STATEMENTS
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import Shape, literal, type_text
from tenferro_ref.stablehlo.writer import SsaValue

_COUNTERS = (DType.I32, DType.I64, DType.F32, DType.U32, DType.U64, DType.I8, DType.U8, DType.I16)


@STATEMENTS.row("while")
def _(d: Draft) -> Sequence[SsaValue]:
    """A loop that counts up or down in any type, and changes an array in each turn; it may run no time."""
    x = d.operand(NUMBERS)
    y = d.like(x)
    count, turn = d.choices.choose(_COUNTERS), d.choices.choose(("add", "multiply", "subtract"))
    c, t, down = type_text(count, ()), x.type, d.choices.chance(30)
    start = d.choices.pick(9) - (0 if count.is_unsigned else d.choices.choose((0, 4, 8, 6)))
    step = 1 if down else 1 + d.choices.choose((0, 0, 1, 2, 6, 4, 3))
    limit = start + d.choices.choose((3, 2, 0, 5, -2, 1, -1, 4)) * (-1 if down else 1)
    limit = max(0, limit) if count.is_unsigned else limit
    move, test = ("subtract", "GT") if down else ("add", d.choices.choose(("LT", "LE")))
    first, by, end = (d.filled(n, count, ()) for n in (start, step, limit))
    kind = "FLOAT" if count.is_float else "UNSIGNED" if count.is_unsigned else "SIGNED"
    compared = f"%go = stablehlo.compare {test}, %i, {end.name}, {kind} : ({c}, {c}) -> tensor<i1>"
    condition = region([("%i", c), ("%x", t)], [compared], "%go", "tensor<i1>")
    lines = [f"%n = stablehlo.{move} %i, {by.name} : {c}", f"%y = stablehlo.{turn} %x, {y.name} : {t}"]
    body = region([("%i", c), ("%x", t)], lines, "%n, %y", f"{c}, {t}")
    return d.operation("while", [first, x], "", [(count, ()), (x.dtype, x.shape)], condition, body)


def _branches(d: Draft, x: SsaValue, y: SsaValue, count: int) -> list[str]:
    """Branches that each give something else of two values in scope."""
    first = d.choices.pick(4)
    return [_branch(x, y, first + number) for number in range(count)]


def _branch(x: SsaValue, y: SsaValue, number: int) -> str:
    op = ("add", "subtract", "multiply", "negate")[number % 4]
    operands = x.name if op == "negate" else f"{x.name}, {y.name}"
    return region([], [f"%r = stablehlo.{op} {operands} : {x.type}"], "%r", x.type)


@STATEMENTS.row("if")
def _(d: Draft) -> SsaValue:
    """Of a value that is in the module, or of an argument."""
    x = d.operand(NUMBERS)
    y = d.like(x)
    test = d.argument(np.array(d.choices.chance(50))) if d.choices.chance(75) else d.scalar(DType.Bool)
    return d.one("if", [test], x.dtype, x.shape, "", *_branches(d, x, y, 2))


@STATEMENTS.row("case")
def _(d: Draft) -> SsaValue:
    """The number of the branch may be none of theirs, which is the last one."""
    x = d.operand(NUMBERS)
    y, count = d.like(x), d.choices.choose((2, 3, 2, 4, 1))
    number = np.int32(d.choices.choose((-1, 0, -(2**31), count, -2, count - 1, -1, 2**31 - 1)))
    chosen = d.argument(np.array(number)) if d.choices.chance(75) else d.constant(number, DType.I32)
    return d.one("case", [chosen], x.dtype, x.shape, "", *_branches(d, x, y, count))


# --- control flow in control flow, and functions ----------------------------------------------------------------------


def _function(d: Draft, x: SsaValue, shape: Shape) -> str:
    """A function of two arrays of this shape and the dtype of `x`."""
    t, first, second = type_text(x.dtype, shape), *(d.choices.choose(("add", "subtract", "multiply")) for _ in range(2))
    lines = [f"%m = stablehlo.{first} %a, %b : {t}", f"%r = stablehlo.{second} %m, %a : {t}"]
    return d.function_of([("%a", t), ("%b", t)], lines, "%r", t)


def _call(d: Draft, x: SsaValue, y: SsaValue, name: str) -> SsaValue:
    return d.one("func.call", [x, y], x.dtype, x.shape, f"callee = {name}")


@STATEMENTS.row("func.call")
def _(d: Draft) -> SsaValue:
    """Of a function that is called once or twice, or by another function."""
    x = d.operand(NUMBERS)
    y, name, t = d.like(x), _function(d, x, x.shape), x.type
    if d.choices.chance(40):
        inner = f"%r = func.call {name}(%b, %a) : ({t}, {t}) -> {t}"
        name = d.function_of([("%a", t), ("%b", t)], [inner], "%r", t)
    once = _call(d, x, y, name)
    return _call(d, y, once, name) if d.choices.chance(60) else once


@STATEMENTS.row("func.call in a branch")
def _(d: Draft) -> SsaValue:
    x = d.operand(NUMBERS)
    y, name, t = d.like(x), _function(d, x, x.shape), x.type
    call = region([], [f"%r = func.call {name}({x.name}, {y.name}) : ({t}, {t}) -> {t}"], "%r", t)
    return d.one(
        "if", [d.argument(np.array(d.choices.chance(60)))], x.dtype, x.shape, "", call, _branch(x, y, d.choices.pick(4))
    )


@STATEMENTS.row("func.call in a body")
def _(d: Draft) -> Sequence[SsaValue]:
    """In the body of a reduction or the comparator of a sort: of a function that may call another one."""
    x = d.operand(INTS)
    t, reduces = type_text(x.dtype, ()), d.choices.chance(50)
    op, result = d.choices.choose(("xor", "maximum", "add", "minimum", "multiply")), t
    line = f"%r = stablehlo.{op} %a, %b : {t}"
    if not reduces:
        result, kind = "tensor<i1>", "UNSIGNED" if x.dtype.is_unsigned else "SIGNED"
        line = f"%r = stablehlo.compare {d.choices.choose(('LT', 'GT'))}, %a, %b, {kind} : ({t}, {t}) -> tensor<i1>"
    arguments = [("%a", t), ("%b", t)]
    name = d.function_of(arguments, [line], "%r", result)
    if d.choices.chance(40):
        name = d.function_of(arguments, [f"%r = func.call {name}(%a, %b) : ({t}, {t}) -> {result}"], "%r", result)
    called = region(arguments, [f"%r = func.call {name}(%a, %b) : ({t}, {t}) -> {result}"], "%r", result)
    if not reduces:
        attrs = f"dimension = {d.axis(x)} : i64, is_stable = true"
        return d.operation("sort", [x], attrs, [(x.dtype, x.shape)], called)
    axes = d.axes(x)
    shape = tuple(e for axis, e in enumerate(x.shape) if axis not in axes)
    first = d.filled(neutral(op, x.dtype), x.dtype, ())
    return d.operation("reduce", [x, first], f"dimensions = {array(axes)}", [(x.dtype, shape)], called)


@STATEMENTS.row("while in a branch")
def _(d: Draft) -> SsaValue:
    """A loop that only one of the branches has; how often it runs may be an argument."""
    x = d.operand(NUMBERS)
    y, t, c = d.like(x), x.type, type_text(DType.I32, ())
    limit = np.array(d.choices.choose((2, 1, 3, 0, -1)), np.int32)
    end, start, one = d.given(limit), d.filled(0, DType.I32, ()), d.filled(1, DType.I32, ())
    test = region(
        [("%i", c), ("%x", t)],
        [f"%go = stablehlo.compare LT, %i, {end.name}, SIGNED : ({c}, {c}) -> tensor<i1>"], "%go", "tensor<i1>",
    )  # fmt: skip
    op = d.choices.choose(("add", "subtract", "multiply"))
    lines = [f"%n = stablehlo.add %i, {one.name} : {c}", f"%y = stablehlo.{op} %x, {y.name} : {t}"]
    turn = region([("%i", c), ("%x", t)], lines, "%n, %y", f"{c}, {t}")
    loop = f'%l:2 = "stablehlo.while"({start.name}, {x.name}) ({{{test}}}, {{{turn}}}) : ({c}, {t}) -> ({c}, {t})'
    branches = [region([], [loop], "%l#1", t), _branch(x, y, d.choices.pick(4))]
    chosen = d.argument(np.array(d.choices.chance(75)))
    return d.one("if", [chosen], x.dtype, x.shape, "", *branches)


@STATEMENTS.row("if in a while")
def _(d: Draft) -> Sequence[SsaValue]:
    """A loop whose turns differ: those of an even number do something else."""
    x = d.operand(NUMBERS)
    y, t, c = d.like(x), x.type, type_text(DType.I32, ())
    end = d.given(np.array(1 + d.choices.pick(4), np.int32))
    start, one, two = (d.filled(n, DType.I32, ()) for n in (d.choices.pick(2), 1, 2))
    test = [f"%go = stablehlo.compare LT, %i, {end.name}, SIGNED : ({c}, {c}) -> tensor<i1>"]
    condition = region([("%i", c), ("%x", t)], test, "%go", "tensor<i1>")
    first, second = (d.choices.choose(("add", "subtract", "multiply")) for _ in range(2))
    branches = (
        region([], [f"%r = stablehlo.{op} {operands} : {t}"], "%r", t)
        for op, operands in ((first, f"%x, {y.name}"), (second, f"{y.name}, %x"))
    )
    lines = [
        f"%m = stablehlo.remainder %i, {two.name} : {c}",
        f"%e = stablehlo.compare EQ, %m, {start.name}, SIGNED : ({c}, {c}) -> tensor<i1>",
        f'%y = "stablehlo.if"(%e) ({", ".join(f"{{{b}}}" for b in branches)}) : (tensor<i1>) -> {t}',
        f"%n = stablehlo.add %i, {one.name} : {c}",
    ]
    turn = region([("%i", c), ("%x", t)], lines, "%n, %y", f"{c}, {t}")
    return d.operation("while", [start, x], "", [(DType.I32, ()), (x.dtype, x.shape)], condition, turn)


@STATEMENTS.row("chlo.scan")
def _(d: Draft) -> Sequence[SsaValue]:
    """Along an axis, forwards or backwards, with what came of it so far as what is carried.

    Of real numbers, and by itself: MLIR's own decomposition, which every complex operation of CHLO in a module asks for, ends the
    process now and then.
    """
    x = d.operand(REAL, lambda v: len(v.shape) > 1)
    axis, back = d.axis(x), d.choices.chance(50)
    shape = tuple(e for a, e in enumerate(x.shape) if a != axis)
    t, op = type_text(x.dtype, shape), d.choices.choose(("add", "subtract", "multiply"))
    lines = [f"%s = stablehlo.{op} %c, %a : {t}", f"%r = stablehlo.add %s, %a : {t}"]
    turn = region([("%a", t), ("%c", t)], lines, "%r, %s", f"{t}, {t}")
    attrs = (
        f"dimension = {axis} : i64, is_reverse = {str(back).lower()}, is_associative = false, "
        "operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>"
    )
    results = [(x.dtype, x.shape), (x.dtype, shape)]
    return d.operation("chlo.scan", [x, d.typed(x.dtype, shape)], attrs, results, turn)


# --- bodies on scalars, random bits -----------------------------------------------------------------------------------


@STATEMENTS.row("map")
def _(d: Draft) -> SsaValue:
    """With a body of one operation, or of several: constants, and what moves an element to where it is."""
    x = d.operand(NUMBERS)
    t, op = type_text(x.dtype, ()), d.choices.choose(("add", "multiply", "subtract"))
    lines = [f"%r = stablehlo.{op} %a, %b : {t}"]
    if d.choices.chance(50):
        number = literal(x.dtype.numpy.type(d.number(x.dtype)))
        lines = [
            f"%k = stablehlo.constant dense<{number}> : {t}",
            f"%m = stablehlo.reshape %a : ({t}) -> {t}",
            f"%n = stablehlo.{op} %m, %k : {t}",
            f"%r = stablehlo.add %n, %b : {t}",
        ]
    inner = region([("%a", t), ("%b", t)], lines, "%r", t)
    return d.one("map", [x, d.like(x)], x.dtype, x.shape, f"dimensions = {array(range(x.rank))}", inner)


@STATEMENTS.row("rng_bit_generator THREE_FRY")
def _(d: Draft) -> Sequence[SsaValue]:
    return _random_bits(d, "THREE_FRY")


@STATEMENTS.row("rng_bit_generator PHILOX")
def _(d: Draft) -> Sequence[SsaValue]:
    return _random_bits(d, "PHILOX")


def _random_bits(d: Draft, algorithm: str) -> Sequence[SsaValue]:
    """Of even and odd extents, whose last block is used in part; of a counter that wraps around within them."""
    state, dtype = d.fresh(DType.U64, (2,)), d.choices.choose((DType.U32, DType.U64, DType.U32))
    if d.choices.chance(33):
        state = d.given(np.array([d.choices.pick(9), 2**64 - 1 - d.choices.pick(3)], np.uint64))
    # a generator may halve an axis, the longest if none is even
    shapes: tuple[Shape, ...] = ((3, 5), (2, 3), (3, 5), (1, 7, 3), (3,), (1,), ())
    shape = d.choices.choose(shapes) if d.choices.chance(75) else d.shape()
    attrs = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    return d.operation("rng_bit_generator", [state], attrs, [(DType.U64, (2,)), (dtype, shape)])
