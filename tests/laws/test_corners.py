"""Programs that generated ones rarely are have results that the enclosures admit, or are refused with the error that is due."""

from __future__ import annotations

from contextlib import closing

import pytest

from fuzz.mutants.looks import Reloaded
from oracle.judge import Reference, judge, judge_many
from oracle.peers import Execution, NativeExecutor, Pool, attempt, native_variants
from oracle.verdict import Verdict
from tests.laws.corners import corners
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once


SOUND = [c for c in corners() if not c.error]


@pytest.mark.parametrize("executor", native_variants(), ids=lambda e: e.name)
def test_native_results_are_admitted(executor: NativeExecutor) -> None:
    for corner in SOUND:
        answer = judge(executor, Reference(corner.case, NativeExecutor()))
        assert answer.verdict is Verdict.PASS, f"{corner.about}: {answer.reason}"


@pytest.mark.parametrize("executor", native_variants(), ids=lambda e: e.name)
def test_what_must_be_refused_is_refused(executor: NativeExecutor) -> None:
    for corner in (c for c in corners() if c.error):
        result = attempt(executor, corner.case)
        assert not isinstance(result, Execution), corner.about
        assert result.kind == corner.error, corner.about


def test_modules_that_are_read_back_compute_the_same() -> None:
    module_or_skip("jaxlib")
    for corner in SOUND:
        answer = judge(Reloaded(), Reference(corner.case, NativeExecutor()))
        assert answer.verdict in (Verdict.PASS, Verdict.UNSUPPORTED), f"{corner.about}: {answer.reason}"


def test_a_plugin_computes_what_is_admitted() -> None:
    plugin_or_skip("xla081")
    references = [Reference(corner.case, NativeExecutor()) for corner in SOUND]
    with closing(Pool()) as pool:
        answers = judge_many(pool.make("pjrt:xla081@fast"), references)
    for corner, answer in zip(SOUND, answers, strict=True):
        assert answer.verdict in (Verdict.PASS, Verdict.UNSUPPORTED), f"{corner.about}: {answer.reason}"
