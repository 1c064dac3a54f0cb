"""The linalg family: gauges, edge cases, metadata, errors; what defines each factor is in tests/oracle/decompositions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_ref import ops
from tenferro_ref.dims import InputDim, UpperBound
from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    DTypeMismatch,
    InvalidArgument,
    InvalidCompiledGraph,
    NumericalFailure,
    RankMismatch,
    ShapeMismatch,
    Unsupported,
    UnsupportedOp,
)
from tenferro_ref.extensions import linalg
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor
from tests.build import close, normal, run

DTYPES = [DType.F32, DType.F64, DType.C32, DType.C64]
BATCHES = [(), (2, 2)]
SHAPES = [(3, 3), (4, 2), (2, 4)]


def matrices(*arrays):
    """The matrices of all operands, batch element by batch element."""
    for index in np.ndindex(arrays[0].shape[2:]):
        yield tuple(x[(..., *index)] for x in arrays)


def adjoint(a):
    return a.conj().T


def is_unitary(q):
    close(adjoint(q) @ q, np.eye(q.shape[1], dtype=q.dtype))


def positive(dtype, n, batch=()):
    a = normal(dtype, (n, n, *batch), 1)
    out = np.empty_like(a)
    for index in np.ndindex(batch):
        m = a[(..., *index)]
        out[(..., *index)] = m @ adjoint(m) + n * np.eye(n)
    return out


def regular(dtype, n, batch=()):
    return normal(dtype, (n, n, *batch), 2) + dtype.numpy.type(2 * n) * np.eye(n, dtype=dtype.numpy).reshape(
        n, n, *[1] * len(batch)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (3, 0), (0, 3), (0, 0)])
def test_gauges(dtype, shape):
    a = normal(dtype, (*shape, 2), 9)
    u, s, vt = run(lambda a: linalg.svd(a, "CanonicalPivot"), a)
    q, r = run(lambda a: linalg.qr(a, "PositiveDiagonal"), a)
    for i in range(2):
        close((u[..., i] * s[:, i]) @ vt[..., i], a[..., i], dtype)
        close(q[..., i] @ r[..., i], a[..., i], dtype)
        is_unitary(u[..., i])
        is_unitary(q[..., i])
        assert_pivots_are_positive(u[..., i])
        close(np.abs(r[..., i].diagonal()), r[..., i].diagonal(), dtype)
        assert (r[..., i].diagonal().real > 0).all()
    if shape[0] == shape[1]:
        h = positive(dtype, shape[0])
        values, vectors = run(lambda a: linalg.eigh(a, "CanonicalPivot"), h)
        close(h @ vectors, vectors * values, dtype)
        assert_pivots_are_positive(vectors)


def assert_pivots_are_positive(columns):
    for column in columns.T:
        pivot = column[np.abs(column).argmax()]
        assert pivot.real > 0
        close(pivot, pivot.real, DType.of(columns))


@pytest.mark.parametrize("dtype", [DType.F32, DType.C64])
@pytest.mark.parametrize("shape", [*SHAPES, (3, 0), (0, 3)])
def test_states_of_a_factorisation_stand_for_their_product(dtype, shape):
    a, more = normal(dtype, shape, 3), normal(dtype, (shape[0], 2), 4)

    def products(gauge):
        def build(a, more):
            first = linalg.householder_qr(a)
            states = (
                first,
                linalg.householder_qr_append(*first, more),
                linalg.householder_qr_from_factors(*linalg.qr(a)),
            )
            pairs = [(linalg.householder_qr_q(*s, gauge), linalg.householder_qr_r(*s, gauge)) for s in states]
            return (
                *(q @ r for q, r in pairs),
                linalg.householder_qr_q(*first, gauge, start=0, end=shape[0]),
                pairs[0][1],
            )

        return build

    for gauge in ("Raw", "PositiveDiagonal"):
        *made, whole, r = run(products(gauge), a, more)
        for got, want in zip(made, (a, np.hstack([a, more]), a), strict=True):
            close(got, want, dtype)
        is_unitary(whole)
        assert gauge == "Raw" or (r.diagonal().real >= 0).all()


def test_ranks():
    a = np.outer([1.0, 2.0, 3.0], [1.0, -1.0]) + 1e-9 * np.eye(3, 2)
    for tolerances, due in (({}, 2), ({"rtol": 1e-6}, 1), ({"atol": 1e-6}, 1), ({"atol": 9.0}, 0)):
        q, r, order, rank = run(lambda x, t=tolerances: linalg.rank_revealing_qr(x, **t), a)
        assert (rank.item(), rank.dtype, order.dtype) == (due, np.int64, np.int64)
        close(q @ r, a[:, order])
    q, r, order, rank = run(linalg.rank_revealing_qr, np.zeros((3, 2)))
    assert (q == np.eye(3, 2)).all()
    assert not r.any()
    assert (order.tolist(), rank.item()) == ([0, 1], 0)
    with pytest.raises(NumericalFailure, match="not finite"):
        run(linalg.rank_revealing_qr, np.full((2, 2), np.nan))


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants(dtype):
    a = normal(dtype, (3, 3, 2), 6)
    sign, size = run(linalg.slogdet, a)
    for i in range(2):
        due = np.linalg.slogdet(a[..., i])
        close(sign[i], due.sign, dtype)
        close(size[i], due.logabsdet, dtype)
    sign, size = run(linalg.slogdet, np.ones((2, 2), dtype.numpy))
    assert (sign.item(), size.item()) == (0, -np.inf)


def test_gauges_of_a_zero_matrix():
    u, s, vt = run(lambda a: linalg.svd(a, "CanonicalPivot"), np.zeros((2, 2)))
    q, r = run(lambda a: linalg.qr(a, "PositiveDiagonal"), np.zeros((2, 2)))
    is_unitary(u)
    is_unitary(q)
    assert not np.concatenate([s, r.ravel()]).any()
    assert np.isfinite(vt).all()


def test_eigenvalues_of_a_real_matrix_are_complex_even_where_they_are_real():
    values, vectors = run(linalg.eig, np.diag(np.array([1, 2], np.float32)))
    assert values.dtype == vectors.dtype == np.complex64
    assert sorted(values.tolist(), key=abs) == [1, 2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_solves(dtype, batch):
    a, b = regular(dtype, 3, batch), normal(dtype, (3, 2, *batch), 8)
    _, packed, pivots, _ = a, *run(linalg.lu_factor, a)
    results = {"A": run(linalg.solve, a, b)[0], "full": run(linalg.full_piv_lu_solve, a, b)[0]}
    results["full T"] = run(lambda a, b: linalg.full_piv_lu_solve(a, b, transpose_a=True), a, b)[0]
    operators = {"A": np.asarray, "full": np.asarray, "full T": np.transpose}
    for name, transpose, conjugate, operator in (
        ("prepared", False, False, np.asarray),
        ("prepared T", True, False, np.transpose),
        ("prepared H", True, True, adjoint),
        ("prepared conj", False, True, np.conj),
    ):

        def build(*operands, transpose=transpose, conjugate=conjugate):
            return linalg.lu_solve_prepared(*operands, transpose_a=transpose, conjugate_a=conjugate)

        results[name], operators[name] = run(build, a, packed, pivots, b)[0], operator
    for name, x in results.items():
        for m, bm, xm in matrices(a, b, x):
            close(operators[name](m) @ xm, bm)


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2), st.sampled_from([np.float64, np.complex64]))
@settings(max_examples=40, deadline=None)
def test_extents_down_to_zero(m, n, batch, dtype):
    a = np.asfortranarray(np.arange(m * n * batch).reshape(m, n, batch) % 7, dtype=dtype)
    p, lower, upper, parity = run(linalg.lu, a)
    u, s, vt = run(linalg.svd, a)
    q, r = run(linalg.qr, a)
    run(linalg.lu_factor, a)
    for index in range(batch):
        close(p[..., index].T @ lower[..., index] @ upper[..., index], a[..., index], DType.F32)
        close((u[..., index] * s[..., index]) @ vt[..., index], a[..., index], DType.F32)
        close(q[..., index] @ r[..., index], a[..., index], DType.F32)
        assert abs(parity[index]) == 1


@pytest.mark.parametrize("shape", [(0, 0), (0, 0, 2), (2, 2, 0), (0, 0, 0)])
def test_square_ops_without_elements(shape):
    a = np.zeros(shape)
    for build in (linalg.cholesky, linalg.eigh, linalg.eigvalsh, linalg.eig, linalg.eigvals):
        assert all(x.size == 0 for x in run(build, a))
    parity = run(linalg.full_piv_lu, a)[4]
    np.testing.assert_array_equal(parity, np.ones(shape[2:]))  # of no exchange
    for build in (linalg.solve, linalg.full_piv_lu_solve, linalg.triangular_solve):
        (x,) = run(build, a, np.zeros((shape[0], 3, *shape[2:])))
        assert x.size == 0
    regular_a = np.eye(2)
    assert run(linalg.solve, regular_a, np.zeros((2, 0)))[0].shape == (2, 0)
    assert run(linalg.triangular_solve, regular_a, np.zeros((2, 0)))[0].shape == (2, 0)
    assert run(linalg.full_piv_lu_solve, regular_a, np.zeros((2, 0)))[0].shape == (2, 0)


# --- matrices that an op cannot work on -------------------------------------------------------------------------------

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
NOT_FINITE = np.array([[1.0, np.nan], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("build", "a", "reason"),
    [
        (linalg.cholesky, np.array([[1.0, 2], [2, 1]]), "not positive definite"),
        (linalg.cholesky, np.zeros((1, 1)), "not positive definite"),
        (linalg.cholesky, np.full((1, 1), np.nan), "not finite"),
        (linalg.cholesky, np.full((2, 2), np.inf), "not finite"),
        (lambda a: linalg.solve(a, a), SINGULAR, "singular"),
        (lambda a: linalg.full_piv_lu_solve(a, a), SINGULAR, "singular"),
        (lambda a: linalg.triangular_solve(a, a), np.zeros((2, 2)), "singular"),
        (lambda a: linalg.triangular_solve(a, a, left_side=False), np.zeros((2, 2)), "singular"),
        (lambda a: linalg.lu_solve_prepared(a, *linalg.lu_factor(a)[:2], a), SINGULAR, "singular"),
        (linalg.svd, NOT_FINITE, "not finite"),
        (linalg.svdvals, NOT_FINITE, "not finite"),
        (linalg.eigh, np.full((2, 2), np.inf), "not finite"),
        (linalg.eigvalsh, NOT_FINITE.T, "not finite"),
        (linalg.eig, NOT_FINITE, "not finite"),
        (linalg.eigvals, NOT_FINITE, "not finite"),
    ],
)
def test_a_matrix_that_the_op_cannot_work_on(build, a, reason):
    with pytest.raises(NumericalFailure, match=f"the matrix: .*{reason}"):
        run(build, a)
    batch = np.stack([np.eye(len(a)), np.eye(len(a)), a], axis=2)
    with pytest.raises(NumericalFailure, match=rf"matrix \[2\] of the batch: .*{reason}"):
        run(build, batch)


def test_what_is_not_finite_goes_through_direct_factorisations():
    lower, upper = run(linalg.lu, NOT_FINITE)[1:3]
    assert np.isnan(lower).any() or np.isnan(upper).any()
    assert np.isnan(run(linalg.qr, NOT_FINITE)[1]).any()
    assert np.isnan(run(linalg.solve, np.eye(2), NOT_FINITE)[0]).any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_matrix_without_a_largest_element_has_no_factors_with_full_pivoting(dtype, value):
    """LAPACK's getc2 ended the process: it finds no pivot in a matrix that is NaN, and exchanges rows by what is in memory."""
    a = np.full((3, 3), value, dtype.numpy)
    p, lower, upper, q, parity = run(linalg.full_piv_lu, a)
    np.testing.assert_array_equal(p, np.eye(3))
    np.testing.assert_array_equal(q, np.eye(3))
    assert parity == 1
    assert np.isnan(lower[np.tril_indices(3, -1)]).all()
    assert np.isnan(upper[np.triu_indices(3)]).all()
    for transpose_a in (False, True):
        (x,) = run(lambda a, b, t=transpose_a: linalg.full_piv_lu_solve(a, b, transpose_a=t), a, a)
        assert np.isnan(x).all()


def test_a_flag_may_be_numpys():
    (x,) = run(lambda a, b: linalg.triangular_solve(a, b, unit_diagonal=np.bool_(True)), np.zeros((2, 2)), np.eye(2))
    np.testing.assert_array_equal(x, np.eye(2))


def test_unit_diagonal_is_not_read():
    (x,) = run(lambda a, b: linalg.triangular_solve(a, b, unit_diagonal=True), np.zeros((2, 2)), np.eye(2))
    np.testing.assert_array_equal(x, np.eye(2))


@pytest.mark.parametrize("bad", [0, 3, -1])
def test_pivots_out_of_range(bad):
    a, pivots = np.eye(2), np.array([1, bad], np.int32)
    with pytest.raises(InvalidArgument, match="pivots: they must be 1 to 2"):
        run(linalg.lu_solve_prepared, a, a, pivots, a)


# --- rules ------------------------------------------------------------------------------------------------------------


def operands_of(op, dtype, first=(2, 2)):
    """Operands of extent 2, the first one of another shape."""
    named = {"": dtype, "i32": DType.I32}
    types = [TensorType(named[name], (2,) * len(axes)) for name, axes in linalg.OPS[op].operands]
    return [TensorType(dtype, first), *types[1:]]


def types_of(op, *shapes, dtype=DType.F64, config=None):
    inputs = tuple(t if isinstance(t, TensorType) else TensorType(dtype, t) for t in shapes)
    return ops.Extension.of(linalg.FAMILY, op, config or {}).result_types(inputs)


@pytest.mark.parametrize("op", linalg.OPS)
def test_every_op_rejects_what_is_no_matrix_and_dtypes_without_a_routine(op):
    def operands(dtype, shape):
        return operands_of(op, dtype, shape)

    types_of(op, *operands(DType.C32, (2, 2)))
    with pytest.raises(RankMismatch) as rank:
        types_of(op, *operands(DType.F64, (2,)))
    assert (rank.value.op, rank.value.expected, rank.value.actual) == (op, 2, 1)
    for dtype in (DType.I32, DType.I64, DType.Bool):
        with pytest.raises(Unsupported, match=f"dtype {dtype}"):
            types_of(op, *operands(dtype, (2, 2)))
    with pytest.raises(InvalidCompiledGraph, match="inputs, got"):
        types_of(op, *operands(DType.F64, (2, 2)), (2, 2))
    with pytest.raises(InvalidArgument, match="unknown key 'driver'"):
        types_of(op, *operands(DType.F64, (2, 2)), config={"driver": True})


@pytest.mark.parametrize("op", [name for name, declared in linalg.OPS.items() if declared.square])
def test_square_matrices_are_square(op):
    with pytest.raises(ShapeMismatch) as error:
        types_of(op, *operands_of(op, DType.F64, (2, 3)))
    assert str(error.value) == f"{op}: the matrix must be square, not 2 x 3"
    assert (error.value.op, error.value.lhs) == (op, (2, 3))


@pytest.mark.parametrize(
    ("op", "shapes", "kind"),
    [
        ("Solve", [(2, 2), (3, 1)], ShapeMismatch),
        ("Solve", [(2, 2), (2,)], RankMismatch),
        ("Solve", [(2, 2, 3), (2, 1)], RankMismatch),
        ("Solve", [(2, 2, 3), (2, 1, 1)], ShapeMismatch),  # batch axes do not broadcast
        ("FullPivLuSolve", [(2, 2), (3, 1)], ShapeMismatch),
        ("TriangularSolve", [(2, 2), (1, 2)], ShapeMismatch),
        ("Solve", [(2, 2), TensorType(DType.F32, (2, 2))], DTypeMismatch),
        ("LuSolvePrepared", [(2, 2), (2, 2), TensorType(DType.I64, (2,)), (2, 1)], DTypeMismatch),
        ("LuSolvePrepared", [(2, 2), (2, 2), TensorType(DType.I32, (3,)), (2, 1)], ShapeMismatch),
        ("LuSolvePrepared", [(2, 2), (3, 3), TensorType(DType.I32, (2,)), (2, 1)], ShapeMismatch),
        ("SignDetFromLuFactor", [(2, 2), (2, 2), (2,)], RankMismatch),
        ("HouseholderQrFactor", [(2, 2, 1)], RankMismatch),
        ("HouseholderQrFromFactors", [(3, 2), (2, 1)], InvalidArgument),  # one column needs one of Q
        ("HouseholderQrAppend", [(3, 2), (2,), (2, 1)], ShapeMismatch),
        ("HouseholderQrR", [(3, 2), (3,)], ShapeMismatch),
        ("Determinant", [(2, 2)], UnsupportedOp),
    ],
)
def test_operands_that_do_not_fit(op, shapes, kind):
    with pytest.raises(kind) as error:
        types_of(op, *shapes)
    assert error.value.op == op


def test_right_side_takes_rows():
    assert types_of("TriangularSolve", (2, 2), (5, 2), config={"left_side": False})[0].shape == (5, 2)
    with pytest.raises(ShapeMismatch):
        types_of("TriangularSolve", (2, 2), (2, 5), config={"left_side": False})


@pytest.mark.parametrize(("op", "gauge"), [("Svd", "PositiveDiagonal"), ("Qr", "CanonicalPivot"), ("Eigh", "raw")])
def test_a_gauge_that_the_op_does_not_have(op, gauge):
    with pytest.raises(InvalidArgument, match=f"gauge: '{gauge}' is neither Raw nor"):
        types_of(op, (2, 2), config={"gauge": gauge})


@pytest.mark.parametrize(
    ("name", "value"), [("rtol", -0.5), ("atol", float("inf")), ("start", 3), ("end", 4), ("end", -1)]
)
def test_tolerances_and_columns_within_bounds(name, value):
    op = "RankRevealingQr" if "tol" in name else "HouseholderQrQColumns"
    with pytest.raises(InvalidArgument, match=op):
        types_of(op, *operands_of(op, DType.F64), config={name: value})


@pytest.mark.parametrize("config", ["[]", "{", '{"lower": 1}', '{"lower": null}', '{"lower": "yes"}'])
def test_bad_configurations(config):
    t = TensorType(DType.F64, (2, 2))
    with pytest.raises(InvalidArgument) as error:
        ops.Extension(linalg.FAMILY, "TriangularSolve", config).result_types((t, t))
    assert (error.value.op, error.value.argument) == ("TriangularSolve", "config")


def test_symbolic_shapes():
    m, n, batch = InputDim(0, 0), InputDim(0, 1), InputDim(0, 2)
    u, s, vt = types_of("Svd", (m, n, batch), dtype=DType.C32)
    assert (u.shape[0], u.shape[2], vt.shape[1]) == (m, batch, n)
    assert str(s.shape[0]) == "min(in0.0, in0.1)"
    assert (u.dtype, s.dtype) == (DType.C32, DType.F32)
    assert types_of("Cholesky", (m, m))[0].shape == (m, m)
    assert types_of("Eigh", (m, 3))[0].shape == (3,)  # square: what is known of one extent holds for the other
    assert types_of("Solve", (UpperBound(4), UpperBound(4)), (4, 2))[0].shape == (4, 2)


def test_one_symbolic_program_at_many_sizes():
    b = GraphBuilder()
    a = b.input("F64", ("n", "n", "batch"))
    factor = linalg.cholesky(a)
    p = to_exec(b.build(linalg.triangular_solve(factor, a)))
    for n in range(4):
        for batch in range(3):
            x = positive(DType.F64, n, (batch,))
            (got,) = GraphExecutor(checking=True).eval_exec_ir(p, [x])
            for m, lt in matrices(x, got):
                close(np.tril(lt.T) @ lt, m)  # L^-1 A = L^T


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [linalg.cholesky, linalg.eigh, linalg.eigvalsh])
def test_the_upper_triangle_is_not_read(make, dtype):
    a = positive(dtype, 3)
    noisy = a.copy(order="F")
    noisy[0, 2] = 99
    for got, want in zip(run(make, noisy), run(make, a), strict=True):
        assert np.array_equal(got, want)


def test_the_sign_of_an_infinite_determinant_is_one_of_its_factors() -> None:
    packed = np.asfortranarray([[np.inf, 1.0], [0.0, -2.0]])
    op = ops.Extension.of(linalg.FAMILY, "SignDetFromLuFactor", {})
    (sign,) = linalg.LINALG.execute(op, [packed, packed, np.asarray(1.0)])
    assert sign == -1
