"""Enclosures in files: what is written is read back, and what does not fit the outputs is refused."""

import numpy as np
import pytest

from oracle.enclosure import XLA, enclose
from oracle.enclosure.files import load_enclosures, save_enclosures
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


def test_real_and_complex_enclosures_return(tmp_path):
    z = np.array([1 + 2j, 0, 1000, np.nan])
    b = GraphBuilder()
    x = b.input(DType.C64, (4,))
    outputs = [b.apply(ops.Exp(), x), b.apply(ops.Convert(DType.F64), x), b.apply(ops.Convert(DType.I32), x)]
    made = enclose(b.build(*outputs), [z], XLA)
    path = tmp_path / "e.npz"
    save_enclosures(path, made)
    answers = [np.exp(np.zeros(4, complex)), np.zeros(4), np.zeros(4, np.int32)]
    for e, again in zip(made, load_enclosures(path, answers), strict=True):
        assert e.dtype is again.dtype
        for p, q in zip(e.parts, again.parts, strict=True):
            for name in ("lo", "hi", "nan", "pos_zero", "neg_zero"):
                assert np.array_equal(getattr(p, name), getattr(q, name), equal_nan=name in ("lo", "hi"))
    with pytest.raises(FormatError):
        load_enclosures(path, [answers[0].real, *answers[1:]])
    with pytest.raises(FormatError):
        load_enclosures(path, [answers[0], np.zeros(3), answers[2]])
