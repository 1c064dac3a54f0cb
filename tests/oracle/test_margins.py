"""Margins: bounds hold for the native kernels with room, and the command says where one does not."""

from dataclasses import replace

import numpy as np
import pytest

from oracle.peers import NativeExecutor
from tenferro_ref.dtype import DType
from tools import margins

pytestmark = pytest.mark.once


@pytest.mark.parametrize("dtype", [DType.F32, DType.C64], ids=str)
@pytest.mark.parametrize("name", margins.OPERANDS)
def test_native_decompositions_stay_within_their_bounds(name, dtype):
    shares = margins.linalg_shares(NativeExecutor(), name, dtype, (1, 2, 9))
    assert shares
    assert max(share for share, _ in shares.values()) <= 1, shares


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_native_transforms_use_a_part_of_their_bound(name):
    dtype = DType.F32 if name == "rfft" else DType.C32
    shares = margins.fft_shares(NativeExecutor(), name, dtype, (2, 3, 16, 30, 97))
    assert set(shares) == {"2^k", "others"}
    assert all(0 < share < 0.5 for share, _ in shares.values()), shares


class _Off(NativeExecutor):
    """Results that are off by a millionth."""

    def run(self, case):
        execution = NativeExecutor.run(self, case)
        return replace(execution, outputs=tuple(o * o.dtype.type(1 + 1e-6) for o in execution.outputs))


def test_a_share_over_one_is_an_error_of_the_command(capsys, monkeypatch):
    assert margins.main(["Cholesky", "--dtype", "F64", "--size", "4"]) == 0
    monkeypatch.setattr(margins.Pool, "make", lambda self, name: _Off())
    assert margins.main(["Cholesky", "fft", "--dtype", "F64", "--size", "4"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("native")
    assert len(lines) == 2 * 3 + 2  # three invariants of Cholesky, fft and rfft


def test_the_worst_is_kept_and_nan_is_the_worst_of_all():
    shares = {}
    for share, where in ((0.5, "a"), (0.2, "b"), (np.nan, "c"), (0.7, "d")):
        margins.worst(shares, "x", share, where)
    assert shares["x"][1] == "c"
