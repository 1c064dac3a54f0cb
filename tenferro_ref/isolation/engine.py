"""Engines: what runs inside a worker process, one module each.

An engine module has `open(settings) -> (facts, serve)`: it loads its library, says what that is, and `serve` answers one
request after another. Requests and answers are messages of `tenferro_ref.isolation.wire`; a `TenferroError` becomes the answer.
Libraries are imported in `open`, so that the modules (and the table `JAX`) can be read where they are not installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

from tenferro_ref.errors import MissingDependency

Message: TypeAlias = dict[str, Any]
Serve: TypeAlias = Callable[[Message], Message]
Opened: TypeAlias = tuple[dict[str, str], Serve]


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
