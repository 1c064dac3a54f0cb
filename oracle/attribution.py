"""Attribution: which option, pass of ours, HLO pass or build makes the difference.

A cause is found by changing the configuration, one thing at a time, until the disagreement goes away. Which instruction is
wrong is `oracle.judge.first_wrong_slot`; how disagreements are grouped is in `fuzz.findings.suspect`, how findings are named in `fuzz.findings.naming`.
"""

from __future__ import annotations

import math
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import Executor, NativeExecutor, PjrtExecutor, Pool, attempt
from oracle.peers.base import WorkerExecutor
from oracle.peers.jax import JaxExecutor
from oracle.peers.native import moves_roundings
from oracle.verdict import Build, Verdict
from tenferro_ref.compiler import DEFAULT_PIPELINE
from tenferro_ref.errors import TenferroError
from tenferro_ref.pjrt import discover, missing

#: Lanes in the order in which they are tried, with the cause if the disagreement goes away there.
_CAUSES = {
    "parity": "option: xla_cpu_enable_fast_min_max",
    "no-algsimp": "rewrite: algsimp",
    "level0": "xla_backend_optimization_level",
    "fast": "fusion and optimisation level",
}
#: The cause if a disagreement in one of these lanes goes away in `parity`, which does not differ from them in that option.
_CAUSES_BESIDE_PARITY = {
    "no-algsimp": "only without algsimp",
    "level0": "only at xla_backend_optimization_level=0",
    "fast": "only at xla_backend_optimization_level=0",
}
#: Each lane that can run the program is wrong.
EVERY_LANE = "every lane"
#: Other lanes are wrong in different ways, or none can run the program; they may tell more of a smaller one.
UNCLEAR = "unclear: other lanes do not tell"
#: HLO passes without which a module does not compile or means something else, so that leaving one out proves nothing.
_NEEDED = frozenset({"layout-assignment", "copy-insertion", "pipeline-start", "optimizations"})


def attribute(executor: Executor, case: Case, pool: Pool) -> str:
    """The first change of configuration under which the disagreement goes away; cheap enough for each step of a reduction.

    Returns
    -------
    str
        "option: ...", "rewrite: algsimp", an optimisation level, "serialisation", "our pass: NAME", `EVERY_LANE`, `UNCLEAR`, "native", or "only NAME" for
        an executor that has nothing to switch off, and where an error is due.
    """
    executor = executor.settled(case)
    if case.refusal is not None:
        return _attribute_refusal(executor, case)
    match executor:
        case PjrtExecutor():
            return _attribute_lane(executor, case, pool)
        case NativeExecutor():
            return _attribute_native(executor, case)
        case JaxExecutor(jit=True):
            other = executor.with_options({"xla_disable_hlo_passes": "algsimp"})
            if judge(other, Reference(case, NativeExecutor())).verdict is Verdict.PASS:
                return _CAUSES["no-algsimp"]
    return f"only {executor.peer.kind}"


def _attribute_refusal(executor: Executor, case: Case) -> str:
    """ "native" if the native executor gives the same wrong answer: other executors share its rules of validity."""
    reference = Reference(case, NativeExecutor())
    ours, theirs = judge(reference.native, reference), judge(executor, reference)
    if (ours.verdict, ours.comparison.value_class) == (theirs.verdict, theirs.comparison.value_class):
        return "native"
    return f"only {'native-drawn' if executor.peer.kind == 'native' else executor.peer.kind}"


def _attribute_lane(executor: PjrtExecutor, case: Case, pool: Pool) -> str:
    reference, wrong = Reference(case, NativeExecutor()), set()
    compiled = pool.pjrt(executor.plugin, executor.lane)
    if executor.peer.variant == "reloaded" and judge(compiled, reference).verdict is Verdict.PASS:
        return "serialisation"
    for lane, meaning in _CAUSES.items():
        if lane == executor.lane:
            continue
        verdict = judge(pool.pjrt(executor.plugin, lane), reference).verdict
        if verdict is Verdict.PASS:
            return _CAUSES_BESIDE_PARITY.get(executor.lane, meaning) if lane == "parity" else meaning
        if verdict.is_disagreement:  # unsupported and undecided prove nothing
            wrong.add(verdict)
    return EVERY_LANE if len(wrong) == 1 else UNCLEAR


def _attribute_native(executor: NativeExecutor, case: Case) -> str:
    """The last pass of a smallest pipeline with which the case is wrong; the passes before it only lead up to it.

    Pipelines are taken from the executor's own passes, then from the default ones, which it was compared with.
    """

    def wrong(passes: tuple[str, ...]) -> bool:
        alike, configured = NativeExecutor(passes=passes), replace(executor, passes=passes)

        def differs(reference: NativeExecutor) -> bool:
            expected = Reference(case, reference)
            return any(judge(one, expected).verdict.is_disagreement for one in (alike, configured))

        return differs(alike) or (not moves_roundings(case.program, passes) and differs(NativeExecutor(passes=())))

    if not wrong(()):
        for passes in (executor.passes, DEFAULT_PIPELINE):
            if wrong(passes):
                return f"our pass: {_fewest(passes, wrong)[-1]}"
    return "native"


def _fewest(passes: tuple[str, ...], wrong: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """A part of `passes` that is still wrong, but no longer if any one of them is left out."""
    for i in range(len(passes)):
        fewer = (*passes[:i], *passes[i + 1 :])
        if wrong(fewer):
            return _fewest(fewer, wrong)
    return passes


def hlo_passes(executor: WorkerExecutor, case: Case) -> tuple[str, ...]:
    """HLO passes that change the case's module, in order, as the plugin dumps them; none if it dumps nothing.

    The plugin must run on this machine, since it writes files.
    """
    with tempfile.TemporaryDirectory() as folder:
        attempt(executor.with_options({"xla_dump_to": folder, "xla_dump_hlo_pass_re": ".*"}), case)
        names = [re.search(r"\.after_([\w-]+)\.before_", path.name) for path in sorted(Path(folder).iterdir())]
    return tuple(dict.fromkeys(m[1] for m in names if m and m[1] not in _NEEDED))


def hlo_pass(executor: Executor, case: Case) -> str:
    """The one HLO pass without which the disagreement goes away; "" if there is none, or the executor has no such passes.

    A pass without which the plugin cannot compile the program (an expander) is taken for it, too: rules know findings by it.
    """
    if not isinstance(executor, PjrtExecutor | JaxExecutor):
        return ""
    reference = Reference(case, NativeExecutor())
    try:
        disabled = str(executor.options.get("xla_disable_hlo_passes", ""))
    except TenferroError:
        return ""
    for name in hlo_passes(executor, case):
        passes = ",".join(filter(None, (disabled, name)))
        if not judge(executor.with_options({"xla_disable_hlo_passes": passes}), reference).verdict.is_disagreement:
            return name
    return ""


def instructions(executor: PjrtExecutor, case: Case) -> tuple[int, ...]:
    """Instructions any one of which, computed by our kernel inside the plugin's program, makes the disagreement go away.

    None if there is no such instruction, or the plugin takes no custom calls. An instruction can be among them because what it
    is fused with is no longer rewritten: several are a rewrite of them, one is a kernel. A case that came with a module is asked
    for as the program that it is read as.
    """
    case = replace(case, source=None)
    reference = Reference(case, NativeExecutor())
    numbers = range(len(case.program.instructions))
    replaced = {n: judge(replace(executor, replaced=frozenset([n])), reference).verdict for n in numbers}
    return tuple(n for n, verdict in replaced.items() if verdict is Verdict.PASS)


def builds(executor: Executor, case: Case, pool: Pool, seconds: float = math.inf) -> tuple[Build, ...]:
    """The verdict on each build of a plugin's platform in the same lane, oldest API first; then the builds without one.

    None for an executor that is no plugin.

    Parameters
    ----------
    seconds
        Wall time after which no further build is run.
    """
    if not isinstance(executor, PjrtExecutor):
        return ()
    deadline = time.monotonic() + seconds
    reference = Reference(case, NativeExecutor())
    platform = executor.plugin.platform
    installed = {plugin.path: plugin for plugin in (executor.plugin, *discover()) if plugin.platform == platform}
    judged, skipped = [], []
    for plugin in installed.values():
        if time.monotonic() >= deadline:
            skipped.append(Build(plugin.name, reason="not asked: out of time"))
            continue
        peer = pool.pjrt(plugin, executor.lane)
        try:
            api = peer.worker.facts.get("PJRT API", "")
        except TenferroError as error:
            skipped.append(Build(plugin.name, reason=f"cannot be asked: {error}"))
            continue
        answer = judge(peer, reference)
        judged.append(Build(plugin.name, api, answer.verdict, answer.reason))
    judged.sort(key=lambda build: [int(part) for part in re.findall(r"\d+", build.api)])
    absent = [Build(plugin.name, reason=f"absent: pip install {plugin.package}") for plugin in missing(platform)]
    return (*judged, *skipped, *absent)
