"""Functions that strangers hand in: what cannot be run by another process, or on one device, is said and is no disagreement."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tenferro_ref import checking
from tenferro_ref.errors import Internal, UsageError
from tests.libraries import module_or_skip

jax = module_or_skip("jax")
module_or_skip("jax.experimental")

pytestmark = pytest.mark.once

X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def using() -> Iterator[checking.Checker]:
    with checking.checker() as made:
        yield made


def verdicts(result: checking.CheckResult) -> dict[str, str]:
    return {row["executor"]: row["verdict"] for row in result.rows}


CALLS_BACK: dict[str, Callable[[Any], Any]] = {
    "debug.print": lambda x: (jax.debug.print("hi"), x + 1)[1],
    "pure_callback": lambda x: jax.pure_callback(lambda y: y, x, x),
    "io_callback": lambda x: jax.experimental.io_callback(lambda y: y, x, x),
}


@pytest.mark.parametrize("name", CALLS_BACK)
def test_what_calls_back_into_python_is_refused_before_anything_runs(name: str, using: checking.Checker) -> None:
    result = using.check(CALLS_BACK[name], [X], executors="jax,interpreter", model=None)
    assert result.ok
    assert verdicts(result) == dict.fromkeys(("native", "jax", "interpreter"), "unsupported")
    assert all("calls a Python function of the process that lowered" in row["reason"] for row in result.rows)


def one_device() -> Any:
    return jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:1])


def test_the_interpreter_refuses_collectives_as_the_reference_does(using: checking.Checker) -> None:
    spec = jax.sharding.PartitionSpec
    total = jax.shard_map(lambda x: jax.lax.psum(x, "i"), mesh=one_device(), in_specs=spec("i"), out_specs=spec())
    result = using.check(total, [X], executors="jax,interpreter", model=None)
    assert result.ok
    assert verdicts(result) == {"native": "unsupported", "jax": "undecided", "interpreter": "unsupported"}
    assert "all_reduce: not supported here: it is about several devices" in result.rows[2]["reason"]


def placed() -> Any:
    return jax.sharding.NamedSharding(one_device(), jax.sharding.PartitionSpec("i"))


def argument_on_a_mesh() -> tuple[Callable[[Any], Any], Any]:
    return lambda x: x + 1, jax.device_put(X, placed())


SHARDED: dict[str, Callable[[], tuple[Callable[[Any], Any], Any]]] = {
    "argument": argument_on_a_mesh,
    "constraint": lambda: (lambda x: jax.lax.with_sharding_constraint(x + 1, placed()), X),
    "pmap": lambda: (jax.pmap(lambda x: x + 1, devices=jax.devices()[:1]), X[:1]),
}


@pytest.mark.parametrize("name", SHARDED)
def test_where_arrays_lie_makes_no_difference(name: str, using: checking.Checker) -> None:
    function, x = SHARDED[name]()
    result = using.check(function, [x], executors="jax,interpreter", model=None)
    assert verdicts(result) == dict.fromkeys(("native", "jax", "interpreter"), "pass")


def test_typed_keys_are_passed_as_their_data(using: checking.Checker) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    result = using.check(
        lambda k, x: x + jax.random.uniform(k["a"][1], (3, 4)),
        [{"a": keys}, X],
        executors="jax,interpreter",
        model=None,
    )
    assert verdicts(result) == dict.fromkeys(("native", "jax", "interpreter"), "pass")


UNTRACED: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "a static argument": (jax.jit(lambda x, n: x**n, static_argnums=1), [X, 3]),
    "too few arguments": (lambda x, y: x + y, [X]),
    "a text": (lambda x, kind: x, [X, "tanh"]),
    "a branch on a value": (lambda x: x if x.sum() > 0 else -x, [X]),
    "a mask": (lambda x: x[x > 0], [X]),
    "shapes": (lambda x: x @ x, [X]),
    "no values": (lambda x: x, [jax.ShapeDtypeStruct((3,), np.float32)]),
    "a number beyond its dtype": (lambda x: x, [2**40]),
    "a sum over a static axis": (lambda x, axis: x.sum(axis), [X, 1]),
}


@pytest.mark.parametrize("name", UNTRACED)
def test_what_jax_cannot_trace_is_a_typed_error_with_a_way_out(name: str, using: checking.Checker) -> None:
    function, inputs = UNTRACED[name]
    with pytest.raises(UsageError, match=r"JAX cannot trace it for these inputs: .*functools\.partial") as caught:
        using.check(function, inputs, executors="jax", model=None)
    assert caught.value.__cause__ is not None
    assert "\n" not in str(caught.value)


def test_keywords_of_a_function_are_refused_with_a_way_out(using: checking.Checker) -> None:
    with pytest.raises(UsageError, match=r"has no keyword axis; .*functools\.partial"):
        checking.assert_parity(jax.nn.softmax, X, axis=0, executors="jax", using=using)
    bound = functools.partial(jax.nn.softmax, axis=0)
    assert checking.assert_parity(bound, X, executors="jax", using=using).compared == ("jax",)


def test_results_without_elements_are_compared_by_dtype_and_shape(using: checking.Checker) -> None:
    nothing = np.zeros((0, 3), np.float32)
    done = checking.assert_parity(lambda x: x + 1, nothing, executors="jax,interpreter", using=using)
    assert done.compared == ("jax", "interpreter")
    with pytest.raises(AssertionError, match="no executor but native gave a result that could be compared"):
        checking.assert_parity(lambda x: (), X, executors="jax", using=using)  # no results at all


def test_results_without_elements_are_compared_with_those_of_the_interpreter(using: checking.Checker) -> None:
    with mock.patch("fuzz.checking.judged.Reference.execution", Internal(detail="a kernel is missing")):
        done = using.check(lambda x: x + 1, [np.zeros((0, 3), np.float32)], executors="jax", model=None)
    assert [row["evidence"] for row in done.rows] == ["none", "interpreter"]
    assert done.compared == ("jax",)
