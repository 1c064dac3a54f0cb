"""Control flow, calls of a body on scalars, random bits."""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.generate.modules.draft import NUMBERS, Draft, array, region
from fuzz.generate.modules.statements.table import STATEMENTS
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import type_text
from tenferro_ref.stablehlo.writer import SsaValue

_COUNTERS = (DType.I32, DType.I64, DType.I32, DType.U32, DType.U64, DType.I8, DType.U8, DType.I16)


@STATEMENTS.row("while")
def _(d: Draft) -> Sequence[SsaValue]:
    """A loop that counts up or down in any type, and changes an array in each turn; it may run no time."""
    x = d.operand(NUMBERS)
    y = d.like(x)
    count, turn = d.choices.choose(_COUNTERS), d.choices.choose(("add", "multiply", "subtract"))
    c, t, down = type_text(count, ()), x.type, d.choices.chance(30)
    start, step = d.choices.pick(8), 1 if down else 1 + d.choices.choose((0, 0, 1, 2, 6))
    limit = max(0, start + d.choices.choose((3, 2, 0, 5, -2)) * (-1 if down else 1))
    move, test = ("subtract", "GT") if down else ("add", d.choices.choose(("LT", "LE")))
    first, by, end = (d.filled(n, count, ()) for n in (start, step, limit))
    kind = "UNSIGNED" if count.is_unsigned else "SIGNED"
    compared = f"%go = stablehlo.compare {test}, %i, {end.name}, {kind} : ({c}, {c}) -> tensor<i1>"
    condition = region([("%i", c), ("%x", t)], [compared], "%go", "tensor<i1>")
    lines = [f"%n = stablehlo.{move} %i, {by.name} : {c}", f"%y = stablehlo.{turn} %x, {y.name} : {t}"]
    body = region([("%i", c), ("%x", t)], lines, "%n, %y", f"{c}, {t}")
    return d.operation("while", [first, x], "", [(count, ()), (x.dtype, x.shape)], condition, body)


def _branch(d: Draft, x: SsaValue, y: SsaValue, number: int) -> str:
    """What one branch gives: of two values in scope something else each time."""
    op = ("add", "subtract", "multiply", "negate")[(number + d.choices.pick(4)) % 4]
    operands = x.name if op == "negate" else f"{x.name}, {y.name}"
    return region([], [f"%r = stablehlo.{op} {operands} : {x.type}"], "%r", x.type)


@STATEMENTS.row("if")
def _(d: Draft) -> SsaValue:
    x = d.operand(NUMBERS)
    y = d.like(x)
    return d.one("if", [d.scalar(DType.Bool)], x.dtype, x.shape, "", *(_branch(d, x, y, i) for i in range(2)))


@STATEMENTS.row("case")
def _(d: Draft) -> SsaValue:
    """The number of the branch may be none of theirs, which is the last one."""
    x = d.operand(NUMBERS)
    y, count = d.like(x), 1 + d.choices.pick(4)
    number = d.filled(d.choices.choose((0, 1, 2, -1, 7)), DType.I32, ())
    return d.one("case", [number], x.dtype, x.shape, "", *(_branch(d, x, y, i) for i in range(count)))


@STATEMENTS.row("map")
def _(d: Draft) -> SsaValue:
    x = d.operand(NUMBERS)
    t, op = type_text(x.dtype, ()), d.choices.choose(("add", "multiply", "subtract"))
    inner = region([("%a", t), ("%b", t)], [f"%r = stablehlo.{op} %a, %b : {t}"], "%r", t)
    return d.one("map", [x, d.like(x)], x.dtype, x.shape, f"dimensions = {array(range(x.rank))}", inner)


@STATEMENTS.row("rng_bit_generator")
def _(d: Draft) -> Sequence[SsaValue]:
    state, dtype = d.fresh(DType.U64, (2,)), d.choices.choose((DType.U32, DType.U64))
    algorithm = d.choices.choose(("THREE_FRY", "PHILOX"))
    attrs = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    return d.operation("rng_bit_generator", [state], attrs, [(DType.U64, (2,)), (dtype, d.shape())])
