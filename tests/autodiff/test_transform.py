"""Derivative programs: their form, their values in closed form, and the law that ties `vjp` to `jvp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fuzz.generate.batches import generate
from fuzz.generate.settings import config_of
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.autodiff import JVP, TRANSPOSE, Derivative, grad, jvp, transpose, vjp
from tenferro_ref.autodiff.errors import ActivityArity, NonScalarGrad, UnsupportedAdRule, UnsupportedMetadata
from tenferro_ref.dtype import INEXACT
from tenferro_ref.errors import InvalidArgument, TenferroError
from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.extensions.einsum import EINSUM
from tenferro_ref.extensions.fft import FFT
from tenferro_ref.extensions.linalg import LINALG
from tenferro_ref.ops import STABLEHLO, TensorType
from tenferro_ref.program import GraphBuilder, Program, parse, print_program
from tenferro_ref.table import Table
from tenferro_ref.tensor import Array
from tests.autodiff.products import paired, product, run


def drawn(rng: np.random.Generator, type_: TensorType, shape: tuple[int, ...], away: float = 0.0) -> Array:
    """Ordinary numbers; `away` moves them from zero."""
    values = rng.standard_normal(shape) * 0.5 + away
    if type_.dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape) * 0.5
    return np.array(values, type_.dtype.numpy, order="F")


@pytest.mark.parametrize("table", [JVP, TRANSPOSE], ids=lambda t: t.name)
def test_every_op_has_a_rule_or_a_reason(table: Table[object]) -> None:
    families = [key for family in (EINSUM, FFT, LINALG) for key in family.keys]
    assert table.holes([*(op for op in ops.OPS if op is not ops.Extension), *families]) == []


def test_a_vector_jacobian_product_reads_like_its_formula() -> None:
    b = GraphBuilder()
    x = b.input("F64", (3,))
    derivative = vjp(b.build(tn.sin(x)))
    assert [i.op.name for i in derivative.program.instructions] == ["Cos", "Multiply"]
    assert (derivative.seeds, derivative.results) == ((1,), (0,))


def test_integers_and_constants_have_no_derivative() -> None:
    b = GraphBuilder()
    x, n = b.input("F64", (2,)), b.input("I64", (2,))
    program = b.build(x * 2.0, n + n, tn.sign(x))
    forward, backward = jvp(program), vjp(program)
    assert (forward.seeds, forward.results) == ((2, None), (0, None, None))
    assert (backward.seeds, backward.results) == ((2, None, 3), (0, None))


@pytest.mark.parametrize(
    ("op", "others"),
    [
        (ops.DynamicSlice((1,)), []),
        (ops.DynamicUpdateSlice(), [("I64", (1,))]),
        (ops.Gather((0,), (), (0,), 0, (1,)), []),
        (ops.Scatter((0,), (), (0,), 0), [("I64", (1,))]),
        (ops.PadToMatch(0), []),
    ],
    ids=lambda o: o.name if isinstance(o, ops.Op) else "",
)
def test_integers_at_places_that_change_have_no_derivative(
    op: ops.Op, others: list[tuple[str, tuple[int, ...]]]
) -> None:
    """Where starts and indices are floats they have tangents, which lead nowhere."""
    b = GraphBuilder()
    x, at = b.input("I64", (3,)), b.input("F64", (1,))
    rest = [b.input(*other) for other in others]
    moved = b.apply(op, x, at, *rest) if isinstance(op, ops.Scatter) else b.apply(op, x, *rest, at)
    forward = jvp(b.build(moved, moved.astype("F64")))
    assert forward.results == (None, None)


def test_a_gradient_needs_one_real_number() -> None:
    b = GraphBuilder()
    x = b.input("F64", (3,))
    with pytest.raises(NonScalarGrad):
        grad(b.build(x))
    derivative = grad(b.build((x * x).sum()))
    (slope,) = run(derivative.program, [np.array([1.0, -2.0, 3.0])])
    assert slope.tolist() == [2.0, -4.0, 6.0]


@pytest.mark.parametrize("active", [[2], [0, 0], [-1], 0, [0.5], ["a"], [None], {0: 1}])
def test_what_is_active_must_be_there_once(active: Any) -> None:
    program = parse("graph (%0: F64[3], %1: F64[3]) -> (%2) slots 3 {\n  %2 = Add(%0, %1) : F64[3]\n}")
    with pytest.raises(ActivityArity):
        jvp(program, active)


def test_what_is_not_there_is_named_as_the_caller_named_it() -> None:
    program = parse("graph (%0: F64[]) -> (%0) slots 1 {\n}")
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: grad(program, inputs=[5]), "grad: inputs"),
        (lambda: vjp(program, inputs=[5]), "vjp: inputs"),
        (lambda: vjp(program, outputs=[5]), "vjp: outputs"),
        (lambda: jvp(program, active=[5]), "jvp: active"),
        (lambda: transpose(program, linear=[5]), "transpose: linear"),
    ]
    for call, words in calls:
        with pytest.raises(ActivityArity, match=f"^{words}: there is no number 5; the program has 1, from 0 on$"):
            call()


@pytest.mark.parametrize("given", [3, None, "graph"])
def test_what_is_no_program(given: Any) -> None:
    for transform in (jvp, vjp, grad, lambda program: transpose(program, [0])):
        with pytest.raises(InvalidArgument, match="where a program is needed"):
            transform(given)


@pytest.mark.parametrize("dtypes", ["BF16", "F32 F16", "F32 F8E4M3FN"])
def test_by_way_of_narrow_floats_there_is_no_gradient_and_no_zero(dtypes: str) -> None:
    first, *through = dtypes.split()
    b = GraphBuilder(policy=STABLEHLO)
    x = b.input(first, (3,))
    y = x
    for dtype in through:
        y = y.astype(dtype).astype(first)
    program = b.build((y * y).sum())
    for transform in (jvp, vjp, grad):
        with pytest.raises(UnsupportedAdRule, match="derivatives are of F32, F64, C32 and C64"):
            transform(program)


@pytest.mark.parametrize(("x", "t", "g"), [(1e25 + 1e25j, 1e15, 1e-20), (1e-30j, 1e-15j, 1e20), (3 - 4j, 1 + 1j, 2.0)])
def test_the_derivative_of_a_modulus_is_as_large_as_its_tangent(x: complex, t: complex, g: float) -> None:
    """It is `Re(conj(sign(x)) t)`; `conj(x) t` alone may overflow, or vanish."""
    b = GraphBuilder()
    program = b.build(abs(b.input("C32", ())))
    sign = x / abs(x)
    (tangent,) = run(jvp(program).program, [np.complex64(x), np.complex64(t)])[-1:]
    (cotangent,) = run(vjp(program).program, [np.complex64(x), np.float32(g)])[-1:]
    np.testing.assert_allclose(tangent, (np.conj(sign) * t).real, rtol=1e-5)
    np.testing.assert_allclose(cotangent, g * sign, rtol=1e-5)


@pytest.mark.parametrize("place", range(4))
def test_the_path_of_an_einsum_is_adapted_to_its_adjoint(place: int) -> None:
    """The cotangent meets what the operand was multiplied with; what it was not is multiplied as before."""
    b = GraphBuilder()
    shapes = [(2, 3), (3, 4), (4, 5), (5, 2)]
    operands = [b.input("F64", shape) for shape in shapes]
    path = [[1, 2], [0, 2], [0, 1]]  # (a (b c)) d
    program = b.build(einsum.einsum("ij,jk,kl,lm->im", *operands, path=path))
    backward = vjp(program, [place])
    (ins,) = [i for i in backward.program.instructions if isinstance(i.op, ops.Extension)]
    equation = einsum.parse(ins.op)
    assert len(equation.path) == 3
    if place == 3:  # the cotangent last, with the product of all others, made as before
        assert equation.path == ((2, 3), (1, 2), (0, 1))
    plain = vjp(b.build(einsum.einsum("ij,jk,kl,lm->im", *operands)), [place])
    rng = np.random.default_rng(7)
    inputs = [rng.standard_normal(t.static_shape) for t in backward.program.input_types]
    np.testing.assert_allclose(run(backward.program, inputs)[-1], run(plain.program, inputs)[-1], rtol=1e-12)


def test_by_way_of_integers_nothing_is_linear() -> None:
    b = GraphBuilder()
    with pytest.raises(UnsupportedAdRule, match="not linear"):
        transpose(b.build(b.input("F64", (3,)).astype("I32").astype("F64")), [0])


@pytest.mark.parametrize("op", ["Gather", "Scatter"])
def test_narrow_indices_that_cannot_name_every_start_have_a_transpose(op: str) -> None:
    b = GraphBuilder(policy=STABLEHLO)
    x, at = b.input("F64", (200,)), b.input("I8", (2, 1))
    if op == "Gather":
        program = b.build(b.apply(ops.Gather((), (0,), (0,), 1, (1,)), x, at))
    else:
        program = b.build(b.apply(ops.Scatter((), (0,), (0,), 1), x, at, b.input("F64", (2,))))
    backward = vjp(program)
    inputs = [np.zeros(t.static_shape, t.dtype.numpy) for t in backward.program.input_types]
    inputs[1][:, 0], inputs[-1][:] = [127, -1], 1.0
    *_, last = run(backward.program, inputs)
    assert last.tolist() == ([1.0, *[0.0] * 126, 1.0, *[0.0] * 72] if op == "Gather" else [1.0, 0.0])


def test_what_is_not_linear_has_no_transpose() -> None:
    program = parse("graph (%0: F64[3]) -> (%1) slots 2 {\n  %1 = Multiply(%0, %0) : F64[3]\n}")
    with pytest.raises(UnsupportedAdRule, match="linear"):
        transpose(program, [0])


@pytest.mark.parametrize(
    ("op", "x", "weights"),
    [
        (ops.Maximum(), (1.0, 1.0), (0.5, 0.5)),
        (ops.Maximum(), (2.0, 1.0), (1.0, 0.0)),
        (ops.Minimum(), (2.0, 1.0), (0.0, 1.0)),
        (ops.Maximum(), (np.nan, 1.0), (0.0, 0.0)),
        (ops.Clamp(), (2.0, 2.0, 3.0), (0.0, 0.0, 0.0)),
        (ops.Clamp(), (1.0, 2.0, 3.0), (0.0, 1.0, 0.0)),
        (ops.Clamp(), (4.0, 2.0, 3.0), (0.0, 0.0, 1.0)),
        (ops.Clamp(), (2.5, 2.0, 3.0), (1.0, 0.0, 0.0)),
    ],
)
def test_ties_and_bounds_are_those_of_the_contract(
    op: ops.Op, x: tuple[float, ...], weights: tuple[float, ...]
) -> None:
    b = GraphBuilder()
    program = b.build(b.apply(op, *(b.input("F64") for _ in x)))
    values = [np.array(v) for v in x]
    assert [float(g) for g in run(vjp(program).program, [*values, np.array(1.0)])] == list(weights)
    for i, weight in enumerate(weights):
        derivative = jvp(program, [i])
        assert float(run(derivative.program, [*values, np.array(1.0)])[0]) == weight


@pytest.mark.parametrize(
    ("values", "due"),
    [([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]), ([0.0, 3.0, 4.0], [12.0, 0.0, 0.0]), ([0.0, 0.0, 4.0], [0.0, 0.0, 0.0])],
)
def test_a_product_with_zeros_has_the_product_of_the_others(values: list[float], due: list[float]) -> None:
    b = GraphBuilder()
    derivative = grad(b.build(b.input("F64", (3,)).prod()))
    assert run(derivative.program, [np.array(values)])[0].tolist() == due


def test_index_vectors_without_components_have_a_transpose() -> None:
    b = GraphBuilder(policy=STABLEHLO)
    x, i = b.input("F64", (1,)), b.input("I64", (2, 0))
    program = b.build(b.apply(ops.Gather((1,), (), (), 1, (1,)), x, i))
    assert run(vjp(program).program, [np.ones(1), np.zeros((2, 0), np.int64), np.array([[2.0], [3.0]])])[
        0
    ].tolist() == [5.0]


def test_complex_cotangents_are_conjugated() -> None:
    b = GraphBuilder()
    program = b.build(tn.exp(b.input("C64")))
    z, g = np.array(0.3 + 0.7j), np.array(1.0 - 2.0j)
    assert run(vjp(program).program, [z, g])[0] == pytest.approx(np.conj(np.exp(z)) * g, rel=1e-14)


def test_symbolic_programs_have_symbolic_derivatives() -> None:
    b = GraphBuilder()
    x, w = b.input("F64", ("n", 3)), b.input("F64", (3, 2))
    derivative = vjp(b.build(tn.tanh(x @ w).sum(0)))
    assert "n" in print_program(derivative.program)
    for n in (1, 4):
        rng = np.random.default_rng(n)
        arrays = [rng.standard_normal(s) for s in ((n, 3), (3, 2), (2,))]
        slope = 1 - np.tanh(arrays[0] @ arrays[1]) ** 2
        due = (slope * arrays[2]) @ arrays[1].T
        assert run(derivative.program, arrays)[0] == pytest.approx(due, rel=1e-12)


@pytest.mark.parametrize("name", ["lu", "full_piv_lu", "qr", "eigh", "svd", "fft"])
def test_an_extent_that_a_rule_needs_is_said_with_the_op(name: str) -> None:
    """Of a family: the op that was written, not "Extension"."""
    b = GraphBuilder()
    results = fft.fft(b.input("C64", ("n",))) if name == "fft" else getattr(linalg, name)(b.input("F64", ("n", "n")))
    program = b.build(*(results if isinstance(results, tuple) else (results,)))
    called = name if name == "fft" else name.title().replace("_", "")
    with pytest.raises(UnsupportedMetadata, match=rf"^{called}: its derivative needs constant extents; in0\.0"):
        vjp(program)


# --- laws over generated programs -------------------------------------------------------------------------------------

_CONFIG = config_of(("dtypes=F64,C64,I64,Bool", "linalg=0", "policies=0"))


def _derivatives(program: Program) -> tuple[Derivative, Derivative] | None:
    try:
        return jvp(program), vjp(program)
    except (UnsupportedAdRule, UnsupportedMetadata):
        return None


@pytest.mark.parametrize("batch", range(3))
def test_the_two_products_are_adjoint(batch: int) -> None:
    """`<g, jvp(t)> = <vjp(g), t>` at ordinary numbers, with both sums in F64."""
    compared = 0
    rng = np.random.default_rng(batch)
    for case in generate(11, batch, 64, _CONFIG):
        program = case.program
        derivatives = _derivatives(program)
        # tangents of vectors divide by gaps, and matrices that are drawn have equal eigenvalues: `test_factors` has others
        spectral = any(isinstance(i.op, ops.Extension) and i.op.op in ("Eigh", "Svd") for i in program.instructions)
        if derivatives is None or spectral:
            continue
        forward, backward = derivatives
        inputs = [
            drawn(rng, t, a.shape, 1.5) if t.dtype in INEXACT else a
            for t, a in zip(program.input_types, case.inputs, strict=True)
        ]
        tangents = [
            drawn(rng, program.input_types[i], inputs[i].shape) for i, s in enumerate(forward.seeds) if s is not None
        ]
        try:
            with np.errstate(all="ignore"):
                outputs = run(program, inputs)
                types = program.output_types
                cotangents = [
                    drawn(rng, types[i], outputs[i].shape) for i, s in enumerate(backward.seeds) if s is not None
                ]
                pushed = run(forward.program, [*inputs, *tangents])
                pulled = run(backward.program, [*inputs, *cotangents])
        except TenferroError:
            continue
        with np.errstate(all="ignore"):
            a, size_a = product(paired(cotangents, pushed, backward, forward))
            b, size_b = product(paired(tangents, pulled, forward, backward))
        if np.isfinite(size_a + size_b):
            assert abs(a - b) <= 1e-9 * max(size_a + size_b, 1e-6), print_program(program)
            compared += 1
    assert compared > 30
