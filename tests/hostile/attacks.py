"""What somebody might write where words are expected, and the calls through which it comes in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fuzz.records import Finding, to_json
from fuzz.store import Plan, Store, Stream
from fuzz.store.model import pack
from oracle.case import Case
from oracle.verdict import ExecutorInfo
from tenferro_ref.program import GraphBuilder
from tests.reports import sample

#: Ends a docstring or a string; drives a terminal; forges a line; is markup.
ATTACKS = (
    '"""\nimport os; os.system("touch {owned}")\n"""',
    "x'''; import os",
    "\x1b[2J\x1b]0;owned\x07",
    "Kind\nnew      00000000  everything is fine",
    "\x9b31mred\u202eder",
    "[bold red]rich[/]",
    "|a|b| `code` [link](https://evil.example) @somebody #12 <img src=x onerror=alert(1)> www.evil.example",
)


def program() -> Case:
    b = GraphBuilder()
    return Case.of(b.build((b.input("F64", (2, 3)) * 3.0).sum([1])), [np.arange(6.0).reshape(2, 3)])


def finding(**changes: object) -> Finding:
    """A finding whose words are `changes`, of `program()`."""
    case = program()
    return replace(sample.finding(known="", **changes), program_json=case.program_json)


def store_of(path: Path, *findings: Finding, executors: tuple[str, ...] = ("native",)) -> Stream:
    """A store at `path` as somebody might send it: its campaign has those executors, and it has found that."""
    infos = [ExecutorInfo("native", True), *(ExecutorInfo(name, True) for name in executors if name != "native")]
    with Store(path, create=True) as store:
        stream = store.begin(Plan(3, programs=4), infos, (("Python", "3"),), "2026-11-21T00:00:00+00:00")
        with store.database.write() as write:
            for found in findings:
                row = (found.signature, to_json(found), pack(program())[1])
                write.execute("INSERT INTO finding VALUES (?, ?, ?, 0, 0, 1)", row)
    return stream


def acts(text: str) -> set[str]:
    """The characters in a text that a terminal or a page would act on; line ends are not counted."""
    return {c for c in text if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066"}
