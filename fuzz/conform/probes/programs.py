"""Programs: what is announced of them before they run, and what comes out when they do."""

from __future__ import annotations

import numpy as np

from fuzz.conform.probes.session import F32_4, SUM, Fails, Lacks, Session, X, Y, same_bits
from fuzz.conform.probes.table import probe
from tenferro_ref.dtype import DType
from tenferro_ref.pjrt import TensorSpec

_SAME = "module @same { func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> } }"
_SWAP = """module @swap { func.func @main(%a: tensor<4xf32>, %b: tensor<2x3xi32>) -> (tensor<2x3xi32>, tensor<4xf32>) {
  return %b, %a : tensor<2x3xi32>, tensor<4xf32>
} }"""
_MATRIX: TensorSpec = (DType.I32, (2, 3))


@probe("programs", "a program that returns its argument")
def _(s: Session) -> None:
    with s.compile(_SAME, F32_4) as executable:
        same_bits(executable.run([X])[0], X, "x")


@probe("programs", "a sum, a hundred times")
def _(s: Session) -> None:
    for _ in range(100):
        same_bits(s.sum.run([X, Y])[0], X + Y, "x + y")


@probe("programs", "several results, in their order")
def _(s: Session) -> None:
    matrix = np.arange(6, dtype=np.int32).reshape(2, 3)
    with s.compile(_SWAP, F32_4, _MATRIX) as executable:
        first, second = executable.run([X, matrix])
    same_bits(first, matrix.copy("F"), "the first")
    same_bits(second, X, "the second")


@probe("programs", "number and types of results are announced as the program has them")
def _(s: Session) -> None:
    with s.client.compile(_SWAP, parameters=[F32_4, _MATRIX], results=[_MATRIX, F32_4]):
        s.need("Executable_OutputElementTypes", "Executable_OutputDimensions")


@probe("programs", "the program's name is kept")
def _(s: Session) -> None:
    if s.sum.name != "sum":
        raise Fails(f"it is {s.sum.name!r}, in the module 'sum'")


@probe("programs", "what the plugin made of it")
def _(s: Session) -> None:
    s.need("Executable_OptimizedProgram")
    code, form = s.sum.optimized_program()
    if not code or not form:
        raise Lacks(f"{len(code)} bytes of the format {form!r}")


@probe("programs", "two executables side by side")
def _(s: Session) -> None:
    with s.compile(_SAME, F32_4) as one, s.compile(SUM, F32_4, F32_4) as other:
        same_bits(one.run([Y])[0], Y, "y")
        same_bits(other.run([X, Y])[0], X + Y, "x + y")
        same_bits(one.run([X])[0], X, "x")
