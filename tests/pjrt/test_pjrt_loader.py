"""Finding and loading plugins: what may be wrong, one by one, and what the message says."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tenferro_ref.errors import FormatError, MissingEnv, PjrtCall, PjrtPluginNotLoaded, PluginLoad
from tenferro_ref.pjrt import Client, PluginRef, discover, load_plugin, plugin_from_env, resolve
from tenferro_ref.pjrt.discovery import ref_of_path
from tests.fake_plugin.build import build_plain_library, c_compiler, write_text_library
from tests.pjrt.conftest import MakePlugin
from tests.plugins import CPU_PLUGINS, plugin_or_skip

#: What makes a file a plugin for who does not load it.
SYMBOL = b"\0GetPjrtApi\0"


@pytest.fixture(autouse=True)
def no_plugin_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TENFERRO_PJRT_PLUGIN", "TENFERRO_PJRT_PLUGIN_DIR"):
        monkeypatch.delenv(name, raising=False)


# --- loading ---------------------------------------------------------------------------------------------------------


def test_absent_file(tmp_path: Path) -> None:
    with pytest.raises(PluginLoad, match=r"absent\.so: cannot load this PJRT plugin: No such file or directory"):
        load_plugin(tmp_path / "absent.so")


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "loop.so").symlink_to("loop.so")
    with pytest.raises(PluginLoad, match=os.strerror(errno.ELOOP)):
        load_plugin(tmp_path / "loop.so")


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(PluginLoad, match="not a regular file"):
        load_plugin(tmp_path)


def test_text_file(tmp_path: Path) -> None:
    with pytest.raises(PluginLoad, match=r"invalid ELF header.*must be a shared library.*ldd"):
        load_plugin(write_text_library(tmp_path))


@pytest.mark.parametrize("kept", [100, 5000])
def test_a_file_that_was_copied_in_part(fake_library: Path, tmp_path: Path, kept: int) -> None:
    """Loading it can end the process by SIGBUS."""
    (tmp_path / "part.so").write_bytes(fake_library.read_bytes()[:kept])
    with pytest.raises(PluginLoad, match=r"part\.so: cannot load this PJRT plugin: the file is incomplete"):
        load_plugin(tmp_path / "part.so")


def test_library_without_the_symbol(tmp_path: Path) -> None:
    if c_compiler() is None:
        pytest.skip("no C compiler to build a library with")
    with pytest.raises(PluginLoad, match="without the symbol GetPjrtApi"):
        load_plugin(build_plain_library(tmp_path))


@pytest.mark.parametrize(
    ("mode", "call", "code", "detail"),
    [
        ("null_table", "GetPjrtApi", "", "null function table"),
        ("short_table:20", "GetPjrtApi", "", "20 bytes"),
        ("major_version", "GetPjrtApi", "", r"PJRT API 1\.81, this client 0\.x from 0\.57 on"),
        ("minor_version", "GetPjrtApi", "", r"PJRT API 0\.56, this client 0\.x from 0\.57 on"),
        ("initialize_error:14", "PJRT_Plugin_Initialize", "UNAVAILABLE", "asked to fail"),
    ],
)
def test_table_that_cannot_be_used(fake_plugin: MakePlugin, mode: str, call: str, code: str, detail: str) -> None:
    with pytest.raises(PjrtCall, match=detail) as caught:
        load_plugin(fake_plugin(mode))
    assert (caught.value.call, caught.value.code) == (call, code)


def test_function_that_a_short_table_lacks(fake_plugin: MakePlugin) -> None:
    plugin = load_plugin(fake_plugin("short_table:120"))
    with pytest.raises(PjrtCall, match=r"120 bytes.*does not have") as caught:
        Client(plugin)
    assert caught.value.call == "PJRT_Client_Create"


def test_a_file_is_initialised_once(fake_plugin: MakePlugin, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_plugin()
    first = load_plugin(path)
    monkeypatch.setenv("FAKE_PJRT_MODE", "initialize_error")
    assert load_plugin(str(path)).api is first.api


def test_a_file_that_changes_after_it_was_loaded(fake_plugin: MakePlugin) -> None:
    path = fake_plugin()
    plugin = load_plugin(path)
    assert plugin.sha256() == plugin.ref.sha256()
    path.unlink()
    path.write_bytes(b"another build")
    with pytest.raises(PluginLoad, match="the file has changed since it was loaded here"):
        plugin.sha256()


@pytest.mark.parametrize("path", ["/", "."])
def test_a_path_without_a_name(path: str) -> None:
    with pytest.raises(PluginLoad, match="a folder, not the file of a plugin"):
        ref_of_path(path)


def test_what_a_plugin_says_of_itself(fake_plugin: MakePlugin) -> None:
    plugin = load_plugin(fake_plugin())
    assert plugin.api_version == (0, 81)
    assert plugin.attributes == {
        "fake_name": "fake",
        "platform": "elsewhere",
        "xla_version": -7,
        "stablehlo_current_version": (1, 2, 3),
        "fake_ratio": 0.5,
        "is_fake": True,
    }
    assert plugin.extensions == ("Example",)


def test_environment_is_set_before_loading(fake_plugin: MakePlugin, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_plugin("placeholder")
    with pytest.raises(PjrtCall, match="null function table"):
        load_plugin(PluginRef("fake", str(path), "path", environment={"FAKE_PJRT_MODE": "null_table"}))


@pytest.mark.parametrize("name", CPU_PLUGINS)
def test_real_plugins_load(name: str) -> None:
    plugin = load_plugin(plugin_or_skip(name))
    assert plugin.api_version[1] >= 81
    assert plugin.attributes["stablehlo_current_version"] >= (1, 0, 0)  # type: ignore[operator]


# --- finding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "state"), [(None, "unset"), ("", "empty")])
def test_variable_without_a_path(monkeypatch: pytest.MonkeyPatch, value: str | None, state: str) -> None:
    if value is not None:
        monkeypatch.setenv("TENFERRO_PJRT_GPU_PLUGIN", value)
    with pytest.raises(MissingEnv, match=f"TENFERRO_PJRT_GPU_PLUGIN is {state}"):
        plugin_from_env("TENFERRO_PJRT_GPU_PLUGIN")


def test_variable_with_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFERRO_PJRT_PLUGIN", "some/plugin.so")
    ref = plugin_from_env()
    assert (ref.name, ref.path, ref.source) == ("plugin", "some/plugin.so", "environment TENFERRO_PJRT_PLUGIN")
    assert ref in discover()


@pytest.mark.parametrize("name", CPU_PLUGINS)
def test_names_of_an_installed_package(name: str) -> None:
    ref = plugin_or_skip(name)
    assert ref.source.startswith(f"package {ref.package} ")
    assert resolve(ref.package) == resolve(ref.package.upper().replace("-", "_")) == ref
    assert ref in discover()
    by_path = resolve(ref.path)
    assert (by_path.name, by_path.source) == (name, "path")
    assert ref.create_options == ref.compile_options == {}  # nothing depends on a plugin's name


def test_name_that_nothing_has() -> None:
    with pytest.raises(PjrtPluginNotLoaded, match="neither a path nor the name"):
        resolve("no-such-plugin")


def test_package_that_is_not_installed() -> None:
    if any(ref.name == "rocm7" for ref in discover()):
        pytest.skip("jax-rocm7-pjrt is installed here")
    with pytest.raises(PjrtPluginNotLoaded, match="pip install jax-rocm7-pjrt"):
        resolve("rocm7")


def test_folder_of_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFERRO_PJRT_PLUGIN_DIR", str(tmp_path))
    for name in ("a.so", "b.so", "c.txt"):
        (tmp_path / name).write_bytes(SYMBOL)
    (tmp_path / "helper.so").write_text("a library, but no plugin")
    (tmp_path / "b.toml").write_text(
        'platform = "npu"\npriority = 5\n[client_options]\nn = 1\ns = "x"\nf = 0.5\nb = true\n[environment]\nV = "1"\n'
        "[compile_options]\nxla_flag = true\n"
    )
    found = [ref for ref in discover() if ref.source == "directory"]
    assert [ref.name for ref in found] == ["b", "a"]
    assert found[0] == resolve("b")
    assert found[0] == PluginRef(
        "b",
        str(tmp_path / "b.so"),
        "directory",
        platform="npu",
        priority=5,
        create_options={"n": 1, "s": "x", "f": 0.5, "b": True},
        compile_options={"xla_flag": True},
        environment={"V": "1"},
    )
    assert discover()[0].name == "b"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("platfrom = 'cpu'", "unknown field `platfrom`"),
        ("priority = 'high'", r"Expected `int`, got `str` - at `\$\.priority`"),
        ("priority = true", r"Expected `int`, got `bool` - at `\$\.priority`"),
        ("client_options = 3", r"Expected `object`, got `int` - at `\$\.client_options`"),
        ("[client_options]\nx = [1]", r"got `array` - at `\$\.client_options\[\.\.\.\]`"),
        ("[environment]\nx = 1", r"Expected `str`, got `int` - at `\$\.environment\[\.\.\.\]`"),
        (f"[client_options]\nx = {2**63}", r"- at `\$\.client_options\[\.\.\.\]`"),
        (f"[compile_options]\nx = {-(2**63) - 1}", r"- at `\$\.compile_options\[\.\.\.\]`"),
        ('[environment]\n"A=B" = "1"', r"- at `key` in `\$\.environment`"),
        ('[environment]\nA = "\\u0000"', r"- at `\$\.environment\[\.\.\.\]`"),
        ("= 3", "not a TOML file"),
    ],
)
def test_side_file_is_read_strictly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, detail: str) -> None:
    monkeypatch.setenv("TENFERRO_PJRT_PLUGIN_DIR", str(tmp_path))
    (tmp_path / "a.so").write_bytes(SYMBOL)
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(FormatError, match=detail):
        discover()


def test_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFERRO_PJRT_PLUGIN_DIR", str(tmp_path / "absent"))
    with pytest.raises(PluginLoad, match="TENFERRO_PJRT_PLUGIN_DIR does not name a folder"):
        discover()


def test_a_file_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.so").write_bytes(SYMBOL)
    monkeypatch.setenv("TENFERRO_PJRT_PLUGIN_DIR", str(tmp_path))
    monkeypatch.setenv("TENFERRO_PJRT_PLUGIN", str(tmp_path / "." / "a.so"))
    assert [ref.source for ref in discover() if ref.name == "a"] == ["directory"]


def test_a_file_means_the_same_however_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The `NAME.toml` beside a file holds for a path and a variable too; the GPU's variable names the executor `pjrt:gpu`."""
    (tmp_path / "a.so").write_bytes(SYMBOL)
    (tmp_path / "a.toml").write_text('platform = "npu"\n[client_options]\nn = 1\n')
    by_path = resolve(str(tmp_path / "a.so"))
    assert (by_path.name, by_path.platform, by_path.create_options) == ("a", "npu", {"n": 1})
    monkeypatch.setenv("TENFERRO_PJRT_GPU_PLUGIN", by_path.path)
    gpu = replace(by_path, name="gpu", source="environment TENFERRO_PJRT_GPU_PLUGIN")
    assert resolve("gpu") == gpu
    assert gpu in discover()


def test_the_file_beside_a_library_of_a_known_package_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "jax_cuda13_pjrt-0.11.2.dist-info"
    folder = tmp_path / "jax_plugins" / "xla_cuda13"
    for made in (info, folder):
        made.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jax-cuda13-pjrt\nVersion: 0.11.2\n")
    (folder / "xla_cuda_plugin.so").touch()
    (folder / "xla_cuda_plugin.toml").write_text("[client_options]\npreallocate = false\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = resolve("cuda13")
    assert (found.source, found.platform) == ("package jax-cuda13-pjrt 0.11.2", "cuda")
    assert found.create_options == {"preallocate": False}


def test_the_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENFERRO_PJRT_PLUGIN_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "tenferro" / "pjrt_plugins"
    folder.mkdir(parents=True)
    (folder / "mine.so").write_bytes(SYMBOL)
    assert resolve("mine").path == str(folder / "mine.so")


def test_what_jax_would_find(tmp_path: Path, fake_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages of the namespace `jax_plugins`, and distributions with an entry point of that name; none is imported."""
    spaced = tmp_path / "jax_plugins" / "my_npu"
    declared = tmp_path / "vendor" / "lib"
    for folder in (spaced, declared):
        folder.mkdir(parents=True)
        shutil.copy(fake_library, folder / "pjrt.so")
        (folder / "helper.so").write_text("a library, but no plugin")
        (folder / "__init__.py").write_text("raise AssertionError('imported')")
    info = tmp_path / "Vendor_Pjrt-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Vendor_Pjrt\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text("[jax_plugins]\nvendor = vendor.lib\n")
    (info / "RECORD").write_text("vendor/lib/pjrt.so,,\nvendor/lib/helper.so,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {ref.name: ref.source for ref in discover() if ref.path.startswith(str(tmp_path))}
    assert found == {"my_npu": "jax_plugins", "lib": "package vendor-pjrt 1.5"}


def test_hash_follows_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(b"one")
    ref = resolve(path)
    assert ref.sha256() == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"two!")
    os.utime(path, ns=(1, 1))
    assert ref.sha256() == hashlib.sha256(b"two!").hexdigest()
    path.unlink()
    with pytest.raises(PluginLoad):
        ref.sha256()
