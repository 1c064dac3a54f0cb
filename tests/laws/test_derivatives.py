"""Derivatives where a function has a kink, a pole or a tie, and at repeated or outlying indices: what SEMANTICS B.2 says.

Identities claim nothing there, or hold for any choice. Each entry is a program of one op, its inputs, and the cotangents of
the inputs for a cotangent of ones; tangents are the same numbers, by the inner product with each unit tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log, nan
from typing import NamedTuple

import numpy as np
import pytest

from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.autodiff import jvp, vjp
from tenferro_ref.autodiff.errors import UnsupportedMetadata
from tenferro_ref.extensions import fft
from tenferro_ref.ops import Policy
from tenferro_ref.program import GraphBuilder, Program, Value
from tests.autodiff.products import run

pytestmark = pytest.mark.once

SKIP = Policy(scatter_bounds="skip")


class Entry(NamedTuple):
    """A function, its inputs, and what a cotangent of ones is taken to; None where there is no derivative."""

    function: Callable[..., Value]
    inputs: Sequence[object]
    due: Sequence[object]
    policy: Policy = Policy()


def gather(x: Value, i: Value) -> Value:
    return x.builder.apply(ops.Gather((), (0,), (0,), 1, (1,)), x, i)


def scatter(x: Value, i: Value, u: Value) -> Value:
    return x.builder.apply(ops.Scatter((), (0,), (0,), 1), x, i, u)


def pow_(x: Value, y: Value) -> Value:
    return x**y


def real_spectrum(n: int, length: int) -> np.ndarray:
    """What ones for the real parts of an rfft of `n` are worth in terms of a signal of some length."""
    k, j = np.arange(n // 2 + 1)[:, np.newaxis], np.arange(length)
    return np.where(j < n, np.cos(2 * np.pi * j * k / n).sum(0), 0.0)


I = np.array
TABLE: dict[str, Entry] = {
    "abs at 0": Entry(abs, [I([0.0, -0.0, -2.0])], [[0.0, 0.0, -1.0]]),
    "complex abs at 0": Entry(abs, [I([0j, 3 + 4j])], [[0j, 0.6 + 0.8j]]),
    "a permutation of order 3": Entry(lambda x: x.transpose(1, 2, 0), [np.ones((1, 2, 3))], [np.ones((1, 2, 3))]),
    "sign": Entry(tn.sign, [I([0.0, 2.0])], [None]),
    "maximum of equals": Entry(tn.maximum, [I([1.0, 2.0]), I([1.0, 1.0])], [[0.5, 1.0], [0.5, 0.0]]),
    "minimum of equals": Entry(tn.minimum, [I([1.0, 2.0]), I([1.0, 1.0])], [[0.5, 0.0], [0.5, 1.0]]),
    "maximum of NaN": Entry(tn.maximum, [I([nan]), I([1.0])], [[0.0], [0.0]]),
    "clamp at its bounds": Entry(lambda x: tn.clip(x, 1.0, 3.0), [I([0.0, 1.0, 2.0, 3.0, 4.0])], [[0.0, 0.0, 1.0, 0.0, 0.0]]),
    "largest of ties": Entry(lambda x: x.max(0), [I([2.0, 1.0, 2.0])], [[0.5, 0.0, 0.5]]),
    "smallest of ties": Entry(lambda x: x.min(0), [I([2.0, 1.0, 1.0, 1.0])], [[0.0, 1 / 3, 1 / 3, 1 / 3]]),
    "largest over no axis": Entry(lambda x: x.builder.apply(ops.ReduceMax(()), x), [I([2.0, nan])], [[1.0, 1.0]]),
    "largest with NaN": Entry(lambda x: x.max(0), [I([2.0, nan])], [[nan, nan]]),
    "product with one zero": Entry(lambda x: x.prod(), [I([0.0, 3.0, 4.0])], [[12.0, 0.0, 0.0]]),
    "product with two zeros": Entry(lambda x: x.prod(), [I([0.0, 0.0, 4.0])], [[0.0, 0.0, 0.0]]),
    "product of five": Entry(lambda x: x.prod(), [I([1.0, 2.0, 3.0, 4.0, 5.0])], [[120.0, 60.0, 40.0, 30.0, 24.0]]),
    "product of none": Entry(lambda x: x.prod(1), [np.ones((2, 0))], [None], Policy(empty_reduction="identity")),
    "filled to a length": Entry(lambda x, y: tn.pad_to_match(x, y) * y, [I([1.0]), I([2.0, 3.0])], [[2.0], [1.0, 0.0]]),
    "real spectrum": Entry(lambda x: fft.rfft(x).astype("F64"), [np.arange(4.0)], [real_spectrum(4, 4)]),
    "real spectrum, filled": Entry(lambda x: fft.rfft(x, n=5).astype("F64"), [np.arange(3.0)], [real_spectrum(5, 3)]),
    "real spectrum, cropped": Entry(lambda x: fft.rfft(x, n=2).astype("F64"), [np.arange(3.0)], [real_spectrum(2, 3)]),
    "real signal": Entry(lambda x: fft.irfft(x, n=4), [I([1 + 0j, 2 + 1j, 3 + 0j])], [[1 + 0j, 0j, 0j]]),
    "root at 0": Entry(tn.sqrt, [I([0.0, 4.0])], [[inf, 0.25]]),
    "reciprocal root at 0": Entry(tn.rsqrt, [I([0.0, 4.0])], [[-inf, -1 / 16]]),
    "log at 0": Entry(tn.log, [I([0.0, 4.0])], [[inf, 0.25]]),
    "power": Entry(pow_, [I([2.0, 2.0, -1.0]), I([0.0, 3.0, 2.0])], [[0.0, 12.0, -2.0], [log(2), 8 * log(2), nan]]),
    "quotient": Entry(lambda x, y: x / y, [I([3.0]), I([2.0])], [[0.5], [-0.75]]),
    "conversion to integers": Entry(lambda x: x.astype("I64"), [I([1.5])], [None]),
    "conversion to reals": Entry(lambda x: x.astype("F64"), [I([1.5 + 2j])], [[1.0 + 0j]]),
    "both sides of a choice": Entry(
        lambda x, y: tn.where(x > y, x, y), [I([1.0, 3.0]), I([2.0, 2.0])], [[0.0, 1.0], [1.0, 0.0]]
    ),
    "one value twice": Entry(lambda x: x * x + x, [I([3.0])], [[7.0]]),
    "repeated indices": Entry(gather, [I([5.0, 6.0, 7.0]), I([[1], [1], [0]])], [[1.0, 2.0, 0.0], None]),
    "indices outside": Entry(gather, [I([5.0, 6.0]), I([[-3], [9]])], [[1.0, 1.0], None]),
    "indices outside, skipping": Entry(gather, [I([5.0, 6.0]), I([[-3], [9]])], [[1.0, 1.0], None], SKIP),
    "updates of one place": Entry(scatter, [I([5.0, 6.0]), I([[1], [1]]), I([1.0, 2.0])], [[1.0, 1.0], None, [1.0, 1.0]]),
    "updates outside": Entry(scatter, [I([5.0, 6.0]), I([[-1], [2]]), I([1.0, 2.0])], [[1.0, 1.0], None, [1.0, 1.0]]),
    "updates outside, skipping": Entry(
        scatter, [I([5.0, 6.0]), I([[-1], [1]]), I([1.0, 2.0])], [[1.0, 1.0], None, [0.0, 1.0]], SKIP
    ),
    "slice from outside": Entry(
        lambda x: tn.dynamic_slice(x, [7], [2]), [I([1.0, 2.0, 3.0])], [[0.0, 1.0, 1.0]]
    ),
    "strides": Entry(lambda x: x[::2] * 2.0, [I([1.0, 2.0, 3.0, 4.0])], [[2.0, 0.0, 2.0, 0.0]]),
    "cropped and spread": Entry(lambda x: tn.pad(x, (-1, 2), 1), [I([1.0, 2.0, 3.0])], [[0.0, 1.0, 1.0]]),
    "a part without a tangent": Entry(
        lambda x: tn.concatenate([x.builder.constant(9.0).broadcast_to((2,)), x]), [I([1.0])], [[1.0]]
    ),
}  # fmt: skip


def built(entry: Entry) -> tuple[Program, list[np.ndarray]]:
    b = GraphBuilder(policy=entry.policy)
    arrays = [np.asarray(a) for a in entry.inputs]
    values = [b.input({"f": "F64", "c": "C64", "i": "I64"}[a.dtype.kind], a.shape) for a in arrays]
    return b.build(entry.function(*values)), arrays


def same(seen: np.ndarray, due: object) -> None:
    np.testing.assert_allclose(seen, np.asarray(due), rtol=1e-15, atol=1e-15, equal_nan=True)


@pytest.mark.parametrize("name", TABLE)
def test_cotangents_are_those_of_the_contract(name: str) -> None:
    entry = TABLE[name]
    program, arrays = built(entry)
    backward = vjp(program)
    with np.errstate(all="ignore"):
        seeds = [np.ones(t.static_shape, t.dtype.numpy) for t in backward.program.input_types[len(arrays) :]]
        results = run(backward.program, [*arrays, *seeds])
    assert len(backward.results) == len(entry.due)
    for place, due in zip(backward.results, entry.due, strict=True):
        assert (place is None) == (due is None)
        if place is not None:
            same(results[place], due)


@pytest.mark.parametrize("name", [n for n, e in TABLE.items() if all(d is None or np.isfinite(d).all() for d in e.due)])
def test_tangents_are_those_of_the_contract(name: str) -> None:
    entry = TABLE[name]
    program, arrays = built(entry)
    for number, due in enumerate(entry.due):
        forward = jvp(program, [number])
        if due is None:
            assert forward.results == (None,)
            continue
        slopes = np.asarray(due)
        units = [u for u in (1.0, 1j) if u == 1.0 or slopes.dtype.kind == "c"]
        for index in np.ndindex(slopes.shape):
            for unit in units:
                tangent = np.zeros(slopes.shape, slopes.dtype)
                tangent[index] = unit
                with np.errstate(all="ignore"):
                    (seen,) = run(forward.program, [*arrays, tangent])
                same(np.real(seen.sum()), np.real(np.conj(unit) * slopes[index]))


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("m", [3, "m"])
def test_symbolic_extents_have_the_same_derivatives(n: int, m: int | str) -> None:
    b = GraphBuilder()
    x, y = b.input("F64", ("n",)), b.input("F64", ("n", 2))
    z = b.input("F64", (m,))
    backward = vjp(b.build((y.reshape(-1) * 3.0).sum() + (x * x).sum() + tn.pad_to_match(x, z).sum()))
    xs, zs = np.arange(1.0, n + 1), np.array([5.0, 6.0, 7.0])
    results = run(backward.program, [xs, np.ones((n, 2)), zs, np.array(1.0)])
    assert results[0].tolist() == (2 * xs + 1).tolist()
    assert (results[1] == 3.0).all()


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("width", ["n", "k"])
def test_windows_of_symbolic_extents_are_gathered_back(width: str, k: int) -> None:
    """Rows are added to the beginnings of rows 2 and 0 of a matrix; what they are worth is there in its cotangent."""
    b = GraphBuilder()
    x, i, u = b.input("F64", (3, "n")), b.input("I64", (2, 1)), b.input("F64", (2, width))
    backward = vjp(b.build(b.apply(ops.Scatter((1,), (0,), (0,), 1), x, i, u)), [0, 2])
    g = np.arange(9.0).reshape(3, 3)[:, : k if width == "n" else 3]
    dx, du = run(backward.program, [np.ones(g.shape), I([[2], [0]]), np.ones((2, k)), g])
    assert (dx.tolist(), du.tolist()) == (g.tolist(), g[[2, 0], :k].tolist())


def test_what_is_padded_to_a_symbolic_extent_is_cut_off_again() -> None:
    b = GraphBuilder()
    x, z = b.input("F64", (2,)), b.input("F64", ("m",))
    padded = tn.pad_to_match(x, z)
    backward = vjp(b.build((padded * padded).sum()), [0])
    assert run(backward.program, [np.array([2.0, 5.0]), np.ones(3), np.array(1.0)])[0].tolist() == [4.0, 10.0]


def test_an_extent_that_only_a_run_knows_is_refused() -> None:
    b = GraphBuilder()
    with pytest.raises(UnsupportedMetadata, match="only a run knows"):
        vjp(b.build(tn.truncate(b.input("F64", (3,)), 2, 0).sum()))
