"""Ways to write an einsum: ellipsis, parentheses, explicit paths, integer labels; and what is none."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tenferro_ref import frontend
from tenferro_ref.errors import InvalidArgument, RankMismatch, ShapeMismatch
from tenferro_ref.extensions import einsum, standard_ops_of
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor
from tests.build import integers, run, traced


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
        ("...ij,...jk", [(5, 1, 2, 3), (7, 3, 4)]),
        ("i...,i...->...", [(3, 1, 2), (3, 4, 1)]),
        ("...,...->...", [(), (2, 3)]),
        ("ab...,b->...a", [(2, 1, 3), (4,)]),  # a label, too, where there is an ellipsis
        ("...i->...", [(0, 2)]),
    ],
)
def test_an_ellipsis_is_what_numpy_makes_of_it(equation, shapes):
    arrays = [integers(shape, i) for i, shape in enumerate(shapes)]
    (got,) = run(lambda *v: einsum.einsum(equation, *v), *arrays)
    wide = [np.broadcast_to(arrays[0], (2, 4, 3)), arrays[1]] if equation.startswith("ab") else arrays
    np.testing.assert_array_equal(got, np.einsum(equation, *wide))


@pytest.mark.parametrize(
    ("equation", "path"),
    [("(ij,jk),kl->il", [[0, 1], [1, 0]]), ("ij,(jk,kl)", [[1, 2], [0, 1]]), ("((ij,(jk,kl)))->il", [[1, 2], [0, 1]]),
     ("(ij),(jk,kl)->il", [[1, 2], [0, 1]])],
)  # fmt: skip
def test_parentheses_are_a_path(equation, path):
    arrays = [integers((2, 3), 0), integers((3, 4), 1), integers((4, 5), 2)]
    program = traced(lambda *v: einsum.einsum(equation, *v), *arrays)
    (ins,) = program.instructions
    assert json.loads(ins.op.config) == {"equation": "ij,jk,kl->il", "path": path}
    for spelled in (lambda *v: einsum.einsum(equation, *v), lambda *v: einsum.einsum("ij,jk,kl->il", *v, path=path)):
        np.testing.assert_array_equal(run(spelled, *arrays)[0], arrays[0] @ arrays[1] @ arrays[2])


def test_a_path_is_part_of_what_an_op_is():
    """Results differ by rounding alone, and the standard ops take the same steps."""
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((30, 30)) for _ in range(4)]
    results = []
    for path in ("left", [[2, 3], [1, 2], [0, 1]], [[0, 3], [0, 2], [1, 0]]):
        program = traced(lambda *v, p=path: einsum.einsum("ij,jk,kl,lm->im", *v, path=p), *arrays)
        (native,) = GraphExecutor().eval_exec_ir(to_exec(program), arrays)
        b = GraphBuilder()
        values = [b.input("F64", a.shape) for a in arrays]
        lowered = b.build(*standard_ops_of(program.instructions[0].op)(program.instructions[0].op, *values))
        np.testing.assert_allclose(
            GraphExecutor().eval_exec_ir(to_exec(lowered), arrays)[0], native, rtol=0, atol=1e-10
        )
        results.append((program.instructions[0].op, native.tobytes()))
    assert len({op for op, _ in results}) == len({result for _, result in results}) == 3


def test_an_ellipsis_may_cover_a_symbolic_axis():
    b = GraphBuilder()
    x, y = b.input("F64", ("n", 1, 2)), b.input("F64", (3, 2))
    program = to_exec(b.build(einsum.einsum("...i,...i->...", x, einsum.einsum("...i->...i", y).reshape(1, 3, 2) * x)))
    (got,) = GraphExecutor().eval_exec_ir(program, [np.ones((4, 1, 2)), np.ones((3, 2))])
    np.testing.assert_array_equal(got, np.full((4, 3), 2.0))


def test_with_an_ellipsis_an_axis_of_extent_1_is_as_long_as_others_of_its_label():
    x, y = integers((2, 3, 1), 0), integers((4, 5), 1)
    (got,) = run(lambda *v: einsum.einsum("...ij,...jk->...ik", *v), x, y)
    np.testing.assert_array_equal(got, np.einsum("...ij,...jk->...ik", x, y))


def test_the_front_end_takes_a_path():
    b = GraphBuilder()
    x, y, z = (b.input("F64", (2, 2)) for _ in range(3))
    given, same = (f("ij,jk,kl->il", x, y, z, path=[[1, 2], [0, 1]]) for f in (frontend.einsum, einsum.einsum))
    first, second = b.build(given, same).instructions
    assert first.op == second.op
    assert json.loads(first.op.config)["path"] == [[1, 2], [0, 1]]


def test_one_operand_has_a_path_without_steps():
    x = integers((2, 3), 0)
    for path in ([], "left", "auto"):
        (got,) = run(lambda v, path=path: einsum.einsum("ij->ji", v, path=path), x)
        np.testing.assert_array_equal(got, x.T)


def test_integer_labels_are_letters():
    arrays = [integers((2, 3), 0), integers((3, 4), 1)]
    (got,) = run(lambda *v: einsum.einsum(([[7, 1000], [1000, 2]], [2, 7]), *v), *arrays)
    np.testing.assert_array_equal(got, (arrays[0] @ arrays[1]).T)


@pytest.mark.parametrize(
    ("equation", "shapes", "path", "words"),
    [
        ("...i,i->", [(2, 3), (3,)], "auto", "in neither"),
        ("i->...", [(3,)], "auto", "in neither"),
        ("...i...->...", [(3,)], "auto", "once in a term"),
        ("...i->...", [()], "auto", "operand 0 has rank 0, and labels for rank 1 in the equation"),
        ("...ij,...jk->...ik", [(4, 3), (3,)], "auto", "operand 1 has rank 1, and labels for rank 2 in the equation"),
        ("i,i->", [(2,), (1,)], "auto", "do not fit"),  # without an ellipsis
        ("...,...->...", [(2,), (3,)], "auto", "do not fit"),
        ("...,...->...", [("n",), ("m",)], "auto", "symbols leave open"),
        ("...ii->...i", [(1, 3)], "auto", "do not fit"),
        ("...,...->...", [(2,)], "auto", "2 terms for 1 operands"),
        ("(i,i->", [(2,), (2,)], "auto", "without"),
        ("i),(i->", [(2,), (2,)], "auto", "do not match"),
        ("(i,i)->()", [(2,), (2,)], "auto", "do not match"),
        ("i(,i)->", [(2,), (2,)], "auto", "do not match"),
        ("(...i,i)->...", [(2,), (2,)], "auto", "neither a path nor an ellipsis"),
        ("(i,i)->", [(2,), (2,)], "left", "neither a path nor an ellipsis"),
        ("(" * 70 + "i" + ")" * 70, [(2,)], "auto", "deep"),
        ("i,i,i->", [(2,)] * 3, [[0, 1]], "1 steps for 3 operands"),
        ("i,i,i->", [(2,)] * 3, [], "0 steps for 3 operands, which take 2"),
        ("i,i->", [(2,)] * 2, (), "0 steps for 2 operands"),
        ("(i,i),i->", [(2,)] * 3, [], "0 steps for 3 operands"),
        ("i,i,i->", [(2,)] * 3, [[0, 1], [0, 2]], "not two of 2 positions"),
        ("i,i->", [(2,)] * 2, [[1, 1]], "not two of 2 positions"),
        (([range(53)], []), [(1,) * 53], "auto", "53 labels"),
    ],
)
def test_what_is_no_way_to_write_one(equation, shapes, path, words):
    b = GraphBuilder()
    with pytest.raises((InvalidArgument, RankMismatch, ShapeMismatch), match=words):
        einsum.einsum(equation, *(b.input("F64", shape) for shape in shapes), path=path)
