"""The segmentation rules of SEMANTICS 5, one by one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import ExecProgram, GraphBuilder, Instruction
from tenferro_ref.runtime import Segment, segment_exec_program
from tests.build import exec_of


def kinds(program, **options):
    return [(s.kind, s.instructions) for s in segment_exec_program(program, **options)]


def test_extension_is_an_ffi_segment_with_several_outputs():
    op = ops.Extension("f.g.v1", "Pair")
    ins = Instruction(op, (0,), (1, 2), (), (True,))
    program = ExecProgram((ins,), (0,), (), (2,), 3, kind="exec")
    assert segment_exec_program(program) == (Segment("ffi", (0,), (0,), (2,), (True,)),)


def outer():
    b = GraphBuilder()
    x, y = b.input("F64", (3,)), b.input("F64", (4,))
    bx, by = b.apply(ops.BroadcastInDim((3, 4), (0,)), x), b.apply(ops.BroadcastInDim((3, 4), (1,)), y)
    return b, bx, by


def test_triplet():
    b, bx, by = outer()
    m = b.apply(ops.Multiply(), bx, by)
    assert kinds(exec_of(m)) == [("triplet", (0, 1, 2))]


def test_triplet_needs_the_operands_in_order():
    b, bx, by = outer()
    m = b.apply(ops.Multiply(), by, bx)
    # but the second broadcast and the product are a pair
    assert kinds(exec_of(m)) == [("fused", (0,)), ("pair", (1, 2))]


def test_newer_rule_declines_what_is_read_later():
    b, bx, by = outer()
    m = b.apply(ops.Multiply(), bx, by)
    program = exec_of(-m)
    assert kinds(program) == [("fused", (0, 1, 2, 3))]
    assert kinds(program, decline_reused=False) == [("triplet", (0, 1, 2)), ("fused", (3,))]
    # the product is an output, but the first broadcast is read again: the triplet declines, the pair does not
    b, bx, by = outer()
    m = b.apply(ops.Multiply(), bx, by)
    assert kinds(exec_of(m, -bx)) == [("fused", (0,)), ("pair", (1, 2)), ("fused", (3,))]
    # a broadcast that is a program output is not *read* later: the segment stands, its fast path declines
    b, bx, by = outer()
    m = b.apply(ops.Multiply(), bx, by)
    (segment,) = segment_exec_program(exec_of(m, bx))
    assert (segment.kind, segment.outputs) == ("triplet", (2, 4))


def test_pair_reads_its_broadcast_on_either_or_both_sides():
    for left, right in ((0, 1), (1, 0), (1, 1)):
        b = GraphBuilder()
        x, y = b.input("F64", (3, 4)), b.input("F64", (3,))
        n = b.apply(ops.Negate(), x)
        w = b.apply(ops.BroadcastInDim((3, 4), (0,)), y)
        m = b.apply(ops.Multiply(), *((n, w)[i] for i in (left, right)))
        assert kinds(exec_of(m, n)) == [("fused", (0,)), ("pair", (1, 2))]


def test_pair_declines_by_the_newer_rule():
    b = GraphBuilder()
    x, y = b.input("F64", (3, 4)), b.input("F64", (3,))
    m = b.apply(ops.Multiply(), x, b.apply(ops.BroadcastInDim((3, 4), (0,)), y))
    program = exec_of(b.apply(ops.Add(), m, x))
    assert kinds(program) == [("fused", (0, 1, 2))]
    assert kinds(program, decline_reused=False) == [("pair", (0, 1)), ("fused", (2,))]


def test_a_declined_triplet_joins_the_run_before_it():
    b = GraphBuilder()
    x, y = b.input("F64", (3,)), b.input("F64", (4,))
    n = -x
    m = b.apply(
        ops.Multiply(), b.apply(ops.BroadcastInDim((3, 4), (0,)), n), b.apply(ops.BroadcastInDim((3, 4), (1,)), y)
    )
    program = exec_of(b.apply(ops.DotGeneral((0,), (0,), (), ()), m, m))
    assert kinds(program) == [("fused", (0, 1, 2, 3)), ("ffi", (4,))]
    assert kinds(program, decline_reused=False) == [("fused", (0,)), ("triplet", (1, 2, 3)), ("ffi", (4,))]


@st.composite
def programs(draw):
    """Sequences rich in broadcasts and products of them, read again or not."""
    b = GraphBuilder()
    narrow, wide = [b.input("F64", (3,))], [b.input("F64", (3, 3))]
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["spread", "spread", "multiply", "multiply", "negate", "dot", "constant"]))
        pick = lambda values: values[draw(st.integers(max(0, len(values) - 3), len(values) - 1))]  # noqa: E731
        if kind == "spread":
            wide.append(b.apply(ops.BroadcastInDim((3, 3), (draw(st.integers(0, 1)),)), pick(narrow)))
        elif kind == "multiply":
            wide.append(b.apply(ops.Multiply(), pick(wide), pick(wide)))
        elif kind == "negate":
            wide.append(b.apply(ops.Negate(), pick(wide)))
        elif kind == "dot":
            narrow.append(b.apply(ops.DotGeneral((0,), (0,), (), ()), pick(wide), pick(narrow)))
        else:
            b.constant(1.0)
    return exec_of(wide[-1], *draw(st.lists(st.sampled_from(wide), max_size=2)))


@settings(max_examples=100, deadline=None)
@given(programs(), st.booleans())
def test_what_holds_of_any_segmentation(program, decline_reused):
    """Under either rule; that segments are those of the default rule is a law in tests/laws."""
    segments = segment_exec_program(program, decline_reused=decline_reused)
    instructions = program.instructions
    assert [i for s in segments for i in s.instructions] == list(range(len(instructions)))
    needed_after = set(program.output_slots)
    for segment in reversed(segments):
        inside = [instructions[i] for i in segment.instructions]
        produced = {slot for ins in inside for slot in ins.output_slots}
        read = [slot for ins in inside for slot in ins.input_slots]
        category = segment.kind if segment.kind in ("host", "ffi") else "backend"
        assert {ins.op.category.name.lower() for ins in inside} == {category}
        assert len(inside) == {"host": 1, "ffi": 1, "pair": 2, "triplet": 3}.get(segment.kind, len(inside))
        assert segment.inputs == tuple(dict.fromkeys(slot for slot in read if slot not in produced))
        assert set(segment.outputs) == produced & needed_after
        assert segment.last_use == tuple(slot not in needed_after for slot in segment.inputs)
        needed_after |= set(read)
    assert not any(a.kind == b.kind == "fused" for a, b in pairwise(segments))  # runs are maximal


def test_empty_program_has_no_segments():
    b = GraphBuilder()
    x = b.input("F64", (3,))
    assert segment_exec_program(exec_of(x)) == ()
    assert ops.Constant.of(1, DType.F64).category.name == "HOST"
