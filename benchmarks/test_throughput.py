"""What checking programs costs beside a bare loop that compiles and runs the same modules.

Run: tox run -e bench, or `pytest benchmarks/test_throughput.py --benchmark-only -s` for this file alone. The checked side is
the pipeline of a campaign (`fuzz.campaign.work`) over a store on disk: generator, native executor, enclosures, lowering,
worker process, comparison, store. The bare side compiles and runs, in process, the modules that the same programs make
(as many programs in a module), without reading the results. Both take turns; a ratio is the median of the rounds.

Times are given twice: on the wall (the checked side overlaps two processes), and as CPU time of all processes, which is what
decides where every core is busy and what a loaded machine changes least. What disagrees is triaged in a campaign, with
several more compiles each; that is timed apart. The figures are in the `extra_info` of the JSON (`--benchmark-json`), and
are printed.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from fuzz.campaign import judging
from fuzz.campaign.supervisor import Tick
from fuzz.campaign.work import begin, work
from fuzz.campaign.workers import run_workers
from fuzz.campaign.worksite import Worksite
from fuzz.findings.suspect import Suspect, inspect
from fuzz.generate.batches import generate
from fuzz.generate.settings import config_of
from fuzz.store import Lock, Plan, Store
from oracle.case import Case
from oracle.enclosure import MODELS, enclose
from oracle.peers import NativeExecutor, PjrtExecutor, Pool, Selection
from oracle.peers.modules import Module, write
from oracle.verdict import Answer
from tenferro_ref.errors import LoweringError, UnsupportedOp
from tenferro_ref.isolation import Worker
from tenferro_ref.pjrt import Client, load_plugin
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import lower_to_stablehlo
from tests.plugins import plugin_or_skip

PLUGIN = "xla081"
BATCH = 32
#: Batches of a round: so many that the first, which is generated while the plugin waits, does not weigh.
BATCHES = {"parity": 8, "fast": 32}
ROUNDS = 3
INPUT_SETS = (64, 256)
#: What programs contain: what a campaign's valid ones do, or ten instructions on small tensors, as peers are measured.
MIXES = {"usual": ("invalid=0",), "ten": ("invalid=0", "instructions=10", "elements=36", "dtypes=F32")}

# --- one thing at a time ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """A batch of what StableHLO can say."""
    return [case for case in generate(1, 0, 2 * BATCH) if _lowers(case)][:BATCH]


def _lowers(case: Case) -> bool:
    try:
        lower_to_stablehlo(LoweringView.of(case.program, case.shapes))
    except LoweringError:
        return False
    return True


def test_generate(benchmark: Any) -> None:
    """Drawing a batch of programs with their inputs."""
    batches = iter(range(10_000))
    benchmark(lambda: generate(1, next(batches), BATCH))


def test_native(benchmark: Any, cases: list[Case]) -> None:
    """Compiling and running a batch natively."""
    benchmark(lambda: [NativeExecutor().run(case) for case in cases])


def test_enclose(benchmark: Any, cases: list[Case]) -> None:
    """Enclosing a batch under the strictest model."""

    def all_of_them() -> None:
        for case in cases:
            try:
                enclose(case.program, case.inputs, MODELS["ieee"])
            except UnsupportedOp:
                continue

    benchmark(all_of_them)


def test_lower(benchmark: Any, cases: list[Case]) -> None:
    """Emitting StableHLO for a batch."""
    benchmark(lambda: [lower_to_stablehlo(LoweringView.of(case.program, case.shapes)) for case in cases])


# --- campaign and bare loop -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Seconds on the wall, and of CPU time in all processes."""

    wall: float
    cpu: float

    @classmethod
    def of(cls, work: Callable[[], object], worker: Worker | None = None) -> Cost:
        wall, cpu = time.perf_counter(), time.process_time() + _cpu(worker)
        work()
        return cls(time.perf_counter() - wall, time.process_time() + _cpu(worker) - cpu)


def _cpu(worker: Worker | None) -> float:
    """CPU seconds that a worker process has used."""
    if worker is None:
        return 0.0
    user, system = Path(f"/proc/{worker.pid}/stat").read_text("ascii").rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Bench:
    """A lane of a plugin, both ways."""

    def __init__(self, lane: str, folder: Path) -> None:
        self.pool, self.folder, self.lane = Pool(), folder, lane
        self.executor: PjrtExecutor = self.pool.pjrt(plugin_or_skip(PLUGIN), lane)
        self.executor.open()
        self.selection = Selection((NativeExecutor(), self.executor), ())
        self.client = Client(load_plugin(self.executor.plugin))

    def close(self) -> None:
        self.client.close()
        self.pool.close()

    def check(self, seed: int, programs: int, input_sets: int = 1, mix: str = "usual") -> list[tuple[Case, Answer]]:
        """A campaign that triages nothing; what disagrees."""
        suspects: list[tuple[Case, Answer]] = []

        def later(executor: Any, case: Case, answer: Answer, pool: Pool) -> Suspect:
            suspects.append((case, answer))
            return Suspect(executor, case, answer, "", "", "")

        path = self.folder / f"{self.lane}-{seed}.sqlite"
        with Store(path, create=True) as store, mock.patch.object(judging, "inspect", later):
            plan = Plan(
                seed, programs=programs, batch=BATCH * input_sets, max_findings=0, input_sets=input_sets,
                generate=MIXES[mix],
            )  # fmt: skip
            stream = begin(store, plan, self.selection)
            work(Worksite(store, stream, self.selection.executors, self.pool, threads=2), alone=True)
            assert store.done(stream.id)[0] == programs
        return suspects

    def modules(self, seed: int, programs: int, mix: str = "usual") -> list[tuple[Module, list[Any]]]:
        """What the plugin is given for the same programs, with the inputs."""
        made = []
        size = self.executor.programs_a_module
        for batch in range(programs // BATCH):
            cases = generate(seed, batch, BATCH, config_of(MIXES[mix]))
            for start in range(0, BATCH, size):
                part = cases[start : start + size]
                module = write(self.executor.check, self.executor.plain, part)
                if module.types:
                    made.append((module, [a for place in module.types for a in part[place].inputs]))
        return made

    def bare(self, modules: list[tuple[Module, list[Any]]]) -> None:
        for module, inputs in modules:
            specs = [(t.dtype, tuple(map(int, map(str, t.shape)))) for t in module.parameters]
            with self.client.compile(module.code, self.executor.options, parameters=specs) as executable:
                executable.run(inputs)


@pytest.fixture(params=["parity", "fast"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(request.param, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("mix", MIXES)
def test_campaign_beside_bare_loop(benchmark: Any, bench: Bench, mix: str) -> None:
    """One campaign process with its worker process beside one bare process: goals 0.9 (parity) and 0.6 (fast)."""
    programs = BATCH * BATCHES[bench.lane]
    rounds: list[tuple[Cost, Cost]] = []
    triage: list[Cost] = []
    seeds = iter(range(100, 1000))

    def take_turns() -> None:
        seed = next(seeds)
        modules, suspects = bench.modules(seed, programs, mix), []
        checked = Cost.of(lambda: suspects.extend(bench.check(seed, programs, mix=mix)), bench.executor.worker)
        rounds.append((checked, Cost.of(lambda: bench.bare(modules))))
        for case, answer in suspects[:2]:
            executor = next(e for e in bench.selection.executors if e.name == answer.executor)
            triage.append(Cost.of(partial(inspect, executor, case, answer, bench.pool), bench.executor.worker))

    benchmark.pedantic(take_turns, rounds=ROUNDS, warmup_rounds=1)
    counted = rounds[1:]

    def median(f: Callable[[Cost, Cost], float]) -> float:
        return statistics.median(f(c, b) for c, b in counted)

    info = {
        "bare / checked, wall": median(lambda c, b: b.wall / c.wall),
        "bare / checked, CPU": median(lambda c, b: b.cpu / c.cpu),
        "checked ms a program, wall": median(lambda c, _: 1e3 * c.wall / programs),
        "checked ms a program, CPU": median(lambda c, _: 1e3 * c.cpu / programs),
        "bare ms a program, wall": median(lambda _, b: 1e3 * b.wall / programs),
        "bare ms a program, CPU": median(lambda _, b: 1e3 * b.cpu / programs),
    }
    if triage:
        info["triage ms a disagreement, CPU"] = statistics.median(1e3 * c.cpu for c in triage)
    _tell(benchmark, f"{bench.lane}, {mix} programs", info)


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("plugin", ["xla081", "fas106", "lam115"])
def test_programs_a_module(benchmark: Any, plugin: str, mix: str) -> None:
    """Lane `parity`: running the same programs alone, and 4, 8 and 16 in a module, in turns; goal 1.8 times as many a CPU second."""
    pool = Pool()
    executor = pool.pjrt(plugin_or_skip(plugin), "parity")
    executor.open()
    costs: dict[int, list[Cost]] = {size: [] for size in (1, 4, 8, 16)}
    batches = iter(range(1000))

    def take_turns() -> None:
        cases = generate(300, next(batches), 2 * BATCH, config_of(MIXES[mix]))
        for size, seen in costs.items():
            with mock.patch.object(PjrtExecutor, "programs_a_module", size):
                seen.append(Cost.of(partial(executor.run_many, cases), executor.worker))

    benchmark.pedantic(take_turns, rounds=ROUNDS, warmup_rounds=1)
    pool.close()
    alone = costs[1][1:]
    info = {"ms a program alone, CPU": 1e3 * statistics.median(c.cpu for c in alone) / (2 * BATCH)}
    for size, seen in list(costs.items())[1:]:
        info[f"alone / {size} a module, CPU"] = statistics.median(
            a.cpu / c.cpu for a, c in zip(alone, seen[1:], strict=True)
        )
    _tell(benchmark, f"{plugin}, parity, {mix} programs", info)


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("sets", INPUT_SETS)
@pytest.mark.parametrize("bench", ["fast"], indirect=True)
def test_input_sets(benchmark: Any, bench: Bench, sets: int, mix: str) -> None:
    """One compile, many input sets: goal 1,000 checked (program, input set) pairs a second and core."""
    pairs = 2 * BATCH * sets
    costs: list[Cost] = []
    seeds = iter(range(200, 1000))

    def check() -> None:
        costs.append(Cost.of(partial(bench.check, next(seeds), pairs, sets, mix), bench.executor.worker))

    benchmark.pedantic(check, rounds=1, warmup_rounds=1)
    info = {
        "pairs a second of CPU time": pairs / costs[-1].cpu,
        "pairs a second": pairs / costs[-1].wall,
        "input sets a program": sets,
    }
    _tell(benchmark, f"input sets, fast, {mix} programs", info)


@pytest.mark.parametrize("mix", MIXES)
def test_two_workers(benchmark: Any, tmp_path: Path, mix: str) -> None:
    """`fuzz run --workers 2` in the fast lane, from the first sealed batch to the last: goal 250 programs a second."""
    plugin_or_skip(PLUGIN)
    programs, seen = BATCH * 32, []

    def tick(tick: Tick) -> None:
        seen.append((time.perf_counter(), tick.progress.done))

    def run() -> None:
        path = tmp_path / "two.sqlite"
        pool = Pool()
        with Store(path, create=True) as store, Lock(path) as lock:
            plan = Plan(1, programs=programs, max_findings=0, generate=MIXES[mix])
            stream = begin(store, plan, pool.select([f"pjrt:{PLUGIN}@fast"]))
            pool.close()
            run_workers(path, stream, 2, lock=lock, tick=tick)

    benchmark.pedantic(run, rounds=1)
    begun = next(at for at in seen if at[1])
    ended = next(at for at in seen if at[1] == programs)
    lengths = [len(case.program.instructions) for case in generate(1, 0, BATCH, config_of(MIXES[mix]))]
    info = {
        "programs a second": (ended[1] - begun[1]) / (ended[0] - begun[0]),
        "instructions a program": statistics.mean(lengths),
    }
    _tell(benchmark, f"two workers, fast, triage included, {mix} programs", info)


def _tell(benchmark: Any, what: str, info: dict[str, float]) -> None:
    benchmark.extra_info |= info
    print(f"\n{what}:", ", ".join(f"{name} {value:.4g}" for name, value in info.items()))
