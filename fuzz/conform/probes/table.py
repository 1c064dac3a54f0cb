"""`PROBES`: every probe with its section and name, in the order in which they are asked.

The probes are in the other modules of this package, which importing `fuzz.conform.probes` imports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fuzz.conform.probes.session import Session

Check: TypeAlias = Callable[[Session], None]

#: By "section: name".
PROBES: dict[str, Check] = {}


def probe(section: str, name: str) -> Callable[[Check], Check]:
    """Register a function as the probe `name` of a section; one function may be several, of several names."""

    def register(check: Check) -> Check:
        PROBES[f"{section}: {name}"] = check
        return check

    return register
