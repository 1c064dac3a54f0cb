"""The segmentation rules of SEMANTICS 5, one by one."""

from __future__ import annotations

from dataclasses import replace

from tenferro_ref.dtype import DType
from tenferro_ref.ops import (
    Add,
    BroadcastInDim,
    Constant,
    DotGeneral,
    DynamicTruncate,
    Extension,
    Multiply,
    Negate,
    PadToMatch,
    ReduceSum,
    ShapeOf,
)
from tenferro_ref.program import ExecInstruction, ExecProgram, GraphBuilder, to_exec
from tenferro_ref.runtime import Segment, segment_exec_program


def exec_of(*outputs):
    return to_exec(outputs[0].builder.build(*outputs))


def kinds(program, **options):
    return [(s.kind, s.instructions) for s in segment_exec_program(program, **options)]


def test_a_run_of_backend_instructions_is_one_segment():
    b = GraphBuilder()
    x, y = b.input("F64", (3,)), b.input("F64", (3,))
    program = exec_of(b.apply(ReduceSum((0,)), -(x + y)))
    (segment,) = segment_exec_program(program)
    assert segment == Segment("fused", (0, 1, 2), (0, 1), (4,), (True, True))


def test_host_and_ffi_instructions_stand_alone():
    b = GraphBuilder()
    x = b.input("F64", (3, 3))
    n = b.apply(ShapeOf(0), x)
    t = b.apply(DynamicTruncate(0), x, n)
    p = b.apply(PadToMatch(0), t, x)
    d = b.apply(DotGeneral((1,), (0,), (), ()), -p, p)
    c = b.constant(1.0)
    program = exec_of(-(d + c))
    assert kinds(program) == [
        ("host", (0,)), ("host", (1,)), ("host", (2,)), ("fused", (3,)), ("ffi", (4,)), ("host", (5,)), ("fused", (6, 7, 8)),
    ]  # fmt: skip


def test_extension_is_an_ffi_segment_with_several_outputs():
    op = Extension("f.g.v1", "Pair")
    ins = ExecInstruction(op, (0,), (1, 2), (), (True,))
    program = ExecProgram((ins,), (0,), (), (2,), 3)
    assert segment_exec_program(program) == (Segment("ffi", (0,), (0,), (2,), (True,)),)


def test_inputs_are_in_first_seen_order_and_outputs_are_what_others_need():
    b = GraphBuilder()
    x, y, z = (b.input("F64", (3,)) for _ in range(3))
    s = z + x  # 3
    m = y * s  # 4
    k = -m  # 5: needed by the dot below
    d = b.apply(DotGeneral((0,), (0,), (), ()), k, z)
    program = exec_of(d, s)
    first, dot = segment_exec_program(program)
    assert first.inputs == (2, 0, 1)
    assert first.outputs == (3, 5)  # an output of the program, and one that is read later
    assert first.last_use == (False, True, True)
    assert (dot.kind, dot.inputs, dot.outputs, dot.last_use) == ("ffi", (5, 2), (6,), (True, True))


def outer():
    b = GraphBuilder()
    x, y = b.input("F64", (3,)), b.input("F64", (4,))
    bx, by = b.apply(BroadcastInDim((3, 4), (0,)), x), b.apply(BroadcastInDim((3, 4), (1,)), y)
    return b, bx, by


def test_triplet():
    b, bx, by = outer()
    m = b.apply(Multiply(), bx, by)
    assert kinds(exec_of(m)) == [("triplet", (0, 1, 2))]


def test_triplet_needs_the_operands_in_order():
    b, bx, by = outer()
    m = b.apply(Multiply(), by, bx)
    # but the second broadcast and the product are a pair
    assert kinds(exec_of(m)) == [("fused", (0,)), ("pair", (1, 2))]


def test_triplet_flushes_the_open_run():
    b = GraphBuilder()
    x, y = b.input("F64", (3,)), b.input("F64", (4,))
    n = -x
    m = b.apply(Multiply(), b.apply(BroadcastInDim((3, 4), (0,)), n), b.apply(BroadcastInDim((3, 4), (1,)), y))
    assert kinds(exec_of(m)) == [("fused", (0,)), ("triplet", (1, 2, 3))]


def test_newer_rule_declines_what_is_read_later():
    b, bx, by = outer()
    m = b.apply(Multiply(), bx, by)
    program = exec_of(-m)
    assert kinds(program) == [("fused", (0, 1, 2, 3))]
    assert kinds(program, decline_reused=False) == [("triplet", (0, 1, 2)), ("fused", (3,))]
    # the product is an output, but the first broadcast is read again: the triplet declines, the pair does not
    b, bx, by = outer()
    m = b.apply(Multiply(), bx, by)
    assert kinds(exec_of(m, -bx)) == [("fused", (0,)), ("pair", (1, 2)), ("fused", (3,))]
    # a broadcast that is a program output is not *read* later: the segment stands, its fast path declines
    b, bx, by = outer()
    m = b.apply(Multiply(), bx, by)
    (segment,) = segment_exec_program(exec_of(m, bx))
    assert (segment.kind, segment.outputs) == ("triplet", (2, 4))


def test_pair_reads_its_broadcast_on_either_or_both_sides():
    for left, right in ((0, 1), (1, 0), (1, 1)):
        b = GraphBuilder()
        x, y = b.input("F64", (3, 4)), b.input("F64", (3,))
        n = b.apply(Negate(), x)
        w = b.apply(BroadcastInDim((3, 4), (0,)), y)
        m = b.apply(Multiply(), *((n, w)[i] for i in (left, right)))
        assert kinds(exec_of(m, n)) == [("fused", (0,)), ("pair", (1, 2))]


def test_pair_declines_by_the_newer_rule():
    b = GraphBuilder()
    x, y = b.input("F64", (3, 4)), b.input("F64", (3,))
    m = b.apply(Multiply(), x, b.apply(BroadcastInDim((3, 4), (0,)), y))
    program = exec_of(b.apply(Add(), m, x))
    assert kinds(program) == [("fused", (0, 1, 2))]
    assert kinds(program, decline_reused=False) == [("pair", (0, 1)), ("fused", (2,))]


def test_no_pair_without_a_read_of_the_broadcast():
    b = GraphBuilder()
    x, y = b.input("F64", (3, 4)), b.input("F64", (3,))
    w = b.apply(BroadcastInDim((3, 4), (0,)), y)
    m = b.apply(Multiply(), x, x)
    assert kinds(exec_of(m, w)) == [("fused", (0, 1))]


def test_segment_last_use_follows_the_instructions_flags():
    b = GraphBuilder()
    x = b.input("F64", (3,))
    program = exec_of(-x, x * x)
    flagged = replace(program.instructions[0], last_use=(True,))
    (segment,) = segment_exec_program(replace(program, instructions=(flagged, program.instructions[1])))
    assert segment.last_use == (True,)


def test_empty_program_has_no_segments():
    b = GraphBuilder()
    x = b.input("F64", (3,))
    assert segment_exec_program(exec_of(x)) == ()
    assert Constant.of(1, DType.F64).category.name == "HOST"
