"""What checking a program costs beside a bare loop that compiles and runs the same modules.

Run: tox run -e bench. One round is a batch of generated programs; read ratios within one run, absolute times drift. The
split by phase is in the `extra_info` of the JSON (`--benchmark-json`), in milliseconds a program, and is printed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from fuzz.generate import generate
from oracle.case import Case
from oracle.enclosure import MODELS, enclose
from oracle.executors import NativeExecutor, PjrtExecutor, Pool, lane_options
from oracle.judge import Reference, judge
from tenferro_ref.errors import LoweringError
from tenferro_ref.ops import TensorType
from tenferro_ref.pjrt import Client, load_plugin
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import lower_to_stablehlo
from tests.plugins import plugin_or_skip

SEED, BATCH = 1, 32
PLUGIN = "xla081"


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """A batch of what StableHLO can say."""
    return [case for case in generate(SEED, 0, 2 * BATCH) if _lowers(case)][:BATCH]


def _lowers(case: Case) -> bool:
    try:
        lower_to_stablehlo(LoweringView.of(case.program, case.shapes))
    except LoweringError:
        return False
    return True


@pytest.fixture(scope="module")
def executor() -> Iterator[PjrtExecutor]:
    pool = Pool()
    yield pool.pjrt(plugin_or_skip(PLUGIN), "parity")
    pool.close()


def test_generate(benchmark: pytest.FixtureRequest) -> None:
    """Drawing a batch of programs with their inputs."""
    batches = iter(range(10_000))
    benchmark(lambda: generate(SEED, next(batches), BATCH))


def test_native(benchmark: pytest.FixtureRequest, cases: list[Case]) -> None:
    """Compiling and running a batch natively."""
    benchmark(lambda: [NativeExecutor().run(case) for case in cases])


def test_enclose(benchmark: pytest.FixtureRequest, cases: list[Case]) -> None:
    """Enclosing a batch under the xla model."""
    benchmark(lambda: [enclose(case.program, case.inputs, MODELS["xla"]) for case in cases])


def test_lower(benchmark: pytest.FixtureRequest, cases: list[Case]) -> None:
    """Emitting StableHLO for a batch."""
    benchmark(lambda: [lower_to_stablehlo(LoweringView.of(case.program, case.shapes)) for case in cases])


@pytest.mark.benchmark(group="checked against bare")
def test_checked(benchmark: pytest.FixtureRequest, cases: list[Case], executor: PjrtExecutor) -> None:
    """A batch through the worker, with lowering, enclosures and comparison."""
    executor.worker.facts  # noqa: B018 - start the worker before the clock
    phases: Counter[str] = Counter()

    def check() -> None:
        for case in cases:
            start = time.perf_counter()
            reference = Reference(case, NativeExecutor())
            reference.prepare(["xla"])
            phases["reference"] += time.perf_counter() - start
            phases.update(judge(executor, reference).seconds)
            phases["programs"] += 1

    benchmark.pedantic(check, rounds=3, warmup_rounds=1)
    split = {k: 1e3 * v / phases["programs"] for k, v in phases.items() if k != "programs"}
    benchmark.extra_info |= {"ms a program": split}
    print("\nms a program:", ", ".join(f"{k} {v:.2f}" for k, v in split.items()))


@pytest.mark.benchmark(group="checked against bare")
def test_bare(benchmark: pytest.FixtureRequest, cases: list[Case]) -> None:
    """The same modules compiled and run in process, with no checks at all."""
    plugin = plugin_or_skip(PLUGIN)
    options = lane_options("parity", plugin)
    modules = []
    for case in cases:
        view = LoweringView.of(case.program, case.shapes)
        modules.append((lower_to_stablehlo(view), [_spec(t) for t in view.input_specs], case.inputs))
    with Client(load_plugin(plugin)) as client:

        def loop() -> None:
            for text, parameters, inputs in modules:
                with client.compile(text, options, parameters=parameters) as executable:
                    executable.run(inputs)

        benchmark.pedantic(loop, rounds=3, warmup_rounds=1)


def _spec(type_: TensorType) -> tuple[object, tuple[int, ...]]:
    return type_.dtype, tuple(int(str(e)) for e in type_.shape)
