"""Programs for the tests of this folder: one with every op and every kind of attribute, and a strategy for random ones."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tenferro_ref import ops
from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.extensions import Family, register
from tenferro_ref.ops import ARITHMETIC, ELEMENTWISE, REDUCTIONS, CompareDir, Policy
from tenferro_ref.program import GraphBuilder, GraphProgram, Instruction, Value

#: An op family with two outputs: the operand, twice.
register(Family("tests.split.v1", ("Split",), lambda op, inputs: (inputs[0], inputs[0])))


def every_op() -> GraphProgram:
    """All ops in one static program."""
    b = GraphBuilder("every op")
    x, y = b.input("F64", (2, 3)), b.input("F64", (3, 2))
    starts = b.input("I64", (2,))
    indices = b.input("I32", (4, 1))
    z, n = b.input("C64", (2, 2)), b.input("I64", ())
    out: list[Value] = [b.apply(op(), x) for op in ELEMENTWISE if op.arity == 1]
    out += [b.apply(op(), x, x) for op in (*ARITHMETIC, ops.Maximum, ops.Minimum)]
    flags = [b.apply(ops.Compare(d), x, out[0]) for d in CompareDir]
    out += [*flags, b.apply(ops.Select(), flags[0], x, out[1]), b.apply(ops.Clamp(), x, out[0], out[2])]
    out += [
        b.apply(ops.Transpose((1, 0)), x),
        b.apply(ops.Reshape((6, 1)), x),
        b.apply(ops.BroadcastInDim((2, 4, 3), (0, 2)), x),
    ]
    out += [b.apply(ops.Convert(d), x) for d in ENGINE_DTYPES]
    out += [
        b.apply(ops.ExtractDiag(1, 0), x),
        b.apply(ops.EmbedDiag(0, 2), x),
        b.apply(ops.Tril(-1), x),
        b.apply(ops.Triu(2), x),
    ]
    out += [b.apply(op((1,)), x) for op in REDUCTIONS]
    out.append(b.apply(ops.Gather((1,), (0,), (0,), 1, (1, 3)), x, indices))
    out.append(b.apply(ops.GatherDynamicSliceSizes((1,), (0,), (0,), 1, (1, InputDim(0, 1))), x, indices))
    updates = b.input("F64", (4, 3))
    out.append(b.apply(ops.Scatter((1,), (0,), (0,), 1), x, indices, updates))
    out.append(b.apply(ops.Slice((0, 1), (2, 3), (1, 2)), x))
    out.append(b.apply(ops.DynamicSlice((1, 2)), x, starts))
    out.append(b.apply(ops.DynamicUpdateSlice(), x, b.apply(ops.Slice((0, 0), (1, 2), (1, 1)), x), starts))
    out.append(b.apply(ops.Pad((1, -1), (0, 2), (0, 1)), x))
    out.append(b.apply(ops.Concatenate(0), x, x, out[0]))
    out.append(b.apply(ops.Reverse((1, 0)), x))
    out.append(b.apply(ops.ShapeOf(1), x))
    out.append(b.apply(ops.DynamicTruncate(1), x, n))
    out.append(b.apply(ops.PadToMatch(0), x, y))
    out.append(b.apply(ops.DotGeneral((1,), (0,), (), ()), x, y))
    out.append(b.apply(ops.DotGeneral((), (), (0, 1), (0, 1)), z, z))
    out.append(b.apply(ops.DotGeneralWithConj((1,), (0,), (), (), lhs_conj=True), z, z))
    out += [b.apply(ops.Constant.of(1, d)) for d in ENGINE_DTYPES]
    out.append(b.apply(ops.Constant(DType.F32, bytes.fromhex("010080ff"))))
    out += b.apply_many(
        ops.Extension.of("tests.split.v1", "Split", {"a } : b": [1, 2.5, None], "é": {"deep": True}}), x
    )
    return b.build(*out)


def symbolic() -> GraphProgram:
    """Symbols, dim expressions of every kind, and extents that are only bounded."""
    b = GraphBuilder()
    x, y = b.input("F32", ("n", 4, "m")), b.input("F32", ("m", "n"))
    n = b.input("F64", ())
    d = InputDim
    merged = b.apply(ops.Reshape((DimOp("mul", d(0, 0), 4), d(0, 2))), x)
    b.apply(ops.Reshape((d(1, 0), 4, d(2, 0))), merged, x, y)
    b.apply(ops.BroadcastInDim((DimOp("add", d(1, 0), 2), d(0, 0), d(0, 1)), (1, 2)), y, x)
    scalar = b.constant(0.5, DType.F32)
    for kind in ("sub", "floordiv", "min", "max"):
        b.apply(
            ops.BroadcastInDim((DimOp(kind, DimOp("add", d(1, 0), 5), DimOp("max", d(2, 1), 2)),), ()), scalar, x, y
        )
    short = b.apply(ops.DynamicTruncate(0), y, n)
    joined = b.apply(ops.Concatenate(0), short, y)
    return b.build(joined, short, b.apply(ops.Exp(), short), y)


@st.composite
def programs(draw: st.DrawFn) -> GraphProgram:
    """Random graph programs: any slot numbering, slots to spare, dead code, repeated outputs, names, policies, symbols."""
    name = draw(st.text(max_size=8))
    flags = Policy(
        draw(st.sampled_from(("clamp", "skip"))),
        draw(st.sampled_from(("error", "stablehlo"))),
        draw(st.sampled_from(("error", "identity"))),
        draw(st.sampled_from(("engine", "stablehlo"))),
    )
    b = GraphBuilder(name, flags)
    extents = st.one_of(st.integers(1, 4), st.sampled_from(("n", "m")))
    pool = [
        b.input(draw(st.sampled_from((DType.F32, DType.F64, DType.C64))), draw(st.lists(extents, max_size=3)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    for _ in range(draw(st.integers(0, 8))):
        x = draw(st.sampled_from(pool))
        rank = x.type.rank
        axes = draw(st.permutations(range(rank)))
        some = tuple(axes[: draw(st.integers(0, rank))])
        alike = [y for y in pool if y.type == x.type]
        choices = [
            lambda x=x: b.apply(ops.Negate(), x),
            lambda x=x, a=alike: b.apply(ops.Add(), x, draw(st.sampled_from(a))),
            lambda x=x, a=axes: b.apply(ops.Transpose(tuple(a)), x),
            lambda x=x, a=some: b.apply(ops.ReduceSum(a), x),
            lambda x=x, a=some: b.apply(ops.Reverse(a), x),
            lambda x=x, r=rank: b.apply(ops.BroadcastInDim((2, *(InputDim(0, i) for i in range(r))), tuple(range(1, r + 1))), x),
            lambda x=x, r=rank: b.apply(ops.Reshape(tuple(InputDim(0, i) for i in range(r))), x),
            lambda x=x, a=alike, s=some: b.apply(ops.DotGeneral(s, s, (), ()), x, draw(st.sampled_from(a))),
            lambda: b.apply(ops.Constant.of(draw(st.floats(width=32)), DType.F32)),
            lambda x=x: b.apply(ops.Convert(draw(st.sampled_from((DType.F32, DType.F64)))), x),
            lambda x=x: b.apply(ops.Compare(CompareDir.Eq), x, x),
            lambda x=x, r=rank: b.apply(ops.Pad((1,) * r, (0,) * r, (2,) * r), x),
        ]  # fmt: skip
        value = draw(st.sampled_from(choices))()
        if value.dtype is not DType.Bool and value.type.rank < 6:
            pool.append(value)
    program = b.build(*draw(st.lists(st.sampled_from(pool), max_size=4)))
    return renumbered(program, draw(st.permutations(range(program.n_slots + 2))))


def renumbered(program: GraphProgram, number: list[int]) -> GraphProgram:
    """The same program with slot s called `number[s]`."""
    instructions = tuple(
        Instruction(i.op, tuple(number[s] for s in i.input_slots), tuple(number[s] for s in i.output_slots))
        for i in program.instructions
    )
    return replace(
        program,
        instructions=instructions,
        input_slots=tuple(number[s] for s in program.input_slots),
        output_slots=tuple(number[s] for s in program.output_slots),
        n_slots=len(number),
    )


def small(symbol: bool = True) -> GraphProgram:
    """A contraction, a transposition and a constant, of a symbolic extent."""
    b = GraphBuilder("small", Policy(dtypes="stablehlo"))
    x, y = b.input("F64", ("n" if symbol else 2, 3)), b.input("F64", (3, 2))
    return b.build(x @ y, b.apply(ops.Transpose((1, 0)), x), b.constant(1.0))
