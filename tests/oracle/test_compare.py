"""Comparison: what is outside, decided, forgiven, how far, and the words for it."""

import numpy as np
import pytest

from oracle.compare import SAMPLE, compare
from oracle.enclosure import IEEE, XLA, enclose
from oracle.ulp import ordinals
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Add, Compare, CompareDir, Convert, Exp, Log, Negate, Sqrt
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


F32 = np.float32


def program(*ops, dtype=DType.F32, shape=(4,)):
    """Each op applied to the one input, or to it twice."""
    b = GraphBuilder()
    x = b.input(dtype, shape)
    return b.build(*(b.apply(op, *(x,) * op.arity) for op in ops))


def held(p, x, *observed, native=None):
    observed = [np.asarray(o) for o in observed]
    return compare(enclose(p, [x], XLA), enclose(p, [x], IEEE), observed, native or observed)


X = F32([1.0, -2.0, 0.0, 5.5])


@pytest.mark.parametrize(
    ("op", "x", "observed", "words", "expected"),
    [
        (Log(), -1.0, 2.0, "expected NaN, got finite", "NaN"),
        (Log(), -1.0, np.inf, "expected NaN, got inf", "NaN"),
        (Exp(), 100.0, 3e38, "expected inf, got finite", "inf"),
        (Exp(), 100.0, np.nan, "expected inf, got NaN", "inf"),
        (Negate(), np.inf, 1.0, "expected -inf, got finite", "-inf"),
        (Negate(), 0.0, 0.0, "expected -0, got +0", "-0"),
        (Negate(), -0.0, -0.0, "expected +0, got -0", "+0"),
        (Negate(), 0.0, 1.0, "expected -0, got other finite", "-0"),
        (Sqrt(), 4.0, 2.0000002, "expected finite, got other finite", "2.0"),
        (Sqrt(), 4.0, np.inf, "expected finite, got inf", "2.0"),
        (Sqrt(), 4.0, np.nan, "expected finite, got NaN", "2.0"),
        (Sqrt(), 4.0, 0.0, "expected finite, got +0", "2.0"),
    ],
)
def test_words(op, x, observed, words, expected):
    c = held(program(op, shape=()), np.asarray(F32(x)), F32(observed))
    assert c.outside == 1
    assert c.value_class == words
    assert c.expected == expected


def test_a_signaling_nan_is_a_nan():
    """A build may give any bits; NumPy warns of the cast of such a one."""
    observed = np.array([0x7F800001, 0x3F800000], np.uint32).view(F32)
    c = held(program(Log(), shape=(2,)), F32([-1.0, -1.0]), observed)
    assert (c.outside, c.value_class) == (1, "expected NaN, got finite")


def test_words_of_bool_and_integers():
    c = held(program(Compare(CompareDir.Lt)), X, X == X)
    assert (c.value_class, c.expected, c.observed) == ("expected false, got true", "false", "true")
    c = held(program(Convert(DType.I32)), X, np.int32([1, -2, 0, 6]))
    assert (c.value_class, c.expected, c.observed) == ("expected integer, got other integer", "5", "6")


@pytest.mark.parametrize(
    ("observed", "words"),
    [
        ((), "number of outputs 1, got 0"),
        ((np.zeros((2, 2), F32),), "output 0: shape [4], got [2, 2]"),
        ((np.zeros(4),), "output 0: dtype F32, got F64"),
        ((np.zeros(4, np.dtype("S1")),), "output 0: dtype F32, got |S1"),
        ((np.zeros(4, F32),), "output 0[0]: expected finite, got +0: 0.0 is not in 1.0 (4 of 4 elements)"),
    ],
)
def test_what_is_wrong_in_words(observed, words):
    x = np.full(4, -1.0, F32)
    assert held(program(Negate()), x, *observed).reason == words


def test_open_intervals_in_words():
    edge = F32([88.72284, 88.72284, 0, 0])
    c = held(program(Exp()), edge, F32([1.0, np.inf, 1, 1]))
    assert c.decided == 2
    assert c.value_class == "expected a half-line, got other finite"
    assert c.expected.endswith(", inf]")


def test_widths_are_a_sample():
    x = np.linspace(-3, 3, 1000, dtype=F32)
    c = held(program(Exp(), Add(), shape=(1000,)), x, np.exp(x), x + x)
    assert 0 < len(c.widths) <= SAMPLE
    widths = [w for w, _ in c.widths]
    assert max(widths) > 2.5
    assert min(widths) == -1.0  # a single value
    assert all(d == 0 for _, d in c.widths)


# --- distances ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_ordinals_are_monotone(kind):
    info = np.finfo(kind)
    x = kind([info.min, -1, -info.smallest_normal, -info.smallest_subnormal, 0, info.smallest_subnormal, 1, info.max])
    assert (np.diff(ordinals(x)) > 0).all()
    assert ordinals(kind([-0.0]))[0] == 0
