"""Kept executables: every part of the key misses alone, what is damaged is compiled again, processes share a folder, bounds hold."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.errors import OutputError, UsageError
from tenferro_ref.pjrt import CacheKey, Client, DiskCache, ExecutableCache, HandleState, disk, load_plugin
from tests.pjrt.conftest import MakeClient, MakePlugin
from tests.pjrt.test_pjrt_contract import COPY, SPEC, X, Y


def wanted(cache: ExecutableCache, code: str = COPY, **options: Any) -> str:
    """How a cache came by an executable: "kept", "loaded", "compiled"."""
    before = cache.statistics.copy()
    executable = cache.compile(code, options, parameters=[SPEC, SPEC], results=[SPEC, SPEC])
    np.testing.assert_array_equal(executable.run([X, Y])[0], X)
    (how,) = (cache.statistics - before).keys() & {"kept", "loaded", "compiled"}
    return how


@pytest.fixture
def store(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


# --- the key ----------------------------------------------------------------------------------------------------------

KEY = CacheKey("module", "plugin", "platform", "options", "layout", "types")


@pytest.mark.parametrize("part", CacheKey.__dataclass_fields__)
def test_each_part_of_a_key_misses_alone(part: str) -> None:
    other = replace(KEY, **{part: "another"})
    assert other != KEY
    assert other.digest() != KEY.digest()
    assert KEY.digest() == replace(KEY).digest()
    assert len(bytes.fromhex(KEY.digest())) == 32


def test_another_processor_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = KEY.digest()
    monkeypatch.setattr("tenferro_ref.pjrt.cache.processor", lambda: "0" * 64)
    assert KEY.digest() != digest
    assert len(bytes.fromhex(disk.processor())) == 32


def test_another_processor_makes_an_executable_that_is_not_loaded(
    fake_client: MakeClient, store: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = fake_client()
    with ExecutableCache(client, disk=store) as cache:
        wanted(cache)
    # as if two processors had the same digest: the file says what it is for
    monkeypatch.setattr("tenferro_ref.pjrt.serialized.processor", lambda: "0" * 64)
    with ExecutableCache(client, disk=store) as cache:
        assert (wanted(cache), cache.statistics["healed"]) == ("compiled", 1)


def another_plugin(make: MakePlugin) -> Client:
    path = make()
    with path.open("ab") as file:
        file.write(b"another build")
    return Client(load_plugin(path), {})


def test_what_each_part_is_taken_from(
    fake_client: MakeClient, fake_plugin: MakePlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fake_client()

    def known(
        client: Client = first, code: str = COPY, options: bytes = b"o", parameters: Any = (SPEC,), results: Any = None
    ) -> CacheKey:
        return ExecutableCache(client).key(code, options, parameters, results)

    with another_plugin(fake_plugin) as other:
        different = {
            "module": known(code=COPY + "//"),
            "options": known(options=b"p"),
            "types": known(parameters=[(DType.F32, (3, 2))]),
            "platform": known(fake_client("", count=2)),
            "plugin": known(other),
        }
    for part, key in different.items():
        changed = {name for name in CacheKey.__dataclass_fields__ if getattr(key, name) != getattr(known(), name)}
        assert changed == {part}
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=algsimp")
    flagged = known()
    monkeypatch.delenv("XLA_FLAGS")
    with Client(load_plugin(replace(first.plugin.ref, environment={"TENFERRO_OF_THIS_TEST": "1"}))) as told:
        assert len({key.platform for key in (known(), flagged, known(told))}) == 3
    assert known(fake_client()) == known()  # another client, another copy of the same file
    assert known(results=[SPEC]).types != known(results=[]).types != known().types


# --- in memory and on the disk ----------------------------------------------------------------------------------------


def test_executables_are_loaded_where_an_earlier_cache_compiled_them(fake_client: MakeClient, store: DiskCache) -> None:
    client = fake_client()
    with ExecutableCache(client, disk=store) as cache:
        assert [wanted(cache), wanted(cache), wanted(cache, level=1)] == ["compiled", "kept", "compiled"]
        assert cache.statistics["written"] == 2
    with ExecutableCache(fake_client(), disk=store) as cache:
        assert [wanted(cache), wanted(cache), wanted(cache, level=2)] == ["loaded", "kept", "compiled"]
    with ExecutableCache(client) as cache:
        assert wanted(cache) == "compiled"
    assert store.usage()[0] == 3


def flip(data: bytes) -> bytes:
    return data[:-40] + bytes([data[-40] ^ 1]) + data[-39:]


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-1], lambda data: b"\0" * len(data), flip], ids=["empty", "cut", "zeros", "bit"]
)  # fmt: skip
def test_damage_is_detected_and_healed(
    fake_client: MakeClient, store: DiskCache, damage: Callable[[bytes], bytes]
) -> None:
    client = fake_client()
    with ExecutableCache(client, disk=store) as cache:
        wanted(cache)
    (path,) = store.folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    with ExecutableCache(client, disk=store) as cache:
        assert wanted(cache) == "compiled"
        assert (cache.statistics["healed"], cache.statistics["written"]) == (1, 1)
    with ExecutableCache(client, disk=store) as cache:
        assert wanted(cache) == "loaded"


def test_what_the_plugin_does_not_take_back_is_compiled(
    fake_client: MakeClient, store: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = fake_client()
    with ExecutableCache(client, disk=store) as cache:
        wanted(cache)
        monkeypatch.setenv("FAKE_PJRT_MODE", "load_error:13")
        cache.close()
        assert (wanted(cache), cache.statistics["healed"]) == ("compiled", 1)


def test_the_least_recently_used_go_beyond_the_limit(fake_client: MakeClient, tmp_path: Path) -> None:
    client = fake_client()
    with ExecutableCache(client, disk=DiskCache(tmp_path / "one")) as cache:
        wanted(cache)
    (_, size) = DiskCache(tmp_path / "one").usage()
    store = DiskCache(tmp_path / "few", limit=int(2.5 * size))
    times = iter(range(1, 100))

    def use(level: int) -> str:
        with ExecutableCache(client, disk=store) as cache:
            how = wanted(cache, level=level)
            for path in {*store.folder.iterdir()}:
                if path.stat().st_mtime > 1e6:  # used just now
                    os.utime(path, (at := next(times), at))
            return how

    assert [use(0), use(1), use(0), use(2)] == ["compiled", "compiled", "loaded", "compiled"]
    assert store.usage() == (2, 2 * size)
    assert [use(0), use(1)] == ["loaded", "compiled"]
    tight = DiskCache(tmp_path / "none", limit=size - 1)
    with ExecutableCache(client, disk=tight) as cache:
        assert (wanted(cache), cache.statistics["written"], tight.usage()) == ("compiled", 0, (0, 0))


def test_a_folder_that_cannot_be_written_ends_nothing(fake_client: MakeClient, store: DiskCache) -> None:
    shutil.rmtree(store.folder)
    store.folder.touch()
    with ExecutableCache(fake_client(), disk=store) as cache:
        assert (wanted(cache), cache.statistics["written"]) == ("compiled", 0)


def test_folders_that_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(UsageError, match="others may write into it"):
        DiskCache(shared)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="not a folder"):
        DiskCache(file)
    with pytest.raises(OutputError, match="cannot be made"):
        DiskCache(file / "below")
    with pytest.raises(UsageError, match="no number of bytes"):
        DiskCache.from_environment({"TENFERRO_PJRT_CACHE": str(tmp_path), "TENFERRO_PJRT_CACHE_BYTES": "much"})
    assert DiskCache.from_environment({"TENFERRO_PJRT_CACHE": ""}) is None
    own = tmp_path / "own"
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(UsageError, match="others may write"):
        DiskCache(own)


SCRIPT = """
import sys
from pathlib import Path
from tenferro_ref.pjrt import Client, DiskCache, ExecutableCache, load_plugin
from tests.pjrt.test_pjrt_cache import wanted
client = Client(load_plugin(sys.argv[1]), {})
for turn in range(60):
    with ExecutableCache(client, disk=DiskCache(Path(sys.argv[2]), limit=3000)) as cache:
        wanted(cache, level=turn * 7 % 5)
        assert not cache.statistics["healed"]
"""


def test_processes_share_a_folder(fake_plugin: MakePlugin, store: DiskCache) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, fake_plugin(), store.folder],
            cwd=Path(__file__).parents[2], env=dict(os.environ, PYTHONPATH="."), stderr=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert store.usage()[1] <= 3000
    assert all(path.suffix == ".pjrt" for path in store.folder.iterdir())


@pytest.mark.once
def test_a_real_plugin_loads_what_another_client_of_it_compiled(client: Client, store: DiskCache) -> None:
    code = "func.func public @main(%a: tensor<5xf32>) -> tensor<5xf32> {%0 = stablehlo.sine %a : tensor<5xf32>\n return %0 : tensor<5xf32>}"
    x = np.linspace(-3, 3, 5, dtype=np.float32)
    results = []
    for how in ("compiled", "loaded"):
        with Client(client.plugin) as one, ExecutableCache(one, disk=store) as cache:
            executable = cache.compile(code, parameters=[(DType.F32, (5,))])
            assert cache.statistics[how] == 1
            assert executable.state is HandleState.LIVE
            results.append(executable.run([x])[0])
    np.testing.assert_array_equal(*results)
