"""Asking a plugin everything: probes in one worker, cells in another, each death the business of what was asked."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import groupby

from fuzz.conform.cells import Cell, programs
from fuzz.conform.folded import FoldedPool
from fuzz.conform.probes import PROBES
from fuzz.conform.record import OUTCOMES, Check, Conformance, Outcome, Section
from fuzz.findings.alike import how_of
from fuzz.findings.known import load_known, page_of
from fuzz.findings.naming import named
from fuzz.findings.suspect import inspect
from oracle.attribution import attribute
from oracle.case import Case
from oracle.judge import Reference, judge_many, prepare
from oracle.peers import NativeExecutor, PjrtExecutor, Pool
from oracle.peers.pjrt import build_of
from oracle.verdict import Answer, Verdict
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError, WorkerDied
from tenferro_ref.isolation import Worker, WorkerSpec, wire
from tenferro_ref.pjrt import PluginRef

#: Sections in the order of the report, with what is looked at in them.
SECTIONS = {
    "loading": "Loading and API version",
    "attributes": "Attributes",
    "devices": "Client and devices",
    "transfers": "Upload and download",
    "programs": "Programs and what is announced of them",
    "operations": "Operations by dtype and class of values",
    "constants": "Constants: the same programs with their inputs folded",
    "errors": "Wrong programs and wrong calls",
    "events": "Events",
    "donation": "Donation",
    "serialisation": "Serialised executables",
    "versions": "Versions and forms of StableHLO",
    "custom calls": "Custom calls",
    "memory": "Memory",
}
#: The sections that have cells.
CELLS = ("operations", "constants")
#: The sections for a plugin that makes no client.
_WITHOUT_CLIENT = ("loading", "attributes")
#: What a plugin's user gets: no compile options beside those of its `NAME.toml`.
_LANE = "defaults"
#: Calls that hang before the rest of a section is left out.
_HANGS = 2
_SECONDS = 60.0
#: The share of a call's time after which an event that is not ready never will be: several are waited for in one call.
_PATIENCE = 1 / 6
_ENGINE = "fuzz.conform.engine"
#: Told after each check or program: how many, of how many, in which section.
Progress = Callable[[int, int, str], None]


@dataclass
class Run:
    """One plugin being asked.

    Attributes
    ----------
    given
        What the plugin was called.
    request_seconds
        Wall time for one call; past it the plugin hangs.
    dtypes, ops
        Element types and ops (`cells.names`; empty for all) whose cells are asked for, in the sections of operations and of
        constants.
    """

    plugin: PluginRef
    given: str
    sections: Collection[str] = tuple(SECTIONS)
    request_seconds: float = _SECONDS
    progress: Progress = lambda done, total, section: None
    dtypes: Sequence[DType] = tuple(DType)
    ops: Collection[str] = ()
    _done: int = field(default=0, init=False)
    _facts: dict[str, str] = field(default_factory=dict, init=False)
    _loaded: bool = field(default=True, init=False)
    _no_client: str = field(default="", init=False)
    _build: str = field(default="", init=False)

    @cached_property
    def _worker(self) -> Worker:
        spec = WorkerSpec(self.plugin, engine=_ENGINE, request_seconds=self.request_seconds)
        return Worker(self.plugin.name, spec)

    @cached_property
    def _programs(self) -> list[list[Cell]]:
        return list(programs(self.dtypes, self.ops))

    @cached_property
    def _folded(self) -> list[list[Cell]]:
        """One program an op and dtype: as constants, each set of values is compiled for itself."""
        by_op = groupby(self._programs, lambda cells: (cells[0].op, cells[0].dtype))
        return [next(group) for _, group in by_op]

    def conformance(self) -> Conformance:
        """Ask everything; never raises for what the plugin does."""
        started, begin = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), time.perf_counter()
        client = self._client()
        sections = []
        for name in (name for name in SECTIONS if name in self.sections):
            since = time.perf_counter()
            if self._no_client and name not in _WITHOUT_CLIENT:
                checks = [
                    client if name == "devices" else Check("everything", "skipped", f"no client: {self._no_client}")
                ]
            elif name in CELLS:
                checks = self._cells(name)
            else:
                checks = [client] * (name == "devices") + self._probes(name)
            sections.append(Section(name, SECTIONS[name], tuple(checks), time.perf_counter() - since))
        facts = {"file": self.plugin.path, "source": self.plugin.source}
        with contextlib.suppress(TenferroError):
            facts["sha256"] = self.plugin.sha256()
        facts |= self._facts
        self._worker.close()
        seconds = time.perf_counter() - begin
        return Conformance(self.given, started, seconds, self._no_client, tuple(facts.items()), tuple(sections))

    def _client(self) -> Check:
        """The check that the plugin makes a client; what it says of itself is kept."""
        name = "a client is made, and says what it is"

        def read(answer: wire.Message) -> tuple[dict[str, str], bool, str, str]:
            return dict(answer["facts"]), bool(answer["loaded"]), str(answer["no_client"]), str(answer["untold"])

        try:
            self._facts, self._loaded, self._no_client, untold = self._worker.request({"facts": True}, read)
        except WorkerDied as error:
            self._no_client = _last_words(error)
            return Check(name, _death(error), self._no_client)
        if self._no_client:
            return Check(name, "skipped", f"no client: {self._no_client}")
        self._build = build_of(self._facts)
        return Check(name, "fails", untold) if untold else Check(name, "holds")

    # --- the C API ---

    def _probes(self, section: str) -> list[Check]:
        checks: list[Check] = []
        for key in PROBES:
            where, _, name = key.partition(": ")
            if where != section:
                continue
            if not self._loaded and (checks or section != "loading"):
                checks.append(Check(name, "skipped", "the file does not load"))
                continue
            if sum(c.outcome == "hangs" for c in checks) >= _HANGS:
                checks.append(Check(name, "skipped", f"{_HANGS} calls before it hung"))
                continue
            checks.append(self._checked(section, self._probe(key, name)))
            self._tell(section)
        return checks

    def _probe(self, key: str, name: str) -> Check:
        try:
            request = {"probe": key, "patience": self.request_seconds * _PATIENCE}
            answer = self._worker.request(request, lambda a: (_OUTCOMES[a["outcome"]], str(a["detail"])))
        except WorkerDied as error:
            return Check(name, _death(error), _last_words(error))
        except TenferroError as error:
            return Check(name, "fails", str(error))
        return Check(name, *answer)

    def _checked(self, section: str, check: Check) -> Check:
        """A check of the C API with the page that describes it, if it does not hold and there is one."""
        if check.outcome in ("holds", "skipped"):
            return check
        page = page_of(f"{section}: {check.name}", check.outcome, "conform", self._build, load_known())
        return replace(check, outcome="known", page=page) if page else check

    # --- programs ---

    def _cells(self, section: str) -> list[Check]:
        constants = section == "constants"
        pool = (FoldedPool if constants else Pool)(request_seconds=self.request_seconds)
        executor = pool.pjrt(self.plugin, _LANE)
        found: dict[tuple[str, str, str], list[Check]] = {}
        hangs = 0
        try:
            for cells in self._folded if constants else self._programs:
                if hangs < _HANGS:
                    checks = self._judged(executor, cells, pool, "Constant > " if constants else "")
                else:
                    checks = [_check(cell, "skipped", f"{_HANGS} programs before it hung") for cell in cells]
                for check in checks:
                    hangs += check.outcome == "hangs"
                    found.setdefault((check.op, check.dtype, check.values), []).append(check)
                self._tell(section)
        finally:
            pool.close()
        return [_together(checks) for checks in found.values()]

    def _judged(self, executor: PjrtExecutor, cells: Sequence[Cell], pool: Pool, folded: str) -> list[Check]:
        """How the cells of one program come out; what the reference itself refuses is skipped."""
        references = [Reference(cell.case, NativeExecutor()) for cell in cells]
        prepare(references)
        sound = [not isinstance(reference.execution, TenferroError) for reference in references]
        asked = [reference for reference, there in zip(references, sound, strict=True) if there]
        answers = iter(judge_many(executor, asked) if asked else ())
        checks = []
        for cell, there in zip(cells, sound, strict=True):
            if not there:
                checks.append(_check(cell, "skipped", "the reference refuses these values"))
                continue
            answer = next(answers)
            outcome = _VERDICTS[answer.verdict]
            check = _check(cell, outcome, answer.reason)
            if outcome in ("fails", "crashes", "hangs") and (
                page := self._page(executor, cell.case, answer, pool, folded)
            ):
                check = replace(check, outcome="known", page=page)
            checks.append(check)
        return checks

    def _page(self, executor: PjrtExecutor, case: Case, answer: Answer, pool: Pool, folded: str) -> str:
        """The page that describes a disagreement; which rewrite makes it is found out only if a rule names this build."""
        rules = tuple(rule for rule in load_known() if any(fnmatchcase(self._build, b) for b in rule.builds))
        if not rules:
            return ""
        dtype = case.program.output_types[0].dtype.name
        for how, cause in self._causes(executor, case, answer, pool):
            words = f"{named(case.program, 0)} | {dtype} | {how} | {cause}"
            # folding may be wrong in a way of its own, or not
            for signature in (f"{folded * len(case.inputs)}{words}", words):
                if page := page_of(signature, answer.verdict.value, executor.name, self._build, rules):
                    return page
        return ""

    @staticmethod
    def _causes(executor: PjrtExecutor, case: Case, answer: Answer, pool: Pool) -> Iterator[tuple[str, str]]:
        """The kind of error and what makes the difference: for all wrong elements, then, if others may have another cause, for the first."""
        yield how_of(answer), attribute(executor, case, pool)
        if answer.verdict is Verdict.MISMATCH:
            alone = inspect(executor, case, answer, pool)
            yield how_of(alone.answer), alone.attribution

    def _tell(self, section: str) -> None:
        self._done += 1
        self.progress(self._done, self._total, section)

    @cached_property
    def _total(self) -> int:
        probes = sum(key.partition(": ")[0] in self.sections for key in PROBES)
        programs = len(self._programs) if "operations" in self.sections else 0
        return probes + programs + (len(self._folded) if "constants" in self.sections else 0)


_VERDICTS: dict[Verdict, Outcome] = {
    Verdict.PASS: "holds",
    Verdict.MISMATCH: "fails",
    Verdict.ERROR: "fails",
    Verdict.CRASH: "crashes",
    Verdict.TIMEOUT: "hangs",
    Verdict.UNSUPPORTED: "skipped",
    Verdict.UNDECIDED: "skipped",
}
_OUTCOMES: dict[str, Outcome] = {outcome: outcome for outcome in OUTCOMES}


def _death(error: WorkerDied) -> Outcome:
    return "hangs" if error.how.startswith("timeout") else "crashes"


def _last_words(error: WorkerDied) -> str:
    """How the process ended, with the line in which it says why."""
    return f"{error.how}; {error.last_words}" if error.last_words else error.how


def _check(cell: Cell, outcome: Outcome, detail: str) -> Check:
    name = f"{cell.op} {cell.dtype.name} {cell.values}"
    return Check(name, outcome, detail, op=cell.op, dtype=cell.dtype.name, values=cell.values, programs=1)


def _together(checks: Sequence[Check]) -> Check:
    """The worst of the checks of one cell, standing for all; one that was skipped says nothing if another holds."""
    asked = [check for check in checks if check.outcome != "skipped"] or checks
    return replace(min(asked, key=lambda check: OUTCOMES.index(check.outcome)), programs=len(asked))
