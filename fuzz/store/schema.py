"""The tables of a findings store, as a list of migrations: entry n leads from schema version n to n + 1.

A released entry is never changed; what a later version needs is appended. The version is SQLite's `user_version`.

What is in flight (`program`, `answer`, `strike`) is kept row by row; a batch whose answers are complete is *sealed*: in one
transaction its counts are added to `tally`, its disagreements become `suspect` rows, and its rows are dropped. The store
of a long night stays small, and there is no moment at which a program is counted twice or not at all.
"""

from __future__ import annotations

#: SQLite's `application_id`: "tfRf".
APPLICATION = 0x74665266

_FIRST = (
    # one shard of one campaign; `campaign` is a hash of what decides which programs are made and who judges them
    """CREATE TABLE stream (
        id INTEGER PRIMARY KEY, campaign TEXT NOT NULL, shard INTEGER NOT NULL, shards INTEGER NOT NULL,
        plan TEXT NOT NULL, executors TEXT NOT NULL, environment TEXT NOT NULL, started TEXT NOT NULL,
        elapsed REAL NOT NULL DEFAULT 0, UNIQUE (campaign, shard))""",
    # `owner` is the worker that has it, '' for none; `digest` (of the fingerprints) is '' until the batch is sealed
    """CREATE TABLE batch (
        stream INTEGER NOT NULL REFERENCES stream, number INTEGER NOT NULL, programs INTEGER NOT NULL,
        owner TEXT NOT NULL DEFAULT '', claims INTEGER NOT NULL DEFAULT 0, digest TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (stream, number)) WITHOUT ROWID""",
    "CREATE INDEX open_batch ON batch (stream, number) WHERE digest = ''",
    """CREATE TABLE program (
        stream INTEGER NOT NULL, batch INTEGER NOT NULL, number INTEGER NOT NULL,
        program TEXT NOT NULL, inputs BLOB NOT NULL, PRIMARY KEY (stream, batch, number))""",
    """CREATE TABLE answer (
        stream INTEGER NOT NULL, batch INTEGER NOT NULL, number INTEGER NOT NULL, executor TEXT NOT NULL,
        answer TEXT NOT NULL, PRIMARY KEY (stream, batch, number, executor))""",
    """CREATE TABLE strike (
        stream INTEGER NOT NULL, batch INTEGER NOT NULL, number INTEGER NOT NULL, executor TEXT NOT NULL,
        count INTEGER NOT NULL, PRIMARY KEY (stream, batch, number, executor))""",
    """CREATE TABLE tally (
        stream INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, value NOT NULL,
        PRIMARY KEY (stream, kind, key)) WITHOUT ROWID""",
    "CREATE TABLE width (stream INTEGER NOT NULL, executor TEXT NOT NULL, width REAL, distance REAL)",
    "CREATE INDEX width_of ON width (stream, executor)",
    # disagreements, located and attributed; `kin` is the name of their group
    """CREATE TABLE suspect (
        stream INTEGER NOT NULL, batch INTEGER NOT NULL, number INTEGER NOT NULL, executor TEXT NOT NULL,
        kin TEXT NOT NULL, fingerprint TEXT NOT NULL, instructions INTEGER NOT NULL, op TEXT NOT NULL,
        dtype TEXT NOT NULL, attribution TEXT NOT NULL, answer TEXT NOT NULL, program TEXT NOT NULL,
        inputs BLOB NOT NULL, seen REAL NOT NULL, PRIMARY KEY (stream, batch, number, executor))""",
    "CREATE INDEX suspect_kin ON suspect (stream, kin)",
    # groups of disagreements: one of each is reduced; `signature` is '' until then
    """CREATE TABLE kin (
        stream INTEGER NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL DEFAULT '', claims INTEGER NOT NULL DEFAULT 0,
        signature TEXT NOT NULL DEFAULT '', PRIMARY KEY (stream, name))""",
    # `confirmed`: the bundle was run in a clean interpreter: 1 it shows the finding, 2 in a virtual environment made for
    # it as well, 0 it does not, NULL not tried
    """CREATE TABLE finding (
        signature TEXT PRIMARY KEY, record TEXT NOT NULL, inputs BLOB NOT NULL, found REAL NOT NULL,
        seconds REAL NOT NULL, confirmed INTEGER)""",
    # what people decided; the latest entry of a signature holds
    """CREATE TABLE mark (
        signature TEXT NOT NULL, status TEXT NOT NULL, note TEXT NOT NULL, at REAL NOT NULL,
        UNIQUE (signature, status, note, at))""",
)

#: A batch that a campaign ended in the middle of is opened again when the campaign is given a later end; `counted` is how
#: many of its programs were counted before.
_SECOND = ("ALTER TABLE batch ADD COLUMN counted INTEGER NOT NULL DEFAULT 0",)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _SECOND)
