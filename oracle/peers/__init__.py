"""Executors: the ways of running a program whose answers are compared."""

from oracle.peers.base import Execution, Executor, attempt, attempt_source
from oracle.peers.derivative import DerivativeExecutor
from oracle.peers.external import ExternalExecutor, ForeignRefusal, with_whole_paths
from oracle.peers.jax import JaxExecutor
from oracle.peers.lanes import DEFAULT_LANE, LANES, lane_options
from oracle.peers.modules import ModuleExecutor
from oracle.peers.native import DrawnExecutor, NativeExecutor, configured, native_variants
from oracle.peers.peer import OTHERS, Peer
from oracle.peers.pjrt import PjrtExecutor
from oracle.peers.portable import InterpreterExecutor, IreeExecutor
from oracle.peers.registry import ANY, DERIVATIVES, Pool, Selection

__all__ = [
    "ANY",
    "DEFAULT_LANE",
    "DERIVATIVES",
    "LANES",
    "OTHERS",
    "DerivativeExecutor",
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
    "Peer",
    "PjrtExecutor",
    "Pool",
    "Selection",
    "attempt",
    "attempt_source",
    "configured",
    "lane_options",
    "native_variants",
    "with_whole_paths",
]
