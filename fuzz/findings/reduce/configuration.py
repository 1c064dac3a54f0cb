"""The configuration of the native executor, brought towards the default as far as a case goes on failing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from oracle.peers import NativeExecutor, configured
from tenferro_ref.compiler import DEFAULT_PIPELINE

_DEFAULT = NativeExecutor()
_OPTIONS = tuple(f.name for f in fields(NativeExecutor) if f.name not in ("name", "model"))


def simplify_configuration(executor: NativeExecutor, still_fails: Callable[[NativeExecutor], bool]) -> NativeExecutor:
    """The simplest configuration under which the case fails: default options, the default passes or fewer of its own."""
    simpler: NativeExecutor | None = executor
    while simpler is not None:
        executor = simpler
        simpler = next(filter(still_fails, _simpler(executor)), None)
    return executor


def _simpler(executor: NativeExecutor) -> Iterator[NativeExecutor]:
    options: dict[str, Any] = {name: getattr(executor, name) for name in _OPTIONS}
    for name in _OPTIONS:
        if options[name] != getattr(_DEFAULT, name):
            yield configured(**options | {name: getattr(_DEFAULT, name)})
    passes = executor.passes
    for i in range(len(passes) if passes != DEFAULT_PIPELINE else 0):
        yield configured(**options | {"passes": (*passes[:i], *passes[i + 1 :])})
