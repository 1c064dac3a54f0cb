"""The second statement of what platforms may do, and the plugin that is written here, can say that something is wrong."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from fuzz.mutants.directed import apply, case_of
from fuzz.mutants.freedoms import broken, freedom, freedoms, fused, near, real, taken
from fuzz.mutants.promises import again
from fuzz.mutants.transfers import transfers
from hypothesis import given
from hypothesis import strategies as st

from fuzz.generate.batches import generate
from fuzz.mutants.programs import programs
from fuzz.mutants.rewrite import patched, sites
from oracle.case import Case
from tenferro_ref import ops

numbers = st.floats(-(2.0**60), 2.0**60, width=32).map(np.float32)


def test_enclosures_are_what_platforms_may_give() -> None:
    assert len(freedoms()) > 100
    assert [reason for reason in map(broken, freedoms()) if reason] == []
    assert taken(generate(1, 0, 1)[0]) == ""


def test_no_two_of_them_are_one_program() -> None:
    assert len({f.case.fingerprint for f in freedoms()}) == len(freedoms())


@pytest.mark.parametrize(
    ("may", "reason"),
    [
        ([6.0, 7.0], "left out"),
        ([6.0], ""),
        ([5.0], "left out"),
        ([np.nan], "left out"),
    ],
)
def test_what_is_never_given_is_missed(may: list[float], reason: str) -> None:
    x = np.full(2, 3.0)
    said = broken(freedom("a sum", lambda a, b: apply(ops.Add(), a, b), (x, x), [np.full(2, v) for v in may]))
    assert (reason in said) if reason else not said


def test_an_enclosure_that_is_too_wide_is_noticed() -> None:
    free = next(f for f in freedoms() if f.about == "x y + z" and f.case.inputs[0].dtype == np.float32)
    assert "ends" in broken(dataclasses.replace(free, may=free.may[:1]))
    assert not broken(dataclasses.replace(free, zeros=True))  # a cancellation is +0
    either = next(f for f in freedoms() if f.about == "a sum of -0")
    assert "zero" in broken(dataclasses.replace(either, may=either.may[:1], zeros=True))


@given(numbers, numbers, numbers)
def test_fractions_are_rounded_as_the_processor_rounds(x: np.float32, y: np.float32, z: np.float32) -> None:
    a, b, c = (np.asarray([v], np.float32) for v in (x, y, z))
    for kind in (np.float32, np.float64):
        p: Any = a.astype(kind)
        q: Any = b.astype(kind)
        assert near(real(p) + real(q), kind) == p + q
        assert near(real(p) * real(q), kind) == p * q
    wide = a.astype(np.longdouble) * b  # 48 digits: the sum is rounded once, but for what 64 digits do not hold
    if wide + c - wide == c and (wide + c) - c == wide:
        assert fused(a, b, c) == (wide + c).astype(np.float32)


def test_the_largest_numbers_are_rounded_to_infinity() -> None:
    for kind in (np.float32, np.float64):
        info = np.finfo(kind)
        below, above = (real(np.array([info.max])) + real(np.array([np.spacing(info.max / 2)])) * f for f in (0, 2))
        assert near(below, kind) == info.max
        assert near(above, kind) == np.inf
        assert near(-above, kind) == -np.inf


def test_infinite_addends_stay() -> None:
    big, inf = np.array([3e38], np.float32), np.array([np.inf], np.float32)
    with np.errstate(all="ignore"):
        assert fused(big, big, -inf) == -inf
        assert np.isnan(fused(inf, big, -inf)).all()


def test_only_faults_of_enclosures_are_hunted_with_them() -> None:
    mine = {f.case.fingerprint for f in freedoms()}
    assert mine <= {c.fingerprint for c in programs(1, "enclosure").by_hand()}
    assert mine.isdisjoint(c.fingerprint for c in programs(1, "kernels").by_hand())


# --- transfers and executors ------------------------------------------------------------------------------------------


def some() -> list[Case]:
    return [case for case in generate(5, 0, 20) if any(a.ndim > 1 for a in case.inputs)]


def test_transfers_are_right() -> None:
    assert {transfers(case) for case in some()} == {""}


@pytest.mark.parametrize(
    ("function", "before", "words"),
    [
        ("Upload.__call__", "x.strides != self._usual", "arrives"),
        ("Download.__init__", "host_layout or rank < 2", "layout"),
        ("Download.__call__", "self._order == 'F'", "comes back"),
    ],
)
def test_wrong_transfers_are_noticed(function: str, before: str, words: str) -> None:
    module = "tenferro_ref.pjrt.transfer"
    change = next(s for s in sites(module) if (s.function, s.before) == (function, before))
    with patched(change):
        assert words in "".join(map(transfers, some()))


def test_an_unaligned_upload_is_noticed() -> None:
    module = "tenferro_ref.pjrt.transfer"
    change = next(s for s in sites(module) if s.before == "not x.flags.aligned")
    with patched(change):
        assert "address" in transfers(case_of(lambda a: apply(ops.Multiply(), a, a), np.arange(4.0)))


def test_a_program_runs_on_what_it_gave() -> None:
    case = case_of(lambda a: apply(ops.Transpose((1, 0)), a), np.arange(6.0).reshape(2, 3), shapes=(("i", "j"),))
    assert again(case) == ""
    change = next(
        s
        for s in sites("tenferro_ref.runtime.run")
        if (s.function, s.rule, s.before, s.nth) == ("Run.result_types", "constant", "0", 0)
    )
    with patched(change):
        assert "rule says" in again(case)
