"""`conformance` over a folder of modules that state their results: programs of the generator with what the native executor gives.

3,000 modules in ten minutes are 200 ms for one. Run: `pytest benchmarks/test_conformance_speed.py --benchmark-only -s`.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fuzz.checking.conformance import conform
from fuzz.generate.batches import generate
from fuzz.generate.settings import config_of
from oracle.case import Case
from oracle.peers import NativeExecutor, Pool, attempt_source
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import Body, lower_into
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

MODULES = 100
#: How many times what the plugin takes alone a folder may take; the plugin is started anew for it.
ALLOWED = 2.0


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


def test_a_folder(benchmark: BenchmarkFixture, folder: Path) -> None:
    """Reading, native runs and comparison beside the runs of the plugin alone, which they go along with."""
    module_or_skip("jaxlib")
    plugin_or_skip("lam115")
    files, pool = sorted(folder.iterdir()), Pool()
    try:
        executor = pool.make("pjrt:lam115")
        functions = [f for file in files for f in pool.reader.stating(file.read_text(), file.name)]
        sources = [pool.reader.source(f.code, f.where) for f in functions]
        start = time.perf_counter()
        for source in sources:
            attempt_source(executor, source, ())
        alone = time.perf_counter() - start
        outcomes = benchmark.pedantic(lambda: list(conform(files, [executor], pool.reader)), rounds=1)
        assert len(outcomes) == MODULES
        assert [o for o in outcomes if o.read] == []
        seconds = benchmark.stats.stats.max
        benchmark.extra_info.update(milliseconds_a_module=1e3 * seconds / MODULES, beside_the_plugin=seconds / alone)
        print(f"\n{1e3 * seconds / MODULES:.0f} ms a module, {seconds / alone:.2f} times the runs alone")
        assert seconds < ALLOWED * alone
    finally:
        pool.close()
