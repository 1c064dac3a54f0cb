"""Einsums by any path, FFTs by the norm of their results; decompositions are left to residuals."""

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import IEEE, MODELS, XLA, enclose
from oracle.executors import NativeExecutor
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.ops import Exp
from tenferro_ref.program import GraphBuilder

REAL = (DType.F32, DType.F64)


def drawn(rng, dtype, shape):
    z = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.is_complex else 0)
    return np.asarray(z, dtype.numpy, order="F")


def program(make, *arrays):
    b = GraphBuilder()
    return b.build(make(*(b.input(DType.of(a), a.shape) for a in arrays)))


EQUATIONS = ["ij,jk->ik", "ij,jk,kl->il", "ij,kl->jk", "ii->i", "ij->iji", "ab,ab,ac->c", "ij->", "i,i,i->i"]


@pytest.mark.parametrize("dtype", [*REAL, DType.C32, DType.C64], ids=str)
@pytest.mark.parametrize("equation", EQUATIONS)
def test_every_path_of_an_einsum_is_inside(equation, dtype):
    rng = np.random.default_rng(3)
    arrays = [drawn(rng, dtype, (4,) * len(labels)) for labels in equation.partition("->")[0].split(",")]
    p = program(lambda *x: einsum.einsum(equation, *x), *arrays)
    (native,) = NativeExecutor().run(Case.of(p, arrays)).outputs
    for model in MODELS.values():
        (e,) = enclose(p, arrays, model)
        assert e.contains(native).all()
        assert e.decided.all()
        wrong = native + native.dtype.type(1e-3)
        assert not e.contains(wrong).any()
    if len(arrays) == 3 and equation == "ij,jk,kl->il":
        a, b, c = arrays
        assert e.contains((a @ b) @ c).all()
        assert e.contains(a @ (b @ c)).all()


def test_einsum_of_small_integers_is_exact_and_of_integers_wraps():
    x = np.arange(9, dtype=np.float32).reshape(3, 3) - 4
    for equation, expected in (("ij,jk->ik", x @ x), ("ij,jk,kl->il", x @ x @ x)):
        (e,) = _of(equation, x)
        assert (e.lo == expected).all()
        assert (e.hi == expected).all()
    big = np.full((2, 2), 2**30, np.int32)
    (i,) = _of("ij,jk->ik", big)
    assert i.lo.tolist() == (big @ big).tolist()


def _of(equation, x):
    arrays = [x] * (equation.count(",") + 1)
    return enclose(program(lambda *v: einsum.einsum(equation, *v), *arrays), arrays, XLA)


def test_what_is_not_finite_opens_what_it_goes_into():
    x = np.eye(3)
    x[1, 2] = np.inf
    (e,) = _of("ij,jk->ik", x)
    assert (
        e.decided.tolist() == [[True, True, True], [False, False, False], [True, True, True]] or not e.decided[1].any()
    )
    assert e.decided[0, 0]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 12, 17, 64, 97])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_are_inside_and_wrong_ones_outside(name, n):
    rng = np.random.default_rng(n)
    for real in REAL:
        x = drawn(rng, real if name == "rfft" else real.complex, (2, n if name != "irfft" else n // 2 + 1))
        for norm in ("backward", "ortho", "forward"):
            p = program(lambda v, norm=norm: getattr(fft, name)(v, n, -1, norm), x)
            (native,) = NativeExecutor().run(Case.of(p, [x])).outputs
            for model in (IEEE, XLA):
                (e,) = enclose(p, [x], model)
                assert e.contains(native).all()
                assert e.decided.all()
                assert not e.contains(native * native.dtype.type(1 + 1e-3)).all()


def test_undecided_operands_widen_a_transform():
    x = np.linspace(0, 1, 8)
    p = program(lambda v: fft.rfft(v.builder.apply(Exp(), v)), x)
    (e,) = enclose(p, [x], XLA)
    assert e.contains(np.fft.rfft(np.exp(x))).all()
    assert (e.parts[0].hi - e.parts[0].lo).max() < 1e-12


def test_decompositions_have_no_enclosure():
    x = np.eye(3)
    b = GraphBuilder()
    p = b.build(*linalg.svd(b.input(DType.F64, (3, 3))))
    with pytest.raises(UnsupportedOp, match="residuals"):
        enclose(p, [x], IEEE)
