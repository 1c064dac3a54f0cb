"""What tests cost, folder by folder: `pytest --junitxml=FILE`, then `python -m tools.test_costs FILE`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]


def folder(path: Path) -> str:
    """The folder of `tests` that a file counts for; `oracle/enclosure` stands for itself."""
    parts = path.parts[:-1]
    return "/".join(parts[:2] if parts[:2] == ("oracle", "enclosure") else parts[:1]) or "."


def file_of(classname: str) -> Path:
    """`tests.oracle.test_judge.TestNames` is in `oracle/test_judge.py`."""
    return Path(*(part for part in classname.split(".")[1:] if not part.startswith("Test")))


def table(junit: Path) -> str:
    """Lines of Python, tests and seconds of each folder, as Markdown."""
    lines, tests = Counter[str](), Counter[str]()
    seconds: dict[str, float] = {}
    for path in (ROOT / "tests").rglob("*.py"):
        lines[folder(path.relative_to(ROOT / "tests"))] += path.read_text("utf-8").count("\n")
    for case in ElementTree.parse(junit).iter("testcase"):  # noqa: S314, our own file
        where = folder(file_of(case.attrib["classname"]))
        tests[where] += 1
        seconds[where] = seconds.get(where, 0.0) + float(case.attrib["time"])
    rows = [f"| {name} | {lines[name]:,} | {tests[name]:,} | {seconds.get(name, 0.0):,.0f} |" for name in sorted(lines)]
    total = f"| all | {lines.total():,} | {tests.total():,} | {sum(seconds.values()):,.0f} |"
    return "\n".join(["| Folder | Lines | Tests | Seconds |", "| --- | ---: | ---: | ---: |", *rows, total])


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
