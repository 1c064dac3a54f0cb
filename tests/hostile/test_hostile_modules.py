"""Damaged modules: typed errors, no hang, and a reader that goes on with the next one, in a new process if MLIR ended the old."""

from __future__ import annotations

import base64
import random
from collections import Counter

import pytest
from hypothesis import settings

from tenferro_ref.errors import FormatError, TenferroError
from tenferro_ref.isolation.reader import Reader
from tests.libraries import module_or_skip

pytestmark = pytest.mark.once

module_or_skip("jaxlib")

#: Damaged modules of each form: few under the profiles of a machine and of CI, 500 at night.
ROUNDS = settings.default.max_examples // 4

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


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, left out, doubled or exchanged."""
    for _ in range(rng.randint(1, 4)):
        i, j = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        piece = data[i : min(j, i + 40)]
        kind = rng.randrange(4)
        if kind == 0:
            data = data[:i] + bytes(rng.randrange(256) for _ in range(rng.randint(1, 3))) + data[i + 1 :]
        elif kind == 1:
            data = data[:i] + data[i + len(piece) :]
        elif kind == 2:
            data = data[:j] + piece + data[j:]
        else:
            data = data[:i] + piece[::-1] + data[i + len(piece) :]
        data = data or b"\0"
    return data


@pytest.mark.parametrize("form", ["text", "bytecode", "portable"])
def test_damaged_modules_end_with_typed_errors_and_the_reader_goes_on(form: str) -> None:
    rng, ends = random.Random(form), Counter[str]()
    with Reader(seconds=10) as reader:
        source = reader.source(SOUND, "sound")
        data = SOUND.encode() if form == "text" else reader.serialized(source, form)
        for _ in range(ROUNDS):
            code: bytes | str = damaged(data, rng)
            if form == "text":
                code = bytes(code).decode("utf-8", "replace")
            try:
                found = reader.source(code, "damaged")
                ends["read"] += 1
                reader.load(found.code, "damaged")
                ends["loaded"] += 1
            except TenferroError as error:
                ends[error.kind] += 1
        assert reader.source(SOUND, "sound") == source
    assert ends["FormatError"]


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
        with pytest.raises(FormatError, match=r"does not survive this module \(timeout after 3 s"):
            reader.source(ENDLESS, "endless")
        assert reader.source(SOUND, "sound") == source
        assert reader.worker.deaths == 1
