"""Executors: the ways of running a program whose answers are compared."""

from oracle.peers.base import Execution, Executor, attempt, defects_in
from oracle.peers.external import ExternalExecutor, ForeignRefusal
from oracle.peers.jax import JaxExecutor
from oracle.peers.lanes import DEFAULT_LANE, LANES, lane_options
from oracle.peers.modules import ModuleExecutor
from oracle.peers.native import DrawnExecutor, NativeExecutor, configured, native_variants, settled
from oracle.peers.pjrt import PjrtExecutor
from oracle.peers.portable import InterpreterExecutor, IreeExecutor
from oracle.peers.registry import ANY, OTHERS, Pool, Selection, names_code

__all__ = [
    "ANY",
    "DEFAULT_LANE",
    "LANES",
    "OTHERS",
    "DrawnExecutor",
    "Execution",
    "Executor",
    "ExternalExecutor",
    "ForeignRefusal",
    "InterpreterExecutor",
    "IreeExecutor",
    "JaxExecutor",
    "ModuleExecutor",
    "NativeExecutor",
    "PjrtExecutor",
    "Pool",
    "Selection",
    "attempt",
    "configured",
    "defects_in",
    "lane_options",
    "names_code",
    "native_variants",
    "settled",
]
