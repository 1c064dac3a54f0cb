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
    found = True
    while found:
        simpler = (configured(**options) for options in _simpler(executor))
        smallest = next(filter(still_fails, simpler), None)
        found = smallest is not None
        executor = smallest or executor
    return executor


def _simpler(executor: NativeExecutor) -> Iterator[dict[str, Any]]:
    options = {name: getattr(executor, name) for name in _OPTIONS}
    for name in _OPTIONS:
        if options[name] != getattr(_DEFAULT, name):
            yield {**options, name: getattr(_DEFAULT, name)}
    passes = executor.passes
    for i in range(len(passes) if passes != DEFAULT_PIPELINE else 0):
        yield {**options, "passes": (*passes[:i], *passes[i + 1 :])}


__all__ = ["simplify_configuration"]
