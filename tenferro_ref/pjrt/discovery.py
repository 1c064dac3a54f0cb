"""Finding PJRT plugins: installed packages, a folder, environment variables, a path.

Lives here: where plugin files are and what settings go with each. Does not live here: opening one (`plugin`); nothing
here loads a library or imports a package.

Beside any plugin file `NAME.so` there may be a `NAME.toml`, which holds however the plugin is found::

    platform = "cpu"             # what it is for; free text
    priority = 10                # higher is listed first; default 0
    [client_options]             # passed to PJRT_Client_Create: strings, integers, booleans, floats
    cpu_device_count = 1
    [compile_options]            # XLA flags for every executable, unless the caller sets them
    xla_cpu_enable_fast_min_max = false
    [environment]                # set before the plugin is loaded
    SOME_VARIABLE = "1"
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec

from tenferro_ref.errors import FormatError, MissingEnv, PjrtPluginNotLoaded, PluginLoad, UsageError
from tenferro_ref.files import read_toml

PLUGIN_VARIABLE = "TENFERRO_PJRT_PLUGIN"
GPU_VARIABLE = "TENFERRO_PJRT_GPU_PLUGIN"
DIRECTORY_VARIABLE = "TENFERRO_PJRT_PLUGIN_DIR"
#: The plugin that GPU_VARIABLE names, whatever its file is called: the executor `pjrt:gpu`.
GPU = "gpu"
#: Where JAX looks for plugins: the name of a namespace package, and of a group of entry points.
JAX_PLUGINS = "jax_plugins"

Option = str | int | bool | float


@dataclass(frozen=True)
class PluginRef:
    """A plugin file and how it wants to be used.

    Parameters
    ----------
    name
        Short name: `xla081`, or the file's name without its ending.
    path
        The file; it need not exist (loading says so).
    source
        Where it was found: "package xla-cpu-pjrt 0.0.1", "jax_plugins", "directory", "environment TENFERRO_PJRT_PLUGIN",
        "path".
    package
        Name of the PyPI package, or "".
    platform
        What it runs on ("cpu", "cuda", ...), "" if unknown; the client knows better (`Client.platform_name`).
    create_options
        Options for PJRT_Client_Create.
    compile_options
        XLA flags for every executable, unless the caller sets them.
    environment
        Environment variables that it needs before it is loaded.
    priority
        Higher is listed first by `discover`.
    """

    name: str
    path: str
    source: str
    package: str = ""
    platform: str = ""
    create_options: Mapping[str, Option] = field(default_factory=dict, hash=False)
    compile_options: Mapping[str, Option] = field(default_factory=dict, hash=False)
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    priority: int = 0

    @property
    def requirement(self) -> str:
        """What pip installs it from, with the version if it was found as an installed package; "" if it is of no package."""
        word, _, version = self.source.rpartition(" ")
        return f"{self.package}=={version}" if word == f"package {self.package}" else self.package

    def sha256(self) -> str:
        """SHA-256 of the file, in hexadecimal; computed again only when the file's time or size changes."""
        try:
            stat = os.stat(self.path)
            return _sha256(self.path, stat.st_mtime_ns, stat.st_size)
        except OSError as error:
            raise PluginLoad(self.path, error.strerror or str(error)) from None


@lru_cache(maxsize=64)
def _sha256(path: str, mtime_ns: int, size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


#: Packages that have a short name, and that bundles may install: nothing but names, files and what they need to
#: be loaded. How a plugin behaves is asked of it.
_KNOWN = tuple(
    PluginRef(name, path, "package", package, platform, environment=environment)
    for name, package, path, platform, environment in (
        ("xla081", "xla-cpu-pjrt", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so", "cpu", {}),
        ("fas106", "fastatomstruct-xla-cpu", "fastatomstruct_xla_cpu/libpjrt_cpu.so", "cpu", {}),
        ("lam115", "lammps-jax-pjrt-cpu", "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so", "cpu", {}),
        ("cuda12", "jax-cuda12-pjrt", "jax_plugins/xla_cuda12/xla_cuda_plugin.so", "cuda", {}),
        ("cuda13", "jax-cuda13-pjrt", "jax_plugins/xla_cuda13/xla_cuda_plugin.so", "cuda", {}),
        ("rocm7", "jax-rocm7-pjrt", "jax_plugins/xla_rocm7/xla_rocm_plugin.so", "rocm", {}),
        # without the variable its initialisation asks a cloud metadata server for minutes
        ("tpu", "libtpu", "libtpu/libtpu.so", "tpu", {"TPU_SKIP_MDS_QUERY": "1"}),
    )
)


def ref_of_path(path: str | os.PathLike[str], source: str = "path") -> PluginRef:
    """The plugin at `path`, as the `NAME.toml` beside it describes it.

    A file that lies where a known package puts it gets that package's name.

    Raises
    ------
    FormatError
        If the `NAME.toml` is not what this module's description says.
    PluginLoad
        If the path has no last part: `/`, `.`.
    """
    where = os.fspath(path)
    if not Path(where).name:
        raise PluginLoad(where, "a folder, not the file of a plugin")
    ref = PluginRef(Path(where).stem, where, source)
    for known in _KNOWN:
        if Path(where).as_posix().endswith("/" + known.path):
            ref = replace(known, path=where, source=source)
    return _as_described(ref)


def plugin_from_env(var: str = PLUGIN_VARIABLE) -> PluginRef:
    """The plugin whose path is in the environment variable `var`.

    Raises
    ------
    MissingEnv
        If the variable is unset, or empty.
    FormatError
        As `ref_of_path`.
    """
    value = os.environ.get(var)
    if not value:
        raise MissingEnv(var, "unset" if value is None else "empty")
    ref = ref_of_path(value, f"environment {var}")
    return replace(ref, name=GPU) if var == GPU_VARIABLE else ref


def default_directory() -> Path:
    """The folder of plugins where TENFERRO_PJRT_PLUGIN_DIR names none: `tenferro/pjrt_plugins` of the user's data."""
    data = os.environ.get("XDG_DATA_HOME")
    # not Path.home(), which fails for a user without a home
    return (Path(data) if data else Path(os.path.expanduser("~/.local/share"))) / "tenferro" / "pjrt_plugins"


def discover() -> list[PluginRef]:
    """The plugins on this machine, higher priority first.

    Those of installed packages (of a known name, or that JAX would find), then those in the folder that
    TENFERRO_PJRT_PLUGIN_DIR names (else `default_directory`), then those that TENFERRO_PJRT_PLUGIN and
    TENFERRO_PJRT_GPU_PLUGIN name; a file is listed once.

    Raises
    ------
    FormatError
        If a `NAME.toml` is not what this module's description says.
    PluginLoad
        If TENFERRO_PJRT_PLUGIN_DIR names something that is not a folder.
    """
    refs: dict[str, PluginRef] = {}
    for ref in (*_packages(), *_jax_plugins(), *_directory(), *_environment()):
        refs.setdefault(os.path.realpath(ref.path), ref)
    return sorted(refs.values(), key=lambda ref: -ref.priority)


def missing(platform: str) -> list[PluginRef]:
    """The builds for `platform` that are on PyPI and not on this machine; `package` is what to install."""
    here = {ref.name for ref in discover()}
    return [known for known in _KNOWN if known.platform == platform and known.name not in here]


def resolve(name_or_path: str | os.PathLike[str]) -> PluginRef:
    """The plugin of that short name, package name, or path.

    Raises
    ------
    UsageError
        If it is empty.
    PjrtPluginNotLoaded
        If it is not a path and no plugin has the name; says what is here and what could be installed.
    MissingEnv
        If it is `gpu`, and TENFERRO_PJRT_GPU_PLUGIN is unset or empty.
    FormatError
        As `ref_of_path`.
    """
    given = os.fspath(name_or_path)
    if not given:
        raise UsageError(detail="the name of a plugin is empty: give a path, a package or a name that `plugins` lists")
    if is_path(given) or not isinstance(name_or_path, str):
        return ref_of_path(given)
    if given == GPU:
        return plugin_from_env(GPU_VARIABLE)
    here = discover()
    for ref in here:
        if given == ref.name or (ref.package and _normal(given) == ref.package):
            return ref
    for known in _KNOWN:
        if given == known.name or _normal(given) == known.package:
            raise PjrtPluginNotLoaded(given, f"package {known.package} is not installed: pip install {known.package}")
    names = ", ".join(ref.name for ref in here) or "none"
    hint = "give the name without `pjrt:`" if given.startswith("pjrt:") else "a path has a / in it, or ends with .so"
    raise PjrtPluginNotLoaded(given, f"it is neither a path nor the name of a plugin found here ({names}); {hint}")


def is_path(given: str) -> bool:
    """Whether `resolve` takes it for the path of a file, rather than for a name."""
    return os.sep in given or given.endswith((".so", ".dylib", ".dll"))


def known_packages() -> frozenset[str]:
    """The packages that `discover` looks into, installed or not."""
    return frozenset(known.package for known in _KNOWN)


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _packages() -> Iterator[PluginRef]:
    for known in _KNOWN:
        try:
            installed = metadata.distribution(known.package)
        except metadata.PackageNotFoundError:
            continue
        path = Path(str(installed.locate_file(known.path)))
        if path.exists():
            yield _as_described(replace(known, path=str(path), source=f"package {known.package} {installed.version}"))


def _jax_plugins() -> Iterator[PluginRef]:
    """What JAX would find, without running it: libraries with `GetPjrtApi` in its namespace and of its entry points."""
    for path, source in _jax_files():
        if _is_plugin(path):
            yield replace(ref_of_path(path), name=path.parent.name, source=source)


def _jax_files() -> Iterator[tuple[Path, str]]:
    """Shared libraries of the packages that JAX asks for plugins."""
    spec = find_spec(JAX_PLUGINS)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield from ((path, JAX_PLUGINS) for path in sorted(Path(folder).rglob("*.so")))
    for entry in metadata.entry_points(group=JAX_PLUGINS):
        distribution = entry.dist
        for file in (distribution.files or ()) if distribution else ():
            if distribution and file.suffix == ".so":
                source = f"package {_normal(distribution.name)} {distribution.version}"
                yield Path(str(distribution.locate_file(file))), source


def _is_plugin(path: Path) -> bool:
    """Whether a file has the name of the one symbol that every plugin exports."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(b"\0GetPjrtApi\0") >= 0
    except (OSError, ValueError):  # unreadable, or empty
        return False


def _directory() -> Iterable[PluginRef]:
    named = os.environ.get(DIRECTORY_VARIABLE)
    folder = Path(named) if named else default_directory()
    if named and not folder.is_dir():
        raise PluginLoad(named, f"{DIRECTORY_VARIABLE} does not name a folder")
    return [ref_of_path(path, "directory") for path in sorted(folder.glob("*.so")) if _is_plugin(path)]


def _environment() -> Iterator[PluginRef]:
    for variable in (PLUGIN_VARIABLE, GPU_VARIABLE):
        if os.environ.get(variable):
            yield plugin_from_env(variable)


#: As `Option`, with integers that the C API can hold.
_Option = str | Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | bool | float
#: What the environment of a process can hold.
_Variable = Annotated[str, msgspec.Meta(pattern=r"\A[^=\0]+\Z")]
_Words = Annotated[str, msgspec.Meta(pattern=r"\A[^\0]*\Z")]


class _SideFile(msgspec.Struct, forbid_unknown_fields=True):
    """What may stand in the TOML file beside a plugin."""

    platform: str = ""
    priority: int = 0
    client_options: dict[str, _Option] = {}
    compile_options: dict[str, _Option] = {}
    environment: dict[_Variable, _Words] = {}


def _as_described(ref: PluginRef) -> PluginRef:
    """The plugin as the `NAME.toml` beside it describes it, if there is one; what that does not mention stays."""
    path = Path(ref.path).with_suffix(".toml")
    if not path.is_file():
        return ref
    try:
        content = read_toml(path)
        side = msgspec.convert(content, _SideFile)
    except msgspec.ValidationError as error:
        raise FormatError(str(path), str(error)) from None
    members = {name: getattr(side, name) for name in content}
    if "client_options" in members:
        members["create_options"] = members.pop("client_options")
    return replace(ref, **members)
