"""What a seeded fault is; those written by hand are in `by_hand`, those made by rule come from `rewrite`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from fuzz.mutants.rewrite import Site


@dataclass(frozen=True)
class Mutant:
    """One seeded fault; nothing is ever active by default.

    Attributes
    ----------
    place
        The part that it breaks: emitter, compiler, kernels, ...
    patch
        Makes a context manager under which the fault is there.
    in_worker
        The fault is in code that runs in the plugin's worker process.
    equivalent
        Why it changes no meaning, and so cannot be killed; "" for a fault.
    unsettled
        Why it is open whether it changes a meaning; "" for a fault.
    site
        Where it is, if it was made by rule.
    """

    name: str
    place: str
    about: str
    patch: Callable[[], AbstractContextManager[Any]]
    in_worker: bool = False
    equivalent: str = ""
    unsettled: str = ""
    site: Site | None = None

    @property
    def hunted(self) -> bool:
        """It has to be killed; others are hunted only by name."""
        return not (self.equivalent or self.unsettled)
