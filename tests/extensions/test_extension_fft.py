"""The fft family: against the definition, inverses, lengths and norms, metadata, errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_ref import ops
from tenferro_ref.dims import InputDim, UpperBound
from tenferro_ref.dtype import DType
from tenferro_ref.errors import AxisOutOfBounds, InvalidArgument, InvalidCompiledGraph, Unsupported, UnsupportedOp
from tenferro_ref.extensions import fft
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphBuilder, dumps, loads, to_exec
from tenferro_ref.runtime import GraphExecutor
from tests.build import close, normal, run, traced

NORMS = ["backward", "ortho", "forward"]


def scale(norm, n, inverse):
    return {"backward": (1, 1 / n), "ortho": (n**-0.5, n**-0.5), "forward": (1 / n, 1)}[norm][inverse]


def by_definition(x, n, axis, norm, *, inverse=False):
    """The sum over x[j] exp(-2 pi i j k / n), as a matrix product."""
    x = np.moveaxis(x.astype(np.complex128), axis, -1)
    x = np.concatenate([x, np.zeros((*x.shape[:-1], n))], axis=-1)[..., :n]
    angle = 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    return np.moveaxis(x @ np.exp(angle if inverse else -angle), -1, axis) * scale(norm, n, inverse)


lengths = st.none() | st.integers(1, 7)


@given(
    st.sampled_from([DType.F32, DType.F64, DType.C32, DType.C64]),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    lengths,
    st.sampled_from(NORMS),
    st.data(),
)
@settings(max_examples=50, deadline=None)
def test_transforms_are_their_definition(dtype, shape, n, norm, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = normal(dtype, shape)
    length = n or shape[axis]
    want = by_definition(x, length, axis, norm)
    (got,) = run(lambda v: fft.fft(v, n, axis, norm), x)
    close(got, want)
    if dtype.is_complex:
        close(run(lambda v: fft.ifft(v, n, axis, norm), x)[0], by_definition(x, length, axis, norm, inverse=True))
    else:
        (half,) = run(lambda v: fft.rfft(v, n, axis, norm), x)
        close(half, np.take(want, range(length // 2 + 1), axis))


@given(
    st.sampled_from([DType.C32, DType.C64]), st.integers(1, 6), lengths, st.sampled_from(NORMS), st.sampled_from([0, 1])
)
@settings(max_examples=40, deadline=None)
def test_irfft_is_the_transform_of_the_hermitian_completion(dtype, frequencies, n, norm, axis):
    shape = (frequencies, 2) if axis == 0 else (2, frequencies)
    length = 2 * (frequencies - 1) if n is None else n
    if length == 0:
        return
    x = normal(dtype, shape)
    (got,) = run(lambda v: fft.irfft(v, n, axis, norm), x)
    close(got, scipy.fft.irfft(x, n, axis, norm))
    half = np.moveaxis(x, axis, -1)
    half = np.concatenate([half, np.zeros((2, length))], axis=-1)[:, : length // 2 + 1].astype(np.complex128)
    half[:, 0] = half[:, 0].real
    if length % 2 == 0:
        half[:, -1] = half[:, -1].real
    whole = np.concatenate([half, half[:, (length - 1) // 2 : 0 : -1].conj()], axis=-1)
    want = by_definition(whole, length, -1, norm, inverse=True)
    close(np.moveaxis(got, axis, -1), want.real)


def test_extents_of_zero():
    for dtype in (DType.F64, DType.C32):
        assert run(fft.fft, normal(dtype, (0, 3)))[0].shape == (0, 3)
        np.testing.assert_array_equal(run(lambda v: fft.fft(v, 2), normal(dtype, (3, 0)))[0], np.zeros((3, 2)))
    assert run(fft.irfft, normal(DType.C64, (0, 3)))[0].shape == (0, 4)


# --- rules ------------------------------------------------------------------------------------------------------------


def type_of(op, shape, dtype=DType.C64, **config):
    (result,) = ops.Extension.of(fft.FAMILY, op, config).result_types((TensorType(dtype, shape),))
    return result


def test_result_types():
    assert type_of("fft", (3, 4), DType.F32) == TensorType(DType.C32, (3, 4))
    assert type_of("ifft", (3, 4), n=9) == TensorType(DType.C64, (3, 9))
    assert type_of("rfft", (3, 4), DType.F32, axis=0) == TensorType(DType.C32, (2, 4))
    assert type_of("rfft", (4,), DType.F64, n=7) == TensorType(DType.C64, (4,))
    assert type_of("irfft", (3, 4), DType.C32) == TensorType(DType.F32, (3, 6))
    assert type_of("irfft", (3, 4), axis=-2, n=5) == TensorType(DType.F64, (5, 4))


def test_symbolic_extents():
    n = InputDim(0, 0)
    assert type_of("fft", (n, 2), axis=0).shape == (n, 2)
    assert str(type_of("rfft", (n,), DType.F64).shape[0]) == "add(floordiv(in0.0, 2), 1)"
    assert str(type_of("irfft", (n,)).shape[0]) == "mul(2, sub(in0.0, 1))"
    assert type_of("irfft", (n,), n=6).shape == (6,)
    assert type_of("fft", (UpperBound(5),)).shape == (UpperBound(5),)


def test_one_symbolic_program_at_many_sizes():
    b = GraphBuilder()
    x = b.input("F64", ("n", 2))
    p = to_exec(b.build(fft.irfft(fft.rfft(x, axis=0), axis=0)))
    for n in (2, 4, 10):
        data = normal(DType.F64, (n, 2), n)
        close(GraphExecutor(checking=True).eval_exec_ir(p, [data])[0], data)
    with pytest.raises(InvalidArgument, match="implies length 0"):
        GraphExecutor().eval_exec_ir(p, [np.zeros((1, 2))])


@pytest.mark.parametrize(
    ("op", "shape", "dtype", "config", "kind", "message"),
    [
        ("fft", (4,), DType.I32, {}, Unsupported, "dtype I32"),
        ("fft", (4,), DType.Bool, {}, Unsupported, "dtype Bool"),
        ("ifft", (4,), DType.F64, {}, Unsupported, "supported: C32, C64"),
        ("rfft", (4,), DType.C64, {}, Unsupported, "supported: F32, F64"),
        ("irfft", (4,), DType.F32, {}, Unsupported, "dtype F32"),
        ("fft", (), DType.C64, {}, AxisOutOfBounds, "axis -1 .* rank 0"),
        ("fft", (4,), DType.C64, {"axis": 1}, AxisOutOfBounds, "axis 1 .* rank 1"),
        ("fft", (4, 4), DType.C64, {"axis": -3}, AxisOutOfBounds, "axis -3"),
        ("fft", (4,), DType.C64, {"n": 0}, InvalidArgument, "n: the transform length must be positive"),
        ("fft", (4,), DType.C64, {"n": -2}, InvalidArgument, "must be positive"),
        ("fft", (4,), DType.C64, {"norm": "backward"}, InvalidArgument, "norm: 'backward' is none of Backward"),
        ("fft", (4,), DType.C64, {"n": 2.0}, InvalidArgument, "config: n: 2.0 has the wrong type"),
        ("fft", (4,), DType.C64, {"axis": None}, InvalidArgument, "config: axis"),
        ("fft", (4,), DType.C64, {"axis": True}, InvalidArgument, "config: axis"),
        ("fft", (4,), DType.C64, {"axes": [0]}, InvalidArgument, "unknown key 'axes'"),
        ("fft", (0,), DType.C64, {}, InvalidArgument, "axis 0 is empty"),
        ("irfft", (0,), DType.C64, {"n": 4}, InvalidArgument, "axis 0 is empty"),
        ("irfft", (1,), DType.C64, {}, InvalidArgument, "implies length 0"),
        ("dct", (4,), DType.F64, {}, UnsupportedOp, "no such op"),
    ],
)
def test_errors(op, shape, dtype, config, kind, message):
    with pytest.raises(kind, match=message) as error:
        type_of(op, shape, dtype, **config)
    assert error.value.op == op


def test_one_operand():
    t = TensorType(DType.C64, (2,))
    with pytest.raises(InvalidCompiledGraph, match="expected 1 inputs, got 2"):
        ops.Extension.of(fft.FAMILY, "fft", {}).result_types((t, t))


def test_programs_are_written_and_read():
    p = traced(lambda v: fft.rfft(v, 5, -2, "ortho"), np.zeros((3, 3)))
    assert loads(dumps(p)) == p
