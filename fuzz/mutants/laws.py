"""Hunting with laws: the properties in `tests/laws` are run while a fault is switched on, and one of them has to fail.

No executor's answer shows a fault in the oracle itself; the laws state a second time what its parts promise. They run in a process of their own, where this module is a plugin of pytest that switches the fault on.
Only a source checkout has them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tenferro_ref.children import own_environment
from tenferro_ref.errors import Internal

#: The variable that names the fault.
VARIABLE = "TENFERRO_MUTANT"
#: Which laws are about a place, those that fail soonest first; `test_corners` is about every other place.
LAWS: dict[str, tuple[str, ...]] = {
    "comparison": ("comparison", "sets"),
    "compiler": ("passes", "corners"),
    "enclosure": ("intervals", "freedoms", "comparison", "sets", "specials", "moves", "corners"),
    "executor": ("evaluation", "corners"),
    "fusion": ("evaluation", "corners"),
    "kernels": ("corners", "evaluation", "moves"),
    "layout": ("evaluation", "corners"),
    "program": ("evaluation", "corners"),
    "reclaim": ("evaluation", "corners"),
    "segmentation": ("evaluation", "corners"),
    "semirings": ("algebras",),
    "sets": ("sets",),
    "transfer": ("transfers",),
    "verdicts": ("verdicts", "sets"),
}
#: Times as long as without a fault, and seconds beyond that, after which the laws are given up: a changed loop may not end.
_PATIENCE, _MORE = 4, 60.0


@cache
def checkout() -> Path | None:
    """The root of the source checkout that this package runs from; None where it is installed."""
    root = Path(__file__).parents[2]
    return root if (root / "tests" / "laws").is_dir() else None


@dataclass(eq=False)
class Laws:
    """Runs the laws; what they say without a fault is looked at once a place."""

    seed: int
    _seconds: dict[tuple[str, ...], float] = field(default_factory=dict)

    def broken(self, place: str, mutant: str) -> str:
        """The first law that fails with the fault switched on and how; "" if none does, or there is no checkout.

        Raises
        ------
        Internal
            A law fails without any fault, or pytest could not run them.
        """
        files, root = LAWS.get(place, ("corners",)), checkout()
        if root is None:
            return ""
        if files not in self._seconds:
            start = time.perf_counter()
            reason = self._run(root, files, "", None)
            if reason:
                raise Internal(detail=f"a law fails without a seeded fault: {reason}")
            self._seconds[files] = time.perf_counter() - start
        return self._run(root, files, mutant, _PATIENCE * self._seconds[files] + _MORE)

    def _run(self, root: Path, files: Sequence[str], mutant: str, timeout: float | None) -> str:
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-p", __name__,
            "-n0", f"--hypothesis-seed={self.seed}", *(str(Path("tests", "laws", f"test_{name}.py")) for name in files),
        ]  # fmt: skip
        environment = {**own_environment(), VARIABLE: mutant, "COLUMNS": "400"}  # a failure is one line
        try:
            done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return f"no end after {timeout:.0f} s"
        if done.returncode == 0:
            return ""
        if done.returncode < 0:
            return f"signal {-done.returncode}"
        failed = re.search(r"^(?:FAILED|ERROR) tests/laws/(.*)", done.stdout, re.MULTILINE)
        if done.returncode != 1 or failed is None:
            tail = (done.stdout + done.stderr).strip().splitlines()[-5:]
            raise Internal(detail=f"pytest could not run the laws {', '.join(files)}: {' / '.join(tail)}")
        return failed[1]


def pytest_collection_finish(session: Any) -> None:
    """Switch on the fault that the variable names, now that every module is imported."""
    if name := os.environ.get(VARIABLE):
        from fuzz.mutants.hunt import activate

        activate(name)


__all__ = ["LAWS", "VARIABLE", "Laws", "checkout"]
