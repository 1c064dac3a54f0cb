"""What the PJRT client costs above the C calls, beside NumPy, and what asynchronous execution gains.

Run: `pytest benchmarks/test_pjrt_client.py --benchmark-only -s`. Every figure is a ratio, or a difference, within one run: both sides take
turns, and the median of the rounds counts. They are in the `extra_info` of the JSON, and are printed.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.pjrt import Client, DiskCache, ExecutableCache, TensorSpec, load_plugin
from tests.fake_plugin.build import build_fake_plugin
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


def test_python_above_the_calls(benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One small input and output: the time of a run without that of the calls in it.

    With the fake plugin, which computes at once: what a real one takes in the background is not Python's.
    """
    x = np.array(1.5, np.float32)
    inside = [0.0]
    with Client(load_plugin(build_fake_plugin(tmp_path))) as client:
        executable = client.compile(NEGATE, parameters=[SCALAR])
        executable.run([x])
        timed = {name: _timed(inside, function) for name, function in client.api._functions.items()}
        rounds = []
        for _ in range(200):
            run = seconds(lambda: executable.run([x]), 50)
            inside[0] = 0.0
            with monkeypatch.context() as patch:
                patch.setattr(client.api, "_functions", timed)
                seconds(lambda: executable.run([x]), 50)
            rounds.append((run, inside[0] / 50))
        run, calls = (1e6 * min(column) for column in zip(*rounds, strict=True))
        benchmark.pedantic(lambda: executable.run([x]), rounds=100, iterations=10)
        report(benchmark, client, microseconds_a_run=run, microseconds_above_the_calls=run - calls)
    assert run - calls < 25


def _timed(inside: list[float], function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(args: Any) -> Any:
        start = time.perf_counter()
        error = function(args)
        inside[0] += time.perf_counter() - start
        return error

    return call


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


# --- kept executables -------------------------------------------------------------------------------------------------

STEPS = 8
MIXED = "\n".join(
    [
        "func.func public @main(%v0: tensor<64x64xf32>) -> tensor<64x64xf32> {",
        *(
            f"  %v{i + 1} = stablehlo.{op} %v{i} : tensor<64x64xf32>"
            for i, op in enumerate(["sine", "exponential", "negate", "tanh"] * (STEPS // 4))
        ),
        f"  return %v{STEPS} : tensor<64x64xf32>",
        "}",
    ]
)
MIXED_TYPE: TensorSpec = (DType.F32, (64, 64))


def test_a_hit_beside_compiling(benchmark: Any, client: Client, tmp_path: Path) -> None:
    """An executable of eight ops: found in memory, loaded from the disk, and compiled with and without being written there."""
    disk = DiskCache(tmp_path / "cache")
    options = client.encode(None)

    def wanted(cache: ExecutableCache) -> None:
        cache.compile(MIXED, options, parameters=[MIXED_TYPE])

    def once(kept: DiskCache | None) -> None:
        with ExecutableCache(client, disk=kept) as cache:
            wanted(cache)

    def written() -> None:
        shutil.rmtree(disk.folder)
        once(DiskCache(disk.folder))

    with ExecutableCache(client) as memory:
        wanted(memory)
        compiling, writing, loading, keeping = in_turns(
            lambda: once(None), written, lambda: once(disk), lambda: wanted(memory)
        )
        benchmark.pedantic(lambda: once(disk), rounds=5, iterations=1)
    report(
        benchmark, client, milliseconds_to_compile=1e3 * compiling, and_write=writing / compiling,
        disk_beside_compiling=loading / compiling, memory_beside_compiling=keeping / compiling,
    )  # fmt: skip
