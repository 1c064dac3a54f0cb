"""Executors: the ways of running a program whose answers are compared."""

from oracle.executors.base import Execution, Executor, attempt, defects_in
from oracle.executors.external import ExternalExecutor, ForeignRefusal
from oracle.executors.jax import JaxExecutor
from oracle.executors.lanes import DEFAULT_LANE, LANES, lane_options
from oracle.executors.modules import ModuleExecutor
from oracle.executors.native import DrawnExecutor, NativeExecutor, configured, native_variants, settled
from oracle.executors.pjrt import PjrtExecutor
from oracle.executors.portable import InterpreterExecutor, IreeExecutor
from oracle.executors.registry import ANY, OTHERS, Pool, Selection, names_code

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
