"""Loading a PJRT plugin: from a file to an initialised function table.

Lives here: the loader contract (what may be wrong with a file, and the error for each) and what a plugin says of itself.
Does not live here: finding plugins (`discovery`), and using one (`client`).
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import struct
from functools import cached_property
from threading import Lock

from tenferro_ref.errors import PjrtCall, PluginLoad
from tenferro_ref.pjrt import abi, native
from tenferro_ref.pjrt.discovery import PluginRef, ref_of_path
from tenferro_ref.pjrt.native import Api, Attribute


class Plugin:
    """A plugin that is loaded and initialised; it stays so until the process ends (unloading one is never safe).

    Attributes
    ----------
    ref
        Where it came from, and the options and environment that go with it.
    api
        Its function table.
    """

    def __init__(self, ref: PluginRef, api: Api, identity: tuple[int, ...]) -> None:
        self.ref = ref
        self.api = api
        self._identity = identity

    def sha256(self) -> str:
        """SHA-256 of the file that is loaded, in hexadecimal.

        Raises
        ------
        PluginLoad
            The file was replaced or changed since.
        """
        if _identity(self.ref.path) != self._identity:
            raise PluginLoad(
                self.ref.path, "the file has changed since it was loaded here: begin again in a new process"
            )
        return self.ref.sha256()

    @property
    def api_version(self) -> tuple[int, int]:
        """Major and minor version of the PJRT API that the plugin was built for."""
        return self.api.version

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        """What the plugin says of itself: `xla_version`, `stablehlo_current_version`, ...; lists are tuples."""
        if not self.api.has("Plugin_Attributes"):
            return {}
        args = self.api.call("Plugin_Attributes")
        return native.attributes(args.attributes, args.num_attributes)

    @cached_property
    def _chain(self) -> tuple[tuple[str, int], ...]:
        """Name and address of each link of the chain of extensions."""
        links: list[tuple[str, int]] = []
        link = abi.Sized.from_address(self.api.address).extension_start
        # a chain that never ends would hang us; no plugin has a tenth of this
        while link and len(links) < 256:
            base = abi.ExtensionBase.from_address(link)
            known = 0 <= base.type < len(abi.EXTENSION_TYPES)
            links.append((abi.EXTENSION_TYPES[base.type] if known else f"type {base.type}", link))
            link = base.next
        return tuple(links)

    @property
    def extensions(self) -> tuple[str, ...]:
        """Names of the API extensions in the plugin's chain (`type N` for those newer than our header)."""
        return tuple(name for name, _ in self._chain)

    def extension(self, name: str) -> int | None:
        """Where the extension of that name is, None if the plugin has none."""
        return dict(self._chain).get(name)

    def __repr__(self) -> str:
        return f"Plugin({self.ref.name!r}, API {self.api_version[0]}.{self.api_version[1]})"


#: Type, offset and length in the file, of an entry of a 64-bit ELF file's table of segments.
_SEGMENT = struct.Struct("<I4xQ16xQ16x")
_TO_LOAD = 1

# PJRT_Plugin_Initialize is a one-time setup, so a file is loaded once; keyed by its real path
_LOADED: dict[str, tuple[Api, tuple[int, ...]]] = {}
_LOADING = Lock()


def load_plugin(plugin: PluginRef | str | os.PathLike[str]) -> Plugin:
    """Load a plugin and initialise it, or give the one that is loaded already from the same file.

    Parameters
    ----------
    plugin
        A path, or what `resolve` and `discover` give. The environment of a `PluginRef` is set in this process before
        the file is opened, and stays set.

    Raises
    ------
    PluginLoad
        If the file is absent, cannot be loaded, or has no `GetPjrtApi`.
    PjrtCall
        If `GetPjrtApi` gives null or a table of another major version, or the plugin's initialisation fails.
    """
    ref = plugin if isinstance(plugin, PluginRef) else ref_of_path(plugin)
    key = os.path.realpath(ref.path)
    with _LOADING:
        if key not in _LOADED:
            os.environ.update(ref.environment)
            identity = _identity(ref.path)
            api = Api(_table(ref.path))
            if api.has("Plugin_Initialize"):
                api.call("Plugin_Initialize")
            _LOADED[key] = api, identity
    return Plugin(ref, *_LOADED[key])


def _identity(path: str) -> tuple[int, ...]:
    """What changes with a file; nothing where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def require_file(path: str) -> None:
    """Look whether a plugin may be there.

    Raises
    ------
    PluginLoad
        There is no regular file, with the system's reason.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise PluginLoad(path, error.strerror or str(error)) from None
    except ValueError as error:  # a NUL in the path
        raise PluginLoad(path, str(error)) from None
    if not stat.S_ISREG(mode):
        raise PluginLoad(path, "not a regular file")


def _is_cut_short(path: str) -> bool:
    """Whether a 64-bit ELF file ends before what it says is to be loaded of it: the system ends a process that touches the rest."""
    try:
        with open(path, "rb") as file:
            header, size = file.read(64), os.fstat(file.fileno()).st_size
            if len(header) < 64 or not header.startswith(b"\x7fELF\x02\x01"):  # the loader says what it is
                return False
            (begin,), (count,) = struct.unpack_from("<Q", header, 32), struct.unpack_from("<H", header, 56)
            if begin + count * _SEGMENT.size > size:
                return True
            file.seek(begin)
            segments = _SEGMENT.iter_unpack(file.read(count * _SEGMENT.size))
            return any(kind == _TO_LOAD and offset + length > size for kind, offset, length in segments)
    except OSError:  # unreadable; the loader says so, too
        return False


def _table(path: str) -> int:
    require_file(path)
    if _is_cut_short(path):
        raise PluginLoad(
            path, "the file is incomplete: it ends before what it says is in it (copied or downloaded in part?)"
        )
    try:
        # an absolute path: a bare file name would be searched for in the library path
        library = ctypes.CDLL(os.path.abspath(path))
    except OSError as error:
        raise PluginLoad(
            path,
            f"{error}; it must be a shared library for {platform.machine()} {platform.system()}, and the libraries "
            f"that it needs must be found (`ldd {path}` lists them)",
        ) from None
    try:
        get_api = library.GetPjrtApi
    except AttributeError:
        raise PluginLoad(
            path, "it is a shared library without the symbol GetPjrtApi: not a PJRT plugin, or one with hidden symbols"
        ) from None
    get_api.argtypes, get_api.restype = [], ctypes.c_void_p
    table = get_api()
    if not table:
        raise PjrtCall("GetPjrtApi", "", f"{path} returned a null function table")
    return int(table)
