"""A PJRT client in ctypes: find a plugin, load it, compile StableHLO with it, run it on NumPy arrays.

Lives here: the public names. Usage::

    with Client(load_plugin(resolve("xla081"))) as client:
        with client.compile(text, parameters=[(DType.F64, (2, 3))]) as executable:
            (y,) = executable.run([x])

Everything is in process, see `client`. All errors are those of `tenferro_ref.errors`.
"""

from tenferro_ref.pjrt.buffer import Buffer, Event
from tenferro_ref.pjrt.cache import CacheKey, ExecutableCache
from tenferro_ref.pjrt.client import Client, Device
from tenferro_ref.pjrt.discovery import PluginRef, discover, is_path, known_packages, missing, plugin_from_env, resolve
from tenferro_ref.pjrt.disk import DiskCache
from tenferro_ref.pjrt.executable import Executable
from tenferro_ref.pjrt.hlo import HloInstruction
from tenferro_ref.pjrt.hlo import instructions as hlo_instructions
from tenferro_ref.pjrt.native import HandleState
from tenferro_ref.pjrt.options import encode_compile_options
from tenferro_ref.pjrt.plugin import Plugin, load_plugin, require_file
from tenferro_ref.pjrt.serialized import header_of
from tenferro_ref.pjrt.transfer import TensorSpec

__all__ = [
    "Buffer",
    "CacheKey",
    "Client",
    "Device",
    "DiskCache",
    "Event",
    "Executable",
    "ExecutableCache",
    "HandleState",
    "HloInstruction",
    "Plugin",
    "PluginRef",
    "TensorSpec",
    "discover",
    "encode_compile_options",
    "header_of",
    "hlo_instructions",
    "is_path",
    "known_packages",
    "load_plugin",
    "missing",
    "plugin_from_env",
    "require_file",
    "resolve",
]
