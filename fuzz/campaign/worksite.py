"""What one process of a campaign needs for its work, and how it reports progress."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fuzz.store import Store, Stream
from oracle.peers import Executor, Pool

#: Seconds between two reports of progress.
_OFTEN = 0.2


@dataclass(frozen=True)
class Progress:
    """How far a campaign is; `phase` is "check" or "reduce".

    `done` counts programs, those of which some answers are there in part.
    """

    phase: str
    done: int
    total: int | None
    disagreements: int

    @classmethod
    def of(cls, store: Store, stream: Stream, phase: str = "check") -> Progress:
        if phase == "check":
            counted, answers = store.done(stream.id)
            done, total = counted + answers // max(len(stream.available), 1), stream.plan.programs
        else:
            done, total = store.group_counts(stream.id)
        return cls(phase, done, total, store.disagreements(stream.id))


Report = Callable[[Progress], None]


@dataclass
class Worksite:
    """What one process needs to work on a stream: the store, its executors, and its own name.

    Attributes
    ----------
    owner
        By which the store knows this process.
    bundles
        Folder for the bundles of findings; None for none.
    confirms
        Whether each bundle is run in a clean interpreter.
    keeps_time
        Whether this process counts the stream's time; with several, their supervisor does.
    seconds, spent
        By phase: since the last `flush`, and ever.
    """

    store: Store
    stream: Stream
    executors: Sequence[Executor]
    pool: Pool
    owner: str = "here"
    threads: int = 1
    bundles: Path | None = None
    confirms: bool = True
    keeps_time: bool = True
    progress: Report | None = None
    seconds: Counter[str] = field(default_factory=Counter)
    spent: Counter[str] = field(default_factory=Counter)
    _lap: float = field(default_factory=time.perf_counter)
    _reported: float = field(default_factory=time.perf_counter)

    @cached_property
    def groups(self) -> list[list[Executor]]:
        """Executors that share a worker process run one after another; the native ones form a group."""
        groups: dict[object, list[Executor]] = {}
        for executor in self.executors:
            groups.setdefault(getattr(executor, "worker", None) or type(executor), []).append(executor)
        return list(groups.values())

    @cached_property
    def by_name(self) -> dict[str, Executor]:
        return {executor.name: executor for executor in self.executors}

    def lap(self, phase: str) -> None:
        """Count the time since the last call under `phase`."""
        now = time.perf_counter()
        for counter in (self.seconds, self.spent):
            counter[phase] += now - self._lap  # type: ignore[assignment]  # Counter adds floats as well
        self._lap = now

    def skip_lap(self) -> None:
        """Leave out the time since the last call of `lap`: others have counted it."""
        self._lap = time.perf_counter()

    def flush(self) -> None:
        """Write the time down."""
        if self.keeps_time:
            self.store.add_elapsed(self.stream.id, sum(self.seconds.values()))
        self.store.add_seconds(self.stream.id, dict(self.seconds))
        self.seconds.clear()

    def report(self, phase: str) -> None:
        """Report how far the campaign is."""
        if self.progress is not None:
            self._reported = time.perf_counter()
            self.progress(Progress.of(self.store, self.stream, phase))

    def report_answers(self) -> None:
        """Report how far checking is, unless that was done a moment ago."""
        if time.perf_counter() - self._reported >= _OFTEN:
            self.report("check")
