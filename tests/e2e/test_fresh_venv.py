"""New findings are shown in a virtual environment made for them, before they are listed as confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command import Run, in_this_process, tenferro_ref

pytestmark = pytest.mark.once


#: What the plugin gives back is its argument.
PLAN = (
    "--programs", 2, "--workers", 1, "--seed", 3, "--reduce-seconds", 1, "--max-findings", 1,
    "--generate", "ops=Abs", "--generate", "dtypes=F32",
)  # fmt: skip
NO_PACKAGES = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}


def campaign(store: Path, library: Path, *options: object, **variables: str) -> Run:
    return tenferro_ref("fuzz", "run", store, "--executors", f"pjrt:{library}", *PLAN, *options, env=dict(variables))


def listed(store: Path) -> set[tuple[bool, bool]]:
    rows = in_this_process("fuzz", "findings", store, "--json").rows
    return {(row["confirmed"], row["confirmed_in_fresh_venv"]) for row in rows}


@pytest.mark.nightly
def test_a_new_finding_is_shown_in_a_virtual_environment_of_its_own(fake_library: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    run = campaign(store, fake_library, "--no-fresh-venv", **NO_PACKAGES)
    assert run.status == 1, run
    assert "fresh virtual environment" not in run.out
    assert listed(store) == {(True, False)}
    assert tenferro_ref("fuzz", "resume", store, "--allow-commands").status == 1
    assert listed(store) == {(True, True)}
    # what is proved is not proved again
    run = tenferro_ref("fuzz", "resume", store, "--allow-commands", env=dict(NO_PACKAGES))
    assert "fresh virtual environment" not in run.out


@pytest.mark.nightly
def test_where_no_packages_are_to_be_had_the_run_says_so(fake_library: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    run = campaign(store, fake_library, **NO_PACKAGES)
    assert run.status == 1, run
    assert "new findings were not run in a fresh virtual environment: " in run.out
    assert listed(store) == {(True, False)}
    # nor where the bundles have been moved away, and the run still ends with its list
    Path(f"{store}.findings").rename(tmp_path / "elsewhere")
    run = tenferro_ref("fuzz", "resume", store, "--allow-commands", env=dict(NO_PACKAGES))
    assert run.status == 1, run
    assert "new findings were not run in a fresh virtual environment: " in run.out
    assert "NEW" in run.out
