"""Modules that end MLIR, or that it reads for ever: typed errors, and a reader that goes on with the next one in a new process."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from tenferro_ref.errors import FormatError, UnsupportedOp
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.stablehlo.loader import signature
from tests.libraries import module_or_skip

pytestmark = pytest.mark.once

module_or_skip("jaxlib")

SOUND = """module {
  func.func @main(%a: tensor<2x3xf32>, %n: tensor<i32>) -> (tensor<2x3xf32>, tensor<2xi1>) {
    %k = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
    %0 = func.call @f(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.multiply %0, %k : tensor<2x3xf32>
    %c = stablehlo.constant dense<true> : tensor<2xi1>
    return %1, %c : tensor<2x3xf32>, tensor<2xi1>
  }
  func.func private @f(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.add %a, %a : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
"""


def test_a_module_that_ends_mlir_costs_a_process_and_no_more() -> None:
    deep = "module attributes {a = " + "[" * 50_000 + "]" * 50_000 + "} {}"
    with Reader() as reader:
        source = reader.source(SOUND, "sound")
        first = reader.worker.pid
        with pytest.raises(FormatError):
            reader.source(deep, "deep")
        assert reader.source(SOUND, "sound") == source
        assert reader.worker.pid != first
        assert reader.worker.deaths == 1


#: A portable artifact with some bytes changed, of which MLIR's bytecode reader makes no end.
ENDLESS = base64.b64decode(
    "TUzvUg1TdGFibGVITE9fdjEuMTcuMAABHwUBBQ8BAwsDDQ8TFxsfIwNPLxEBHQsTExMTExMTExMTExMTAxMLCwsLCwsLbxMDERcTDx8HBwcXAv"
    "0FExcBAwsBFxUJARcVBwEXUQUBFycFARcLFwEXFRUBFzETARcHEwEXBwUBFwMVFwENFRcBDwsDAR0VIwcdFx0ZIw8dGx8BMQAAgD8AAABAAABA"
    "QAAAgEAAAKBAAADAQB8DA/8pBQkNCSkDCQ0pAQsRBQEFBQEDCRsBEQMBAwEEsQUBUAMBBwShAwEJA1AFAwcEVwMNFwUDDwsRAAdCEwUDAQtGFQ"
    "cDAQMBDQYXAwEFBwUHQhkJAwMFBBsFCQsDUAcLBwQpAwULAwMJAAkGCwMBBQEBBQQNAwMGAwEFAQDdHREDCwUFGREPGRURDwsRYnVpbHRpbgB2"
    "aGxvAG1vZHVsZQBmdW5jX3YxAHJldHVybl92MQBjb25zdGFudF92MQBhZGRfdjEAY2FsbF92MQBtdWx0aXBseV92MQAtAGYAbWFpbgAAcHJpdm"
    "F0ZQAILQ0FAQELHSEdIyUDKwMfAy0LHScdHyk="
)


def test_a_module_that_mlir_reads_for_ever_is_refused_in_time() -> None:
    with Reader(seconds=3) as reader:
        source = reader.source(SOUND, "sound")
        with pytest.raises(FormatError, match=r"too much work \(timeout after 3 s"):
            reader.source(ENDLESS, "endless")
        assert reader.source(SOUND, "sound") == source
        assert reader.worker.deaths == 1


#: A loop of a million steps, each of which is an instruction.
LONG = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.while(%i = %zero) : tensor<i32> cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j : tensor<i32>
  }
  return %0 : tensor<i32>
}"""


def test_a_module_that_takes_too_long_as_a_program_is_unsupported() -> None:
    """It is a module: executors run it, and the native one cannot be held against it."""
    with Reader(seconds=3) as reader:
        source = reader.source(LONG, "long")
        with pytest.raises(UnsupportedOp, match=r"too much work \(timeout after 3 s"):
            reader.load(source.code, "long", [np.array(10**6, np.int32)])


def test_a_name_that_is_not_utf_8_is_a_typed_error() -> None:
    """In the process that reads: nothing dies of it."""
    with pytest.raises(FormatError, match="not UTF-8"):
        signature(SOUND.replace("@f(", '@"\\FF"('), "named")
