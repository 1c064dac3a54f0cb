"""Conformance: folders of modules that state their own results, and how many of them hold, natively and on each executor.

* `eq`: equal values; NaN equals NaN, and a zero the other zero.
* `almost_eq`: at most `tolerance` apart; infinities and NaN as in `eq`.
* `close`: at most `ulps` units in the last place apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oracle.case import Case
from oracle.enclosure.formats import Array
from oracle.peers import Execution, Executor, NativeExecutor, attempt, attempt_source
from oracle.ulp import ulp_distance
from tenferro_ref.dtype import DType
from tenferro_ref.errors import LoweringError, TenferroError
from tenferro_ref.files import read_text
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.stablehlo import Source
from tenferro_ref.stablehlo.loader.statements import Statement, Stating

#: What native execution is called in an outcome.
NATIVE = "native"
#: How many functions executors may be behind the reader.
_AHEAD = 16


@dataclass(frozen=True)
class Outcome:
    """How far one function came.

    Attributes
    ----------
    read
        Why it is no module, or none that is read as a program; "" if it is.
    executors
        For each executor that was asked: "" where all statements hold, else what is wrong.
    unsupported
        Executors that lack what is in the module, with their words.
    """

    name: str
    read: str
    executors: dict[str, str]
    unsupported: dict[str, str]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong on any executor that ran it."""
        return not any(self.executors.values())


def conform(files: Sequence[Path], executors: Sequence[Executor], reader: Reader) -> Iterator[Outcome]:
    """One outcome a function that states something, file by file.

    Each executor has a thread, since their workers are processes; they may be some functions behind what is read.
    """
    foreign = [executor for executor in executors if executor.peer.family != NATIVE]
    for executor in foreign:
        executor.close()
    threads = {executor.name: ThreadPoolExecutor(1) for executor in foreign}
    pending: deque[_Asked] = deque()
    for function in _functions(files, reader):
        pending.append(_ask(function, foreign, reader, threads))
        if len(pending) > _AHEAD:
            yield _outcome(pending.popleft())
    yield from map(_outcome, pending)
    for executor in foreign:
        threads[executor.name].submit(executor.close)  # after what it still runs
        threads[executor.name].shutdown()


def _functions(files: Sequence[Path], reader: Reader) -> Iterator[Stating]:
    for path in files:
        try:
            yield from reader.stating(read_text(path), path.name)
        except TenferroError as error:
            yield Stating(path.name, "", (), f"{error.kind}: {error}")


@dataclass(frozen=True)
class _Asked:
    """A function, why it is not read, what it gives natively, and what the others were asked."""

    function: Stating
    read: str
    native: dict[str, Execution | TenferroError]
    others: dict[str, Future[Execution | TenferroError]]


def _ask(
    function: Stating, foreign: Sequence[Executor], reader: Reader, threads: Mapping[str, ThreadPoolExecutor]
) -> _Asked:
    if function.error:
        return _Asked(function, function.error, {}, {})
    try:
        source = reader.source(function.code, function.where)
    except TenferroError as error:
        return _Asked(function, f"{error.kind}: {error}", {}, {})
    others = {e.name: threads[e.name].submit(attempt_source, e, source, ()) for e in foreign}
    return _Asked(function, *_natively(source, reader), others)


def _outcome(asked: _Asked) -> Outcome:
    function = asked.function
    results = asked.native | {name: future.result() for name, future in asked.others.items()}
    wrong: dict[str, str] = {}
    unsupported: dict[str, str] = {}
    for name, result in results.items():
        if isinstance(result, LoweringError):
            unsupported[name] = str(result)
        elif isinstance(result, TenferroError):
            wrong[name] = f"{result.kind}: {result}"
        else:
            wrong[name] = _judged(function.statements, result.outputs)
    return Outcome(function.where, asked.read, wrong, unsupported)


def _natively(source: Source, reader: Reader) -> tuple[str, dict[str, Execution | TenferroError]]:
    """Why the module is not read as a program, and what that gives."""
    try:
        loaded = reader.load(source.code, source.where)
        case = Case.of(loaded.program, loaded.inputs([]))
    except TenferroError as error:
        return f"{error.kind}: {error}", {}
    return "", {NATIVE: attempt(NativeExecutor(), case)}


def _judged(statements: Sequence[Statement], outputs: Sequence[Array]) -> str:
    pairs = zip(statements, outputs[::2], outputs[1::2], strict=True)
    return next((reason for s, actual, expected in pairs if (reason := judge(s, actual, expected))), "")


def judge(statement: Statement, actual: Array, expected: Array) -> str:
    """What is wrong with `actual`; "" if it is as stated."""
    if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        return f"{actual.dtype}{actual.shape} where {expected.dtype}{expected.shape} is expected"
    good = _elements(statement, actual, expected)
    if good.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~good)[0])
    return f"{statement.kind}: element {list(at)} is {actual[at]}, expected {expected[at]}"


def _elements(statement: Statement, actual: Array, expected: Array) -> Array:
    dtype = DType.of(actual)
    if dtype.is_complex:
        return _elements(statement, actual.real, expected.real) & _elements(statement, actual.imag, expected.imag)
    same = np.asarray((actual == expected) | ((actual != actual) & (expected != expected)))
    if statement.kind == "eq" or not dtype.is_float:
        return same
    with np.errstate(invalid="ignore"):
        if statement.kind == "almost_eq":
            off = np.abs(actual.astype(np.longdouble) - expected.astype(np.longdouble))
            return same | np.asarray(off <= statement.tolerance)
    finite = np.isfinite(actual) & np.isfinite(expected)
    return np.asarray(same | (finite & (ulp_distance(actual, expected) <= statement.ulps)))
