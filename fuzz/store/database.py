"""The SQLite file under a store: opening, migrating, transactions, and SQLite's errors as typed ones.

Every write happens in one `BEGIN IMMEDIATE` ... `COMMIT`: a process that ends at any moment leaves the last committed state.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fuzz.store.errors import StoreDamaged, StoreLocked, StoreVersion
from fuzz.store.schema import APPLICATION, MIGRATIONS
from tenferro_ref.errors import FormatError, OutputError, TenferroError

#: How long a writer waits for another one; transactions take milliseconds.
BUSY_SECONDS = 30.0
MEMORY = ":memory:"

Row = TypeVar("Row", bound=tuple[Any, ...])


class Database:
    """One connection, shared by the threads of this process, one transaction at a time.

    Parameters
    ----------
    create
        Make the store if it is not there; else its absence is an error.
    readonly
        Change nothing. What is of an earlier version is read from a copy in memory.
    cut_off
        With `readonly`: read the pages that there are of a file that has lost its end.

    Raises
    ------
    FormatError
        There is no such file.
    StoreDamaged, StoreVersion, StoreLocked, OutputError
        It cannot be used, and why; it was not changed.
    """

    def __init__(
        self, path: str | Path, *, create: bool = False, readonly: bool = False, cut_off: bool = False,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:  # fmt: skip
        self.path = str(path)
        self._lock = threading.RLock()
        self.copied = False
        if self.path != MEMORY:
            self._check_file(create)
        self.readonly = readonly
        with self.errors():
            self.connection = self._connect(busy_seconds)
        try:
            with self.errors():
                if cut_off:  # SQLite's name for it; a connection that only reads writes no schema with it either
                    self.connection.execute("PRAGMA writable_schema = ON")
                self._prepare(readonly)
        except BaseException:
            self.connection.close()
            raise

    def _connect(self, busy_seconds: float) -> sqlite3.Connection:
        target = self.path if self.path == MEMORY else address(self.path, "ro" if self.readonly else "rwc")
        if self.readonly and not os.access(Path(self.path).parent, os.W_OK) and not Path(f"{self.path}-wal").exists():
            target += "&immutable=1"  # in WAL mode SQLite makes files beside it even to read
        return sqlite3.connect(target, timeout=busy_seconds, isolation_level=None, check_same_thread=False, uri=True)

    def close(self) -> None:
        """Close the file; the last process to do so leaves it in the form that can be read from read-only media."""
        if not self.readonly and self.path != MEMORY:
            with contextlib.suppress(sqlite3.Error):  # another process still has it open
                self.connection.execute("PRAGMA busy_timeout = 0")
                self.connection.execute("PRAGMA journal_mode = DELETE")
        self.connection.close()

    def rows(self, shape: type[Row], sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows of a query, each a tuple of the types that `shape` says.

        Raises
        ------
        StoreDamaged
            A value has another type: SQLite keeps whatever somebody wrote into a column.
        """
        with self._lock, self.errors():
            return self.typed(shape, self.connection.execute(sql, values).fetchall())

    def row(self, shape: type[Row], sql: str, values: Sequence[Any] = ()) -> Row:
        """The first row of a query that has one; else as `rows`."""
        return self.rows(shape, sql, values)[0]

    def typed(self, shape: type[Row], rows: list[Any]) -> list[Row]:
        """Rows that a statement of the caller's gave, checked; errors as `rows`."""
        try:
            return msgspec.convert(rows, list[shape], builtin_types=(bytes,))  # type: ignore[valid-type]
        except msgspec.ValidationError as error:
            raise StoreDamaged(path=self.path, detail=str(error)) from None

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is kept, or nothing."""
        with self._lock, self.errors():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # a full disk has rolled it back already
                    self.connection.execute("ROLLBACK")
                raise

    def check(self) -> None:
        """Read every page.

        Raises
        ------
        StoreDamaged
            Something in the file contradicts itself.
        """
        (verdict,) = self.row(tuple[str], "PRAGMA quick_check(1)")
        if verdict != "ok":
            raise StoreDamaged(path=self.path, detail=verdict)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """SQLite's errors as typed ones."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._typed(error) from None

    def _typed(self, error: sqlite3.Error) -> TenferroError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extension
        match code:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return StoreLocked(path=self.path, holder="another process that is writing")
            case sqlite3.SQLITE_FULL:
                return OutputError(
                    path=self.path, detail="the disk is full; nothing is lost: free space, then `fuzz resume`"
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_PERM:
                return OutputError(path=self.path, detail=str(error))
        return StoreDamaged(path=self.path, detail=str(error))

    def _check_file(self, create: bool) -> None:
        path = Path(self.path)
        if "\0" in self.path:
            raise FormatError(where=repr(self.path), detail="no file can have that name")
        try:
            present = path.exists()
            if path.is_dir():
                raise FormatError(where=self.path, detail="a folder, not a findings store")
            if not present and not create:
                raise FormatError(where=self.path, detail="no such findings store; `fuzz run` makes one")
            if present and not create and path.stat().st_size == 0:
                raise StoreDamaged(path=self.path, detail="the file is empty")
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(path=self.path, detail=error.strerror or str(error)) from None

    def _prepare(self, readonly: bool) -> None:
        execute = self.connection.execute
        # the file may be anybody's: its schema calls no function that has an effect
        execute("PRAGMA trusted_schema = OFF")
        execute("PRAGMA foreign_keys = ON")
        empty = execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if not empty:
            self._check_identity()
        if readonly:
            self.copied = execute("PRAGMA user_version").fetchone()[0] != len(MIGRATIONS)
            if self.copied:
                self._copy_to_memory()
            return
        execute("PRAGMA journal_mode = WAL")
        # in WAL mode a killed process loses nothing under NORMAL; only a power cut may take the last transactions
        execute("PRAGMA synchronous = NORMAL")
        migrate(self)

    def _copy_to_memory(self) -> None:
        copy = sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
        self.connection.backup(copy)
        self.connection.close()
        self.connection = copy
        migrate(self)

    def _check_identity(self) -> None:
        (application,) = self.connection.execute("PRAGMA application_id").fetchone()
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise StoreDamaged(path=self.path, detail="a database of something else")
        if version > len(MIGRATIONS):
            raise StoreVersion(path=self.path, version=version, newest=len(MIGRATIONS))
        # a trigger would change what is written, a view what is read
        odd = self.connection.execute(
            "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
        ).fetchone()
        if odd is not None:
            raise StoreDamaged(path=self.path, detail=f"it has the {odd[0]} {odd[1]!r}; a findings store has none")


def address(path: str | Path, mode: str) -> str:
    """The file for SQLite; "ro" to read only, "rwc" to write, and make it if it is not there."""
    return f"{Path(path).absolute().as_uri()}?mode={mode}"


def is_database(path: Path) -> bool:
    """Whether a file begins as SQLite files do; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except (OSError, ValueError):
        return False


def migrate(database: Database, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring a store to the newest schema: all of the missing migrations, or none."""
    if database.row(tuple[int], "PRAGMA user_version")[0] == len(migrations):
        return
    with database.write() as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()  # another process may have been faster
        for statements in migrations[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")


class Lock:
    """The right to run campaigns on a store: held by a file handle, so that the kernel gives it back whatever happens.

    Workers inherit the handle: while one of them lives, no other process can start on their batches.

    Raises
    ------
    StoreLocked
        Another campaign, reduction or merge is running on the store.
    OutputError
        The lock file beside the store cannot be written, or is a file of somebody else.
    """

    def __init__(self, store: str | Path) -> None:
        path = f"{store}.lock"
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise OutputError(path=path, detail=error.strerror or str(error)) from None
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self.descriptor, 100, 0).decode("ascii", "replace")
            os.close(self.descriptor)
            raise StoreLocked(path=str(store), holder=holder or "another campaign") from None
        if not re.fullmatch(rb"(process \d+)?", os.pread(self.descriptor, 100, 0)):
            os.close(self.descriptor)
            detail = "is there, and is no lock of a findings store; give the store another name"
            raise OutputError(path=path, detail=detail)
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, f"process {os.getpid()}".encode(), 0)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)
