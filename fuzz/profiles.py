"""Hypothesis profiles, in one place: for tests and CI.

Each has an explicit parent: where a CI variable is set, Hypothesis otherwise starts from a profile of its own that
repeats the same examples for ever and keeps none.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tenferro_ref.errors import UsageError

PROFILES = ("dev", "ci", "nightly")

_BASE = settings(
    max_examples=60,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    deadline=None,  # a shared machine is slow at any moment
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def register() -> None:
    """Make the profiles known to Hypothesis, for its own `--hypothesis-profile` too."""
    settings.register_profile("dev", parent=_BASE)
    settings.register_profile("ci", parent=_BASE, max_examples=100)
    settings.register_profile("nightly", parent=_BASE, max_examples=2_000)


def load(name: str = "dev") -> None:
    """Make a profile the current one.

    Raises
    ------
    UsageError
        No profile has that name.
    """
    if name not in PROFILES:
        raise UsageError(detail=f"Hypothesis profile {name!r} is none of {', '.join(PROFILES)}")
    register()
    settings.load_profile(name)


def current() -> str:
    """Name of the profile in use."""
    return settings.get_current_profile_name()
