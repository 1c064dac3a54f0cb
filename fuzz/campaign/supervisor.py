"""The supervisor of a campaign: it keeps workers busy until there is no more to do, and survives their deaths.

Who works is a `Crew`: processes on this machine (`fuzz.campaign.workers`) or tasks on a cluster (`fuzz.campaign.cluster`). Whatever
ends, what is committed in the store stays, and resuming goes on from there.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzz.campaign.programs import check_generator
from fuzz.campaign.worksite import Progress
from fuzz.store import Store, Stream
from tenferro_ref.errors import TenferroError

#: Seconds between two looks at the workers.
_POLL = 0.1


@dataclass(frozen=True)
class Tick:
    """The state of a campaign at one look: progress, what can run at once, process ids of local workers, deaths so far."""

    progress: Progress
    slots: int
    pids: tuple[int, ...]
    deaths: int


class Crew(ABC):
    """The workers of one supervisor.

    Attributes
    ----------
    deaths
        How many died so far.
    """

    def __init__(self, store: Store, stream: Stream) -> None:
        self.store, self.stream = store, stream
        self.deaths = self._vain = 0
        self._progress: tuple[object, ...] = ()

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many can work at once."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers on this machine."""
        return ()

    @abstractmethod
    def keep_busy(self) -> bool:
        """Start what can be started; False if all is done."""

    @abstractmethod
    def look(self) -> None:
        """Take back what is done and replace what died.

        Raises
        ------
        TenferroError
            There is no point in going on.
        """

    @abstractmethod
    def end(self) -> None:
        """Stop whatever is still at work."""

    def died_in_vain(self) -> int:
        """Note a death; how many there were in a row without any progress in the store."""
        progress = (self.store.done(self.stream.id), self.store.group_counts(self.stream.id))
        self._vain = self._vain + 1 if progress == self._progress else 1
        self._progress = progress
        return self._vain


def supervise(
    path: str | Path, stream: Stream, hire: Callable[[Store], Crew], tick: Callable[[Tick], None] = lambda _: None
) -> int:
    """Let a crew work on a stream until there is no more to do; gives the number of workers that died.

    The caller holds the lock on the store.

    Raises
    ------
    UsageError
        This version generates other programs than the campaign began with.
    TenferroError
        What ended the crew (`Crew.look`).
    """
    with Store(path) as store:
        store.database.check()
        check_generator(store, stream)
        store.release()  # the lock says that no worker of an earlier supervisor is left
        crew = hire(store)
        clock = time.monotonic()
        try:
            while crew.keep_busy():
                time.sleep(_POLL)
                now = time.monotonic()
                store.add_elapsed(stream.id, now - clock)
                clock = now
                crew.look()
                tick(Tick(Progress.of(store, stream), crew.slots, crew.pids, crew.deaths))
        finally:
            crew.end()
            with contextlib.suppress(TenferroError):  # if this fails, resuming does it
                store.release()
        return crew.deaths
