"""Programs that generated ones rarely are have results that the enclosures admit, or are refused with the error that is due."""

from __future__ import annotations

from contextlib import closing

import pytest

from oracle.judge import Reference, judge, judge_many
from oracle.peers import Execution, NativeExecutor, Pool, attempt, native_variants
from oracle.verdict import Answer, Verdict
from tests.laws.corners import corners
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once


SOUND = [c for c in corners() if not c.error]


def few_decided(answer: Answer) -> bool:
    """Undecided, though nothing is outside, since less than a tenth is decided: the corner asks for what may be anything."""
    seen = answer.comparison
    return (
        answer.verdict is Verdict.UNDECIDED and seen is not None
        and seen.outside == 0 and 0 < seen.decided < seen.elements / 10
    )  # fmt: skip


@pytest.mark.parametrize("executor", native_variants(), ids=lambda e: e.name)
def test_native_results_are_admitted(executor: NativeExecutor) -> None:
    for corner in SOUND:
        answer = judge(executor, Reference(corner.case, NativeExecutor()))
        assert answer.verdict is Verdict.PASS or few_decided(answer), f"{corner.about}: {answer.reason}"


@pytest.mark.parametrize("executor", native_variants(), ids=lambda e: e.name)
def test_what_must_be_refused_is_refused(executor: NativeExecutor) -> None:
    for corner in (c for c in corners() if c.error):
        result = attempt(executor, corner.case)
        assert not isinstance(result, Execution), corner.about
        assert result.kind == corner.error, corner.about


def test_modules_that_are_read_back_compute_the_same() -> None:
    module_or_skip("jaxlib")
    reloaded = Pool().make("native-reloaded")
    for corner in SOUND:
        answer = judge(reloaded, Reference(corner.case, NativeExecutor()))
        right = answer.verdict in (Verdict.PASS, Verdict.UNSUPPORTED)
        assert right or few_decided(answer), f"{corner.about}: {answer.reason}"


def test_a_plugin_computes_what_is_admitted() -> None:
    plugin_or_skip("xla081")
    references = [Reference(corner.case, NativeExecutor()) for corner in SOUND]
    with closing(Pool()) as pool:
        answers = judge_many(pool.make("pjrt:xla081@fast"), references)
    for corner, answer in zip(SOUND, answers, strict=True):
        right = answer.verdict in (Verdict.PASS, Verdict.UNSUPPORTED) or few_decided(answer)
        assert right is not bool(corner.finding), f"{corner.about}: {answer.reason or corner.finding}"
