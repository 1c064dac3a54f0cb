"""Findings stores on read-only media: they are read as they are, and nothing is put beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuzz.store import Store
from tests.e2e.command import in_this_process as tenferro_ref
from tests.hostile.attacks import finding, store_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a store, which `os.access` says cannot be written into, under any user."""
    store_of(tmp_path / "s.sqlite", finding(executor="native"))
    return tmp_path


def test_a_closed_store_is_one_file(folder: Path) -> None:
    with Store(folder / "s.sqlite", readonly=True) as store:
        assert os.listdir(folder) == ["s.sqlite"]
        assert len(store.findings()) == 1
    assert os.listdir(folder) == ["s.sqlite"]


def test_reading_changes_nothing(folder: Path) -> None:
    before = (folder / "s.sqlite").read_bytes()
    for call in ("status", "findings"):
        assert tenferro_ref("fuzz", call, folder / "s.sqlite").status == 0
    assert os.listdir(folder) == ["s.sqlite"]
    assert (folder / "s.sqlite").read_bytes() == before


def test_an_open_one_of_an_earlier_version_is_read_on_read_only_media(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(folder / "s.sqlite") as store:  # as a process that was killed leaves it, once its pages are written back
        store.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        image = (folder / "s.sqlite").read_bytes()
    place = folder / "media"
    place.mkdir()
    (place / "s.sqlite").write_bytes(image)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != place and access(path, mode))
    with Store(place / "s.sqlite", readonly=True) as store:
        assert len(store.findings()) == 1
        assert os.listdir(place) == ["s.sqlite"]


def test_the_last_to_close_a_store_leaves_one_file(folder: Path) -> None:
    with Store(folder / "s.sqlite") as first:
        with Store(folder / "s.sqlite"):
            pass
        assert sorted(os.listdir(folder)) == ["s.sqlite", "s.sqlite-shm", "s.sqlite-wal"]
        assert len(first.findings()) == 1
    assert os.listdir(folder) == ["s.sqlite"]
