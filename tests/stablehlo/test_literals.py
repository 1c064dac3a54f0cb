from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_ref.dtype import DType
from tenferro_ref.stablehlo.literals import literal, type_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(2.0), "2.0"),
        (np.float64(-3.0), "-3.0"),
        (np.float64(0.0), "0.0"),
        (np.float64(-0.0), "-0.0"),
        (np.float64(0.1), "0x3FB999999999999A"),
        (np.float64(2.5), "0x4004000000000000"),
        (np.float64(-2.5), "0xC004000000000000"),  # no minus before hexadecimal
        (np.float64(5e-324), "0x0000000000000001"),
        (np.float64(1e16), "0x4341C37937E08000"),
        (np.float64(2.0**53 - 1), "9007199254740991.0"),
        (np.float64(np.inf), "0x7FF0000000000000"),
        (np.float64(-np.inf), "0xFFF0000000000000"),
        (np.float64(np.nan), "0x7FF8000000000000"),
        (np.float32(0.1), "0x3DCCCCCD"),
        (np.float32(1e-45), "0x00000001"),
        (np.float32(-np.inf), "0xFF800000"),
        (np.float32(np.nan), "0x7FC00000"),
        (np.float32(2**24 - 1), "16777215.0"),
        (np.float32(2**24), "0x4B800000"),
        (np.int32(-(2**31)), "-2147483648"),
        (np.int64(7), "7"),
        (np.bool_(True), "true"),
        (np.bool_(False), "false"),
        (np.complex64(1 - 2j), "(1.0, -2.0)"),
        (np.complex128(complex(0.1, -np.inf)), "(0x3FB999999999999A, 0xFFF0000000000000)"),
    ],
)
def test_literal(value: np.generic, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize(("bits", "text"), [(0x7FF8000000001234, "0x7FF8000000001234"), (0x7FC01234, "0x7FC01234")])
def test_the_payload_of_a_nan_is_kept(bits: int, text: str) -> None:
    assert literal(np.uint64(bits).view(np.float64) if bits > 2**32 else np.uint32(bits).view(np.float32)) == text


@given(st.integers(0, 2**64 - 1))
def test_f64_text_reads_back_bit_for_bit(bits: int) -> None:
    text = literal(np.uint64(bits).view(np.float64))
    if text.startswith("0x"):
        assert len(text) == 18
        assert int(text, 16) == bits
    else:
        assert "." in text
        assert int(np.float64(text).view(np.uint64)) == bits


@given(st.floats(width=32))
def test_f32_text_reads_back_bit_for_bit(value: float) -> None:
    given_bits = int(np.float32(value).view(np.uint32))
    text = literal(np.float32(value))
    assert (int(text, 16) if text.startswith("0x") else int(np.float32(text).view(np.uint32))) == given_bits


def test_type_text() -> None:
    assert type_text(DType.F64, ()) == "tensor<f64>"
    assert type_text(DType.F32, (2, 0, 3)) == "tensor<2x0x3xf32>"
    assert [type_text(d, (1,)) for d in (DType.I32, DType.I64, DType.Bool, DType.C32, DType.C64)] == [
        "tensor<1xi32>", "tensor<1xi64>", "tensor<1xi1>", "tensor<1xcomplex<f32>>", "tensor<1xcomplex<f64>>",
    ]  # fmt: skip
