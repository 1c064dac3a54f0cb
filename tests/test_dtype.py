"""The seven dtypes and the promotion rule (SEMANTICS 1, 1.1)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tenferro_ref.dtype import COMPLEX, ENGINE_DTYPES, FLOAT, INT, NUMERIC, REAL, DType, promote

F32, F64, I32, I64, Bool, C32, C64 = ENGINE_DTYPES

#: Everything that SEMANTICS 1.1 says of two different dtypes.
PAIRS = {
    (I32, I64): I64,
    (I32, F32): F64,
    (I32, F64): F64,
    (I64, F32): F64,
    (I64, F64): F64,
    (I32, C32): C64,
    (I32, C64): C64,
    (I64, C32): C64,
    (I64, C64): C64,
    (F32, F64): F64,
    (F32, C32): C32,
    (F32, C64): C64,
    (F64, C32): C64,
    (F64, C64): C64,
    (C32, C64): C64,
    **{(Bool, other): other for other in ENGINE_DTYPES if other is not Bool},
}


def test_names_sizes_and_numpy_types() -> None:
    assert [d.name for d in ENGINE_DTYPES] == ["F32", "F64", "I32", "I64", "Bool", "C32", "C64"]
    assert [d.itemsize for d in ENGINE_DTYPES] == [4, 8, 4, 8, 1, 8, 16]
    for dtype in ENGINE_DTYPES:
        assert dtype.numpy.newbyteorder("<") == dtype.numpy
        assert dtype.numpy.byteorder in "=|"  # explicit, it is shown, and `memoryview.tolist` fails
        assert DType.of(np.zeros(2, dtype.numpy)) is dtype
        assert str(dtype) == repr(dtype) == dtype.name


@pytest.mark.parametrize("foreign", ["longdouble", "clongdouble", "object", "U3", ">f8", "datetime64[s]"])
def test_other_dtypes_are_foreign(foreign: str) -> None:
    with pytest.raises(KeyError):
        DType.of(np.zeros(1, foreign))


def test_every_pair_is_covered_and_promotes_as_the_rule_says() -> None:
    for a, b in itertools.combinations(ENGINE_DTYPES, 2):
        expected = PAIRS[(a, b)] if (a, b) in PAIRS else PAIRS[(b, a)]
        assert promote((a, b)) is expected
        assert promote((b, a)) is expected
    for a in ENGINE_DTYPES:
        assert promote((a,)) is a
        assert promote((a, a)) is a


def test_the_empty_list_is_f64() -> None:
    assert promote(()) is F64
    assert promote(iter(())) is F64


def test_promotion_is_a_left_fold_and_where_it_depends_on_order_is_known() -> None:
    """Only an int between F32 and F32/C32 widens: the fold is associative but for nothing else."""
    for a, b, c in itertools.product(ENGINE_DTYPES, repeat=3):
        left = promote((promote((a, b)), c))
        assert promote((a, b, c)) is left
        right = promote((a, promote((b, c))))
        assert left is right or ({F32, C32} & {a, b, c} and INT & {a, b, c})


def test_parts_of_complex() -> None:
    assert [(c.real, c.real.complex) for c in (C32, C64)] == [(F32, C32), (F64, C64)]
    assert [d.real for d in (F32, F64, I32, I64, Bool)] == [F32, F64, I32, I64, Bool]
    assert C32.complex is C32


def test_classes_partition_the_numbers() -> None:
    assert NUMERIC | {Bool} == set(ENGINE_DTYPES)
    assert FLOAT | INT == REAL
    assert not FLOAT & INT
    assert not REAL & COMPLEX
    for dtype in ENGINE_DTYPES:
        assert (dtype.is_float, dtype.is_int, dtype.is_complex) == (dtype in FLOAT, dtype in INT, dtype in COMPLEX)


def test_dtypes_hash_and_compare_by_identity() -> None:
    assert len({*DType, *DType}) == len(DType)
    assert DType["F32"] is F32
