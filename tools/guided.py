"""How many distinct root causes an hour of campaign finds, guided and unguided, in turns.

`python -m tools.guided --minutes 15 --rounds 2` runs a campaign each way in each round, on seeds of their own: guided and unguided on the
same executors, and unguided on a few of them (`--few`), which is how a campaign of lane `parity` is run. A root cause is a page of
`docs/findings`; of a confirmed finding that no rule knows, its signature. CPU time is that of all processes of the campaign.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_BUILDS = ("xla081", "fas106", "lam115")


def _lanes(*lanes: str) -> str:
    return ",".join(["native", *(f"pjrt:{build}@{lane}" for build in _BUILDS for lane in lanes)])


COMMAND = (sys.executable, "-m", "tenferro_ref", "fuzz")


@dataclass
class Seen:
    """What all rounds of one way came to: seconds on the wall and of CPU time, programs, and root causes."""

    wall: float = 0.0
    cpu: float = 0.0
    programs: int = 0
    causes: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        hours = self.cpu / 3600
        return (
            f"{self.programs} programs, {self.wall / 60:.1f} minutes, {self.cpu / 60:.1f} of CPU time, {len(self.causes)} root causes, "
            f"{len(self.causes) / hours:.1f} in an hour of CPU time" if hours else "nothing"
        )  # fmt: skip


def campaign(seen: Seen, store: Path, seed: int, minutes: float, executors: str, settings: Sequence[str]) -> None:
    """Run one campaign, and add what it found.

    Raises
    ------
    subprocess.CalledProcessError
        The store cannot be read afterwards; that the campaign found something is no error.
    """
    options = [
        "--seed",
        str(seed),
        "--minutes",
        str(minutes),
        "--executors",
        executors,
        "--reduce-seconds",
        "10",
        "--max-findings",
        "400",
        "--no-fresh-venv",
        *settings,
    ]
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*COMMAND, "run", str(store), *options], stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seen.wall += time.perf_counter() - wall
    seen.cpu += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for line in _lines("findings", str(store), "--json"):
        row = json.loads(line)
        if row["known"] or row["confirmed"]:
            seen.causes.add(row["known"] or row["signature"])
    seen.programs += sum(json.loads(line)["programs"] for line in _lines("status", str(store), "--json"))


def _lines(command: str, *words: str) -> list[str]:
    done = subprocess.run([*COMMAND, command, *words], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.guided", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="of each campaign")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--executors", default=_lanes("fast", "level0", "parity", "defaults"))
    parser.add_argument("--few", default=_lanes("parity"), help="executors of the last way")
    args = parser.parse_args(argv)
    ways = {"guided": (args.executors, ("--generate", "guided=1")), "unguided": (args.executors, ())}
    if args.few != args.executors:
        ways["unguided, few executors"] = (args.few, ())
    seen = {way: Seen() for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(args.rounds):
            for number, (way, (executors, settings)) in enumerate(ways.items()):
                store = Path(folder, f"{number}-{turn}.sqlite")
                campaign(seen[way], store, args.seed + turn, args.minutes, executors, settings)
                print(f"after round {turn + 1}, {way}: {seen[way]}", flush=True)
    for way, found in seen.items():
        others = set[str]().union(*(other.causes for other in seen.values() if other is not found))
        print(
            f"{way}: {', '.join(sorted(found.causes)) or 'nothing'}; alone: {', '.join(sorted(found.causes - others)) or 'nothing'}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
