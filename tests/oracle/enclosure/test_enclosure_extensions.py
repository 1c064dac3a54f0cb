"""Einsums by any path, FFTs by the norm of their results; decompositions are left to residuals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.case import Case
from oracle.enclosure import IEEE, MODELS, XLA, enclose
from oracle.enclosure.formats import FORMATS
from oracle.enclosure.transforms import relative_error
from oracle.peers import NativeExecutor
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


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
        wrong = native + native.dtype.type(0.5 if model.tf32 and dtype.real is DType.F32 else 1e-3)
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


@pytest.mark.parametrize("number", [-0.0, -1e-308])
@pytest.mark.parametrize("equation", ["ii,i->i", "ii,i,->i", "ij,i->ij"])
def test_a_diagonal_may_be_the_sum_of_the_matrix_with_zeros_beside_it(equation, number):
    """So that it has +0 for -0; where no label is there twice nothing is added."""
    x, y = np.diag([0.0, number]), np.array([-1.0, -1.0])
    arrays = (x, y, np.array(1.0))[: equation.count(",") + 1]
    (e,) = enclose(program(lambda *v: einsum.einsum(equation, *v), *arrays), arrays, XLA)
    signs = e.neg_zero[1] if e.neg_zero.ndim == 1 else e.neg_zero[1, 1]
    assert signs == ("ii" in equation)
    assert e.pos_zero.all()


def test_infinities_and_nan_are_decided_where_they_go_and_nowhere_else():
    x = np.eye(3)
    x[1, 2] = np.inf
    (e,) = _of("ij,jk->ik", x)
    assert e.decided.all()
    assert e.empty.tolist() == [[False, False, True], [True, True, False], [False, False, True]]
    assert e.lo[1, 2] == np.inf
    x[1, 2] = np.nan
    for y in (x, x * (1 + 1j)):
        (e,) = _of("ij,jk,kl->il", y)  # the sum over j and k is of every element
        assert all(p.empty.all() for p in e.parts)
        (e,) = _of("ij,ik->i", y)
        assert e.decided.all()
        assert e.parts[-1].empty.tolist() == [False, True, False]


def test_one_large_row_overflows_alone():
    x = np.eye(3)
    x[1] = 1e200
    (e,) = _of("ij,ik->i", x)
    assert e.decided[[0, 2]].all()


HOSTILE = [0.0, -0.0, 1.0, -1.5, 3.0, 0.1, 1e30, -1e30, 1e-30, 2.0**-140, np.inf, -np.inf, np.nan]


def by_a_random_path(rng, equation, arrays):
    """Labels that nobody else has summed first or not; pairs in random order, each product rounded, sums in random order."""
    inputs, _, output = equation.partition("->")
    values = list(zip(inputs.split(","), arrays, strict=True))

    def merged(left, right, others):
        labels = "".join(dict.fromkeys(left[0] + right[0]))
        views = []
        for own, a in (left, right):
            own_order = [t for t in labels if t in own]
            moved = a.transpose([own.index(t) for t in own_order])
            views.append(moved.reshape([moved.shape[own_order.index(t)] if t in own else 1 for t in labels]))
        return summed((labels, views[0] * views[1]), others)

    def summed(value, others):
        labels, a = value
        for t in [t for t in labels if t not in others]:
            axis = labels.index(t)
            terms = [a.take(i, axis) for i in rng.permutation(a.shape[axis])]
            a = terms[0]
            for term in terms[1:]:
                a = a + term
            labels = labels.replace(t, "")
        return labels, a

    while len(values) > 1:
        if rng.random() < 0.5:
            k = int(rng.integers(len(values)))
            values[k] = summed(values[k], output + "".join(v[0] for i, v in enumerate(values) if i != k))
        i, j = rng.permutation(len(values))[:2]
        rest = [v for k, v in enumerate(values) if k not in (i, j)]
        values = [*rest, merged(values[i], values[j], output + "".join(v[0] for v in rest))]
    labels, a = summed(values[0], output)
    return a.transpose([labels.index(t) for t in output])


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(
        ["ij,jk->ik", "ij,jk->ki", "ij,kl->jk", "ij,jk,kl->il", "ab,ab,ac->c", "ij,ik->i", "ij,j->i", "ij->", "ij->ji"]
    ),
    st.sampled_from([DType.F32, DType.F64, DType.C64]),
    st.integers(0, 2**32),
)
def test_hostile_values_by_any_path_are_inside(equation, dtype, seed):
    rng = np.random.default_rng(seed)

    def array(shape):
        usual = rng.standard_normal(shape)
        return np.where(rng.random(shape) < 0.2, rng.choice(HOSTILE, shape), usual)

    arrays = []
    for labels in equation.partition("->")[0].split(","):
        a = np.empty((3,) * len(labels), dtype.numpy)
        a.real = array(a.shape)
        if dtype.is_complex:
            a.imag = array(a.shape)
        arrays.append(a)
    p = program(lambda *x: einsum.einsum(equation, *x), *arrays)
    runs = NativeExecutor().run(Case.of(p, arrays)).outputs
    with np.errstate(all="ignore"):
        runs = [*runs, *(by_a_random_path(rng, equation, arrays) for _ in range(4))]
    for model in MODELS.values():
        (e,) = enclose(p, arrays, model)
        for run in runs:
            assert e.contains(run).all(), (equation, model.name)


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


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft"])
def test_a_transform_of_one_number_is_that_number_or_its_product_with_one(name):
    """JAX op by op scales by a complex one."""
    values = np.array([0.0, -0.0, 1.5, 3e38, -1e-45, np.inf, np.nan], np.float32)
    x = values if name == "rfft" else np.array([complex(a, b) for a in values for b in values], np.complex64)
    p = program(lambda v: getattr(fft, name)(v, 1), x[:, np.newaxis])
    (native,) = NativeExecutor().run(Case.of(p, [x[:, np.newaxis]])).outputs
    with np.errstate(invalid="ignore"):
        scaled = native * np.complex64(1)
    finite = np.isfinite(native)
    for model in MODELS.values():
        (e,) = enclose(p, [x[:, np.newaxis]], model)
        assert e.contains(native).all()
        assert e.contains(scaled).all()
        assert e.contains(np.full_like(native, 7 + 7j)).sum() == (~finite).sum()


def test_undecided_operands_widen_a_transform():
    x = np.linspace(0, 1, 8)
    p = program(lambda v: fft.rfft(v.builder.apply(ops.Exp(), v)), x)
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


def by_definition(name, x, n):
    """Sums as they stand, from the first term on; weights are sines and cosines of angles that are not reduced, as the interpreter's are."""
    half, inverse = name == "irfft", name.startswith("i")
    if half:
        x = np.stack([x[..., k] if k <= n // 2 else x[..., n - k].conj() for k in range(n)], -1)
    complex_ = DType.of(x).complex.numpy.type
    made = []
    for k in range(n // 2 + 1 if name == "rfft" else n):
        total = np.zeros(x.shape[:-1], complex_)
        for j in range(n):
            total = total + x[..., j].astype(complex_) * complex_(np.exp((2j if inverse else -2j) * np.pi * j * k / n))
        made.append(total / complex_(n) if inverse else total)
    return np.stack(made, -1).real if half else np.stack(made, -1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 12])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_by_definition_are_inside(name, n):
    """What the interpreter makes of the imaginary part of a middle element included."""
    for real in REAL:
        rng, size = np.random.default_rng(n), n // 2 + 1 if name == "irfft" else n
        x = drawn(rng, real if name == "rfft" else real.complex, (60, size))
        x[20:40] = np.rint(4 * x[20:40])
        x[30:] *= rng.random((30, size)) < 0.5
        x[50:] *= x.real.dtype.type(np.finfo(x.dtype).smallest_normal * 4)
        if name == "irfft":
            x.imag[40:50, 0], x.imag[40:50, -1] = 1e20, 1e20 if n > 1 else 0
            x.imag[:, 0] *= n > 1  # of one element alone, the sum has the conjugate of its own
        p = program(lambda v: getattr(fft, name)(v, n), x)
        (native,) = NativeExecutor().run(Case.of(p, [x])).outputs
        for model in (IEEE, XLA):
            (e,) = enclose(p, [x], model)
            assert e.contains(by_definition(name, x, n)).all()
            assert e.contains(native).all()


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_of_two_and_four_small_integers_are_exact(name, n):
    """But for what may come of a weight that is not zero by the error of a sine."""
    x = np.array([3, 1, 2, 5][: n // 2 + 1 if name == "irfft" else n], np.float32)
    x = x if name == "rfft" else x * np.complex64(1 + 2j)
    true = getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)), n)
    for model in (IEEE, XLA):
        (e,) = enclose(program(lambda v: getattr(fft, name)(v, n), x), [x], model)
        for part, due in zip(e.parts, (true.real, true.imag), strict=False):
            assert (part.lo[due != 0] == due[due != 0]).all()
            assert (part.hi[due != 0] == due[due != 0]).all()
            assert (np.abs([part.lo, part.hi])[:, due == 0] < 1e-13).all()


def test_other_transforms_of_two_and_four_numbers_are_a_few_roundings_off():
    for dtype, n in ((d, n) for d in (DType.C32, DType.C64) for n in (2, 4)):
        x = drawn(np.random.default_rng(n), dtype, n)
        (e,) = enclose(program(fft.fft, x), [x], IEEE)
        sizes = np.abs([x.real, x.imag]).sum()
        room = (n if dtype is DType.C32 else n + 10) * FORMATS[dtype.real].unit * sizes
        assert all(((p.hi - p.lo) / 2 <= room).all() for p in e.parts)


@pytest.mark.parametrize("n", [4, 6, 97])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_of_zeros_are_zeros(name, n):
    x = np.zeros((2, n // 2 + 1 if name == "irfft" else n), np.float32 if name == "rfft" else np.complex64)
    x[1, 1] = 1
    (e,) = enclose(program(lambda v: getattr(fft, name)(v, n), x), [x], XLA)
    for p in e.parts:
        assert (p.lo[0] == 0).all()
        assert (p.hi[0] == 0).all()
        assert (p.pos_zero & p.neg_zero)[0].all()
        assert (p.lo[1] < p.hi[1]).any()


@pytest.mark.parametrize("n", [3, 4, 30, 97, 64])
def test_the_first_of_a_real_transform_is_a_plain_sum(n):
    """But for convolutions, which are admitted for 97."""
    x = drawn(np.random.default_rng(n), DType.F32, (20, n))
    (e,) = enclose(program(lambda v: fft.rfft(v), x), [x], XLA)
    assert (e.imag.lo[:, 0] == 0).all() == (n != 97)
    (e,) = enclose(program(lambda v: fft.rfft(v), np.rint(x)), [np.rint(x)], XLA)
    assert (e.real.lo[:, 0] == e.real.hi[:, 0]).all() == (n != 97)


def test_what_is_not_scaled_may_be_scaled_and_back():
    """As JAX does for norm="forward" of an inverse: of six integers no sum is exact then, and what underflows is lost."""
    x = np.array([[3, 1, 2, 5, 4, 7], [1, 0, 0, 0, 0, 0]], np.complex64)
    x[1] *= np.float32(2.0**-126)
    (e,) = enclose(program(lambda v: fft.ifft(v, 6, -1, "forward"), x), [x], XLA)
    there = np.fft.ifft(x).astype(np.complex64)
    assert e.contains(there * np.float32(6))[0].all()
    assert e.contains(np.zeros_like(x))[1].all()
    assert e.real.lo[0, 0] < 22 < e.real.hi[0, 0]


@pytest.mark.parametrize("n", [4, 5, 8])
def test_what_a_real_result_drops_widens_nothing(n):
    x = drawn(np.random.default_rng(n), DType.C32, (3, n // 2 + 1))
    ends = [0, n // 2] if n % 2 == 0 else [0]
    plain = x.copy()
    plain.imag[:, ends] = 0
    x.imag[:, ends] = [[5] * len(ends), [1e6] * len(ends), [np.nan] * len(ends)]
    p = program(lambda v: fft.irfft(v, n), x)
    (e,), (due,) = enclose(p, [x], XLA), enclose(p, [plain], XLA)
    assert (e.hi - e.lo)[:2] == pytest.approx((due.hi - due.lo)[:2], rel=0.5)
    assert not e.decided[2].any()  # it may be multiplied by a zero


def test_transforms_without_large_factors_reach_as_far_as_their_sums():
    for n, decided in ((2, True), (4, True), (30, True), (97, False)):
        x = np.zeros(n, np.complex64)
        x[0] = 2e37
        (e,) = enclose(program(fft.fft, x), [x], IEEE)
        assert e.decided.all() == e.decided.any() == decided
        (e,) = enclose(program(fft.fft, x), [np.full_like(x, 1e38)], IEEE)
        assert not e.decided.any()


def test_bounds_of_transforms():
    weight = 1.5 * np.pi + 2 * 2**0.5 + 5**0.5
    stage = 1 + 5**0.5 + weight
    assert relative_error(1) == 3
    assert relative_error(1024) == pytest.approx(3 + 10 * stage)
    assert relative_error(6) == pytest.approx(3 + stage + (6 + weight * 2**0.5) + (5**0.5 + weight))
    assert relative_error(6, real=True) == pytest.approx(2**0.5 * relative_error(3) + 3 + 5**0.5 + weight)
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
