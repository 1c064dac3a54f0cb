"""The findings store: what a campaign has to do, what it did, what it found, and what people decided about that.

Here is every statement that a running campaign makes; schema and file are next door. Merging is in `merge`, the records that
reports read are made in `recorded`, the laws that a store obeys are checked in `audit`.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgpack

from fuzz.generate.faults import faults
from fuzz.generate.faults.batches import with_refusals
from fuzz.generate.input_sets import batch_of
from fuzz.generate.settings import config_of
from fuzz.records import Finding, decode, encode, from_json, to_json
from fuzz.store.database import BUSY_SECONDS, MEMORY, Database
from fuzz.store.tally import WIDTHS, Tally
from oracle.case import Case, Refusal
from oracle.verdict import Answer, ExecutorInfo
from tenferro_ref import __version__
from tenferro_ref.errors import Internal, UsageError
from tenferro_ref.isolation import wire
from tenferro_ref.program import loads
from tenferro_ref.tensor import Array, column_major

#: What somebody may say of a finding; "new" takes back what was said before.
STATUSES = ("new", "known", "reported", "fixed")
#: `finding.confirmed` of one that was shown in a virtual environment made for it.
_AFRESH = 2
#: A reduction that was begun so often and never ended is not begun again.
_KIN_CLAIMS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What one stream of a campaign is to do.

    Attributes
    ----------
    programs, minutes
        Whichever is reached first ends the generation; None is no limit. `programs` counts those of all shards.
    shard, shards
        This stream takes batch b of the campaign where b mod `shards` is `shard`.
    batch
        Programs a batch; each input set of a program counts as one.
    input_sets
        Input sets of each program.
    reduce_seconds
        Budget for reducing one suspect.
    max_findings
        Suspects reduced at most; kinds of disagreement beyond that are counted, not reduced.
    generate
        What the programs may contain, as `fuzz.generate.settings.config_of` reads it.
    """

    seed: int
    programs: int | None = None
    minutes: float | None = None
    shard: int = 0
    shards: int = 1
    batch: int = 32
    reduce_seconds: float = 20.0
    max_findings: int = 40
    command: str = ""
    input_sets: int = 1
    generate: tuple[str, ...] = ()

    def cases(self, number: int) -> list[Case]:
        """The cases of one batch."""
        config = config_of(self.generate)
        valid = partial(batch_of, self.seed, number, self.batch, self.input_sets, config)
        return with_refusals(self.seed, number, self.batch, config, valid)

    def faults(self) -> dict[str, list[str]]:
        """The faults that invalid programs may have, by the kind of error that they raise."""
        config, found = config_of(self.generate), dict[str, list[str]]()
        for fault in faults(config, late=True) if config.invalid else ():
            found.setdefault(fault.kind, []).append(fault.name)
        return found


@dataclass(frozen=True, slots=True)
class Stream:
    """One shard of one campaign, as the store has it. `campaign` is the same for all shards; `elapsed` is in seconds."""

    id: int
    campaign: str
    plan: Plan
    executors: tuple[ExecutorInfo, ...]
    environment: tuple[tuple[str, str], ...]
    started: str
    elapsed: float

    @property
    def available(self) -> tuple[str, ...]:
        """Names of the executors that take part."""
        return tuple(info.name for info in self.executors if info.available)


@dataclass(frozen=True, slots=True)
class Job:
    """A batch that a worker holds. `claims`: how often it was taken since it last got an answer."""

    stream: int
    number: int
    programs: int
    claims: int


@dataclass(frozen=True, slots=True, eq=False)
class Doubt:
    """A disagreement: program `number` of a batch, what was said of it, and what is cheap to learn."""

    number: int
    case: Case
    answer: Answer
    kin: str
    op: str
    dtype: str
    attribution: str


@dataclass(frozen=True, slots=True, eq=False)
class Kin:
    """A kind of disagreement that a worker holds, and the smallest of its suspects."""

    stream: int
    name: str
    smallest: Doubt
    programs: int
    also: tuple[str, ...]
    seen: float


@dataclass(frozen=True, slots=True)
class Mark:
    """What somebody said of a finding, and when (seconds since 1970)."""

    status: str
    note: str
    at: float


@dataclass(frozen=True, slots=True)
class Found:
    """A finding as it lies in the store.

    Attributes
    ----------
    found
        When it was first written down; seconds since 1970.
    seconds
        From the mismatch to the end of reduction and confirmation.
    confirmed
        Whether its script showed it in a clean interpreter; None if that was not tried.
    afresh
        Whether it did so in a virtual environment made for the purpose.
    """

    finding: Finding
    inputs: bytes
    found: float
    seconds: float
    confirmed: bool | None
    afresh: bool

    @property
    def case(self) -> Case:
        """The reduced program with its inputs."""
        return unpack(self.finding.program_json, self.inputs)


class Store:
    """A findings store; see `Database` for what opening one may raise.

    Parameters
    ----------
    path
        A file, or `MEMORY` for a store that lives as long as this object.
    readonly
        As in `Database`.
    """

    def __init__(
        self,
        path: str | Path = MEMORY,
        *,
        create: bool = False,
        readonly: bool = False,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self.database = Database(path, create=create, readonly=readonly, busy_seconds=busy_seconds)
        self.path = self.database.path

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- streams -----------------------------------------------------------------------------------------------------

    def begin(
        self,
        plan: Plan,
        executors: Sequence[ExecutorInfo],
        environment: Sequence[tuple[str, str]],
        started: str,
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
                    raise UsageError(
                        detail=f"{self.path}: has seed {plan.seed} with these executors already: "
                        "`fuzz resume` goes on with it"
                    )
            values = (
                campaign, plan.shard, plan.shards, to_json(plan), json.dumps(encode(list(executors))),
                json.dumps(encode(list(environment))), started,
            )  # fmt: skip
            cursor = write.execute(
                "INSERT INTO stream (campaign, shard, shards, plan, executors, environment, started)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            number = cursor.lastrowid
        return self.stream(number)

    def stream(self, number: int | None) -> Stream:
        """One stream by its id."""
        for stream in self.streams():
            if stream.id == number:
                return stream
        raise UsageError(detail=f"{self.path}: has no campaign number {number}")

    def streams(self) -> list[Stream]:
        """All streams, the latest last."""
        rows = self.database.all(
            "SELECT id, campaign, plan, executors, environment, started, elapsed FROM stream ORDER BY started, id"
        )
        return [self._stream(*row) for row in rows]

    def _stream(
        self, number: int, campaign: str, plan: str, executors: str, environment: str, started: str, elapsed: float
    ) -> Stream:
        infos = _decode(tuple[ExecutorInfo, ...], executors, self.path)
        facts = _decode(tuple[tuple[str, str], ...], environment, self.path)
        return Stream(number, campaign, from_json(Plan, plan, self.path), infos, facts, started, elapsed)

    def extend(self, stream: int, plan: Plan) -> None:
        """Give a stream other limits."""
        with self.database.write() as write:
            write.execute("UPDATE stream SET plan = ? WHERE id = ?", (to_json(plan), stream))

    def add_elapsed(self, stream: int, seconds: float) -> None:
        """Count time in which the stream was worked on."""
        with self.database.write() as write:
            write.execute("UPDATE stream SET elapsed = elapsed + ? WHERE id = ?", (seconds, stream))

    def release(self, owner: str | None = None) -> None:
        """Give back what a dead worker held; what anybody held, for None."""
        with self.database.write() as write:
            for table in ("batch", "kin"):
                write.execute(f"UPDATE {table} SET owner = '' WHERE owner = ifnull(?, owner)", (owner,))  # noqa: S608

    # --- batches -----------------------------------------------------------------------------------------------------

    def claim(self, stream: int, owner: str) -> Job | None:
        """The next batch to work on: one that was left, else a fresh one; None if there is no more to do."""
        with self.database.write() as write:
            row = write.execute(
                "SELECT number, programs, claims FROM batch WHERE stream = ? AND digest = '' AND owner = ''"
                " ORDER BY number LIMIT 1",
                (stream,),
            ).fetchone()
            if row is None:
                row = self._fresh(stream)
                if row is None:
                    return None
                write.execute("INSERT INTO batch (stream, number, programs) VALUES (?, ?, ?)", (stream, *row[:2]))
            number, programs, claims = row
            write.execute(
                "UPDATE batch SET owner = ?, claims = claims + 1 WHERE stream = ? AND number = ?",
                (owner, stream, number),
            )
        return Job(stream, number, programs, claims + 1)

    def _fresh(self, stream: int) -> tuple[int, int, int] | None:
        text, elapsed = self.database.one("SELECT plan, elapsed FROM stream WHERE id = ?", (stream,))
        plan = from_json(Plan, text, self.path)
        if plan.minutes is not None and elapsed >= 60 * plan.minutes:
            return None
        (last,) = self.database.one("SELECT max(number) FROM batch WHERE stream = ?", (stream,))
        number = plan.shard if last is None else last + plan.shards
        programs = plan.batch if plan.programs is None else min(plan.batch, plan.programs - number * plan.batch)
        return (number, programs, 0) if programs > 0 else None

    def put_programs(self, job: Job, cases: Sequence[Case]) -> None:
        """Write down what is about to be run."""
        rows = [(job.stream, job.number, i, *pack(case)) for i, case in enumerate(cases)]
        with self.database.write() as write:
            write.executemany("INSERT INTO program VALUES (?, ?, ?, ?, ?)", rows)

    def programs(self, job: Job) -> list[Case]:
        """The programs of a batch that was begun before; none if it was not."""
        rows = self.database.all(
            "SELECT program, inputs FROM program WHERE stream = ? AND batch = ? ORDER BY number",
            (job.stream, job.number),
        )
        cases: list[Case] = []
        last: Case | None = None
        for text, inputs in rows:
            # an input set of the same program object, as when it was made
            if last is not None and last.program_json == text:
                case = last.with_inputs(_arrays(msgpack.unpackb(inputs)))
            else:
                case = unpack(text, inputs)
            if case.refusal is None:
                last = case
            cases.append(case)
        return cases

    def put_answers(self, job: Job, answers: Sequence[tuple[int, Answer]]) -> None:
        """Keep answers to programs of a batch, by program number."""
        rows = [(job.stream, job.number, number, a.executor, to_json(a)) for number, a in answers]
        with self.database.write() as write:
            write.executemany("INSERT INTO answer VALUES (?, ?, ?, ?, ?)", rows)
            write.execute("UPDATE batch SET claims = 0 WHERE stream = ? AND number = ?", (job.stream, job.number))

    def answers(self, job: Job) -> dict[tuple[int, str], Answer]:
        """The answers so far, by program number and executor."""
        rows = self.database.all(
            "SELECT number, executor, answer FROM answer WHERE stream = ? AND batch = ?", (job.stream, job.number)
        )
        return {(number, executor): from_json(Answer, text, self.path) for number, executor, text in rows}

    def strike(self, job: Job, number: int, executor: str) -> int:
        """Say that `executor` is about to run a program alone; how often that was said of it."""
        with self.database.write() as write:
            (count,) = write.execute(
                "INSERT INTO strike VALUES (?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count",
                (job.stream, job.number, number, executor),
            ).fetchone()
        return int(count)

    def seal(self, job: Job, owner: str, cases: Sequence[Case], tally: Tally, doubts: Sequence[Doubt]) -> None:
        """Count a finished batch and drop its rows."""
        key = (job.stream, job.number)
        now = time.time()
        with self.database.write() as write:
            sealed = write.execute(
                "UPDATE batch SET digest = ?, owner = '' WHERE stream = ? AND number = ? AND digest = '' AND owner = ?",
                (digest(cases), *key, owner),
            )
            if sealed.rowcount != 1:
                raise Internal(detail=f"batch {job.number} is not held by {owner}")
            self.add_tally(job.stream, tally)
            write.executemany(
                "INSERT INTO suspect VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        *key, d.number, d.answer.executor, d.kin, d.case.fingerprint, len(d.case.program.instructions),
                        d.op, d.dtype, d.attribution, to_json(d.answer), *pack(d.case), now,
                    )
                    for d in doubts
                ],
            )  # fmt: skip
            write.executemany(
                "INSERT OR IGNORE INTO kin (stream, name) VALUES (?, ?)", [(job.stream, d.kin) for d in doubts]
            )
            for table in ("program", "answer", "strike"):
                write.execute(f"DELETE FROM {table} WHERE stream = ? AND batch = ?", key)  # noqa: S608

    def add_seconds(self, stream: int, seconds: dict[str, float]) -> None:
        """Count working time by phase."""
        tally = Tally()
        for phase, spent in seconds.items():
            tally.add_seconds(("phase", phase), spent)
        with self.database.write():
            self.add_tally(stream, tally)

    def add_tally(self, stream: int, tally: Tally) -> None:
        """Add to all that was counted, inside a transaction of the caller's."""
        execute = self.database.connection.executemany
        for combine, entries in (("value + excluded.value", tally.sums), ("max(value, excluded.value)", tally.peaks)):
            execute(
                f"INSERT INTO tally VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = {combine}",  # noqa: S608
                [(stream, key[0], json.dumps(key[1:]), value) for key, value in entries.items()],
            )
        for executor, points in tally.widths.items():
            (have,) = self.database.one(
                "SELECT count(*) FROM width WHERE stream = ? AND executor = ?", (stream, executor)
            )
            execute(
                "INSERT INTO width VALUES (?, ?, ?, ?)",
                [(stream, executor, *p) for p in points[: max(WIDTHS - have, 0)]],
            )

    def tally(self, stream: int) -> Tally:
        """All that was counted."""
        tally = Tally()
        for kind, key, value in self.database.all("SELECT kind, key, value FROM tally WHERE stream = ?", (stream,)):
            (tally.peaks if kind in ("worst", "cell_ulp") else tally.sums)[kind, *json.loads(key)] = value
        for executor, width, distance in self.database.all(
            "SELECT executor, width, distance FROM width WHERE stream = ? ORDER BY rowid", (stream,)
        ):
            tally.widths[executor].append((width, distance))
        return tally

    def done(self, stream: int) -> tuple[int, int]:
        """Programs of sealed batches, and answers to programs of open ones."""
        (programs,) = self.database.one(
            "SELECT ifnull(sum(programs), 0) FROM batch WHERE stream = ? AND digest <> ''", (stream,)
        )
        (answers,) = self.database.one("SELECT count(*) FROM answer WHERE stream = ?", (stream,))
        return programs, answers

    def suspects(self, stream: int) -> int:
        """How many disagreements there are."""
        return int(self.database.one("SELECT count(*) FROM suspect WHERE stream = ?", (stream,))[0])

    # --- kinds of disagreement, and findings -------------------------------------------------------------------------

    def claim_kin(self, stream: int, owner: str, limit: int) -> Kin | None:
        """A kind of disagreement to reduce, the most frequent first; None if there is none, or `limit` is reached.

        One whose reduction has ended the process a few times is left alone.
        """
        with self.database.write() as write:
            (begun,) = write.execute(
                "SELECT count(*) FROM kin WHERE stream = ? AND (owner <> '' OR signature <> '')", (stream,)
            ).fetchone()
            row = write.execute(
                "SELECT name, count(DISTINCT fingerprint), min(seen) FROM kin"
                " JOIN suspect ON suspect.stream = kin.stream AND suspect.kin = kin.name"
                " WHERE kin.stream = ? AND owner = '' AND signature = '' AND claims < ? GROUP BY name"
                " ORDER BY count(*) DESC, min(batch), min(number) LIMIT 1",
                (stream, _KIN_CLAIMS),
            ).fetchone()
            if row is None or begun >= limit:
                return None
            name, programs, seen = row
            write.execute(
                "UPDATE kin SET owner = ?, claims = claims + 1 WHERE stream = ? AND name = ?", (owner, stream, name)
            )
            found = write.execute(
                "SELECT number, program, inputs, answer, op, dtype, attribution FROM suspect"
                " WHERE stream = ? AND kin = ? ORDER BY instructions, batch, number, rowid LIMIT 1",
                (stream, name),
            ).fetchone()
            executors = write.execute(
                "SELECT DISTINCT executor FROM suspect WHERE stream = ? AND kin = ?", (stream, name)
            ).fetchall()
        number, program, inputs, text, op, dtype, attribution = found
        answer = from_json(Answer, text, self.path)
        doubt = Doubt(number, unpack(program, inputs), answer, name, op, dtype, attribution)
        also = tuple(sorted({e for (e,) in executors} - {answer.executor}))
        return Kin(stream, name, doubt, programs, also, seen)

    def longest_waiting(self, stream: int) -> float | None:
        """When the first disagreement was seen of those whose kind nobody has begun to reduce; seconds since 1970."""
        (seen,) = self.database.one(
            "SELECT min(seen) FROM kin JOIN suspect ON suspect.stream = kin.stream AND suspect.kin = kin.name"
            " WHERE kin.stream = ? AND owner = '' AND signature = '' AND claims < ?",
            (stream, _KIN_CLAIMS),
        )
        return None if seen is None else float(seen)

    def retry_kins(self, stream: int) -> None:
        """Let those be reduced again whose reduction never ended."""
        with self.database.write() as write:
            write.execute("UPDATE kin SET claims = 0 WHERE stream = ? AND signature = ''", (stream,))

    def kin_counts(self, stream: int) -> tuple[int, int]:
        """Kinds of disagreement that led to a finding, and all of them."""
        done, everything = self.database.one(
            "SELECT count(nullif(signature, '')), count(*) FROM kin WHERE stream = ?", (stream,)
        )
        return done, everything

    def settle(self, kin: Kin, finding: Finding, case: Case, confirmed: bool | None) -> None:
        """Write down what a kind of disagreement came to; of two findings of one signature the smaller is kept."""
        now = time.time()
        row = (finding.signature, to_json(finding), pack(case)[1], now, now - kin.seen, confirmed)
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
                (finding.signature, kin.stream, kin.name),
            )

    def finding(self, signature: str) -> Found | None:
        """The finding of that signature."""
        return next((f for f in self.findings() if f.finding.signature == signature), None)

    def findings(self) -> list[Found]:
        """All findings, the oldest first."""
        rows = self.database.all("SELECT record, inputs, found, seconds, confirmed FROM finding ORDER BY found, rowid")
        return [
            Found(
                from_json(Finding, record, self.path), inputs, found, seconds,
                None if confirmed is None else bool(confirmed), confirmed == _AFRESH,
            )
            for record, inputs, found, seconds, confirmed in rows
        ]  # fmt: skip

    def confirm(self, signature: str, shown: bool) -> None:
        """Say whether a finding's script showed it in a virtual environment made for the purpose."""
        with self.database.write() as write:
            write.execute("UPDATE finding SET confirmed = ? WHERE signature = ?", (_AFRESH if shown else 0, signature))

    def mark(self, signature: str, status: str, note: str = "") -> None:
        """Say what became of a finding; it stays said in later campaigns."""
        if status not in STATUSES:
            raise UsageError(detail=f"{status!r} is none of {', '.join(STATUSES)}")
        with self.database.write() as write:
            write.execute("INSERT INTO mark VALUES (?, ?, ?, ?)", (signature, status, note, time.time()))

    def marks(self) -> dict[str, list[Mark]]:
        """What was said, by signature, oldest first."""
        marks: dict[str, list[Mark]] = {}
        for signature, *rest in self.database.all("SELECT signature, status, note, at FROM mark ORDER BY at, rowid"):
            marks.setdefault(signature, []).append(Mark(*rest))
        return marks


def campaign_key(plan: Plan, executors: Iterable[str]) -> str:
    """What is the same for all shards of a campaign, and for nothing else."""
    sets = [plan.input_sets] if plan.input_sets > 1 else []
    mix = [list(plan.generate)] if plan.generate else []
    content = json.dumps([__version__, plan.seed, plan.batch, *sets, *mix, *executors])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def digest(cases: Iterable[Case]) -> str:
    """Of a batch: 16 hex digits over the fingerprints."""
    return hashlib.sha256("".join(case.fingerprint for case in cases).encode()).hexdigest()[:16]


def pack(case: Case) -> tuple[str, bytes]:
    """A case as program JSON and the inputs in msgpack; those of an invalid one beside the error that it must raise."""
    inputs = [wire.pack(a) for a in case.inputs]
    packed: bytes = msgpack.packb(inputs if case.refusal is None else [encode(case.refusal), inputs])
    return case.program_json, packed


def unpack(program: str, inputs: bytes) -> Case:
    """The case that `pack` took apart."""
    arrays, refusal = msgpack.unpackb(inputs), None
    if arrays and isinstance(arrays[0], dict):
        refusal, arrays = decode(Refusal, arrays[0], "findings store"), arrays[1]
    graph = loads(program, "findings store", infer=refusal is None)
    return Case(graph, _arrays(arrays), refusal)


def _arrays(packed: list[Any]) -> tuple[Array, ...]:
    return tuple(column_major(wire.unpack(a)) for a in packed)


def _decode(kind: Any, text: str, where: str) -> Any:
    return decode(kind, json.loads(text), where)
