"""Extension ops as calls of JAX: each passes its bounds and invariants, configurations included; the rest says why not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import Executor, NativeExecutor, Pool
from oracle.verdict import Verdict
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import fft, linalg
from tenferro_ref.extensions.einsum import einsum
from tenferro_ref.program import GraphBuilder, Value
from tests.libraries import executor_or_skip

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def jax() -> Iterator[Executor]:
    pool = Pool()
    yield executor_or_skip(pool, "jax")
    pool.close()


def draw(dtype: DType, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    z = rng.standard_normal(shape)
    return np.asarray(z + 1j * rng.standard_normal(shape) if dtype.is_complex else z).astype(dtype.numpy)


def passes(jax: Executor, case: Case) -> None:
    answer = judge(jax, Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.PASS, answer.reason
    assert answer.comparison.decided == answer.comparison.elements > 0


def flat(results: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    return results if isinstance(results, tuple) else (results,)


def decompositions(a: Value, b: Value, tall: Value) -> Iterator[Value]:
    """Every op that JAX has, in every gauge, of a positive definite matrix and a tall one."""
    for function in (linalg.cholesky, linalg.svdvals, linalg.eigvalsh, linalg.eig, linalg.eigvals):
        yield from flat(function(a))
    for function in (linalg.lu, linalg.lu_factor, linalg.qr, partial(linalg.qr, gauge="PositiveDiagonal")):
        yield from flat(function(tall))
    for gauge in ("Raw", "CanonicalPivot"):
        yield from (*linalg.svd(tall, gauge), *linalg.eigh(a, gauge))
    packed, pivots, _ = linalg.lu_factor(a)
    yield linalg.solve(a, b)
    for transposed, conjugated in itertools.product((False, True), repeat=2):
        yield linalg.lu_solve_prepared(a, packed, pivots, b, transpose_a=transposed, conjugate_a=conjugated)
        yield linalg.triangular_solve(a, b, transpose_a=transposed, lower=conjugated, unit_diagonal=transposed)
    yield linalg.triangular_solve(a, linalg.cholesky(a), left_side=False)


@pytest.mark.parametrize("dtype", [pytest.param(DType.F32, marks=pytest.mark.nightly), DType.C64], ids=str)
def test_linalg(jax: Executor, dtype: DType) -> None:
    b = GraphBuilder()
    shapes = ((3, 3, 2), (3, 2, 2), (4, 3, 2))
    program = b.build(*decompositions(*(b.input(dtype, shape) for shape in shapes)))
    root, rhs, tall = (draw(dtype, *shape) for shape in shapes)
    # not symmetric by rounding alone: what reads the upper triangle too sees another matrix
    gram = np.einsum("ikb,jkb->ijb", root, root.conj()) + 2 * np.eye(3, dtype=dtype.numpy)[..., None]
    passes(jax, Case.of(program, [gram.astype(dtype.numpy), rhs, tall]))


def test_only_the_lower_triangle_is_read(jax: Executor) -> None:
    b = GraphBuilder()
    a = b.input("F64", (2, 2))
    program = b.build(linalg.cholesky(a), *linalg.eigh(a), linalg.eigvalsh(a))
    passes(jax, Case.of(program, [np.array([[4.0, 99.0], [1.0, 3.0]])]))


@pytest.mark.parametrize("dtype", [DType.F64, DType.C32], ids=str)
def test_fft(jax: Executor, dtype: DType) -> None:
    b = GraphBuilder()
    x, empty = b.input(dtype, (3, 4)), b.input(dtype, (0, 4))
    functions = (fft.fft, fft.ifft, fft.irfft) if dtype.is_complex else (fft.fft, fft.rfft)
    outputs = [f(x, n, axis, norm) for f in functions for n, axis, norm in (
        (None, -1, "backward"), (7, 0, "ortho"), (2, 1, "forward"),
    )]  # fmt: skip
    passes(jax, Case.of(b.build(*outputs, fft.fft(empty)), [draw(dtype, 3, 4), draw(dtype, 0, 4)]))


def test_einsum(jax: Executor) -> None:
    """Diagonals taken and embedded, three operands, a sum over nothing, promotion, and integers that wrap."""
    b = GraphBuilder()
    x, y, v = b.input("F32", (2, 3)), b.input("F32", (3, 3)), b.input("F32", (3,))
    i, none = b.input("I32", (3,)), b.input("F32", (3, 0))
    program = b.build(
        einsum("ij,jj->ji", x, y), einsum("i->ii", v), einsum("ij,jk,k->i", x, y, v), einsum("jz->j", none),
        einsum("j,j->", i, v), einsum("i,i,j->ij", i, i, i), einsum("ij->jiji", x),
    )  # fmt: skip
    ints = np.array([2**30, -(2**31), 3], np.int32)
    passes(
        jax,
        Case.of(program, [*(draw(DType.F32, *s) for s in ((2, 3), (3, 3), (3,))), ints, np.zeros((3, 0), np.float32)]),
    )


def solved(a: Value) -> Value:
    return linalg.full_piv_lu_solve(a, a)


@pytest.mark.parametrize(
    ("function", "n", "words"),
    [
        (linalg.full_piv_lu, 2, "FullPivLu: .* full pivoting"),
        (solved, 2, "FullPivLuSolve: .* full pivoting"),
        (linalg.qr, 0, "Qr: .* without elements"),
    ],
)
def test_what_jax_has_not_is_refused(jax: Executor, function: Callable[[Value], Any], n: int, words: str) -> None:
    b = GraphBuilder()
    program = b.build(*flat(function(b.input("F64", ("n", "n")))))
    with pytest.raises(UnsupportedOp, match=words):
        jax.run(Case.of(program, [np.eye(n)]))


def test_a_matrix_that_the_native_executor_refuses_decides_nothing(jax: Executor) -> None:
    b = GraphBuilder()
    case = Case.of(b.build(linalg.cholesky(b.input("F64", (2, 2)))), [-np.eye(2)])
    assert judge(jax, Reference(case, NativeExecutor())).verdict is Verdict.UNDECIDED
