"""Which freedom puts an answer outside IEEE arithmetic."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from oracle.beyond import FREEDOMS, TOGETHER, beyond_ieee
from oracle.case import Case
from oracle.enclosure.model import Model
from tenferro_ref.program import parse
from tenferro_ref.tensor import Array


def test_every_freedom_of_a_model_has_a_name() -> None:
    flags = {f.name for f in fields(Model) if f.type == "bool"} - {"real"}  # no platform computes so
    assert {flag for named in FREEDOMS.values() for flag in named} == flags


def case(text: str, *inputs: Array) -> Case:
    return Case.of(parse(text), inputs)


CONTRACTED = case(
    """graph (%0: F32[2], %1: F32[2], %2: F32[2]) -> (%4) slots 5 {
  %3 = Multiply(%0, %1) : F32[2]
  %4 = Add(%3, %2) : F32[2]
}
""",
    *(np.full(2, x, np.float32) for x in (1 + 2.0**-12, 1 + 2.0**-12, -1)),
)
#: Unrounded, the product has another last bit.
FUSED = np.full(2, np.float32((1 + 2.0**-12) ** 2 - 1))
SMALL = case(
    "graph (%0: F32[2]) -> (%1) slots 2 {\n  %1 = Add(%0, %0) : F32[2]\n}\n", np.array([1e-40, 1.0], np.float32)
)


@pytest.mark.parametrize(
    ("of", "output", "expected"),
    [
        (CONTRACTED, FUSED, {"FMA": 2}),
        (SMALL, np.array([0, 2], np.float32), {"flush": 1}),
        (SMALL, SMALL.inputs[0] * 2, {}),
    ],
)
def test_elements_are_counted_by_the_freedom_that_is_enough(of: Case, output: Array, expected: dict[str, int]) -> None:
    assert beyond_ieee(of, [output], "xla") == expected
    assert TOGETHER not in expected
