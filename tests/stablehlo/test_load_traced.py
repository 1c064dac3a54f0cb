"""JAX functions of narrow dtypes, loops, sorts, scatters and special functions: read as they go, they hold what JAX gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import XLA, enclose
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor
from oracle.reference import compare_all
from oracle.verdict import Comparison, Verdict
from tenferro_ref.isolation.engines.reader import evaluate
from tenferro_ref.stablehlo.loader import load
from tests.libraries import module_or_skip

jax = module_or_skip("jax")
jnp: Any = module_or_skip("jax.numpy")
lax: Any = module_or_skip("jax.lax")

pytestmark = pytest.mark.once
RNG = np.random.default_rng(5)
V = RNG.standard_normal(12).astype(np.float32)
X = RNG.standard_normal((6, 5)).astype(np.float32)
P = np.abs(V) + np.float32(0.1)
I = RNG.integers(-9, 9, 12).astype(np.int32)
U = RNG.integers(0, 255, 12).astype(np.uint8)
H = V.astype("bfloat16" if "bfloat16" in np.sctypeDict else np.float16)
KEY = np.array([1, 2], np.uint32)
IMAGE = RNG.standard_normal((2, 8, 8, 4)).astype(np.float32)
KERNEL = RNG.standard_normal((3, 3, 2, 6)).astype(np.float32)
NHWC = ("NHWC", "HWIO", "NHWC")

FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "sort": (lambda x: (jnp.sort(x, axis=0), jnp.argsort(x, axis=1)), (X,)),
    "sort of integers": (lambda i, u: (jnp.sort(i), jnp.sort(u)), (I, U)),
    "the largest": (lambda x: lax.top_k(x, 3), (X,)),
    "argmax of unsigned": (lambda u: (jnp.argmax(u), jnp.argmin(u)), (U,)),
    "a loop that counts": (lambda x: lax.fori_loop(0, 7, lambda i, c: c + x[i], jnp.float32(0)), (V,)),
    "a loop on floats": (lambda x: lax.while_loop(lambda c: jnp.sum(c) < 50.0, lambda c: c * 1.5 + 1, x), (P,)),
    "a scan": (lambda x: lax.scan(lambda c, a: (c * 0.5 + a, c), jnp.zeros(5, jnp.float32), x), (X,)),
    "branches": (lambda x, i: lax.switch(i[0] % 3, [jnp.sin, jnp.cos, jnp.exp], x), (V, I)),
    "repeated scatters": (lambda x, i: (x.at[i % 6].max(1.0), x.at[i % 6, 0].mul(1.5), x.at[i % 6].set(2.0)), (X, I)),
    "pooling": (jax.grad(lambda x: jnp.sum(
        lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2)), (IMAGE,)),
    "groups of features": (jax.grad(lambda k, x: jnp.sum(lax.conv_general_dilated(
        x, k, (2, 2), "SAME", rhs_dilation=(2, 1), dimension_numbers=NHWC, feature_group_count=2) ** 2)), (KERNEL, IMAGE)),
    "random numbers": (lambda k: (jax.random.uniform(k, (8,)), jax.random.normal(k, (8,)), jax.random.split(k)), (KEY,)),
    "bits": (lambda i, u: (i >> 2, i << 3, lax.shift_right_logical(i, jnp.int32(3)), lax.clz(i), ~i, i ^ 5, i & 3,
        lax.population_count(u), lax.bitcast_convert_type(i, jnp.uint8)), (I, U)),
    "special functions": (lambda x, p: (lax.erf(x), lax.erf_inv(jnp.tanh(x)), lax.lgamma(p), lax.digamma(p), jnp.cbrt(x),
        jnp.arctan2(x, p), jnp.sinh(x), lax.bessel_i1e(x), lax.polygamma(jnp.ones_like(p), p)), (V, P)),
    "neighbours": (lambda x: (jnp.nextafter(x, x + 1), lax.reduce_precision(x, 5, 10), jnp.round(x)), (V,)),
    "a half": (lambda h: (jnp.tanh(h * 2 + 1) @ jnp.ones(12, h.dtype), jax.nn.softmax(h), jnp.sort(h)), (H,)),
    "bytes": (lambda u: (jnp.dot(u.astype(jnp.int8), u.astype(jnp.int8), preferred_element_type=jnp.int32), u // 7,
        u.astype(jnp.int8) * 3, jnp.cumsum(u, dtype=u.dtype)), (U,)),
}  # fmt: skip


def case_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Case:
    text = jax.jit(function, keep_unused=True).lower(*arguments).as_text()
    loaded = load(text, "f", evaluate=evaluate, inputs=arguments)
    return replace(Case.of(loaded.program, loaded.inputs(arguments)), deciding=loaded.deciding)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_read_holds_what_jax_gives(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    reference = Reference(case_of(function, arguments), NativeExecutor())
    assert judge(reference.native, reference).verdict is Verdict.PASS
    given = tuple(np.asarray(a).copy("F") for a in jax.tree.leaves(jax.jit(function)(*arguments)))
    comparison = compare_all({reference: given}, "xla")[reference]
    assert isinstance(comparison, Comparison)
    assert (comparison.outside, comparison.decided) == (0, comparison.elements)
    assert reference.open_way("xla") == ""


def test_a_wrong_result_is_seen() -> None:
    function, arguments = FUNCTIONS["sort of integers"]
    reference = Reference(case_of(function, arguments), NativeExecutor())
    given = [np.asarray(a).copy("F") for a in jax.tree.leaves(jax.jit(function)(*arguments))]
    given[1][0] += 1
    comparison = compare_all({reference: tuple(given)}, "xla")[reference]
    assert isinstance(comparison, Comparison)
    assert comparison.outside == 1


ORDERED: dict[str, Callable[..., Any]] = {
    "sort": lambda x: jnp.sort(jnp.exp(x)),
    "argsort": lambda x: jnp.argsort(jnp.exp(x)),
    "the largest": lambda x: lax.top_k(jnp.exp(x), 3),
    "argmax": lambda x: jnp.argmax(jnp.sin(x)),
}


@pytest.mark.parametrize("name", ORDERED)
def test_what_is_ordered_need_not_be_known_exactly(name: str) -> None:
    """Numbers whose enclosures are apart have an order."""
    x = np.linspace(-3, 3, 7, dtype=np.float32)[[3, 0, 6, 2, 5, 1, 4]]
    case = case_of(ORDERED[name], (x,))
    for of, expected in zip(enclose(case.program, case.inputs, XLA), jax.tree.leaves(ORDERED[name](x)), strict=True):
        assert np.all((of.lo <= expected) & (expected <= of.hi) & (of.hi - of.lo <= 1e-5 * abs(of.lo)))


def test_a_condition_that_platforms_may_decide_differently_leaves_the_verdict_open() -> None:
    """The threshold is what one exponential function gives, and within the budget of another."""
    x = np.array([0.1], np.float32)
    threshold = np.exp(x[0])
    case = case_of(lambda x: lax.cond(jnp.exp(x)[0] >= threshold, jnp.sin, jnp.cos, x), (x,))
    assert case.deciding is not None
    reference = Reference(case, NativeExecutor())
    assert "not decided" in reference.open_way("xla")


def test_places_that_platforms_may_compute_differently_leave_the_verdict_open() -> None:
    """`x y + z` is zero, or what the product lost when it was rounded; an Add need not know the places."""
    x, y = np.random.default_rng(1).normal(size=(2, 8)).astype(np.float32)

    def placed(x: Any, y: Any, z: Any, how: str) -> Any:
        at = jnp.zeros((8, 2), jnp.float32).at[jnp.arange(8), (x * y + z != 0).astype(int)]
        return getattr(at, how)(1.0)

    case, added = (case_of(partial(placed, how=how), (x, y, -(x * y))) for how in ("set", "add"))
    assert "not decided" in Reference(case, NativeExecutor()).open_way("xla")
    assert added.deciding is None


@pytest.mark.parametrize("body", ["add", "multiply"])
@pytest.mark.parametrize("element", ["f32", "bf16", "i32", "i8", "ui8"])
def test_an_initial_value_may_enter_as_often_as_there_are_elements(element: str, body: str) -> None:
    code = f"""func.func @main(%x: tensor<2x4x{element}>, %i: tensor<{element}>) -> tensor<2x{element}> {{
      %a = stablehlo.reduce(%x init: %i) applies stablehlo.{body} across dimensions = [1] : (tensor<2x4x{element}>, tensor<{element}>) -> tensor<2x{element}>
      return %a : tensor<2x{element}> }}"""
    loaded = load(code)
    dtype = loaded.arguments[0].dtype
    for initial in (2, 3) if dtype.value.kind == "uint" else (2, -2, 3):
        x = np.array([[1, 2, 3, 2], [3, 2, 2, 1]]).astype(dtype.numpy)
        case = Case.of(loaded.program, loaded.inputs([x, np.array(initial).astype(dtype.numpy)]))
        reference = Reference(case, NativeExecutor())
        total = x.astype(np.int64).sum(1) if body == "add" else x.astype(np.int64).prod(1)
        for times in range(7):
            value = total + times * initial if body == "add" else total * initial**times
            with np.errstate(over="ignore"):
                found = compare_all({reference: (value.astype(dtype.numpy),)}, "ieee")[reference]
            assert isinstance(found, Comparison)
            if times <= 5:
                assert not found.outside, (initial, times)
        assert not judge(NativeExecutor(), reference).verdict.is_disagreement
        assert found.outside or dtype.bits == 8  # products of bytes wrap: anything may be


@pytest.mark.parametrize("element", ["i8", "ui8", "i32", "ui32", "i64", "ui64"])
def test_the_upper_half_of_a_product(element: str) -> None:
    type_ = f"tensor<64x{element}>"
    loaded = load(f"""func.func @main(%x: {type_}, %y: {type_}) -> {type_} {{
      %a = "chlo.mulhi"(%x, %y) : ({type_}, {type_}) -> {type_}
      return %a : {type_} }}""")
    dtype, rng = loaded.arguments[0].dtype, np.random.default_rng(3)
    low, high = dtype.limits
    x, y = (rng.integers(low, high, 64, dtype=dtype.numpy, endpoint=True) for _ in range(2))
    x[:4], y[:4] = [low, low, high, 0], [low, high, high, low]
    (result,) = NativeExecutor().run(Case.of(loaded.program, loaded.inputs([x, y]))).outputs
    assert result.tolist() == [(int(a) * int(b)) >> dtype.bits for a, b in zip(x, y, strict=True)]
