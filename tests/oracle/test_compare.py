"""Comparison: what is outside, decided, forgiven, how far, and the words for it."""

import numpy as np
import pytest

from oracle.compare import SAMPLE, compare, compare_bits
from oracle.enclosure import IEEE, XLA, enclose
from oracle.ulp import ordinals, ulp_distance
from oracle.verdict import Comparison
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Add, Compare, CompareDir, Convert, Exp, Log, Multiply, Negate, Sqrt
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


def test_right_answers_pass():
    c = held(program(Exp(), Negate()), X, np.exp(X), -X)
    assert (c.elements, c.decided, c.outside, c.worst_ulp) == (8, 8, 0, 0.0)
    assert c.worst_output is None
    assert c.value_class == c.observed == c.expected == ""


def test_the_first_wrong_element_is_named():
    wrong = np.exp(X)
    wrong[2] = 1.5
    wrong[3] = np.nan
    c = held(program(Negate(), Exp()), X, -X, wrong)
    assert (c.outside, c.worst_output, c.worst_index) == (2, 1, (2,))
    assert c.value_class == "expected finite, got other finite"
    assert c.observed == "1.5"
    assert c.expected.startswith("[0.999")


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


def test_words_of_bool_and_integers():
    c = held(program(Compare(CompareDir.Lt)), X, X == X)
    assert (c.value_class, c.expected, c.observed) == ("expected false, got true", "false", "true")
    c = held(program(Convert(DType.I32)), X, np.int32([1, -2, 0, 6]))
    assert (c.value_class, c.expected, c.observed) == ("expected integer, got other integer", "5", "6")


def test_open_intervals_in_words():
    edge = F32([88.72284, 88.72284, 0, 0])
    c = held(program(Exp()), edge, F32([1.0, np.inf, 1, 1]))
    assert c.decided == 2
    assert c.value_class == "expected a half-line, got other finite"
    assert c.expected.endswith(", inf]")


@pytest.mark.parametrize(
    ("observed", "value_class"),
    [
        (np.zeros((3, 2), F32), "shape [2, 3], got [3, 2]"),
        (np.zeros((2, 3)), "dtype F32, got float64"),
    ],
)
def test_other_shapes_and_dtypes_are_mismatches(observed, value_class):
    c = held(program(Negate(), shape=(2, 3)), np.ones((2, 3), F32), observed)
    assert c.outside == c.elements == 6
    assert c.value_class == value_class
    assert c.worst_output == 0


def test_a_missing_output_is_a_mismatch():
    c = held(program(Negate(), Exp()), X, -X)
    assert c.value_class == "outputs 2, got 1"
    assert c.outside == 8


def test_what_the_platform_may_do_is_forgiven_and_counted():
    x = F32([1e-42, 1.0, 2.0, 3.0])
    c = held(program(Negate()), x, F32([-0.0, -1, -2, -3]))
    assert (c.outside, c.forgiven) == (0, 1)
    assert compare(enclose(program(Negate()), [x], XLA), None, [-x], [-x]).forgiven == 0


def test_the_distance_is_from_the_native_answer():
    p = program(Exp())
    native = np.exp(X)
    observed = native.copy()
    observed[1] = np.nextafter(np.nextafter(observed[1], F32(9)), F32(9))
    c = held(p, X, observed, native=[native])
    assert c.worst_ulp == 2.0
    assert c.outside == 0
    infinite = held(program(Log(), shape=(1,)), F32([0.0]), F32([-np.inf]))
    assert infinite.worst_ulp is None
    assert infinite.decided == 1


def test_widths_are_a_sample():
    x = np.linspace(-3, 3, 1000, dtype=F32)
    c = held(program(Exp(), Add(), shape=(1000,)), x, np.exp(x), x + x)
    assert 0 < len(c.widths) <= SAMPLE
    widths = [w for w, _ in c.widths]
    assert max(widths) > 2.5
    assert min(widths) == -1.0  # a single value
    assert all(d == 0 for _, d in c.widths)


def test_no_elements():
    c = held(program(Exp(), shape=(0,)), np.zeros(0, F32), np.zeros(0, F32))
    assert (c.elements, c.decided, c.outside, c.worst_ulp, c.widths) == (0, 0, 0, None, ())


def test_undecided_elements_are_not_counted_as_decided():
    b = GraphBuilder()
    x = b.input(DType.F32, (2,))
    y, z = b.apply(Exp(), x), b.apply(Exp(), x)  # read twice, one value would be known to be no less than itself
    p = b.build(b.apply(Compare(CompareDir.Lt), y, z), b.apply(Multiply(), y, z))
    v = F32([1, 2])
    c = held(p, v, v < v, np.exp(v) ** 2)
    assert (c.elements, c.decided) == (4, 2)


# --- bit for bit ----------------------------------------------------------------------------------------------------


def test_equal_bits():
    c = compare_bits([X, X > 0], [X.copy(), X > 0])
    assert (c.elements, c.decided, c.outside, c.worst_ulp) == (8, 8, 0, 0.0)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (F32([0.0]), F32([-0.0]), "expected +0, got -0"),
        (F32([1.0]), F32([np.nan]), "expected finite, got NaN"),
        (F32([1.0]), F32([2.0]), "expected finite, got other finite"),
        (np.array([True]), np.array([False]), "expected true, got false"),
        (np.array([1]), np.array([2]), "expected integer, got other integer"),
        (np.array([1 + 2j]), np.array([1 - 2j]), "expected complex, got other complex"),
    ],
)
def test_other_bits(a, b, words):
    c = compare_bits([a], [b])
    assert c.outside == 1
    assert c.value_class == words


def test_nan_payloads_and_memory_order():
    quiet, other = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(F32)
    assert compare_bits([np.array([quiet])], [np.array([other])]).outside == 1
    square = np.arange(6.0).reshape(2, 3)
    assert compare_bits([square], [np.asfortranarray(square)]).outside == 0
    changed = np.asfortranarray(square.copy())
    changed[1, 0] = 7
    assert compare_bits([square], [changed]).worst_index == (1, 0)


def test_other_shapes_counts_and_dtypes():
    assert compare_bits([X], [X, X]).outside == 4
    assert compare_bits([X], [X.reshape(2, 2)]).value_class == "shape [4], got [2, 2]"
    assert compare_bits([X], [X.astype(float)]).value_class == "dtype float32, got float64"


# --- distances ------------------------------------------------------------------------------------------------------


def test_distances_count_values():
    one = F32(1)
    assert ulp_distance(np.array([one]), np.array([np.nextafter(one, F32(2))]))[0] == 1
    assert ulp_distance(F32([0.0]), F32([-0.0]))[0] == 0
    tiny = np.finfo(F32).smallest_normal
    assert ulp_distance(np.array([tiny]), np.array([-tiny]))[0] == 2
    assert ulp_distance(F32([1e-42]), F32([0]))[0] == 0
    assert np.isnan(ulp_distance(F32([np.inf, np.nan]), F32([np.inf, 1]))).all()
    assert ulp_distance(np.array([1.0]), np.array([-1.0]))[0] > 2**62


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_ordinals_are_monotone(kind):
    info = np.finfo(kind)
    x = kind([info.min, -1, -info.smallest_normal, -info.smallest_subnormal, 0, info.smallest_subnormal, 1, info.max])
    assert (np.diff(ordinals(x)) > 0).all()
    assert ordinals(kind([-0.0]))[0] == 0


def test_a_native_answer_of_another_form_is_at_no_distance():
    right = np.exp(X.astype(np.float64)).astype(F32)
    e = enclose(program(Exp()), [X], IEEE)
    assert compare(e, None, [right], [right]).worst_ulp == 0
    for native in (right[:2], right.astype(np.float64)):
        assert compare(e, None, [right], [native]) == Comparison(4, 4)
