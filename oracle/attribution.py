"""Who makes a difference: an option, a pass of ours, a pass of XLA, a build.

A cause is found by changing the configuration, one thing at a time, until the disagreement goes away. Which instruction is
wrong is `oracle.judge.first_wrong_slot`; how findings are named and grouped is in `fuzz.findings.triage`.
"""

from __future__ import annotations

import copy
import math
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import Executor, NativeExecutor, PjrtExecutor, Pool, attempt, settled
from oracle.peers.jax import JaxExecutor
from oracle.peers.lanes import Options
from oracle.verdict import Build, Verdict
from tenferro_ref.compiler import DEFAULT_PIPELINE, run_passes
from tenferro_ref.errors import TenferroError
from tenferro_ref.pjrt import discover, missing
from tenferro_ref.program import to_exec

Xla = TypeVar("Xla", bound=PjrtExecutor | JaxExecutor)

#: What it means that a disagreement goes away in a lane, in the order in which they are asked.
_LANE_MEANING = {
    "parity": "option: xla_cpu_enable_fast_min_max",
    "no-algsimp": "rewrite: algsimp",
    "level0": "xla_backend_optimization_level",
    "fast": "fusion and optimisation level",
}
#: What it means that a disagreement of these lanes goes away in the lane `parity`, from which they differ in more than that option.
_PARITY_MEANING = {
    "no-algsimp": "only without algsimp",
    "level0": "only at xla_backend_optimization_level=0",
    "fast": "only at xla_backend_optimization_level=0",
}
#: One lane is wrong as well, another hangs, or none can run it: of a smaller program they may tell.
UNCLEAR = "unclear: other lanes do not tell"
#: Passes without which a module does not compile, or means something else: a disagreement that goes away says nothing.
_NEEDED = frozenset({"layout-assignment", "copy-insertion", "pipeline-start", "optimizations"})


def attribute(executor: Executor, case: Case, pool: Pool) -> str:
    """The first change of configuration under which the disagreement goes away; cheap enough to ask at each reduction.

    Returns
    -------
    str
        "option: ...", "rewrite: algsimp", an optimisation level, "our pass: NAME", "every lane", `UNCLEAR`, "native", or "only NAME" for
        an executor that has nothing to switch off, and where an error is due.
    """
    executor = settled(executor, case)
    if case.refusal is not None:
        return _attribute_refusal(executor, case)
    if isinstance(executor, PjrtExecutor):
        return _attribute_lane(executor, case, pool)
    if isinstance(executor, NativeExecutor):
        return _attribute_native(executor, case)
    if isinstance(executor, JaxExecutor) and executor.jit:
        other = with_options(executor, {"xla_disable_hlo_passes": "algsimp"})
        if not judge(other, Reference(case, NativeExecutor())).verdict.is_disagreement:
            return _LANE_MEANING["no-algsimp"]
    return f"only {executor.name.partition(':')[0]}"


def _attribute_refusal(executor: Executor, case: Case) -> str:
    """ "native" where the native executor is wrong in the same way: all that is not an engine of its own shares its rules."""
    reference = Reference(case, NativeExecutor())
    ours, theirs = judge(reference.native, reference), judge(executor, reference)
    if (ours.verdict, ours.comparison.value_class) == (theirs.verdict, theirs.comparison.value_class):
        return "native"
    name = executor.name.partition(":")[0]
    return f"only {'native-drawn' if name == 'native' else name}"


def _attribute_lane(executor: PjrtExecutor, case: Case, pool: Pool) -> str:
    reference, wrong = Reference(case, NativeExecutor()), set()
    for lane, meaning in _LANE_MEANING.items():
        if lane == executor.lane:
            continue
        verdict = judge(pool.pjrt(executor.plugin, lane), reference).verdict
        if verdict is Verdict.PASS:
            return _PARITY_MEANING.get(executor.lane, meaning) if lane == "parity" else meaning
        if verdict.is_disagreement:  # what is unsupported or undecided there says nothing
            wrong.add(verdict)
    return "every lane" if len(wrong) == 1 else UNCLEAR


def _attribute_native(executor: NativeExecutor, case: Case) -> str:
    """The last of the fewest passes of a configuration with which the case is wrong: the others only lead up to it.

    The configuration is the executor's own, then the default one, which the executor was compared with.
    """

    def wrong(passes: tuple[str, ...]) -> bool:
        alike, configured = NativeExecutor(passes=passes), replace(executor, passes=passes)

        def differs(reference: NativeExecutor) -> bool:
            expected = Reference(case, reference)
            return any(judge(one, expected).verdict.is_disagreement for one in (alike, configured))

        return differs(alike) or (not _reassociates(case, passes) and differs(NativeExecutor(passes=())))

    if not wrong(()):
        for passes in (executor.passes, DEFAULT_PIPELINE):
            if wrong(passes):
                return f"our pass: {_fewest(passes, wrong)[-1]}"
    return "native"


def _reassociates(case: Case, passes: tuple[str, ...]) -> bool:
    return any(result.reassociates for result in run_passes(to_exec(case.program), passes))


def _fewest(passes: tuple[str, ...], wrong: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """Passes none of which can be left out."""
    for i in range(len(passes)):
        fewer = (*passes[:i], *passes[i + 1 :])
        if wrong(fewer):
            return _fewest(fewer, wrong)
    return passes


def with_options(executor: Xla, options: Options) -> Xla:
    """The same peer with further compile options."""
    other = copy.copy(executor)
    other.options = {**executor.options, **options}
    return other


def hlo_passes(executor: Xla, case: Case) -> tuple[str, ...]:
    """HLO passes of the plugin that change the case's module, in order, from the plugin's own dump.

    The plugin must run on this machine, since it writes files; a plugin that dumps nothing has no passes here.
    """
    with tempfile.TemporaryDirectory() as folder:
        attempt(with_options(executor, {"xla_dump_to": folder, "xla_dump_hlo_pass_re": ".*"}), case)
        names = [re.search(r"\.after_([\w-]+)\.before_", path.name) for path in sorted(Path(folder).iterdir())]
    return tuple(dict.fromkeys(m[1] for m in names if m and m[1] not in _NEEDED))


def hlo_pass(executor: Xla, case: Case) -> str:
    """The HLO pass that has to be disabled alone for the disagreement to go away; "" if there is none."""
    reference = Reference(case, NativeExecutor())
    disabled = str(executor.options.get("xla_disable_hlo_passes", ""))
    for name in hlo_passes(executor, case):
        passes = ",".join(filter(None, (disabled, name)))
        if not judge(with_options(executor, {"xla_disable_hlo_passes": passes}), reference).verdict.is_disagreement:
            return name
    return ""


def builds(executor: PjrtExecutor, case: Case, pool: Pool, seconds: float = math.inf) -> tuple[Build, ...]:
    """What each build of the executor's platform says in the same lane, oldest API first; then those that were not asked.

    Parameters
    ----------
    seconds
        Wall time after which no further build is asked.
    """
    deadline = time.monotonic() + seconds
    reference = Reference(case, NativeExecutor())
    platform = executor.plugin.platform
    installed = {plugin.path: plugin for plugin in (executor.plugin, *discover()) if plugin.platform == platform}
    asked, silent = [], []
    for plugin in installed.values():
        if time.monotonic() >= deadline:
            silent.append(Build(plugin.name, reason="not asked: out of time"))
            continue
        peer = pool.pjrt(plugin, executor.lane)
        try:
            api = peer.worker.facts.get("PJRT API", "")
        except TenferroError as error:
            silent.append(Build(plugin.name, reason=f"cannot be asked: {error}"))
            continue
        answer = judge(peer, reference)
        asked.append(Build(plugin.name, api, answer.verdict, answer.reason))
    asked.sort(key=lambda build: [int(part) for part in re.findall(r"\d+", build.api)])
    absent = [Build(plugin.name, reason=f"absent: pip install {plugin.package}") for plugin in missing(platform)]
    return (*asked, *silent, *absent)


__all__ = ["UNCLEAR", "attribute", "builds", "hlo_pass", "hlo_passes", "with_options"]
