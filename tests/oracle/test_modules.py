"""Several programs in one StableHLO module."""

from __future__ import annotations

import numpy as np

from oracle.case import Case
from oracle.peers.modules import write
from tenferro_ref.program import parse

WINDOW = '%2 = DynamicSlice(%0, %1) {"slice_sizes": [2, 2]} : F64[2, 2]'
QR = '%3, %4 = Extension(%2) {"family": "tenferro-linalg.linalg.v1", "op": "HouseholderQrFactor", "config": {}} : F64[2, 2], F64[2]'
INPUTS = [np.zeros((3, 3), order="F"), np.zeros(2, np.int32)]


def case(outputs: str, *lines: str, slots: int) -> Case:
    head = f"graph (%0: F64[3, 3], %1: I32[2]) -> ({outputs}) slots {slots}"
    return Case.of(parse(f"{head} {{\n  " + "\n  ".join(lines) + "\n}\n"), INPUTS)


def test_a_refused_program_leaves_nothing_behind() -> None:
    """Its window has been written before its decomposition is refused; the other program's begins anew."""
    refused, window = case("%3, %4", WINDOW, QR, slots=5), case("%2", WINDOW, slots=3)
    alone, together = (write(lambda view: None, False, cases) for cases in ([window], [refused, window]))
    assert [*together.refused] == [0]
    assert together.code == alone.code
    assert alone.code.count("dynamic_slice") == 1
