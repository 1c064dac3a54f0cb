"""Extension ops in StableHLO: what the plugins compute from it, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import NonStaticShape, ShapeMismatch, UnsupportedOp
from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.program import GraphBuilder, LoweringView, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo import lower_to_stablehlo
from tests.build import close, normal, traced
from tests.extensions.test_extension_einsum import EQUATIONS, by_loop, operands
from tests.plugins import on_one_build

pytestmark = pytest.mark.once

DTYPES = [DType.F32, DType.F64, DType.C32, DType.C64]


class Collected:
    """One program of many ops: compiling is what takes the time."""

    def __init__(self):
        self.builder, self.arrays, self.outputs = GraphBuilder(), [], []

    def input(self, array):
        self.arrays.append(array)
        return self.builder.input(DType.of(array), array.shape)

    def native(self):
        return GraphExecutor().eval_exec_ir(to_exec(self.builder.build(*self.outputs)), self.arrays)

    def on(self, run_xla):
        return run_xla(self.builder.build(*self.outputs), self.arrays)


def agree(collected, run_xla):
    for got, want in zip(collected.on(run_xla), collected.native(), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        close(got, want)


@on_one_build
def test_einsum(run_xla):
    c, wanted = Collected(), []
    for i, equation in enumerate(EQUATIONS):
        labels = sorted({a for a in equation if a.isalpha()})
        unequal = {a: 2 + i for i, a in enumerate(labels)}
        cases = [(unequal, [DType.F64]), (dict.fromkeys(labels, 2), [DType.C32, DType.F32])]
        cases.append((unequal, [DType.I32]) if i % 2 else (dict.fromkeys(labels, 0), [DType.F32]))
        for sizes, dtypes in cases:
            arrays = operands(equation, sizes, dtypes)
            wanted.append(by_loop(equation, arrays))
            c.outputs.append(einsum.einsum(equation, *map(c.input, arrays)))
    for got, want in zip(c.on(run_xla), wanted, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@on_one_build
def test_fft(run_xla):
    c = Collected()
    for dtype in DTYPES:
        x = c.input(normal(dtype, (4, 5, 3)))
        for i, axis in enumerate((-1, 0, 1)):
            for j, n in enumerate((None, 3, 6)):
                if dtype in (DType.F64, DType.C32) and i != j:
                    continue
                norm = ("backward", "ortho", "forward")[(i + j) % 3]
                functions = (fft.fft, fft.ifft, fft.irfft) if dtype.is_complex else (fft.fft, fft.rfft)
                c.outputs += [f(x, n, axis, norm) for f in functions]
    for shape, axis in (((0, 3), -1), ((3, 0), 0)):
        c.outputs.append(fft.fft(c.input(normal(DType.F32, shape)), 2, axis))
        c.outputs.append(fft.irfft(c.input(normal(DType.C64, shape)), 2, axis))
    c.outputs.append(fft.rfft(c.input(normal(DType.F64, (2, 0))), 4))  # of zeros alone
    agree(c, run_xla)


@on_one_build
def test_cholesky_and_triangular_solve(run_xla):
    c = Collected()
    for dtype in DTYPES:
        for batch, every in (((), 5), ((2, 3), 1 if dtype is DType.F64 else 7)):
            a = normal(dtype, (3, 3, *batch), 1)
            spd = np.einsum("ij...,kj...->ik...", a, a.conj()) + 3 * np.eye(3).reshape(3, 3, *[1] * len(batch))
            c.outputs.append(linalg.cholesky(c.input(spd.astype(dtype.numpy))))
            m = c.input((a + 4 * np.eye(3).reshape(3, 3, *[1] * len(batch))).astype(dtype.numpy))
            for flags in range(0, 16, every):
                left, lower, transpose, unit = (bool(flags & bit) for bit in (1, 2, 4, 8))
                b = c.input(normal(dtype, (3, 2, *batch) if left else (2, 3, *batch), 2))
                c.outputs.append(
                    linalg.triangular_solve(
                        m, b, left_side=left, lower=lower, transpose_a=transpose, unit_diagonal=unit
                    )
                )
    for shape in ((0, 0), (2, 2, 0)):
        a = c.input(np.zeros(shape))
        c.outputs += [linalg.cholesky(a), linalg.triangular_solve(a, a)]
    agree(c, run_xla)


def test_what_the_native_runtime_refuses_is_not_finite_on_xla(run_xla):
    indefinite, singular = np.array([[1.0, 2], [2, 1]]), np.array([[0.0, 0], [1, 1]])
    c = Collected()
    c.outputs = [linalg.cholesky(c.input(indefinite)), linalg.triangular_solve(c.input(singular), c.input(np.eye(2)))]
    batch = np.stack([np.eye(2), singular], axis=2)
    c.outputs.append(linalg.triangular_solve(c.input(batch), c.input(np.ones((2, 1, 2)))))
    assert all(not np.isfinite(x).all() for x in c.on(run_xla))


def test_programs_of_several_families_reach_xla(run_xla):
    """A Gaussian process's posterior mean, filtered."""
    b = GraphBuilder()
    x, y = b.input("F64", ("n", "d")), b.input("F64", ("n", 1))
    kernel = einsum.einsum("id,jd->ij", x, x) + einsum.einsum("ij->ij", b.input("F64", ("n", "n")))
    factor = linalg.cholesky(kernel)
    weights = linalg.triangular_solve(factor, linalg.triangular_solve(factor, y), transpose_a=True)
    p = b.build(fft.irfft(fft.rfft(weights, 4, 0), 4, 0))
    arrays = [normal(DType.F64, (4, 2)), normal(DType.F64, (4, 1)), np.eye(4)]
    (want,) = GraphExecutor(checking=True).eval_exec_ir(to_exec(p), arrays)
    close(want, np.linalg.solve(arrays[0] @ arrays[0].T + np.eye(4), arrays[1]))
    close(run_xla(p, arrays)[0], want)


# --- text and refusals ------------------------------------------------------------------------------------------------


def text(build, *arrays, **options):
    return lower_to_stablehlo(LoweringView.of(traced(build, *arrays)), **options)


def test_forms():
    assert "stablehlo.cholesky %arg0, lower = true : tensor<2x2xf64>" in text(linalg.cholesky, np.eye(2))
    assert "type = IRFFT, length = [6] : (tensor<4xcomplex<f64>>) -> tensor<6xf64>" in text(
        fft.irfft, np.zeros(4, complex)
    )
    solve = text(lambda a: linalg.triangular_solve(a, a, transpose_a=True), np.eye(2))
    assert "transpose_a = #stablehlo<transpose TRANSPOSE>" in solve


def test_einsum_is_within_phase_1_and_the_others_are_not():
    x = np.zeros((2, 3))
    module = text(lambda v, w: einsum.einsum("ij,kj->ik", v, w), x, x, phase1_only=True)
    assert "stablehlo.dot_general" in module
    for build, array in ((linalg.cholesky, np.eye(2)), (fft.rfft, x)):
        with pytest.raises(UnsupportedOp, match="outside Phase 1"):
            text(build, array, phase1_only=True)


@pytest.mark.parametrize("op", sorted({*linalg.OPS} - {"Cholesky", "TriangularSolve"}))
def test_decompositions_without_an_operation_in_stablehlo(op):
    arrays = [np.ones((2,) * len(axes), np.int32 if name else float) for name, axes in linalg.OPS[op].operands]
    with pytest.raises(UnsupportedOp, match=f"{op} of 'tenferro-linalg.linalg.v1' has no lowering to StableHLO"):
        text(lambda *v: v[0].builder.apply_many(ops.Extension.of(linalg.FAMILY, op, {}), *v), *arrays)


def test_einsum_of_bounded_extents():
    b = GraphBuilder()
    x = b.apply(ops.DynamicTruncate(0), b.input("F64", (4,)), b.input("I64"))
    with pytest.raises(NonStaticShape):
        lower_to_stablehlo(LoweringView.of(b.build(einsum.einsum("i->", x))))


def test_symbolic_programs_meet_the_rule_at_their_shapes():
    b = GraphBuilder()
    p = b.build(einsum.einsum("i,i->", b.input("F64", ("n",)), b.input("F64", ("m",))))
    lower_to_stablehlo(LoweringView.of(p, ((3,), (3,))))
    with pytest.raises(ShapeMismatch):
        lower_to_stablehlo(LoweringView.of(p, ((3,), (1,))))
    q = GraphBuilder()
    a = q.input("F64", ("n", "m"))
    square = q.build(linalg.cholesky(a))
    with pytest.raises(ShapeMismatch):
        lower_to_stablehlo(LoweringView.of(square, ((2, 3),)))
