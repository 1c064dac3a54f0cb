"""Hypothesis profiles, in one place: for a developer's machine, CI and nights, with the failing examples that others found.

Each has an explicit parent: if a CI variable is set, Hypothesis otherwise starts from a profile of its own that repeats the
same examples for ever and keeps none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.database import (
    DirectoryBasedExampleDatabase,
    ExampleDatabase,
    GitHubArtifactDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
)

from tenferro_ref.errors import MissingEnv, UsageError

#: How many examples a test has under each profile.
PROFILES = {"dev": 60, "ci": 100, "nightly": 2_000}
#: The variable that names failing examples of others: a folder, or a repository whose nightly job keeps them.
EXAMPLES = "TENFERRO_EXAMPLES"
_LOCAL = ".hypothesis/examples"

_BASE = settings(
    derandomize=False,
    deadline=None,  # a shared machine is slow at any moment
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def database(shared: str = "", local: str | Path = _LOCAL) -> ExampleDatabase:
    """Failing examples of this machine and those of `shared`, which is only read; both are replayed before anything else.

    Parameters
    ----------
    shared
        A folder, or `https://github.com/OWNER/REPO`: the artifact `hypothesis-example-db` of its latest workflow; "" for none.

    Raises
    ------
    UsageError
        Neither of these.
    MissingEnv
        GitHub asks for a token.
    """
    own = DirectoryBasedExampleDatabase(local)
    if not shared:
        return own
    theirs: ExampleDatabase
    if match := re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)/?", shared):
        if not os.environ.get("GITHUB_TOKEN"):
            raise MissingEnv(
                var="GITHUB_TOKEN", state="unset", value="a token that may read the repository's artifacts"
            )
        theirs = GitHubArtifactDatabase(match[1], match[2])
    elif Path(shared).is_dir():
        theirs = DirectoryBasedExampleDatabase(shared)
    else:
        raise UsageError(detail=f"{EXAMPLES}={shared}: no folder, and not https://github.com/OWNER/REPO")
    return MultiplexedDatabase(own, ReadOnlyDatabase(theirs))


def register(shared: str = "") -> None:
    """Make the profiles known to Hypothesis, for its own `--hypothesis-profile` too; see `database` for `shared`."""
    examples = database(shared)
    for name, count in PROFILES.items():
        settings.register_profile(name, parent=_BASE, database=examples, max_examples=count)


def load(name: str = "dev", shared: str = "") -> None:
    """Make a profile the current one; see `database` for `shared`.

    Raises
    ------
    UsageError
        No profile has that name.
    """
    if name not in PROFILES:
        raise UsageError(detail=f"Hypothesis profile {name!r} is none of {', '.join(PROFILES)}")
    register(shared)
    settings.load_profile(name)
