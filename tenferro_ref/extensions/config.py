"""What the rules of all families share: reading an op's configuration, and checks on its operands."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, InvalidCompiledGraph, Unsupported
from tenferro_ref.ops import TensorType


def reject(op: ops.Extension, detail: str, argument: str = "config") -> NoReturn:
    """Raise `InvalidArgument` in the name of the family's op."""
    raise InvalidArgument(op=op.op, argument=argument, detail=detail)


@lru_cache(maxsize=4096)
def _parsed(config: str) -> object:
    return json.loads(config)


def read_config(op: ops.Extension, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with `defaults` for what it leaves out.

    Raises
    ------
    InvalidArgument
        No JSON object, a key that is not in `defaults`, or a value of another type than its default (None admits None and
        integers).
    """
    try:
        given = _parsed(op.config)
    except (ValueError, RecursionError) as error:
        reject(op, f"no JSON text: {error}")
    if not isinstance(given, dict):
        reject(op, f"{op.config} is no JSON object")
    for key, value in given.items():
        if key not in defaults:
            reject(op, f"unknown key {key!r}; known: {', '.join(defaults) or 'none'}")
        default = defaults[key]
        fits = value is None or type(value) is int if default is None else type(value) is type(default)
        if not fits:
            reject(op, f"{key}: {value!r} has the wrong type; an example is {default!r}")
    return {**defaults, **given}


def check_count(op: ops.Extension, inputs: Sequence[TensorType], expected: int) -> None:
    if len(inputs) != expected:
        raise InvalidCompiledGraph(detail=f"{op.op}: expected {expected} inputs, got {len(inputs)}")


def check_dtype(op: ops.Extension, dtype: DType, admitted: Collection[DType]) -> None:
    if dtype not in admitted:
        known = ", ".join(d.name for d in DType if d in admitted)
        raise Unsupported(op=op.op, detail=f"dtype {dtype} is not supported; supported: {known}")
