"""Executors: the ways of running a program whose answers are compared."""

from oracle.executors.base import Execution, Executor, attempt
from oracle.executors.lanes import DEFAULT_LANE, LANES, lane_options
from oracle.executors.native import NativeExecutor, native_variants
from oracle.executors.pjrt import PjrtExecutor
from oracle.executors.registry import Pool, Selection

__all__ = [
    "DEFAULT_LANE",
    "LANES",
    "Execution",
    "Executor",
    "NativeExecutor",
    "PjrtExecutor",
    "Pool",
    "Selection",
    "attempt",
    "lane_options",
    "native_variants",
]
