"""Reduction of a StableHLO module that an executor gets wrong, as it is: the smallest that it still gets wrong alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oracle.given_case import given_case
from oracle.peers import NativeExecutor
from tenferro_ref.errors import TenferroError
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.stablehlo import Source
from tenferro_ref.stablehlo.smaller import Smaller
from tenferro_ref.tensor import Array, column_major

#: Operations of a smaller module that are read, those of a loop once a turn, unless the module itself has more: a step may make
#: a loop endless.
MOST_READ = 1 << 14
#: Whether a module with these arguments still shows what is looked for.
Shows = Callable[[Source, tuple[Array, ...]], bool]
#: The first result of a module with these arguments.
ValueOf = Callable[[Source, tuple[Array, ...]], Array]


@dataclass(frozen=True, eq=False)
class ReducedModule:
    """What became of a module; `steps` are those that were taken, in order."""

    source: Source
    arguments: tuple[Array, ...]
    steps: tuple[str, ...]


def reduce_module(
    source: Source,
    arguments: Sequence[Array],
    shows: Shows,
    reader: Reader,
    *,
    value_of: ValueOf | None = None,
    budget_seconds: float = 60.0,
) -> ReducedModule:
    """Take steps (`stablehlo.smaller`) as long as one keeps what is looked for, each from the module that the last one gave.

    Parameters
    ----------
    value_of
        For what becomes an argument; without it nothing does.
    budget_seconds
        Wall time after which no further step is tried.
    """
    deadline = time.monotonic() + budget_seconds
    current = ReducedModule(source, tuple(arguments), ())
    while (taken := _one_step(current, shows, reader, deadline, value_of)) is not current:
        current = taken
    return current


def native_value(reader: Reader) -> ValueOf:
    """The native executor's first result."""
    native = NativeExecutor()
    return lambda source, arguments: native.run(given_case(source, arguments, reader, MOST_READ)).outputs[0]


def _one_step(
    current: ReducedModule, shows: Shows, reader: Reader, deadline: float, value_of: ValueOf | None
) -> ReducedModule:
    """The first smaller module that keeps what is looked for; the same one if there is none."""
    try:
        candidates = reader.smaller(current.source)
    except TenferroError:  # MLIR does not survive a step: the module stays as it is
        return current
    for candidate in candidates:
        if time.monotonic() > deadline:
            break
        values = current.arguments
        try:
            if candidate.value:
                if value_of is None:
                    continue
                values += (value_of(reader.source(candidate.value, current.source.where), values),)
            source = reader.source(candidate.code, current.source.where)
        except TenferroError:
            continue
        for arguments in _cuts(candidate, source, values):
            if shows(source, arguments):
                return ReducedModule(source, arguments, (*current.steps, candidate.step))
    return current


def taken(candidate: Smaller, where: str, values: Sequence[Array], reader: Reader) -> tuple[Source, tuple[Array, ...]]:
    """A smaller module, and what its arguments are of those of the other.

    Raises
    ------
    TenferroError
        It is not read.
    """
    source = reader.source(candidate.code, where)
    return source, _cuts(candidate, source, values)[0]


def _cuts(candidate: Smaller, source: Source, values: Sequence[Array]) -> list[tuple[Array, ...]]:
    """What the arguments of a smaller module may be: the first elements of each axis, or the last."""
    kept = [values[i] for i in candidate.arguments]
    shapes = [t.static_shape for t in source.arguments]
    first = tuple(_cut(a, [slice(n) for n in shape]) for a, shape in zip(kept, shapes, strict=True))
    if all(a.shape == b.shape for a, b in zip(kept, first, strict=True)):
        return [first]
    ends = [
        [slice(m - n, m) for m, n in zip(a.shape, shape, strict=True)] for a, shape in zip(kept, shapes, strict=True)
    ]
    return [first, tuple(map(_cut, kept, ends))]


def _cut(array: Array, window: Sequence[slice]) -> Array:
    return column_major(array[tuple(window)])
