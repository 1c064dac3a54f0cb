"""Errors by input value: which elements are counted, and in which bins."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.by_input import errors_by_input
from oracle.case import Case
from tenferro_ref.program import parse

pytestmark = pytest.mark.once

PROGRAM = """graph (%0: F32[4], %1: F32[4]) -> (%2, %3) slots 4 {
  %2 = Exp(%0) : F32[4]
  %3 = Add(%2, %1) : F32[4]
}
"""


def test_only_what_one_op_computes_from_inputs_is_counted() -> None:
    x = np.array([0.0, 1.5, -300.0, np.inf], np.float32)
    case = Case.of(parse(PROGRAM), (x, x))
    native = (np.exp(x), x)
    off = native[0].copy()
    off[1] = np.nextafter(np.nextafter(off[1], np.float32(9)), np.float32(9))
    counted = errors_by_input(case, native, (off, x + 1))
    assert counted == (("Exp", "F32", "+0 2", 1), ("Exp", "F32", "-1 0", 1), ("Exp", "F32", "0 0", 1))
    assert errors_by_input(case, native, (off[:2], x)) == ()
