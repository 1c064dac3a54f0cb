"""Failing examples that others keep are replayed first, and never changed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase, GitHubArtifactDatabase, MultiplexedDatabase, ReadOnlyDatabase

from tenferro_ref.errors import MissingEnv, UsageError
from tests import profiles
from tests.e2e.command import ROOT

pytestmark = pytest.mark.once


#: What a failure shrinks to, and nobody draws by chance.
RARE = 987_654_321


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def run(law: Callable[[int], None], database: ExampleDatabase, rng: Random) -> list[int]:
    """What Hypothesis tries, in order; an exception of `law` is passed on to nobody."""
    seen: list[int] = []

    def tried(x: int) -> None:
        seen.append(x)
        law(x)

    tried.__qualname__ = "tried"  # by which, with its source, the database knows the test
    try:
        # one in eight is above RARE: where nothing is kept, 30 examples would miss it one time in sixty
        settings(database=database, max_examples=500)(seed(rng.random())(given(st.integers(0, 2**40))(tried)))()
    except AssertionError:
        seen.append(-1)
    return seen


def fails_above(limit: int) -> Callable[[int], None]:
    def law(x: int) -> None:
        assert x < limit

    return law


def test_what_a_shared_folder_has_is_replayed_first_and_the_folder_stays_as_it_is(tmp_path: Path, rng: Random) -> None:
    shared, local = tmp_path / "shared", tmp_path / "local"
    assert run(fails_above(RARE), profiles.database(local=shared), rng)[-1] == -1  # a night finds it, and shrinks it
    before = files(shared)
    assert before
    for path in (*shared.rglob("*"), shared):
        path.chmod(0o555 if path.is_dir() else 0o444)
    both = profiles.database(str(shared), local=local)
    seen = run(fails_above(RARE), both, rng)
    assert (seen[0], seen[-1]) == (RARE, -1)
    assert run(fails_above(2**41), both, rng)[0] == RARE  # mended: tried once more, no failure
    assert -1 not in run(fails_above(2**41), both, rng)
    assert files(shared) == before


def test_without_a_shared_one_there_is_only_the_local_one() -> None:
    assert not isinstance(profiles.database(), MultiplexedDatabase)


def test_a_repository_is_read_with_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    with pytest.raises(MissingEnv, match="GITHUB_TOKEN"):
        profiles.database("https://github.com/owner/repo")
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    both = profiles.database("https://github.com/owner/some.repo/")
    assert isinstance(both, MultiplexedDatabase)
    theirs = both._wrapped[1]
    assert isinstance(theirs, ReadOnlyDatabase)
    assert isinstance(theirs._wrapped, GitHubArtifactDatabase)
    assert (theirs._wrapped.owner, theirs._wrapped.repo) == ("owner", "some.repo")


@pytest.mark.parametrize("shared", ["/no/such/folder", "https://example.com/owner/repo", "https://github.com/owner"])
def test_what_is_neither_a_folder_nor_a_repository(shared: str) -> None:
    with pytest.raises(UsageError, match="TENFERRO_EXAMPLES"):
        profiles.database(shared)


def test_the_tests_take_it_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def collect(examples: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setenv(profiles.EXAMPLES, str(examples))
        command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", "tests/test_table.py"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    done = collect(tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"hypothesis examples: those of {tmp_path}, too" in done.stdout
    done = collect(tmp_path / "absent")
    assert done.returncode == 4
    assert "ERROR: TENFERRO_EXAMPLES" in done.stderr


def test_they_keep_their_database_and_their_randomness_in_ci() -> None:
    now = settings.get_current_profile_name()
    try:
        for name in profiles.PROFILES:
            profiles.load(name)
            assert settings.get_current_profile_name() == name
            current = settings()
            assert (current.derandomize, current.deadline, current.database is None) == (False, None, False)
    finally:
        profiles.load(now)


def test_an_unknown_one_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="nightly"):
        profiles.load("weekly")
