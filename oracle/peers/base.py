"""The executor protocol: anything that can say what a program gives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from oracle.case import Case
from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import Internal, TenferroError
from tenferro_ref.tensor import Array, type_of

#: What Python and NumPy raise where code has a defect: a finding about ourselves, and no end of a campaign.
DEFECTS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


@contextlib.contextmanager
def defects_in(place: str) -> Iterator[None]:
    """Make a defect a typed error.

    Raises
    ------
    Internal
        The code in `place` has a defect.
    """
    try:
        yield
    except DEFECTS as error:
        raise Internal(detail=f"{type(error).__name__} in {place}: {error}") from error


@dataclass(frozen=True, eq=False)
class Execution:
    """What an executor gave for a case: one array an output, and seconds by phase.

    Attributes
    ----------
    shared
        The case shared a module with others.
    """

    outputs: tuple[Array, ...]
    seconds: dict[str, float] = field(default_factory=dict)
    shared: bool = False


class Executor(Protocol):
    """One way of running a program.

    Attributes
    ----------
    name
        As on the command line (FORMATS 9).
    model
        Name of the arithmetic model that its results are held to.
    """

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    def open(self) -> None:
        """Take what a run needs (processes, libraries), so that a lack of it is said before any program.

        Raises
        ------
        EnvironmentFault
            What is missing, or does not work.
        """
        ...

    def info(self) -> ExecutorInfo:
        """Where it comes from. Never raises: what is missing is said in the record."""
        ...

    def run(self, case: Case) -> Execution:
        """Run a case.

        Raises
        ------
        LoweringError, ValidationError
            A typed refusal: this executor does not do such programs, or nobody should.
        WorkerDied
            Native code ended, hung, or was killed.
        TenferroError
            Anything else that went wrong.
        """
        ...

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        """Run several cases, in one module if this executor can; one result or error a case."""
        ...

    def bit_exact(self, case: Case) -> bool:
        """Whether this executor's answer must equal the native one bit for bit."""
        ...

    def close(self) -> None:
        """Give back processes and handles; a later run takes them anew."""
        ...


def validate(case: Case) -> None:
    """What every executor refuses before it asks anybody: an invalid program, or inputs that are not those it declares.

    Raises
    ------
    TenferroError
        What the native executor raises.
    """
    with defects_in("the rules"):
        case.program.check_inputs([type_of(a) for a in case.inputs])
        case.program.slot_types  # noqa: B018 - infers, and so checks every rule


def attempt(executor: Executor, case: Case) -> Execution | TenferroError:
    """What `executor` gives for a case, an error as a value."""
    try:
        return executor.run(case)
    except TenferroError as error:
        return error
