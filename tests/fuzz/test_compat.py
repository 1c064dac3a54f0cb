"""Versions of StableHLO: what can be written at which, and what plugins take."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.compat import Compatibility, Taken, _failures, compatibility, oldest_versions, programs
from oracle.case import Case
from oracle.peers import PjrtExecutor, Pool
from tenferro_ref.ops import OPS
from tenferro_ref.stablehlo.serialized import versions
from tests.libraries import module_or_skip
from tests.plugins import ONE_BUILD, plugin_or_skip

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def pool(pool: Pool) -> Pool:
    module_or_skip("jaxlib")
    return pool


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    module_or_skip("jaxlib")
    return programs()


def test_every_op_has_a_program_and_all_but_one_a_version(cases: dict[str, Case]) -> None:
    assert set(cases) == {op.__name__ for op in OPS} - {"Extension"}
    oldest = oldest_versions(cases)
    assert [name for name, version in oldest.items() if not version] == ["DynamicTruncate"]
    assert set(oldest.values()) <= {"", *versions()}
    assert versions()[0] == "0.9.0"


@pytest.mark.parametrize("plugin", ONE_BUILD)
def test_the_promise_of_years_backward_and_some_forward(
    pool: Pool, plugin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends and the middle of what the bindings write; `tenferro-ref compat` asks for every version."""
    plugin_or_skip(plugin)
    executor = pool.make(f"pjrt:{plugin}@fast")
    assert isinstance(executor, PjrtExecutor)
    some = (versions()[0], "1.0.0", versions()[-1])
    monkeypatch.setattr("fuzz.compat.versions", lambda: some)
    found = compatibility([executor])
    assert found.holds
    (several,) = found.plugins.values()
    assert [taken.version for taken in several] == list(some)
    assert several[0].declared
    # the newest is beyond what two of the builds declare, and they take it
    assert not any(taken.failures for taken in several)


def test_what_a_plugin_does_not_take_is_said_op_by_op(pool: Pool, cases: dict[str, Case], fake_library: Path) -> None:
    executor = pool.make(f"pjrt:{fake_library}@defaults")  # it reads text alone
    assert isinstance(executor, PjrtExecutor)
    failures = _failures(executor, {name: cases[name] for name in ("Add", "Negate")}, "1.0.0")
    assert failures.keys() == {"Add", "Negate"}
    assert "no @main" in failures["Add"]
    taken = Taken("1.0.0", True, failures)
    assert not Compatibility({}, {"fake": (taken,)}).holds
    assert Compatibility({}, {"fake": (Taken("1.0.0", False, failures),)}).holds
