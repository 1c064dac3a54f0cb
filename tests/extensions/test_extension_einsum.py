"""The einsum family: native and lowered to standard ops, against an explicit loop and numpy.einsum; rules and errors."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_ref import ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dims import InputDim, UpperBound
from tenferro_ref.dtype import ENGINE_DTYPES, DType, promote
from tenferro_ref.errors import (
    FormatError,
    InvalidArgument,
    InvalidCompiledGraph,
    RankMismatch,
    ShapeConstraintEvaluation,
    ShapeConstraintViolation,
    ShapeMismatch,
    Unsupported,
    UnsupportedOp,
)
from tenferro_ref.extensions import einsum, standard_ops_of
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphBuilder, Program, dumps, loads, parse, print_program, to_exec
from tenferro_ref.program.guards import ShapeGuard
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import same_bits
from tests.build import integers, run, traced

EQUATIONS = [
    "ij,jk->ik", "abc,ba->c", "i->ii", "i->iii", "ij->iji", "ii->i", "ii->", "iii->i", "ijij->ji", "ij,ij->ij",
    "ij,ji->ij", "i,j->ij", "i,j->ji", "ij->", "ij,jk,kl,lm->mi", "iij,jk,kl->lil", "ijb,jkb->ikb", "bij,kjb->ikb",
    ",->", "->", ",i->i", "ij,ij->", "i,i,i->i", "ab,b,c->ca", "ij,kl->", "aab,bcc->cba", "ij,j->i", "zA,Aß->ßz",
]  # fmt: skip


def by_loop(equation, arrays):
    """Every product, one at a time, in the promoted dtype."""
    left, output = equation.split("->")
    inputs = left.split(",")
    sizes = {a: n for labels, x in zip(inputs, arrays, strict=True) for a, n in zip(labels, x.shape, strict=True)}
    dtype = promote(DType.of(x) for x in arrays).numpy
    result = np.zeros([sizes[a] for a in output], dtype)
    with np.errstate(over="ignore"):
        for index in product(*(range(n) for n in sizes.values())):
            at = dict(zip(sizes, index, strict=True))
            term = dtype.type(1)
            for labels, x in zip(inputs, arrays, strict=True):
                term = term * x[tuple(at[a] for a in labels)].astype(dtype)
            result[tuple(at[a] for a in output)] += term
    return result


def lowered(p):
    """The program of one einsum, from standard ops."""
    (ins,) = p.instructions
    b = GraphBuilder()
    q = b.build(*standard_ops_of(ins.op)(ins.op, *(b.input(t.dtype, t.shape) for t in p.input_types)))
    assert not any(isinstance(ins.op, ops.Extension) for ins in q.instructions)
    assert q.output_types == p.output_types
    return q


def check(equation, arrays):
    """Native and lowered give the loop's result; the arrays are small integers, so that sums are exact."""
    want = by_loop(equation, arrays)
    (native,) = run(lambda *v: einsum.einsum(equation, *v), *arrays)
    np.testing.assert_array_equal(native, want)
    assert native.dtype == want.dtype
    q = lowered(traced(lambda *v: einsum.einsum(equation, *v), *arrays))
    (standard,) = GraphExecutor(checking=True).eval_exec_ir(to_exec(q), arrays)
    np.testing.assert_array_equal(standard, want)
    assert standard.dtype == want.dtype
    return native


def operands(equation, sizes, dtypes):
    inputs = equation.split("->")[0].split(",")
    return [integers([sizes[a] for a in labels], i, dtypes[i % len(dtypes)]) for i, labels in enumerate(inputs)]


def test_the_engines_newer_id_is_the_same_family():
    newer = ops.Extension.of("tenferro.einsum.v1", "einsum", {"equation": "ij->ji"})
    assert newer == ops.Extension.of(einsum.FAMILY, "einsum", {"equation": "ij->ji"})
    assert newer.key in einsum.EINSUM.keys


@pytest.mark.parametrize("dtypes", [[DType.F64], [DType.I32], [DType.C32, DType.F32, DType.F64]])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_equations(equation, dtypes):
    labels = sorted({a for a in equation if a.isalpha()})
    check(equation, operands(equation, {a: 2 + i for i, a in enumerate(labels)}, dtypes))  # extents all different
    check(equation, operands(equation, dict.fromkeys(labels, 2), dtypes))  # and all equal


@st.composite
def contractions(draw):
    inputs = draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=4))
    labels = sorted(set("".join(inputs)))
    output = draw(st.text(labels, max_size=3)) if labels else ""
    sizes = {a: draw(st.sampled_from([2, 3, 1, 0])) for a in labels}
    dtypes = draw(st.lists(st.sampled_from(ENGINE_DTYPES), min_size=1, max_size=2))
    return f"{','.join(inputs)}->{output}", sizes, dtypes


@given(contractions())
@settings(max_examples=50, deadline=None)
def test_any_equation(case):
    equation, sizes, dtypes = case
    arrays = operands(equation, sizes, dtypes)
    if all(x.dtype == bool for x in arrays):
        return
    got = check(equation, arrays)
    output = equation.split("->")[1]
    if len(set(output)) == len(output) and all(x.dtype == got.dtype for x in arrays):
        np.testing.assert_array_equal(got, np.einsum(equation, *arrays))


@pytest.mark.parametrize("equation", ["iJiJ,Jik->k", "ijm,jimk->k", "ab,cab,dcb->d"])
def test_other_names_of_labels_give_the_same_bits(equation):
    rng = np.random.default_rng(7)
    labels = sorted({a for a in equation if a.isalpha()})
    shapes = [[2 + ord(a) % 3 for a in part] for part in equation.split("->")[0].split(",")]
    arrays = [(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64) for shape in shapes]
    (want,) = run(lambda *v: einsum.einsum(equation, *v), *arrays)
    for names in permutations("aBxYß"[: len(labels)]):
        renamed = equation.translate(str.maketrans(dict(zip(labels, names, strict=True))))
        (got,) = run(lambda *v, text=renamed: einsum.einsum(text, *v), *arrays)
        assert same_bits(got, want), renamed


@given(st.integers(3, 7), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_chains_keep_their_value_whatever_the_path(n, seed):
    rng = np.random.default_rng(seed)
    extents = rng.integers(1, 5, n + 1)
    letters = "abcdefgh"
    equation = ",".join(letters[i : i + 2] for i in range(n)) + "->" + letters[0] + letters[n]
    arrays = [integers(extents[i : i + 2], i) for i in range(n)]
    (got,) = run(lambda *v: einsum.einsum(equation, *v), *arrays)
    np.testing.assert_array_equal(got, np.linalg.multi_dot(arrays))


def test_integers_wrap():
    big = np.array([2**31 - 1, 2], np.int32)
    check("i,i->i", [big, big])
    (total,) = run(lambda x: einsum.einsum("i->", x), np.array([2**31 - 1, 1], np.int32))
    assert total == -(2**31)


def test_sums_over_nothing_are_zero_whatever_stands_beside():
    arrays = [np.zeros((0, 2)), np.array([np.nan, np.inf])]
    check("ij,k->k", arrays)
    assert run(lambda *v: einsum.einsum("ij,k->k", *v), *arrays)[0].tolist() == [0, 0]


def test_one_buffer_twice_and_two_equal_buffers_give_the_same_bits():
    x = np.asfortranarray(np.random.default_rng(0).standard_normal((40, 30)))
    for equation in ("id,jd->ij", "di,dj->ij", "ij,ij->"):
        twice, two = (run(lambda *v, e=equation: einsum.einsum(e, v[0], v[-1]), *a)[0] for a in ([x], [x, x.copy("F")]))
        assert same_bits(twice, two)


# --- lowering ---------------------------------------------------------------------------------------------------------


def ops_of(equation, *types):
    b = GraphBuilder()
    p = b.build(einsum.einsum(equation, *(b.input(dtype, shape) for dtype, shape in types)))
    return [ins.op for ins in lowered(p).instructions]


def test_the_recipe():
    f = "F64"
    names = [[op.name for op in ops] for ops in (
        ops_of("ij,jk->ik", (f, (2, 3)), (f, (3, 4))),
        ops_of("ij->ij", (f, (2, 3))),
        ops_of("abc,ba->c", (f, (2, 3, 4)), (f, (3, 2))),
        ops_of("iij,jkl->ki", (f, (2, 2, 3)), (f, (3, 4, 5))),
        ops_of("i,j->ij", (f, (2,)), (f, (3,))),
        ops_of("ij,ij->ij", (f, (2, 3)), (f, (2, 3))),
        ops_of("ij->iji", (f, (2, 3))),
        ops_of("ij,jk->ik", ("F32", (2, 3)), (f, (3, 4))),
        ops_of("ij,jk->ik", ("I32", (2, 3)), ("I32", (3, 4))),
    )]  # fmt: skip
    assert names == [
        ["DotGeneral"],
        [],
        ["DotGeneral"],
        ["ExtractDiag", "ReduceSum", "DotGeneral", "Transpose"],
        ["BroadcastInDim", "BroadcastInDim", "Multiply"],
        ["Multiply"],
        ["EmbedDiag"],
        ["Convert", "DotGeneral"],
        ["BroadcastInDim", "BroadcastInDim", "Multiply", "ReduceSum"],
    ]


def test_batch_labels_end_up_last_before_the_transpose():
    dot, transpose = ops_of("bij,bjk->bik", ("F64", (2, 3, 4)), ("F64", (2, 4, 5)))
    assert (dot.lhs_batch_dims, dot.rhs_batch_dims, dot.lhs_contracting_dims, dot.rhs_contracting_dims) == (
        (0,), (0,), (2,), (1,),
    )  # fmt: skip
    assert transpose.perm == (2, 0, 1)


def test_a_long_chain_follows_the_cheap_path():
    """(A B) c costs far more than A (B c)."""
    shapes = [(50, 50), (50, 50), (50,)]
    ops = ops_of("ij,jk,k->i", *(("F64", s) for s in shapes))
    assert len(ops) == 2
    b = GraphBuilder()
    p = lowered(b.build(einsum.einsum("ij,jk,k->i", *(b.input("F64", s) for s in shapes))))
    assert all(p.slot_types[s].rank == 1 for ins in p.instructions for s in ins.output_slots)


PATH = """
from tenferro_ref.extensions.einsum import Equation, path
terms = ("ab", "bc", "cd", "de", "ef", "fg", "gh", "ha", "ac", "ce")
print(path(Equation(terms, ""), ((2, 2),) * len(terms)))
"""


def test_the_path_is_the_same_in_every_process():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PATH], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


# --- rules ------------------------------------------------------------------------------------------------------------


def type_of(equation, *inputs):
    (result,) = ops.Extension.of(einsum.FAMILY, "einsum", {"equation": equation}).result_types(inputs)
    return result


def t(*shape, dtype=DType.F64):
    return TensorType(dtype, shape)


def test_dtypes_are_the_fold_of_promotion():
    assert type_of("i,i->i", t(2, dtype=DType.I32), t(2, dtype=DType.F32)).dtype is DType.F64
    assert type_of("i,i,i->i", t(2, dtype=DType.Bool), t(2, dtype=DType.C32), t(2, dtype=DType.F32)).dtype is DType.C32
    with pytest.raises(Unsupported, match="dtype Bool"):
        type_of("ij->ji", t(2, 2, dtype=DType.Bool))


def test_symbolic_extents():
    n, m = InputDim(0, 0), InputDim(0, 1)
    assert type_of("ij,jk->ki", t(n, m), t(m, 4)).shape == (4, n)
    assert type_of("i,i->i", t(n), t(3)).shape == (3,)
    assert type_of("i,i->i", t(UpperBound(5)), t(n)).shape == (n,)
    assert type_of("i->i", t(UpperBound(5))).shape == (UpperBound(5),)


@pytest.mark.parametrize(
    ("equation", "inputs", "kind", "message"),
    [
        ("ij,jk", [t(2, 2), t(2, 2)], InvalidArgument, "not of the form"),
        ("ij->jk->k", [t(2, 2)], InvalidArgument, "not of the form"),
        ("...i->i", [t(2)], InvalidArgument, "an ellipsis is not supported"),
        ("i(->i", [t(2, 2)], InvalidArgument, "is no label"),
        ("ij->i,j", [t(2, 2)], InvalidArgument, "',' is no label"),
        ("i-j->i", [t(2, 2)], InvalidArgument, "'-' is no label"),
        ("ij->ik", [t(2, 2)], InvalidArgument, "output label 'k' is in no operand"),
        ("ij->i", [t(2)], RankMismatch, "operand 0 has rank 1, and labels for rank 2 in the equation"),
        ("ij,j->i", [t(2, 2), t(2, 2)], RankMismatch, "operand 1 has rank 2, and labels for rank 1 in the equation"),
        ("ij,jk->ik", [t(2, 3), t(4, 5)], ShapeMismatch, r"\(2, 3\) and \(4, 5\)"),
        ("i,i->i", [t(1), t(3)], ShapeMismatch, "do not fit"),  # an extent of 1 is not broadcast
        ("ii->i", [t(2, 3)], ShapeMismatch, "do not fit"),
        ("ij,jk->ik", [t(2, 2)], InvalidCompiledGraph, "expected 2 inputs, got 1"),
        ("i->i", [], InvalidCompiledGraph, "expected 1 inputs, got 0"),
    ],
)  # fmt: skip
def test_errors(equation, inputs, kind, message):
    with pytest.raises(kind, match=message) as error:
        type_of(equation, *inputs)
    assert getattr(error.value, "op", "einsum") == "einsum"


def test_more_errors():
    letters = (
        [chr(0x3B1 + i) for i in range(18)] + [chr(0x61 + i) for i in range(26)] + [chr(0x41 + i) for i in range(9)]
    )
    with pytest.raises(InvalidArgument, match="53 labels; at most 52"):
        type_of("".join(letters) + "->", t(*[1] * 53))
    with pytest.raises(UnsupportedOp, match="no such op"):
        ops.Extension.of(einsum.FAMILY, "contract", {}).result_types((t(2),))
    with pytest.raises(InvalidArgument, match="equation: 3 has the wrong type"):
        ops.Extension.of(einsum.FAMILY, "einsum", {"equation": 3}).result_types((t(2),))
    with pytest.raises(InvalidArgument, match="at least one operand"):
        einsum.einsum("->")


def guarded(equation: str, *shapes: tuple[int | str, ...], n: int = 1) -> Program:
    """`n` einsums of inputs of these shapes, whose first result is the output."""
    b = GraphBuilder()
    inputs = [b.input("F64", shape) for shape in shapes]
    return b.build(*[einsum.einsum(equation, *inputs) for _ in range(n)][:1])


def test_extents_that_only_the_run_shows_to_differ():
    """Shape guards hold on every path, through dead code, and come before what the inputs' types or the rules say."""
    graph = guarded("i,i->", ("n",), ("m",), n=2)
    program = compile_std_to_exec(graph, verify=True)
    assert program.shape_guards == (ShapeGuard(InputDim(0, 0), InputDim(1, 0), einsum.FAMILY, 0),)
    assert loads(dumps(program)) == program == parse(print_program(program))
    executor = GraphExecutor()
    assert executor.eval_exec_ir(program, [np.ones(3), np.ones(3)])[0] == 3
    dead = compile_std_to_exec(replace(graph, output_slots=(graph.input_slots[0],)))
    assert not dead.instructions
    assert parse(print_program(dead)) == dead == loads(dumps(dead))
    for refused in (program, dead):
        for evaluate in (executor.eval_exec_ir, executor.eval_unsegmented):
            for dtype in (np.float64, np.int32):
                with pytest.raises(ShapeConstraintViolation, match=r"instruction 0: in0.0 = 1 and in1.0 = 3"):
                    evaluate(refused, [np.ones(1), np.ones(3, dtype)])
            with pytest.raises(
                ShapeConstraintEvaluation, match=r"in1.0 of a shape guard has no value: AxisOutOfBounds"
            ):
                evaluate(refused, [np.ones(1), np.ones(())])
            with pytest.raises(InvalidCompiledGraph, match="expected 2 inputs"):
                evaluate(refused, [np.ones(1)])


@pytest.mark.parametrize(
    ("equation", "shapes", "guards"),
    [
        ("ij,jk->ik", [("n", 2), (2, "n")], []),
        ("ij,ij->", [("n", "n"), ("m", "m")], ["in0.0=in1.0"]),
        ("i,i,i,i->", [("n",), ("m",), ("k",), (3,)], ["in0.0=in1.0", "in0.0=in2.0", "in0.0=3"]),
        ("ii->i", [("n", "m")], ["in0.0=in0.1"]),
    ],
)
def test_guards_that_follow_from_others_are_left_out(equation: str, shapes: list[Any], guards: list[str]) -> None:
    program = to_exec(guarded(equation, *shapes, n=2))
    assert [f"{guard.lhs}={guard.rhs}" for guard in program.shape_guards] == guards
    assert not program.to_graph().shape_guards


def test_a_guard_on_an_expression_is_there_once() -> None:
    """Each compilation and each reading added it again."""
    b = GraphBuilder()
    x, y = b.input("F64", ("n",)), b.input("F64", (6,))
    twice = b.apply(ops.Concatenate(0), x, x)
    program = compile_std_to_exec(b.build(einsum.einsum("i,i->", twice, y), einsum.einsum("i,i->", y, twice)))
    assert [f"{guard.lhs}={guard.rhs}" for guard in program.shape_guards] == [
        "add(in0.0, in0.0)=6",
        "6=add(in0.0, in0.0)",
    ]
    assert loads(dumps(program)) == parse(print_program(program)) == program


def test_guards_that_no_inputs_fulfil_are_refused_by_the_compiler():
    shapes = [("n",), (3,), ("n",), (4,)]
    b = GraphBuilder()
    x, three, _, four = (b.input("F64", shape) for shape in shapes)
    graph = b.build(einsum.einsum("i,i->", x, three), einsum.einsum("i,i->", four, x))
    with pytest.raises(ShapeConstraintViolation, match=r"instruction 1: 4 = 4 and in0\.0 = 3 must be equal"):
        compile_std_to_exec(graph)


def test_what_a_recorded_guard_may_be():
    """Expressions that have no value for the inputs at hand, and files of version 1, which has none."""
    text = dumps(to_exec(guarded("i,i->", ("n",), ("m",))))
    assert json.loads(text)["tenferro_program"] == 2
    with pytest.raises(FormatError, match="shape_guards: they are of version 2"):
        loads(text.replace('"tenferro_program": 2', '"tenferro_program": 1'))
    entries = json.loads(text)
    assert json.loads(dumps(to_exec(guarded("i,i->", ("n",), ("n",)))))["tenferro_program"] == 1
    for expr, cause in (
        ({"mul": [0, {"sub": [1, {"input": 0, "axis": 0}]}]}, "Underflow"),
        ({"floordiv": [1, {"sub": [{"input": 0, "axis": 0}, 3]}]}, "DivisionByZero"),
        ({"input": 7, "axis": 0}, "MissingInput"),
        ({"mul": [2**62, {"input": 0, "axis": 0}]}, "Overflow"),
    ):
        entries["shape_guards"][0]["lhs"] = expr
        program = loads(json.dumps(entries))
        assert parse(print_program(program)) == program
        with pytest.raises(ShapeConstraintEvaluation, match=cause):
            GraphExecutor().eval_exec_ir(program, [np.ones(4), np.ones(4)] if cause == "Overflow" else [np.ones(3)] * 2)


def test_the_implicit_output_has_the_labels_that_occur_once():
    x, y = integers((2, 3), 0), integers((3, 4), 1)
    for equation, arrays in (("kj , ji", [x, y]), ("ba", [x]), ("ij,jk,k", [x, y, np.ones(4)])):
        (got,) = run(lambda *v, e=equation: einsum.einsum(e, *v), *arrays)
        np.testing.assert_array_equal(got, np.einsum(equation, *arrays))


def test_any_character_is_a_label() -> None:
    """But those that the equation itself is written with (SEMANTICS C.1)."""
    a, c = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    (wanted,) = run(lambda x, y: einsum.einsum("ij,jk->ik", x, y), a, c)
    for equation in ("01,12->02", "é_,_∂->é∂", "i j, j + -> i +"):
        (got,) = run(lambda x, y, e=equation: einsum.einsum(e, x, y), a, c)
        np.testing.assert_array_equal(got, wanted)
