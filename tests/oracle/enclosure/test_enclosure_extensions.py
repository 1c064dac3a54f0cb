"""Einsums by any path, FFTs by the norm of their results; decompositions are left to residuals."""

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import IEEE, MODELS, XLA, enclose
from oracle.enclosure.extensions import relative_error
from oracle.enclosure.formats import FORMATS
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


def bluestein(x):
    """A transform of any length in single precision, by three of a power of two."""
    n = x.shape[-1]
    size = 1 << (2 * n - 2).bit_length()
    turn = np.exp(1j * np.pi * (np.arange(n) ** 2 % (2 * n)) / n).astype(np.complex64)
    chirp = np.zeros(size, np.complex64)
    chirp[:n], chirp[size - n + 1 :] = turn, turn[:0:-1]
    product = np.fft.fft(x * turn.conj(), size) * np.fft.fft(chirp)
    return (np.fft.ifft(product)[..., :n] * turn.conj()).astype(np.complex64)


@pytest.mark.parametrize("n", [3, 5, 6, 12, 17, 97, 211])
def test_other_algorithms_of_a_transform_are_inside(n):
    """Bluestein's, which is proved for large factors alone, and the sum as it stands."""
    x = drawn(np.random.default_rng(n), DType.C32, (4, n))
    (e,) = enclose(program(fft.fft, x), [x], IEEE)
    weights = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n).astype(np.complex64)
    assert e.contains(bluestein(x)).all()
    assert e.contains(x @ weights).all()


def test_bounds_of_transforms():
    stage = 1 + 5**0.5 + 8
    assert relative_error(1) == 3
    assert relative_error(1024) == pytest.approx(3 + 10 * stage)
    assert relative_error(6) == pytest.approx(3 + stage + (6 + 8 * 2**0.5) + (5**0.5 + 8))
    assert relative_error(6, real=True) == pytest.approx(2**0.5 * relative_error(3) + 3 + 5**0.5 + 8)
    for n in (13, 26, 97, 1009):
        assert 3 * stage * np.log2(2 * n) < relative_error(n) < 2 * n + 800


@pytest.mark.parametrize("n", [7, 16, 30, 97, 128, 509])
def test_the_wide_transform_is_within_its_own_bound(n):
    """What enclosures are centred at, against balls of 128 bits."""
    flint = pytest.importorskip("flint")
    x = drawn(np.random.default_rng(n), DType.C64, n)
    wide = np.fft.fft(x.astype(np.clongdouble))
    old, flint.ctx.prec = flint.ctx.prec, 128
    try:
        true = flint.acb.dft([flint.acb(v.real, v.imag) for v in x.tolist()])
        off = max(float(abs(t - _exact(flint, v))) for t, v in zip(true, wide, strict=True))
    finally:
        flint.ctx.prec = old
    assert off <= 0.1 * relative_error(n) * FORMATS[DType.F64].wide_unit * float(np.linalg.norm(x)) * np.sqrt(n)


def _exact(flint, z):
    def part(v):
        high = float(v)
        return flint.arb(high) + flint.arb(float(v - np.longdouble(high)))

    return flint.acb(part(z.real), part(z.imag))
