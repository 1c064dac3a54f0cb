"""`conformance` over a folder of modules that state their results: programs of the generator with what the native executor gives.

3,000 modules in ten minutes are 200 ms for one. Run: `pytest benchmarks/test_conformance_speed.py --benchmark-only`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fuzz.checking.conformance import conform
from fuzz.generate.batches import generate
from fuzz.generate.settings import config_of
from oracle.case import Case
from oracle.peers import NativeExecutor, Pool
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import Body, lower_into
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

MODULES = 100
#: The most that a module may take, in seconds.
ALLOWED = 0.2


def stated(case: Case) -> str:
    """The program with its inputs as constants, and its results stated to be those of the native executor."""
    body = Body()
    outputs = NativeExecutor().run(case).outputs
    results = lower_into(body, LoweringView.of(case.program, case.shapes), [body.array(a) for a in case.inputs])
    expected = [body.array(a) for a in outputs]
    calls = "".join(
        f"    stablehlo.custom_call @check.expect_eq({x.name}, {y.name}) : ({x.type}, {y.type}) -> ()\n"
        for x, y in zip(results, expected, strict=True)
    )
    return re.sub(r"^    return ", lambda found: calls + found[0], body.module(results), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, number = tmp_path_factory.mktemp("stated"), 0
    for case in generate(1, 0, 3 * MODULES, config_of(("invalid=0", "linalg=0", "derivatives=0"))):
        try:
            text = stated(case)
        except TenferroError:
            continue
        (made / f"m{number}.mlir").write_text(text)
        number += 1
        if number == MODULES:
            break
    return made


@pytest.mark.parametrize("executors", ["native", "native,pjrt:lam115"])
def test_a_folder(benchmark: BenchmarkFixture, folder: Path, executors: str) -> None:
    module_or_skip("jaxlib")
    if "lam115" in executors:
        plugin_or_skip("lam115")
    files, pool = sorted(folder.iterdir()), Pool()
    try:
        chosen = [pool.make(name) for name in executors.split(",")]
        outcomes = benchmark.pedantic(lambda: list(conform(files, chosen, pool.reader)), rounds=1)
        assert len(outcomes) == MODULES
        assert [o for o in outcomes if o.read] == []
        assert benchmark.stats.stats.max < ALLOWED * MODULES
    finally:
        pool.close()
