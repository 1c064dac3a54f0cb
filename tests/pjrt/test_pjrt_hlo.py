"""Optimised programs: what our reader finds in them, beside XLA's own reader, and bytes that are none."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, PjrtCall
from tenferro_ref.pjrt import Client, HloInstruction, hlo_instructions
from tenferro_ref.pjrt.options import _field, _message
from tests.pjrt.conftest import MakeClient

PROGRAM = """
func.func public @main(%a: tensor<8x8xf32>, %b: tensor<8x3xcomplex<f64>>, %c: tensor<9xi64>) -> (tensor<8xf32>, tensor<8x3xcomplex<f64>>, tensor<9xi64>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.sine %0 : tensor<8x8xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %3 = stablehlo.exponential %b : tensor<8x3xcomplex<f64>>
  %4 = "stablehlo.sort"(%c) ({
    ^bb0(%x: tensor<i64>, %y: tensor<i64>):
      %5 = stablehlo.compare LT, %x, %y : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
  }) : (tensor<9xi64>) -> tensor<9xi64>
  return %2, %3, %4 : tensor<8xf32>, tensor<8x3xcomplex<f64>>, tensor<9xi64>
}
"""
TYPES = [(DType.F32, (8, 8)), (DType.C64, (8, 3)), (DType.I64, (9,))]


def optimised(client: Client) -> tuple[bytes, str]:
    with client.compile(PROGRAM, parameters=TYPES) as executable:
        return executable.optimized_program()


def test_instructions_of_a_program(client: Client) -> None:
    found = set(hlo_instructions(*optimised(client)))
    wanted = {
        HloInstruction("sine", "f32", ""),
        HloInstruction("reduce", "f32", ""),
        HloInstruction("complex", "c128", ""),  # exp of a complex number is expanded
        HloInstruction("sort", "s64", ""),
        HloInstruction("compare", "pred", ""),
        HloInstruction("fusion", "c128", "kLoop"),
        HloInstruction("tuple", "tuple", ""),
    }
    assert wanted <= found
    assert any(i.opcode in ("dot", "custom-call") for i in found)


def test_xlas_own_reader_finds_the_same(client: Client) -> None:
    xla = pytest.importorskip("jaxlib.xla_client").hlo
    program, format = optimised(client)
    assert format == "hlo_with_config"
    text = xla.HloModule.from_serialized_hlo_module_proto(_first_field(program)).to_string()
    lines = re.findall(r"^ +(?:ROOT )?\S+ = (\(|\w+)(?:.*?) ([a-z][a-z-]*)\(", text, re.MULTILINE)
    expected = Counter((opcode, "tuple" if kind == "(" else kind) for kind, opcode in lines)
    assert len(expected) > 10
    assert Counter((i.opcode, i.element) for i in hlo_instructions(program, format)) == expected


def _first_field(data: bytes) -> bytes:
    """The module in a HloModuleProtoWithConfig, which it begins with."""
    assert data[0] == 1 << 3 | 2
    size = shift = 0
    for at, byte in enumerate(data[1:], 1):
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return data[at + 1 : at + 1 + size]
    raise AssertionError


def test_a_closed_executable_and_a_plugin_that_does_not_tell(client: Client, fake_client: MakeClient) -> None:
    executable = client.compile(PROGRAM, parameters=TYPES)
    executable.close()
    with pytest.raises(PjrtCall, match="closed"):
        executable.optimized_program()
    fake = fake_client().compile(PROGRAM, parameters=TYPES)
    with pytest.raises(PjrtCall, match="does not have this function"):
        fake.optimized_program()


# --- bytes ------------------------------------------------------------------------------------------------------------

SHAPE = _field(2, 0, b"\x0b")  # f32
ADD = _message(1, b"add.1") + _message(2, b"add") + _message(3, SHAPE) + _field(35, 0, b"\x05")
FUSION = _message(2, b"fusion") + _message(3, _field(2, 0, b"\x0c")) + _message(11, b"kLoop")
CALL = _message(2, b"custom-call") + _message(3, _field(2, 0, b"\x63")) + _message(28, b"TopK") + _field(90, 5, b"1234")
MODULE = _message(1, b"main") + _message(3, _message(2, ADD) + _message(2, FUSION)) + _message(3, _message(2, CALL))
READ = [
    HloInstruction("add", "f32", ""),
    HloInstruction("fusion", "f64", "kLoop"),
    HloInstruction("custom-call", "type 99", "TopK"),
]


def test_a_module_with_and_without_its_configuration() -> None:
    assert hlo_instructions(MODULE, "hlo") == READ
    assert hlo_instructions(_message(1, MODULE) + _message(2, b"\x08\x01"), "hlo_with_config") == READ


@pytest.mark.parametrize(
    ("data", "format", "detail"),
    [
        (MODULE, "mlir", "format is 'mlir'"),
        (b"", "hlo", "no instructions"),
        (b"", "hlo_with_config", "no instructions"),
        (MODULE[:-1], "hlo", "are left"),
        (_message(3, _message(2, _message(1, b"add.1"))), "hlo", "no opcode"),
        (_message(3, _message(2, _message(2, b"\xff"))), "hlo", "UTF-8"),
        (_message(3, _message(2, _field(2, 0, b"\x01"))), "hlo", "a number where"),
        (b"\x1b", "hlo", "wire type 3"),
        (b"\x80" * 11, "hlo", "no end"),
        (b"\x80", "hlo", "no end"),
        (b"\x02\x00", "hlo", "field 0"),
    ],
)
def test_what_is_no_module(data: bytes, format: str, detail: str) -> None:
    with pytest.raises(FormatError, match=detail):
        hlo_instructions(data, format)


@settings(max_examples=50)
@given(st.integers(0, len(MODULE) - 1), st.integers(0, 255), st.integers(0, len(MODULE)))
def test_damaged_bytes_are_read_or_refused(at: int, byte: int, end: int) -> None:
    damaged = bytearray(MODULE)
    damaged[at] = byte
    try:
        found = hlo_instructions(bytes(damaged[:end]), "hlo")
    except FormatError:
        return
    assert found
