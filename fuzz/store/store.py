"""The findings store: what a campaign has to do, what it did, what it found, and what people decided about that.

Here is every statement that a running campaign makes; schema and file are next door, the data in `model`. The store knows
nothing of how programs are made or judged: that is `fuzz.campaign`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from fuzz.records import Finding, Seconds, Time, from_json, to_json
from fuzz.store.counts import Counts
from fuzz.store.database import BUSY_SECONDS, MEMORY, Database
from fuzz.store.model import (
    STATUSES,
    Batch,
    Disagreement,
    Group,
    Mark,
    Plan,
    Status,
    StoredFinding,
    Stream,
    campaign_key,
    digest,
    pack,
    unpack,
    unpack_all,
)
from oracle.case import Case
from oracle.verdict import Answer, ExecutorInfo
from tenferro_ref.errors import Internal, UsageError

#: `finding.confirmed` of one that was shown in a virtual environment made for it.
_AFRESH = 2
#: A group whose reduction was begun so often and never ended is left alone.
_CLAIMS = 3
#: What is in flight: rows of open batches.
IN_FLIGHT = ("program", "answer", "strike")
GROUPS_WITH_SUSPECTS = "kin JOIN suspect ON suspect.stream = kin.stream AND suspect.kin = kin.name"
_IS_BEGUN = "kin.stream = ? AND (owner <> '' OR signature <> '')"
#: The name of a group without its last entry, which is the build.
_CAUSE = "iif(json_valid({0}), json_remove({0}, '$[#-1]'), '')"
_BEGUN = f"SELECT op, attribution FROM {GROUPS_WITH_SUSPECTS} WHERE {_IS_BEGUN}"  # noqa: S608
_CLAIMABLE = f"kin.stream = ? AND owner = '' AND signature = '' AND claims < {_CLAIMS}"


class Store:
    """A findings store; see `Database` for what opening one may raise.

    Parameters
    ----------
    path
        A file, or `MEMORY` for a store that lives as long as this object.
    readonly, cut_off
        As in `Database`.
    """

    def __init__(
        self, path: str | Path = MEMORY, *, create: bool = False, readonly: bool = False, cut_off: bool = False,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:  # fmt: skip
        self.database = Database(path, create=create, readonly=readonly, cut_off=cut_off, busy_seconds=busy_seconds)
        self.path = self.database.path

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- streams -----------------------------------------------------------------------------------------------------

    def begin(
        self, plan: Plan, executors: Sequence[ExecutorInfo], environment: Sequence[tuple[str, str]], started: str
    ) -> Stream:
        """Begin a campaign, or a shard of one.

        Raises
        ------
        UsageError
            It is in the store already, or with another number of shards.
        """
        campaign = campaign_key(plan, [e.name for e in executors if e.available])
        with self.database.write() as write:
            for shard, shards in write.execute("SELECT shard, shards FROM stream WHERE campaign = ?", (campaign,)):
                if shards != plan.shards:
                    raise UsageError(detail=f"{self.path}: has seed {plan.seed} in {shards} shards, not {plan.shards}")
                if shard == plan.shard:
                    detail = f"has seed {plan.seed} with these executors already: `fuzz resume` goes on with it"
                    raise UsageError(detail=f"{self.path}: {detail}")
            records = map(to_json, (plan, tuple(executors), tuple(environment)))
            cursor = write.execute(
                "INSERT INTO stream (campaign, shard, shards, plan, executors, environment, started)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (campaign, plan.shard, plan.shards, *records, started),
            )
            number = cursor.lastrowid
        return self.stream(number)

    def stream(self, number: int | None) -> Stream:
        """One stream by its id."""
        if not (found := self._streams("WHERE id = ?", number)):
            raise UsageError(detail=f"{self.path}: has no campaign number {number}")
        return found[0]

    def streams(self) -> list[Stream]:
        """All streams, the latest last."""
        return self._streams("ORDER BY started, id")

    def _streams(self, which: str, *values: int | None) -> list[Stream]:
        sql = f"SELECT id, campaign, plan, executors, environment, started, elapsed FROM stream {which}"  # noqa: S608
        rows = self.database.rows(tuple[int, str, str, str, str, str, Seconds], sql, values)
        return [
            Stream(
                number, campaign, from_json(Plan, plan, self.path),
                from_json(tuple[ExecutorInfo, ...], executors, self.path),
                from_json(tuple[tuple[str, str], ...], environment, self.path), started, elapsed,
            )
            for number, campaign, plan, executors, environment, started, elapsed in rows
        ]  # fmt: skip

    def shards(self, number: int | None = None) -> list[Stream]:
        """All shards of the campaign to which stream `number` belongs, or of the one that was begun last.

        Raises
        ------
        UsageError
            There is none.
        """
        streams = self.streams()
        if not streams:
            raise UsageError(detail=f"{self.path}: no campaign was begun in this store")
        campaign = (streams[-1] if number is None else self.stream(number)).campaign
        return [s for s in streams if s.campaign == campaign]

    def extend(self, stream: int, plan: Plan) -> None:
        """Give a stream other limits.

        Raises
        ------
        UsageError
            More programs were begun than the new limit allows.
        """
        (last,) = self.database.row(tuple[int | None], "SELECT max(number) FROM batch WHERE stream = ?", (stream,))
        if last is not None and plan.size(last) <= 0:
            past = (
                f"--programs {plan.programs}: the campaign is past that ({self.done(stream)[0]} programs are checked)"
            )
            raise UsageError(detail=f"{self.path}: {past}; ask for more, or begin another campaign")
        with self.database.write() as write:
            write.execute("UPDATE stream SET plan = ? WHERE id = ?", (to_json(plan), stream))

    def add_elapsed(self, stream: int, seconds: float) -> None:
        """Count time in which the stream was worked on."""
        with self.database.write() as write:
            write.execute("UPDATE stream SET elapsed = elapsed + ? WHERE id = ?", (seconds, stream))

    def release(self, owner: str | None = None) -> None:
        """Give back what a dead worker held; what any worker held, for None."""
        with self.database.write() as write:
            for table in ("batch", "kin"):
                write.execute(f"UPDATE {table} SET owner = '' WHERE owner = ifnull(?, owner)", (owner,))  # noqa: S608

    def owners(self, stream: int) -> frozenset[str]:
        """Who has work of the stream."""
        sql = " UNION ".join(f"SELECT owner FROM {t} WHERE stream = ? AND owner <> ''" for t in ("batch", "kin"))  # noqa: S608
        return frozenset(owner for (owner,) in self.database.connection.execute(sql, (stream, stream)))

    # --- batches -----------------------------------------------------------------------------------------------------

    def claim(self, stream: int, owner: str) -> Batch | None:
        """The next batch to work on: one that was left, else one to complete or a new one; None if there is no more to do."""
        with self.database.write() as write:
            left = "SELECT min(number) FROM batch WHERE stream = ? AND digest = '' AND owner = ''"
            (number,) = write.execute(left, (stream,)).fetchone()
            if number is None:
                number = self._open_batch(stream)
            if number is None:
                return None
            row = write.execute(
                "UPDATE batch SET owner = ?, claims = claims + 1 WHERE stream = ? AND number = ?"
                " RETURNING programs, counted, claims",
                (owner, stream, number),
            ).fetchone()
        return Batch(stream, number, *row)

    def _open_batch(self, stream: int) -> int | None:
        """Open a batch that was sealed with fewer programs than the plan now says, else the one after the last."""
        execute = self.database.connection.execute
        text, elapsed = execute("SELECT plan, elapsed FROM stream WHERE id = ?", (stream,)).fetchone()
        plan = from_json(Plan, text, self.path)
        if plan.minutes is not None and elapsed >= 60 * plan.minutes:
            return None
        short = "SELECT number, programs FROM batch WHERE stream = ? AND digest <> '' AND programs < ? ORDER BY number"
        for number, programs in execute(short, (stream, plan.batch)).fetchall():
            if programs < plan.size(number):
                execute(
                    "UPDATE batch SET counted = programs, programs = ?, claims = 0, digest = ''"
                    " WHERE stream = ? AND number = ?",
                    (plan.size(number), stream, number),
                )
                return int(number)
        (last,) = execute("SELECT max(number) FROM batch WHERE stream = ?", (stream,)).fetchone()
        fresh: int = plan.shard if last is None else last + plan.shards
        if plan.size(fresh) <= 0:
            return None
        execute("INSERT INTO batch (stream, number, programs) VALUES (?, ?, ?)", (stream, fresh, plan.size(fresh)))
        return fresh

    def put_programs(self, batch: Batch, cases: Sequence[Case]) -> None:
        """Write down what is about to be run."""
        rows = [(batch.stream, batch.number, i, *pack(case)) for i, case in enumerate(cases)]
        with self.database.write() as write:
            write.executemany("INSERT INTO program VALUES (?, ?, ?, ?, ?)", rows)

    def programs(self, batch: Batch) -> list[Case]:
        """The programs of a batch that was begun before; none if it was not."""
        return unpack_all(
            self.database.rows(
                tuple[str, bytes],
                "SELECT program, inputs FROM program WHERE stream = ? AND batch = ? ORDER BY number",
                (batch.stream, batch.number),
            ),
            f"{self.path}: program, batch {batch.number}",
        )

    def put_answers(self, batch: Batch, answers: Sequence[tuple[int, Answer]]) -> None:
        """Keep answers to programs of a batch, by program number."""
        key = (batch.stream, batch.number)
        rows = [(*key, number, answer.executor, to_json(answer)) for number, answer in answers]
        with self.database.write() as write:
            write.executemany("INSERT INTO answer VALUES (?, ?, ?, ?, ?)", rows)
            write.execute("UPDATE batch SET claims = 0 WHERE stream = ? AND number = ?", key)

    def answers(self, batch: Batch) -> dict[tuple[int, str], Answer]:
        """The answers so far, by program number and executor."""
        rows = self.database.rows(
            tuple[int, str, str],
            "SELECT number, executor, answer FROM answer WHERE stream = ? AND batch = ?",
            (batch.stream, batch.number),
        )
        where = f"{self.path}: answer, batch {batch.number}, number"
        return {(number, executor): from_json(Answer, text, f"{where} {number}") for number, executor, text in rows}

    def strike(self, batch: Batch, number: int, executor: str) -> int:
        """Announce that `executor` is about to run a program alone; how often that was announced."""
        with self.database.write() as write:
            (count,) = write.execute(
                "INSERT INTO strike VALUES (?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count",
                (batch.stream, batch.number, number, executor),
            ).fetchone()
        return int(count)

    def holds(self, batch: Batch, owner: str) -> bool:
        """Whether a batch is still a worker's own to seal."""
        sql = "SELECT count(*) FROM batch WHERE stream = ? AND number = ? AND digest = '' AND owner = ?"
        return bool(self.database.row(tuple[int], sql, (batch.stream, batch.number, owner))[0])

    def seal(
        self, batch: Batch, owner: str, cases: Sequence[Case], counts: Counts, disagreements: Sequence[Disagreement]
    ) -> None:
        """Count a finished batch and drop its rows.

        Raises
        ------
        Internal
            The batch is not held by `owner`.
        """
        key, now = (batch.stream, batch.number), time.time()
        with self.database.write() as write:
            sealed = write.execute(
                "UPDATE batch SET digest = ?, owner = '', counted = 0, programs = ?"
                " WHERE stream = ? AND number = ? AND digest = '' AND owner = ?",
                (digest(cases), batch.programs, *key, owner),
            )
            if sealed.rowcount != 1:
                raise Internal(detail=f"batch {batch.number} is not held by {owner}")
            counts.add_to(write, batch.stream)
            write.executemany(
                "INSERT INTO suspect VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        *key, d.number, d.answer.executor, d.group, d.case.fingerprint, len(d.case.program.instructions),
                        d.op, d.dtype, d.attribution, to_json(d.answer), *pack(d.case), now,
                    )
                    for d in disagreements
                ],
            )  # fmt: skip
            names = [(batch.stream, d.group) for d in disagreements]
            write.executemany("INSERT OR IGNORE INTO kin (stream, name) VALUES (?, ?)", names)
            for table in IN_FLIGHT:
                write.execute(f"DELETE FROM {table} WHERE stream = ? AND batch = ?", key)  # noqa: S608

    # --- counts ------------------------------------------------------------------------------------------------------

    def add_seconds(self, stream: int, seconds: dict[str, float]) -> None:
        """Count working time by phase."""
        counts = Counts()
        for phase, spent in seconds.items():
            counts.add_seconds(("phase", phase), spent)
        with self.database.write() as write:
            counts.add_to(write, stream)

    def counts(self, stream: int) -> Counts:
        """The counts of a stream."""
        return Counts.of(self.database, stream)

    def done(self, stream: int) -> tuple[int, int]:
        """Programs that were counted, and answers to programs of open batches."""
        counted = "SELECT ifnull(sum(iif(digest = '', counted, programs)), 0) FROM batch WHERE stream = ?"
        return self.database.row(tuple[int], counted, (stream,))[0], self._count("answer", stream)

    def disagreements(self, stream: int) -> int:
        """How many disagreements there are."""
        return self._count("suspect", stream)

    def _count(self, table: str, stream: int) -> int:
        return self.database.row(tuple[int], f"SELECT count(*) FROM {table} WHERE stream = ?", (stream,))[0]  # noqa: S608

    # --- groups of disagreements -------------------------------------------------------------------------------------

    def claim_group(self, stream: int, owner: str, limit: int) -> Group | None:
        """A group to reduce; None if there is none, or `limit` is reached.

        Those come first that are of another op or cause than what was begun, then the most frequent. One whose reduction has
        ended the process a few times is left alone.
        """
        with self.database.write() as write:
            # groups of one signature count once; of one that is being reduced the signature is not known yet
            begun = "SELECT count(DISTINCT iif(signature = '', name, signature)) FROM kin WHERE"
            if write.execute(f"{begun} {_IS_BEGUN}", (stream,)).fetchone()[0] >= limit:
                return None
            row = write.execute(
                f"SELECT name, count(DISTINCT fingerprint), min(seen) FROM {GROUPS_WITH_SUSPECTS} WHERE {_CLAIMABLE}"  # noqa: S608
                f" GROUP BY name ORDER BY max((op, attribution) IN ({_BEGUN})), count(*) DESC, min(batch), min(number) LIMIT 1",
                (stream, stream),
            ).fetchone()
            if row is None:
                return None
            ((name, programs, seen),) = self.database.typed(tuple[str, int, float], [row])
            write.execute(
                "UPDATE kin SET owner = ?, claims = claims + 1 WHERE stream = ? AND name = ?", (owner, stream, name)
            )
            batch, number, program, inputs, text, *place = self.database.row(
                tuple[int, int, str, bytes, str, str, str, str],
                "SELECT batch, number, program, inputs, answer, op, dtype, attribution FROM suspect"
                " WHERE stream = ? AND kin = ? ORDER BY instructions, batch, number, rowid LIMIT 1",
                (stream, name),
            )
            names = "SELECT DISTINCT executor FROM suspect WHERE stream = ? AND kin = ? ORDER BY 1"
            executors = self.database.rows(tuple[str], names, (stream, name))
            cause, same = _CAUSE.format("name"), _CAUSE.format("?")
            others = f"SELECT DISTINCT signature FROM kin WHERE stream = ? AND signature <> '' AND {cause} = {same} ORDER BY 1"  # noqa: S608
            alike = self.database.rows(tuple[str], others, (stream, name, name))
        where = f"{self.path}: suspect, batch {batch}, number {number}"
        answer = from_json(Answer, text, where)
        smallest = Disagreement(number, unpack(program, inputs, where), answer, name, *place)
        also = tuple(e for (e,) in executors if e != answer.executor)
        return Group(stream, name, smallest, programs, also, seen, tuple(signature for (signature,) in alike))

    def longest_waiting(self, stream: int) -> float | None:
        """When the first disagreement was seen of the groups that no worker has begun to reduce; seconds since 1970."""
        sql = f"SELECT min(seen) FROM {GROUPS_WITH_SUSPECTS} WHERE {_CLAIMABLE}"  # noqa: S608
        return self.database.row(tuple[float | None], sql, (stream,))[0]

    def retry_groups(self, stream: int) -> None:
        """Let those be reduced again whose reduction never ended."""
        with self.database.write() as write:
            write.execute("UPDATE kin SET claims = 0 WHERE stream = ? AND signature = ''", (stream,))

    def group_counts(self, stream: int) -> tuple[int, int]:
        """Groups that led to a finding, and all of them."""
        sql = "SELECT count(nullif(signature, '')), count(*) FROM kin WHERE stream = ?"
        return self.database.row(tuple[int, int], sql, (stream,))

    def settle(self, group: Group, finding: Finding, case: Case, confirmed: bool | None) -> None:
        """Write down what a group came to; of two findings of one signature the smaller is kept."""
        now, inputs = time.time(), pack(case)[1]
        row = (finding.signature, to_json(finding), inputs, now, now - group.seen, confirmed)
        with self.database.write() as write:
            old = self.finding(finding.signature)
            if old is None:
                write.execute("INSERT INTO finding VALUES (?, ?, ?, ?, ?, ?)", row)
            elif finding.instructions < old.finding.instructions or (confirmed and not old.confirmed):
                write.execute(
                    "UPDATE finding SET record = ?, inputs = ?, confirmed = ? WHERE signature = ?",
                    (row[1], row[2], confirmed, finding.signature),
                )
            write.execute(
                "UPDATE kin SET owner = '', signature = ? WHERE stream = ? AND name = ?",
                (finding.signature, group.stream, group.name),
            )

    # --- findings ----------------------------------------------------------------------------------------------------

    def finding(self, signature: str) -> StoredFinding | None:
        """The finding of that signature."""
        return next(iter(self._findings("WHERE signature = ?", signature)), None)

    def findings(self) -> list[StoredFinding]:
        """All findings, the oldest first."""
        return self._findings("ORDER BY found, rowid")

    def _findings(self, which: str, *values: str) -> list[StoredFinding]:
        sql = f"SELECT record, inputs, found, seconds, confirmed FROM finding {which}"  # noqa: S608
        rows = self.database.rows(tuple[str, bytes, Time, Seconds, int | None], sql, values)
        return [
            StoredFinding(
                from_json(Finding, record, self.path), inputs, found, seconds,
                None if confirmed is None else bool(confirmed), confirmed == _AFRESH,
            )
            for record, inputs, found, seconds, confirmed in rows
        ]  # fmt: skip

    def confirm(self, finding: Finding) -> None:
        """Write down whether a finding's bundle showed it in a virtual environment made for the purpose, and why it did not."""
        confirmed = 0 if finding.unconfirmed else _AFRESH
        with self.database.write() as write:
            write.execute(
                "UPDATE finding SET record = ?, confirmed = ? WHERE signature = ?",
                (to_json(finding), confirmed, finding.signature),
            )

    def mark(self, signature: str, status: str, note: str = "") -> None:
        """Mark a finding, for this and later campaigns."""
        if status not in STATUSES:
            raise UsageError(detail=f"{status!r} is none of {', '.join(STATUSES)}")
        with self.database.write() as write:
            write.execute("INSERT INTO mark VALUES (?, ?, ?, ?)", (signature, status, note, time.time()))

    def marks(self) -> dict[str, list[Mark]]:
        """The marks by signature, oldest first."""
        marks: dict[str, list[Mark]] = {}
        sql = "SELECT signature, status, note, at FROM mark ORDER BY at, rowid"
        for signature, status, note, at in self.database.rows(tuple[str, Status, str, Time], sql):
            marks.setdefault(signature, []).append(Mark(status, note, at))
        return marks
