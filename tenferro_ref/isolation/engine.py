"""Engines: what runs inside a worker process, one module each.

The module of an engine has `open(settings) -> Engine`. Requests and answers are messages of `tenferro_ref.isolation.wire`; a
`TenferroError` that answering raises becomes the answer. Libraries are imported in `open`, so that the modules (and the table
`JAX`) can be read where they are not installed.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from tenferro_ref.errors import MissingDependency
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.wire import Message
from tenferro_ref.tensor import Array

Compiled = TypeVar("Compiled")


class Engine(NamedTuple):
    """A library that a worker has loaded.

    Attributes
    ----------
    facts
        Name and version of the library, and what else it says of itself.
    answer
        Gives the answer to one request.
    """

    facts: dict[str, str]
    answer: Callable[[Message], Message]


def run_sets(
    request: Message, compile: Callable[[], Compiled], execute: Callable[[Compiled, list[Array]], Iterable[Array]]
) -> Message:
    """The answer to a request with input sets: compiled once, executed for each of them, with the seconds of both."""
    start = time.perf_counter()
    compiled = compile()
    between = time.perf_counter()
    output_sets = [list(execute(compiled, [wire.unpack(a) for a in inputs])) for inputs in request["input_sets"]]
    done = time.perf_counter()
    return {
        "output_sets": [[wire.pack(a) for a in outputs] for outputs in output_sets],
        "seconds": {"compile": between - start, "execute": done - between},
    }


def library(module: str, extra: str) -> Any:
    """An optional library's module.

    Raises
    ------
    MissingDependency
        It is not installed; `extra` of this package installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise MissingDependency.of_extra(name, extra, error) from None
