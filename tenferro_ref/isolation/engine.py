"""Engines: what runs inside a worker process, one module each.

The module of an engine has `open(settings) -> Engine`. Requests and answers are messages of `tenferro_ref.isolation.wire`; a
`TenferroError` that answering raises becomes the answer. Libraries are imported in `open`, so that the modules (and the table
`JAX`) can be read where they are not installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from tenferro_ref.errors import MissingDependency
from tenferro_ref.isolation.wire import Message


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
        raise MissingDependency(name=name, remedy=f'pip install "tenferro-ref[{extra}]" ({error})') from None
