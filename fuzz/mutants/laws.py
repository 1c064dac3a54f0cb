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
from dataclasses import dataclass, field
from functools import cache, cached_property
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
    "derivatives": ("derivatives",),
    "enclosure": (
        "intervals",
        "freedoms",
        "comparison",
        "sets",
        "specials",
        "moves",
        "identity_moves",
        "integer_widths",
        "narrow_floats",
        "corners",
    ),
    "executor": ("evaluation", "corners"),
    "fusion": ("evaluation", "corners"),
    "kernels": ("corners", "evaluation", "moves", "integer_widths"),
    "program": ("evaluation", "corners"),
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
class Tests:
    """Runs tests; how they end without a fault is looked at once for each set of files."""

    seed: int
    _sound: dict[tuple[str, ...], tuple[str, float]] = field(default_factory=dict)

    def broken_law(self, place: str, mutant: str) -> str:
        """The first law about a place that fails with the fault switched on and how; "" if none does, or there is no checkout.

        Raises
        ------
        Internal
            A law fails without any fault, or pytest could not run them.
        """
        files = tuple(f"tests/laws/test_{name}.py" for name in LAWS.get(place, ("corners",)))
        reason, _ = self._without_a_fault(files)
        if reason:
            raise Internal(detail=f"a law fails without a seeded fault: {reason}")
        return self._run(files, mutant).removeprefix("tests/laws/")

    def broken_unit_test(self, module: str, mutant: str) -> str:
        """The first unit test of a module that fails with the fault switched on; "" if none does, or some fail without."""
        files = self._units(module)
        if not files or self._without_a_fault(files)[0]:
            return ""
        return self._run(files, mutant)

    def _units(self, module: str) -> tuple[str, ...]:
        """Tests in the folder of the module's package, which mirrors it, that import from the module or from its own package."""
        root, *inner = module.split(".")
        part = root if root != "tenferro_ref" else inner[0] if len(inner) > 1 else "test_"
        folder = f"tests/{part}"
        names = [module] if len(inner) < 2 else [module, module.rpartition(".")[0]]
        imports = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(map(re.escape, names))})\b(?!\.)", re.MULTILINE)
        return tuple(name for name, text in self._texts.items() if name.startswith(folder) and imports.search(text))

    @cached_property
    def _texts(self) -> dict[str, str]:
        root = checkout()
        return (
            {str(p.relative_to(root)): p.read_text("utf-8") for p in sorted(root.glob("tests/**/test_*.py"))}
            if root
            else {}
        )

    def _without_a_fault(self, files: tuple[str, ...]) -> tuple[str, float]:
        if files not in self._sound:
            start = time.perf_counter()
            self._sound[files] = self._run(files, ""), time.perf_counter() - start
        return self._sound[files]

    def _run(self, files: tuple[str, ...], mutant: str) -> str:
        root = checkout()
        if root is None:
            return ""
        timeout = _PATIENCE * self._without_a_fault(files)[1] + _MORE if mutant else None
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-p", __name__,
            "-n0", f"--hypothesis-seed={self.seed}", *files,
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
        failed = re.search(r"^(?:FAILED|ERROR) (.*)", done.stdout, re.MULTILINE)
        if failed is None and mutant:  # pytest itself, or the interpreter, cannot live with the fault
            return f"exit status {done.returncode}"
        if failed is None:
            tail = (done.stdout + done.stderr).strip().splitlines()[-5:]
            raise Internal(detail=f"pytest could not run {', '.join(files)}: {' / '.join(tail)}")
        return failed[1]


def pytest_collection_finish(session: Any) -> None:
    """Switch on the fault that the variable names, now that every module is imported."""
    if name := os.environ.get(VARIABLE):
        from fuzz.mutants.hunt import activate

        activate(name)


__all__ = ["LAWS", "VARIABLE", "Tests", "checkout"]
