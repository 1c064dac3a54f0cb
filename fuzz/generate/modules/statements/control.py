"""Control flow, calls of a body on scalars, random bits."""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.generate.modules.draft import NUMBERS, Draft, array, region
from fuzz.generate.modules.statements.table import STATEMENTS
from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import type_text
from tenferro_ref.stablehlo.writer import SsaValue


@STATEMENTS.row("while")
def _(d: Draft) -> Sequence[SsaValue]:
    """A loop that counts, and changes an array in each turn; it may run no time."""
    x = d.operand(NUMBERS)
    y = d.like(x)
    turns, step = d.choices.pick(5), d.choices.choose(("add", "multiply", "subtract"))
    count = d.choices.choose((DType.I32, DType.I64))
    c, t = type_text(count, ()), x.type
    limit, one, start = (d.filled(n, count, ()) for n in (turns, 1, 0))
    test = f"%go = stablehlo.compare LT, %i, {limit.name}, SIGNED : ({c}, {c}) -> tensor<i1>"
    condition = region([("%i", c), ("%x", t)], [test], "%go", "tensor<i1>")
    lines = [f"%n = stablehlo.add %i, {one.name} : {c}", f"%y = stablehlo.{step} %x, {y.name} : {t}"]
    turn = region([("%i", c), ("%x", t)], lines, "%n, %y", f"{c}, {t}")
    return d.operation("while", [start, x], "", [(count, ()), (x.dtype, x.shape)], condition, turn)


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
