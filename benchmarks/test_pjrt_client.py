"""What the PJRT client costs above the C calls, beside NumPy, and what asynchronous execution gains.

Run: `pytest benchmarks/test_pjrt_client.py --benchmark-only -s`. Every figure is a ratio, or a difference, within one run: both sides take
turns, and the median of the rounds counts. They are in the `extra_info` of the JSON, and are printed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.pjrt import Client, TensorSpec, load_plugin
from tenferro_ref.pjrt.native import Api
from tests.plugins import CPU_PLUGINS, plugin_or_skip

ROUNDS = 7


@pytest.fixture(scope="module", params=CPU_PLUGINS)
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with Client(load_plugin(plugin_or_skip(request.param))) as client:
        yield client


def seconds(function: Callable[[], object], repeat: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        function()
    return (time.perf_counter() - start) / repeat


def in_turns(*functions: Callable[[], object], repeat: int = 1, rounds: int = ROUNDS) -> list[float]:
    """Median seconds of each, after one round that does not count."""
    measured = [[seconds(function, repeat) for function in functions] for _ in range(rounds + 1)][1:]
    return [statistics.median(column) for column in zip(*measured, strict=True)]


def report(benchmark: Any, client: Client, **figures: float) -> None:
    benchmark.extra_info.update(figures)
    shown = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in figures.items())
    print(f"\n{client.plugin.ref.name}: {shown}")


# --- calls ------------------------------------------------------------------------------------------------------------

SCALAR: TensorSpec = (DType.F32, ())
NEGATE = "func.func public @main(%a: tensor<f32>) -> tensor<f32> {%0 = stablehlo.negate %a : tensor<f32>\n return %0 : tensor<f32>}"


def test_python_above_the_calls(benchmark: Any, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """One small input and output: the time that is not spent inside the plugin's functions."""
    inside = 0.0
    x = np.array(1.5, np.float32)
    with client.compile(NEGATE, parameters=[SCALAR]) as executable:
        executable.run([x])
        whole = min(seconds(lambda: executable.run([x]), 200) for _ in range(ROUNDS))
        functions = dict(client.api._functions)

        def timed(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def call(args: Any) -> Any:
                nonlocal inside
                start = time.perf_counter()
                try:
                    return function(args)
                finally:
                    inside += time.perf_counter() - start

            return call

        monkeypatch.setattr(client.api, "_functions", {name: timed(f) for name, f in functions.items()})
        calls = 0.0
        for _ in range(ROUNDS):
            inside = 0.0
            seconds(lambda: executable.run([x]), 200)
            calls = min(calls or inside / 200, inside / 200)
        monkeypatch.undo()
        benchmark.pedantic(lambda: executable.run([x]), rounds=100, iterations=10)
    above = 1e6 * (whole - calls)
    report(benchmark, client, microseconds_a_run=1e6 * whole, microseconds_above_the_calls=above)
    assert isinstance(client.api, Api)
    assert above < 25


# --- copies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [32, 512, 2048])
def test_copies_beside_numpy(benchmark: Any, client: Client, side: int) -> None:
    """Upload and download of a square of F32 beside `numpy.copyto`, in the order of the host array and in the other."""
    x = np.asfortranarray(np.arange(side * side, dtype=np.float32).reshape(side, side))
    other, target = np.ascontiguousarray(x), np.empty_like(x)
    spec: TensorSpec = (DType.F32, (side, side))
    upload, download = client.upload(spec), client.download(spec)
    destroy = client.api.destroy
    repeat = max(1, 2_000_000 // (side * side))
    with client.put(x) as buffer:
        copy, turn, up, up_turned, down = in_turns(
            lambda: np.copyto(target, x),
            lambda: np.copyto(target, other),
            lambda: destroy("Buffer", upload(x)),
            lambda: destroy("Buffer", upload(other)),
            lambda: download(buffer.raw),
            repeat=repeat,
        )
        np.testing.assert_array_equal(download(buffer.raw), x)
        benchmark.pedantic(lambda: download(buffer.raw), rounds=10, iterations=1)
    report(
        benchmark, client, side=side, upload=up / copy, upload_of_the_other_order=up_turned / turn, download=down / turn
    )


# --- asynchronous execution -------------------------------------------------------------------------------------------

SIDE, LENGTH = 256, 20
SQUARE: TensorSpec = (DType.F32, (SIDE, SIDE))
TYPE = f"tensor<{SIDE}x{SIDE}xf32>"
PRODUCT = f"""
func.func public @main(%a: {TYPE}, %b: {TYPE}) -> {TYPE} {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}
  return %0 : {TYPE}
}}
"""


def test_host_work_while_a_chain_runs(benchmark: Any, client: Client) -> None:
    """A chain of products with work of the host beside it: read at the end, beside reading each result before the next."""
    x = np.eye(SIDE, dtype=np.float32, order="F")
    values = np.random.default_rng(0).random(20_000)

    def host_work() -> None:
        np.sort(values)

    with client.compile(PRODUCT, parameters=[SQUARE, SQUARE]) as executable, client.put(x) as factor:

        def chained() -> None:
            result = factor
            for _ in range(LENGTH):
                (result,) = executable.execute([result, factor])
                host_work()
            result.numpy()

        def by_the_host() -> None:
            result = x
            for _ in range(LENGTH):
                (result,) = executable.run([result, x])
                host_work()

        def alone() -> None:
            for _ in range(LENGTH):
                host_work()

        background, waiting, host = in_turns(chained, by_the_host, alone)
        begun = seconds(lambda: executable.execute([factor, factor]))
        benchmark.pedantic(chained, rounds=5, iterations=1)
    report(
        benchmark, client, in_the_background_beside_waiting=background / waiting,
        of_which_host_work=host / waiting, milliseconds_to_begin=1e3 * begun,
    )  # fmt: skip
