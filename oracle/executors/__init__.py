"""Executors: the ways of running a program whose answers are compared."""

from oracle.executors.base import DEFECTS, Execution, Executor, attempt
from oracle.executors.external import ExternalExecutor
from oracle.executors.jax import JaxExecutor
from oracle.executors.lanes import DEFAULT_LANE, LANES, lane_options
from oracle.executors.modules import ModuleExecutor
from oracle.executors.native import DrawnExecutor, NativeExecutor, configured, native_variants, settled
from oracle.executors.pjrt import PjrtExecutor
from oracle.executors.portable import InterpreterExecutor, IreeExecutor
from oracle.executors.registry import OTHERS, Pool, Selection

__all__ = [
    "DEFAULT_LANE",
    "DEFECTS",
    "LANES",
    "OTHERS",
    "DrawnExecutor",
    "Execution",
    "Executor",
    "ExternalExecutor",
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
    "lane_options",
    "native_variants",
    "settled",
]
