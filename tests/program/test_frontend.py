"""The front end: expressions that mean what they mean in NumPy, and errors that name op and axis."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tenferro_ref import frontend as tn
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.errors import (
    InvalidArgument,
    ShapeMismatch,
    TenferroError,
    UsageError,
)
from tenferro_ref.program import GraphBuilder, Value
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import Array

F32, F64, I32, I64, Bool, C32, C64 = ENGINE_DTYPES


def run(*outputs: Value, inputs: tuple[Array, ...] = ()) -> list[Array]:
    b = outputs[0].builder
    return GraphExecutor().eval_exec_ir(compile_std_to_exec(b.build(*outputs)), list(inputs))


@pytest.mark.parametrize("wrong", ["x", None, np.ones(2), [1.0], object()])
def test_what_is_no_operand(wrong: Any) -> None:
    x = GraphBuilder().input(F64, (2,))
    for expression in (lambda: x + wrong, lambda: wrong * x, lambda: x == wrong, lambda: tn.where(x > 0, wrong, x)):
        with pytest.raises(UsageError):
            expression()


def test_a_value_has_no_truth_value_and_is_found_by_identity() -> None:
    b = GraphBuilder()
    x, y = b.input(F64), b.input(F64)
    with pytest.raises(UsageError, match="truth value"):
        bool(x == y)
    assert x in [x]
    assert {x: 1}[x] == 1
    with pytest.raises(UsageError):
        _ = x in [y]


# --- expressions against NumPy ----------------------------------------------------------------------------------------


def numpy_names() -> SimpleNamespace:
    """NumPy's functions under the names that the front end has."""

    def scatter_add(x: Array, indices: Array, updates: Array, axis: int = 0) -> Array:
        result = x.copy()
        place = (slice(None),) * (axis % x.ndim) + (np.clip(indices, 0, x.shape[axis] - 1),)
        np.add.at(result, place, updates)  # type: ignore[arg-type]
        return result

    def dynamic_slice(x: Array, starts: Any, sizes: Any) -> Array:
        first = [int(np.clip(s, 0, n - k)) for s, n, k in zip(starts, x.shape, sizes, strict=True)]
        return x[tuple(slice(s, s + k) for s, k in zip(first, sizes, strict=True))]

    def dynamic_update_slice(x: Array, update: Array, starts: Any) -> Array:
        result = x.copy()
        first = [int(np.clip(s, 0, n - k)) for s, n, k in zip(starts, x.shape, update.shape, strict=True)]
        result[tuple(slice(s, s + k) for s, k in zip(first, update.shape, strict=True))] = update
        return result

    return SimpleNamespace(
        **{name: getattr(np, name) for name in dir(tn) if hasattr(np, name) and name != "take"},
        rsqrt=lambda x: 1 / np.sqrt(x),
        take=lambda x, i, axis=0: np.take(x, i, axis, mode="clip"),
        scatter_add=scatter_add,
        dynamic_slice=dynamic_slice,
        dynamic_update_slice=dynamic_update_slice,
        reshape=lambda x, *shape: x.reshape(shape, order="F"),
        reshape_c=lambda x, *shape: x.reshape(shape),
        cast=lambda x, name: x.astype(DType[name].numpy),
    )  # fmt: skip


OURS = SimpleNamespace(
    **{name: getattr(tn, name) for name in dir(tn) if not name.startswith("_")},
    reshape=lambda x, *shape: x.reshape(*shape),
    reshape_c=lambda x, *shape: x.reshape(shape, order="C"),
    cast=lambda x, name: x.astype(name),
)

#: f(names, x, y, i): x of shape (4, 3), y of shape (3,), i integers of shape (2, 2).
EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda m, x, y, i: (x + y) * 2 - x / (y * y + 1) + 1 / (abs(x) + 1),
    "subtraction": lambda m, x, y, i: (1 - x) - (y - 2),
    "powers": lambda m, x, y, i: abs(x) ** 2 + 2.0**y + abs(x) ** y,
    "negation": lambda m, x, y, i: -x + +y,
    "comparisons": lambda m, x, y, i: (x < y) | ((x >= 1) & ~(x == y)) | (y != y),
    "between": lambda m, x, y, i: (x > -1) & (x <= 1.5),
    "analytic": lambda m, x, y, i: m.exp(m.sin(x)) + m.cos(y) * m.tanh(x) + m.expm1(m.sin(y)),
    "roots and logs": lambda m, x, y, i: m.log(abs(x) + 1) + m.log1p(abs(y)) + m.sqrt(abs(x)) + m.rsqrt(abs(y) + 1),
    "extrema": lambda m, x, y, i: m.maximum(x, y) - m.minimum(0.5, x),
    "clip": lambda m, x, y, i: m.clip(x, -1, 1) + m.clip(y, 0.5, None) + m.clip(x, None, y),
    "clip of integers": lambda m, x, y, i: m.clip(i, 0, 3),
    "where": lambda m, x, y, i: m.where(x > y, x, 0.0) + m.where(y == 0, 1.0, 2.0),
    "sign and conj": lambda m, x, y, i: m.sign(x) * m.conj(y),
    "sums": lambda m, x, y, i: x.sum(0) * x.sum((0, 1)) + x.sum(-1, keepdims=True),
    "products": lambda m, x, y, i: x.prod(1, keepdims=True) + y.prod(),
    "largest": lambda m, x, y, i: x.max(0) - x.min((0,)) + x.max() + y.min(),
    "mean": lambda m, x, y, i: m.mean(x, 0) - m.mean(x) + m.mean(i, (0, 1)),
    "softmax": lambda m, x, y, i: m.exp(x - x.max(1, keepdims=True)) / m.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
    "matrix products": lambda m, x, y, i: (x @ y) + (x @ x.T).sum(1) + (y @ y),
    "vector times matrix": lambda m, x, y, i: y @ x.T,
    "tensordot": lambda m, x, y, i: m.tensordot(x, y, 1) + m.tensordot(x, x, ((0, 1), (0, 1))),
    "outer": lambda m, x, y, i: m.tensordot(x, y, 0),
    "einsum": lambda m, x, y, i: m.einsum("ij,kj,j->ik", x, x, y) + m.einsum("ij,j", x, y) + m.einsum("ij->", x),
    "transpose": lambda m, x, y, i: x.T + x.transpose(1, 0) * x.transpose((-1, -2)),
    "reshape": lambda m, x, y, i: m.reshape(x, 2, 6) + m.reshape(x, -1, 6),
    "reshape in C order": lambda m, x, y, i: m.reshape_c(x, 2, 6) + m.reshape_c(x, 2, -1),
    "casts": lambda m, x, y, i: m.cast(m.cast(x, "I32"), "F32") + m.cast(x > 0, "I64"),
    "slices": lambda m, x, y, i: x[1:3] + x[::2] * x[-1, ::-1] + x[..., 0][1] + y[-2],
    "negative steps": lambda m, x, y, i: x[::-1, 2:0:-1] + x[3::-1, :-1],
    "new axes": lambda m, x, y, i: x[:, None, 1:] + y[None, 0, None, None],
    "empty slices": lambda m, x, y, i: x[2:1] + x[5:] + x[:-9],
    "rows": lambda m, x, y, i: sum(row * 2 for row in x),
    "concatenate": lambda m, x, y, i: m.concatenate([x, x[:1], i[:, :1] + y[:3]]),
    "concatenate columns": lambda m, x, y, i: m.concatenate((x, x), -1),
    "stack": lambda m, x, y, i: m.stack([y, y + 1, y * i[0, 0]], 1) + m.stack([y, y, y], axis=-1),
    "flip": lambda m, x, y, i: m.flip(x) + m.flip(x, 0) + m.flip(y, -1),
    "short widths": lambda m, x, y, i: m.pad(x, ((1,), (2,))) + m.pad(x, [(1, 1), (2, 2)]),
    "pairs for all axes": lambda m, x, y, i: m.pad(x, [(1, 0)]) + m.pad(x, (1,))[1:, :-1] + m.pad(x, [1, 0]) + m.pad(x, [[1]])[1:, 1:],
    "pad": lambda m, x, y, i: m.pad(x, ((1, 2), (0, 1))) + m.pad(x, (1, 2))[:, 1:5] + m.pad(m.pad(y, 1)[:4], (0, 0)),
    "triangles": lambda m, x, y, i: m.tril(x) + m.triu(x, 1) - m.tril(x, -1) * m.triu(x, -2),
    "diagonals": lambda m, x, y, i: m.diagonal(x)[:2] + m.diagonal(x, 1) + m.diagonal(x, -2, 0, 1) * m.diagonal(x, 2, 1, 0),
    "diag": lambda m, x, y, i: m.diag(y) + m.diag(m.diag(y)),
    "take": lambda m, x, y, i: m.take(x, i) + m.take(y, i, 0)[:, :, None],
    "take columns": lambda m, x, y, i: m.take(x, i, -1),
    "scatter": lambda m, x, y, i: m.scatter_add(x, i, m.take(x, i)) + m.scatter_add(y, i, 1.0),
    "scatter columns": lambda m, x, y, i: m.scatter_add(x, i, m.take(x, i, 1) * 2, 1),
    "dynamic slice": lambda m, x, y, i: m.dynamic_slice(x, (i[0, 0], 1), (2, 2)) + m.dynamic_slice(y, [i[1, 0]], [2]),
    "dynamic update": lambda m, x, y, i: m.dynamic_update_slice(x, x[:2, :2] * 2, (i[0, 0], i[0, 1])),
}  # fmt: skip

_floats = st.floats(-3, 3, width=32) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5])


@pytest.mark.parametrize("name", EXPRESSIONS)
@settings(max_examples=8)
@given(
    dtype=st.sampled_from([F32, F64]),
    x=hnp.arrays(np.float32, (4, 3), elements=_floats),
    y=hnp.arrays(np.float32, 3, elements=_floats),
    i=hnp.arrays(np.int64, (2, 2), elements=st.integers(-2, 6)),
)
def test_expressions_mean_what_they_mean_in_numpy(name: str, dtype: DType, x: Array, y: Array, i: Array) -> None:
    x, y = x.astype(dtype.numpy), y.astype(dtype.numpy)
    b = GraphBuilder()
    values = [b.input(dtype, (4, 3)), b.input(dtype, (3,)), b.input(I64, (2, 2))]
    with np.errstate(all="ignore"):
        want = np.asarray(EXPRESSIONS[name](numpy_names(), x, y, i))
    (got,) = run(EXPRESSIONS[name](OURS, *values), inputs=(x, y, i))
    assert got.shape == want.shape
    if want.dtype.kind == "b":
        assert np.array_equal(got, want)
    else:  # a 32-bit float beside integers is F64 here; sums are taken in another order
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


@settings(max_examples=50)
@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
def test_basic_indexing_is_numpys(data: st.DataObject, shape: tuple[int, ...]) -> None:
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    x = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    b = GraphBuilder()
    (got,) = run(b.input(I64, shape)[index], inputs=(x,))
    assert np.array_equal(got, x[index])


def _forgiving(index: Any) -> Any:
    """Only what symbolic axes admit: steps of 1, or a plain reversal; bounds that are not of mixed signs."""
    if not isinstance(index, slice):
        return index
    mixed = index.start is not None and index.start < 0 and index.stop is not None and index.stop >= 0
    return slice(None, None, -1) if index.step not in (None, 1) else slice(index.start, None if mixed else index.stop)


_bound = st.none() | st.integers(-4, 4)
_symbolic_index = st.one_of(st.builds(slice, _bound, _bound, st.sampled_from([None, 1, -1])), st.integers(-3, 3)).map(
    _forgiving
)


@settings(max_examples=40)
@given(st.lists(_symbolic_index, min_size=1, max_size=2).map(tuple))
def test_indexing_of_symbolic_axes_is_numpys_at_every_size(index: tuple[Any, ...]) -> None:
    b = GraphBuilder()
    program = compile_std_to_exec(b.build(b.input(I64, ("n", 5))[index]))
    executor = GraphExecutor()
    for n in range(6):
        x = np.arange(5 * n).reshape(n, 5)
        try:
            want = x[index]
        except IndexError:
            with pytest.raises(TenferroError):
                executor.eval_exec_ir(program, [x])
            continue
        assert np.array_equal(executor.eval_exec_ir(program, [x])[0], want)


@settings(max_examples=40)
@given(st.data(), hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, max_side=3))
def test_matmul_is_numpys(data: st.DataObject, shapes: hnp.BroadcastableShapes) -> None:
    left, right = shapes.input_shapes
    x, y = (np.random.default_rng(len(s)).integers(-4, 5, s).astype(np.float64) for s in (left, right))
    b = GraphBuilder()
    (got,) = run(b.input(F64, left) @ b.input(F64, right), inputs=(x, y))
    assert np.array_equal(got, x @ y)


def test_triangles_and_diagonals_of_batches() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    b = GraphBuilder()
    v = b.input(F64, x.shape)
    values = run(
        tn.tril(v, 1), tn.triu(v), tn.diagonal(v, 1, 1, 2), tn.diagonal(v, 0, -1, 0), tn.moveaxis(v, 0, -1), inputs=(x,)
    )
    wants = (np.tril(x, 1), np.triu(x), np.diagonal(x, 1, 1, 2), np.diagonal(x, 0, -1, 0), np.moveaxis(x, 0, -1))
    for got, want in zip(values, wants, strict=True):
        assert np.array_equal(got, want)


def test_complex_expressions() -> None:
    x = np.array([1 + 2j, -1j, 0], np.complex64)
    b = GraphBuilder()
    v = b.input(C32, (3,))
    abs_, product, sum_, cast = run(abs(v), v * tn.conj(v), (v * 1j).sum(), v.astype("F32"), inputs=(x,))
    assert (abs_.dtype, product.dtype) == (np.float32, np.complex64)
    np.testing.assert_allclose(abs_, np.abs(x), rtol=1e-6)
    np.testing.assert_allclose(product, x * x.conj(), rtol=1e-6)
    np.testing.assert_allclose(sum_, (x * np.complex64(1j)).sum(), rtol=1e-6)
    assert np.array_equal(cast, x.real)


def test_nan_is_not_equal_to_itself() -> None:
    x = np.array([np.nan, 1.0])
    b = GraphBuilder()
    v = b.input(F64, (2,))
    equal, unequal = run(v == v, v != v, inputs=(x,))
    assert (equal.tolist(), unequal.tolist()) == ([False, True], [True, False])


def test_a_difference_is_taken_in_the_common_dtype() -> None:
    """The negative of the smallest I32 exists as I64 only."""
    b = GraphBuilder()
    x, y = b.input(I64), b.input(I32)
    (got,) = run(x - y, inputs=(np.array(1), np.array(-(2**31), np.int32)))
    assert got == 1 + 2**31


# --- symbolic extents -------------------------------------------------------------------------------------------------


def test_extents_do_arithmetic() -> None:
    b = GraphBuilder()
    x, y = b.input(F64, ("n", 3, "m")), b.input(F64, ("m", "n"))
    n, _, m = x.shape
    flat = x.reshape(n * 3, m).reshape(-1)
    wide = y.reshape(m, 1, n).broadcast_to((m, 2 * n + 1, n))
    back = flat.reshape(n, 3, m)
    halves = y.broadcast_to((n // 2, m, n))
    program = compile_std_to_exec(b.build(flat, wide, back, halves, y - 1))
    for size_n, size_m in ((4, 2), (1, 5), (0, 3), (3, 0)):
        a, c = np.random.default_rng(0).random((size_n, 3, size_m)), np.random.default_rng(1).random((size_m, size_n))
        got = GraphExecutor().eval_exec_ir(program, [a, c])
        assert np.array_equal(got[0], a.ravel("F"))
        assert np.array_equal(got[1], np.broadcast_to(c[:, None], (size_m, 2 * size_n + 1, size_n)))
        assert np.array_equal(got[2], a)
        assert np.array_equal(got[3], np.broadcast_to(c, (size_n // 2, size_m, size_n)))


def test_mean_and_take_of_symbolic_axes() -> None:
    b = GraphBuilder()
    x, i = b.input(F32, ("n", "m")), b.input(I32, ("k",))
    program = compile_std_to_exec(b.build(tn.mean(x), tn.mean(x, 0), tn.take(x, i, 1), tn.scatter_add(x, i, 1.0, 1)))
    for n, m, k in ((1, 2, 3), (5, 1, 0), (3, 4, 4)):
        a = np.arange(n * m, dtype=np.float32).reshape(n, m)
        indices = np.arange(k, dtype=np.int32) % m
        whole, rows, taken, added = GraphExecutor().eval_exec_ir(program, [a, indices])
        np.testing.assert_allclose(whole, a.mean(), rtol=1e-6)
        np.testing.assert_allclose(rows, a.mean(0), rtol=1e-6)
        assert np.array_equal(taken, a[:, indices])
        assert np.array_equal(added, numpy_names().scatter_add(a, indices, np.float32(1), 1))


def test_a_symbol_that_is_1_at_run_time_does_not_broadcast() -> None:
    b = GraphBuilder()
    program = compile_std_to_exec(b.build(b.input(F64, ("n",)) + b.input(F64, ("m",))))
    for n, m in ((1, 3), (3, 1)):
        with pytest.raises(ShapeMismatch):
            GraphExecutor().eval_exec_ir(program, [np.ones(n), np.ones(m)])
    assert GraphExecutor().eval_exec_ir(program, [np.ones(3), np.ones(3)])[0].tolist() == [2, 2, 2]


def test_bounded_extents_need_a_value_that_has_them() -> None:
    b = GraphBuilder()
    x, y, size = b.input(F64, (5,)), b.input(F64, ()), b.input(I64)
    short = tn.truncate(x, size)
    with pytest.raises(InvalidArgument, match="like="):
        y.broadcast_to(short.shape)
    spread = y.broadcast_to(short.shape, like=[short])
    total, again = run(spread + short, tn.pad_to_match(short, x), inputs=(np.arange(5.0), np.array(10.0), np.array(3)))
    assert total.tolist() == [10, 11, 12]
    assert again.tolist() == [0, 1, 2, 0, 0]


def test_two_bounds_that_look_alike_are_not_taken_for_each_other() -> None:
    b = GraphBuilder()
    x, p, q = b.input(F64, (5,)), b.input(I64), b.input(I64)
    left, right = tn.truncate(x, p), tn.truncate(x, q)
    assert left.shape == right.shape
    wide = left[:, None].broadcast_to((*left.shape, *right.shape), like=[right])
    # both extents read the first value that has such a bound: the sizes differ, so this is refused, not guessed
    with pytest.raises(ShapeMismatch):
        run(wide, inputs=(np.arange(5.0), np.array(2), np.array(4)))
