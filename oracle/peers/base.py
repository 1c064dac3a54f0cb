"""Executors: anything that can say what a program gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Self

from oracle.case import Case
from oracle.peers.lanes import Options
from oracle.peers.peer import Peer
from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import OutputError, TenferroError, UnsupportedOp, defects_in
from tenferro_ref.isolation import Worker
from tenferro_ref.stablehlo import Source
from tenferro_ref.tensor import Array, type_of


@dataclass(frozen=True, eq=False)
class Execution:
    """The result of running a case: one array for each output, and seconds by phase.

    Attributes
    ----------
    shared
        Whether other cases were compiled into the same module.
    """

    outputs: tuple[Array, ...]
    seconds: dict[str, float] = field(default_factory=dict)
    shared: bool = False


class Executor:
    """One way of running a program.

    A class overrides `run` or `run_many`, since the default of each is the other, and of the rest what it needs.

    Attributes
    ----------
    name
        As on the command line (FORMATS 9); `peer` is the same taken apart.
    """

    name: str

    @property
    def peer(self) -> Peer:
        """Its identity."""
        return Peer.parse(self.name)

    @property
    def model(self) -> str:
        """Name of the arithmetic model that its results are held to."""
        return self.peer.model

    @property
    def programs_a_module(self) -> int:
        """How many programs it compiles together."""
        return self.peer.programs_a_module

    @property
    def portable_name(self) -> str:
        """A name by which another machine finds it."""
        return self.name

    def open(self) -> None:
        """Take what a run needs (processes, libraries), so that a lack of it is reported before any program.

        Raises
        ------
        EnvironmentFault
            What is missing, or does not work.
        """

    def facts(self) -> Iterator[tuple[str, str]]:
        """Where it comes from, as name and value pairs.

        Raises
        ------
        TenferroError
            It is not available here.
        """
        yield from ()

    def info(self) -> ExecutorInfo:
        """The record of where it comes from; what is missing is the reason in it, and never an error."""
        facts = []
        try:
            for fact in self.facts():  # those before an error are shown, too
                facts.append(fact)
            return ExecutorInfo(self.name, available=True, facts=tuple(facts), build=self.build)
        except TenferroError as error:
            return ExecutorInfo(self.name, available=False, reason=str(error), facts=tuple(facts))

    @property
    def build(self) -> str:
        """What its library reports of itself: `cpu, PJRT 0.81, StableHLO 1.13.3`, `jaxlib==0.10.2`; "" for our own code.

        Raises
        ------
        TenferroError
            It cannot be asked.
        """
        return next(reversed(self.requirements()), "")

    def requirements(self) -> tuple[str, ...]:
        """What it needs beside this package in a fresh environment, as for pip."""
        return tuple(f"{package}=={metadata.version(package)}" for package in self.peer.about.packages)

    def run(self, case: Case) -> Execution:
        """Run a case.

        Raises
        ------
        LoweringError, ValidationError
            A typed refusal: this executor does not run such programs, or no executor should.
        WorkerDied
            Native code ended, hung, or was killed.
        TenferroError
            Anything else that went wrong.
        """
        (result,) = self.run_many([case])
        if isinstance(result, TenferroError):
            raise result
        return result

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        """Run several cases, in one module if this executor can; one result or error for each case."""
        return [attempt(self, case) for case in cases]

    def run_source(self, source: Source, inputs: Sequence[Array]) -> Execution:
        """Run a StableHLO module as it is; errors as `run`."""
        raise UnsupportedOp(op="module", reason="this executor takes programs, not StableHLO modules")

    def opcodes(self, cases: Sequence[Case]) -> list[str]:
        """What its compiler leaves of the first module of cases after optimisation; empty where it does not tell."""
        return []

    def bit_exact(self, case: Case) -> bool:
        """Whether its answer must equal the native one bit for bit."""
        return False

    def settled(self, case: Case) -> Executor:
        """The executor with the configuration that it has for `case`: what a reduction keeps."""
        return self

    def close(self) -> None:
        """Give back processes and handles; a later run takes them anew."""


@dataclass
class WorkerExecutor(Executor):
    """An executor whose library runs in a worker, which other executors may share.

    Attributes
    ----------
    overrides
        XLA's debug options beside its own.
    """

    name: str
    worker: Worker
    overrides: Options = field(default_factory=dict, kw_only=True)

    def open(self) -> None:
        self.worker.facts  # noqa: B018 - starts the worker

    def facts(self) -> Iterator[tuple[str, str]]:
        yield from self.worker.facts.items()

    @property
    def options(self) -> Options:
        """XLA's debug options for each executable.

        Raises
        ------
        TenferroError
            The worker, which they depend on, cannot be asked.
        """
        return self.overrides

    def with_options(self, options: Options) -> Self:
        """The same peer with further compile options."""
        return replace(self, overrides={**self.overrides, **options})

    def close(self) -> None:
        self.worker.close()


def validate(case: Case) -> None:
    """Refuse an invalid program, or inputs of other types than it declares, as every executor does before it runs anything.

    Raises
    ------
    TenferroError
        What the native executor raises.
    """
    with defects_in("the rules"):
        case.program.check_inputs([type_of(a) for a in case.inputs])
        case.program.slot_types  # noqa: B018 - infers, and so checks every rule


def attempt(executor: Executor, case: Case) -> Execution | TenferroError:
    """The result of running a case, with an error as a value.

    Raises
    ------
    OutputError
        This machine's disk is full: nothing is known of the executor.
    """
    try:
        return executor.run(case)
    except OutputError:
        raise
    except TenferroError as error:
        return error


def attempt_source(executor: Executor, source: Source, inputs: Sequence[Array]) -> Execution | TenferroError:
    """What a module gives for these arguments, with an error as a value; else as `attempt`."""
    try:
        return executor.run_source(source, inputs)
    except OutputError:
        raise
    except TenferroError as error:
        return error
