"""Fixtures of the PJRT tests: the fake plugin in a chosen mode, clients of the real ones."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenferro_ref.pjrt import Client, load_plugin

MakePlugin = Callable[..., Path]
MakeClient = Callable[..., Client]


@pytest.fixture
def fake_plugin(fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePlugin:
    """`fake_plugin(mode)`: path of a fresh copy of the fake plugin, with the mode set in this process."""
    numbers = itertools.count()

    def make(mode: str = "") -> Path:
        monkeypatch.setenv("FAKE_PJRT_MODE", mode)
        return Path(shutil.copy(fake_library, tmp_path / f"fake{next(numbers)}.so"))

    return make


@pytest.fixture
def fake_client(fake_plugin: MakePlugin) -> Iterator[MakeClient]:
    """`fake_client(mode)`: an open client of the fake plugin; closed after the test."""
    made: list[Client] = []

    def make(mode: str = "", **options: str | int | bool | float) -> Client:
        made.append(Client(load_plugin(fake_plugin(mode)), options))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(scope="session")
def client(xla_client: Client) -> Client:
    """A client of each installed CPU plugin."""
    return xla_client
