"""A findings store with one damaged value anywhere: a typed error or an answer, never a defect of this program."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.store import Store
from tests.e2e.command import in_this_process as tenferro_ref
from tests.hostile.attacks import finding, store_of

pytestmark = pytest.mark.once

COMMANDS = (
    ("fuzz", "status"), ("fuzz", "status", "--check"), ("fuzz", "findings", "--json"), ("fuzz", "findings", "--bundles", "b"),
    ("fuzz", "findings", "--corpus", "c"), ("report", "--out", "r"),
)  # fmt: skip
JUNK = (None, 0, -1, 1e308, float("inf"), "", "x", b"\x00\xff", "{}", "[]", "null", "NaN", "[" * 2000, "1e999", 10**18)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with valid and invalid programs, two of whose batches are done, with a finding that is marked."""
    path = tmp_path_factory.mktemp("rows") / "s.sqlite"
    call = ("fuzz", "run", path, "--programs", 40, "--seed", 5, "--executors", "native,native-nopasses", "--workers", 1)
    assert tenferro_ref(*call, "--generate", "invalid=1/8", "--no-fresh-venv").status == 0
    found = finding(executor="native")
    store_of(path, found)
    with Store(path) as opened:
        opened.mark(found.signature, "known", "seen")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


def damage(draw: Any, value: Any) -> Any:
    """Another value for a column: a few characters changed, or anything at all."""
    if isinstance(value, (str, bytes)) and value and draw(st.booleans()):
        start = draw(st.integers(0, len(value) - 1))
        end = min(len(value), start + draw(st.integers(0, 8)))
        patch = draw(st.sampled_from(["", "0", '"', "NaN", "-", "null", "[", "1e999", "{}"]))
        return value[:start] + (patch if isinstance(value, str) else patch.encode()) + value[end:]
    return draw(st.sampled_from(JUNK))


@settings(max_examples=30)
@given(data=st.data())
def test_one_damaged_value(store: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    draw, folder = data.draw, tmp_path_factory.mktemp("damaged")
    path = folder / "s.sqlite"
    shutil.copy(store, path)
    with closing(sqlite3.connect(path)) as connection:
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        filled = {}
        for (table,) in connection.execute(names).fetchall():
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            if rows:
                filled[table] = rows
        table = draw(st.sampled_from(sorted(filled)))
        row = draw(st.sampled_from(filled[table]))
        columns = [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
        place = draw(st.integers(0, len(columns) - 1))
        which = " AND ".join(f'"{column}" IS ?' for column in columns)
        try:
            connection.execute(
                f'UPDATE {table} SET "{columns[place]}" = ? WHERE {which}',
                (damage(draw, row[place]), *row),
            )
        except (sqlite3.IntegrityError, OverflowError):  # SQLite itself refuses it
            return
        connection.commit()
    group, *rest = draw(st.sampled_from(COMMANDS))
    words = [group, path, *rest] if group == "report" else [group, rest[0], path, *rest[1:]]
    run = tenferro_ref(*(folder / word if word in ("b", "c", "r") else word for word in words))
    assert run.status in (0, 1, 2), run
    assert run.status != 2 or run.err.startswith("error: "), run


def test_a_time_that_is_no_date(store: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(store, tmp_path / "s.sqlite"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE mark SET at = 1e308")
        connection.commit()
    run = tenferro_ref("fuzz", "findings", path, "--json")
    assert run.status == 2, run
    assert "s.sqlite" in run.err
