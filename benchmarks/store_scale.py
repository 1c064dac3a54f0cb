"""What a large store costs: `python benchmarks/store_scale.py [PROGRAMS] [FINDINGS] [FOLDER]` makes one and prints seconds.

The store is synthetic: sealed batches with their counts, and findings of one disagreement each. Half as large a one is
made too, so that what grows faster than the store shows.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fuzz.records import to_json
from fuzz.store import Plan, Store
from fuzz.store.model import pack
from oracle.verdict import Answer, ExecutorInfo, Verdict
from tests.hostile.attacks import finding, program


def make(path: Path, programs: int, findings: int) -> None:
    """A store of sealed batches of 32 programs, with so many groups of disagreements, each reduced to a finding."""
    case, found = program(), finding(executor="native")
    text, inputs = pack(case)
    answer = to_json(Answer("native", Verdict.MISMATCH, reason="r"))
    plan = Plan(3, programs=programs)
    with Store(path, create=True) as store:
        info = [ExecutorInfo("native", True)]
        stream = store.begin(plan, info, (("Python", "3"),), "2026-11-21T00:00:00+00:00").id
        with store.database.write() as write:
            batches = ((stream, i, plan.batch, f"{i:064x}") for i in range(programs // plan.batch))
            write.executemany("INSERT INTO batch (stream, number, programs, digest) VALUES (?, ?, ?, ?)", batches)
            for i in range(findings):
                name = f"{found.signature} {i}"
                record = to_json(dataclasses.replace(found, signature=name))
                write.execute("INSERT INTO finding VALUES (?, ?, ?, ?, 1, 1)", (name, record, inputs, float(i)))
                write.execute("INSERT INTO kin (stream, name, signature) VALUES (?, ?, ?)", (stream, name, name))
                row = (
                    stream,
                    i,
                    0,
                    "native",
                    name,
                    f"{i:064x}",
                    2,
                    "Multiply",
                    "F64",
                    "",
                    answer,
                    text,
                    inputs,
                    float(i),
                )
                write.execute(f"INSERT INTO suspect VALUES ({', '.join('?' * len(row))})", row)


def seconds_of(*command: object) -> float:
    """Wall time of a command, its start included."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "tenferro_ref", *map(str, command)], capture_output=True)
    assert done.returncode in (0, 1), done.stderr.decode()
    return time.perf_counter() - start


def main(programs: int = 1_000_000, findings: int = 5_000, folder: str = "") -> None:
    with tempfile.TemporaryDirectory(dir=folder or None) as name:
        place = Path(name)
        start = seconds_of("--version")
        print(f"start of the program: {start:.2f} s")
        for part in (2, 1):
            store = place / f"{part}.sqlite"
            make(store, programs // part, findings // part)
            print(f"{programs // part} programs, {findings // part} findings: {store.stat().st_size >> 20} MiB")
            for words in (
                ("fuzz", "status", store),
                ("fuzz", "findings", store),
                ("report", store, "--out", place / f"r{part}"),
            ):
                print(
                    f"  {' '.join(map(str, words[:2] if words[0] == 'fuzz' else words[:1]))}: {seconds_of(*words):.2f} s"
                )
            print(f"  fuzz merge: {seconds_of('fuzz', 'merge', place / f'm{part}.sqlite', store):.2f} s")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]), *sys.argv[3:4])
