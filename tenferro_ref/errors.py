"""The error taxonomy: every error that a user can meet, with its facts as attributes.

Kinds follow the engine (SEMANTICS 2.7 and 7.3); two executors agree on an error when `kind`, `op` and `axis` agree, whatever
the prose says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

#: A fatal line of the log of Abseil or glog: "F", month and day, time, thread, then the place and what was found.
_FATAL = re.compile(r"F\d{4} [\d:.]+ +\d+ (\S+:\d+\] .*)")


@dataclass(eq=False)
class TenferroError(Exception):
    """Base of all errors of this project.

    Subclasses are dataclasses: their fields are the facts, of which `template` makes a line: what was wrong, where, what to do.
    """

    template: ClassVar[str] = ""
    exit_status: ClassVar[int] = 2
    #: Where in a program it arose, as a JSON path (`$.instructions[3]`); no fact, and "" where that is not known.
    place = ""
    #: What it says in place of the template, where that would speak of what the user did not write; no fact either.
    words = ""

    @property
    def kind(self) -> str:
        """Name of the error kind, as compared between executors."""
        return type(self).__name__

    def facts(self) -> dict[str, Any]:
        """The facts by name, in declaration order."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def to_json(self) -> dict[str, Any]:
        """`{"kind", "op", "message", ...}`: the line that an executable under test prints (FORMATS 3)."""
        return {"kind": self.kind, **{k: _plain(v) for k, v in self.facts().items()}, "message": str(self)}

    def text(self) -> str:
        """The facts in words."""
        return self.words or self.template.format_map(self.facts())

    def saying(self, words: str) -> Self:
        """Itself, with these words."""
        self.words = words
        return self

    def __str__(self) -> str:
        """One line that can be printed anywhere, whatever the facts hold."""
        text = self.text()
        line = " ".join((f"{self.place}: {text}" if self.place else text).splitlines())
        return line.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value if isinstance(value, (int, float, bool, str, type(None))) else str(value)


# --- validation of one operation (SEMANTICS 2.7) ---------------------------------------------------------------------


@dataclass(eq=False)
class ValidationError(TenferroError):
    """An operation whose operands or attributes break its rule.

    Attributes
    ----------
    op
        Name of the op; or, where the engine blames no op, its label: `index_tensor`, `DimExpr`, a program input.
    """

    op: str


@dataclass(eq=False)
class ShapeMismatch(ValidationError):
    """Operand shapes (or a shape and the declared one) contradict each other."""

    lhs: tuple[Any, ...]
    rhs: tuple[Any, ...]
    template: ClassVar[str] = "{op}: shapes {lhs} and {rhs} do not fit together"


@dataclass(eq=False)
class DTypeMismatch(ValidationError):
    """Operands that must have one dtype have two."""

    lhs: str
    rhs: str
    template: ClassVar[str] = "{op}: operand dtypes {lhs} and {rhs} differ; insert a Convert"


@dataclass(eq=False)
class RankMismatch(ValidationError):
    """An operand or a list of attributes has another length than the rule needs."""

    expected: int
    actual: int
    template: ClassVar[str] = "{op}: expected rank (or list length) {expected}, got {actual}"


@dataclass(eq=False)
class AxisOutOfBounds(ValidationError):
    """An attribute names an axis that the operand does not have."""

    axis: int
    rank: int
    template: ClassVar[str] = "{op}: axis {axis} is out of bounds for rank {rank}"


@dataclass(eq=False)
class DuplicateAxis(ValidationError):
    """An attribute names an axis twice."""

    axis: int
    role: str
    template: ClassVar[str] = "{op}: axis {axis} occurs twice in {role}"


@dataclass(eq=False)
class AxisRoleConflict(ValidationError):
    """An axis of a DotGeneral is both contracting and batch."""

    axis: int
    template: ClassVar[str] = "{op}: axis {axis} is both contracting and batch"


@dataclass(eq=False)
class InvalidArgument(ValidationError):
    """An attribute, or a value that is known at run time only, is outside of what the rule admits."""

    argument: str
    detail: str
    template: ClassVar[str] = "{op}: {argument}: {detail}"


@dataclass(eq=False)
class Unsupported(ValidationError):
    """The op does not admit the dtype, or the combination of attributes."""

    detail: str
    template: ClassVar[str] = "{op}: {detail}"


@dataclass(eq=False)
class NumericalFailure(ValidationError):
    """Values for which an op has no result: a zero divisor of integers, a singular matrix (SEMANTICS A.2, C.2)."""

    dtype: str
    cause: str
    template: ClassVar[str] = "{op}: {cause} ({dtype})"

    def text(self) -> str:
        remedy = '; policy integer_faults="stablehlo" gives it a value' if self.cause == "DivisionByZero" else ""
        return super().text() + remedy


@dataclass(eq=False)
class ShapeConstraintViolation(ValidationError):
    """Inputs, or the types of a program alone, break a shape guard (SEMANTICS A.5); `op` is the extension family."""

    instruction_index: int | None
    relation: str
    lhs_expr: str
    rhs_expr: str
    lhs_value: int
    rhs_value: int
    template: ClassVar[str] = (
        "{op}, instruction {instruction_index}: {lhs_expr} = {lhs_value} and {rhs_expr} = {rhs_value} must be equal"
    )


@dataclass(eq=False)
class ShapeConstraintEvaluation(ValidationError):
    """A side of a shape guard has no value; `cause` says why, `op` is the extension family."""

    instruction_index: int | None
    relation: str
    expression: str
    cause: str
    template: ClassVar[str] = (
        "{op}, instruction {instruction_index}: {expression} of a shape guard has no value: {cause}"
    )


@dataclass(eq=False)
class PlacementMismatch(ValidationError):
    """An input is not where the executor computes, and no transfer was asked for; `transfer` names the calls that make one."""

    argument: str
    actual: str
    expected: str
    transfer: str
    template: ClassVar[str] = (
        "{op}: {argument} is on {actual}, expected on {expected}; nothing is copied unless asked for: {transfer}"
    )


# --- programs as a whole, and their execution ------------------------------------------------------------------------


@dataclass(eq=False)
class InvalidCompiledGraph(TenferroError):
    """An ExecProgram that breaks an invariant (SSA, slot range, metadata, last_use)."""

    detail: str
    template: ClassVar[str] = "invalid program: {detail}"


@dataclass(eq=False)
class MissingValue(TenferroError):
    """A slot was read before it was written, or after its buffer was reclaimed."""

    slot: int
    template: ClassVar[str] = "slot {slot} has no value here: it was never written, or its buffer was reclaimed"


@dataclass(eq=False)
class Internal(TenferroError):
    """A defect of this package, of a backend or of an extension's runtime; never the user's fault."""

    detail: str
    template: ClassVar[str] = "internal error: {detail}"


#: What Python and NumPy raise where code has a defect: a finding about this project that must not end a campaign.
_DEFECTS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


@contextmanager
def defects_in(place: str) -> Iterator[None]:
    """Make a defect a typed error.

    Raises
    ------
    Internal
        The code in `place` has a defect.
    """
    try:
        yield
    except _DEFECTS as error:
        raise Internal(detail=f"{type(error).__name__} in {place}: {error}") from error


@dataclass(eq=False)
class ResourceExhausted(TenferroError):
    """More memory or time than this machine has."""

    where: str
    detail: str
    template: ClassVar[str] = "{where}: {detail}"
    exit_status: ClassVar[int] = 3


# --- input and output of files and of the command line ---------------------------------------------------------------


@dataclass(eq=False)
class FormatError(TenferroError):
    """A file or a value in it is not what the format says; `where` is a path, a JSON path, or a line."""

    where: str
    detail: str
    template: ClassVar[str] = "{where}: {detail}"


@dataclass(eq=False)
class OutputError(TenferroError):
    """A result could not be written; nothing half-written was left behind."""

    path: str
    detail: str
    template: ClassVar[str] = "{path}: cannot write: {detail}"
    exit_status: ClassVar[int] = 3


@dataclass(eq=False)
class UsageError(TenferroError):
    """A call that makes no sense: a wrong option, an unknown name, a missing argument."""

    detail: str
    template: ClassVar[str] = "{detail}"


@dataclass(eq=False)
class Interrupted(TenferroError):
    """The user ended the command early; `detail` says what there is, and how to go on."""

    detail: str
    template: ClassVar[str] = "interrupted {detail}"
    exit_status: ClassVar[int] = 130


# --- lowering to StableHLO (SEMANTICS 7.3): always before any PJRT call ----------------------------------------------


@dataclass(eq=False)
class LoweringError(TenferroError):
    """The program cannot be written in StableHLO, or not in the requested subset of it."""


@dataclass(eq=False)
class UnsupportedDType(LoweringError):
    """A dtype that cannot be lowered where it occurs; `context` names the place."""

    dtype: str
    context: str
    template: ClassVar[str] = "type {dtype} is not supported as {context}"


@dataclass(eq=False)
class UnsupportedOp(LoweringError):
    """An op that a layer (a backend, the emitter, an executor) does not have."""

    op: str
    reason: str
    template: ClassVar[str] = "{op}: not supported here: {reason}"


@dataclass(eq=False)
class NonStaticShape(LoweringError):
    """A lowering needs an extent that is only bounded, or unknown; `output_index` is None where `op` is an argument or result."""

    op: str
    output_index: int | None
    axis: int
    extent: str

    def text(self) -> str:
        of = "" if self.output_index is None else f" of output {self.output_index}"
        return f"{self.op}: axis {self.axis}{of} is {self.extent}, not an exact static extent"


@dataclass(eq=False)
class InvalidProgram(LoweringError):
    """A program that a lowering cannot read: a missing output, a dim expression that does not evaluate, standard ops of other types than their op."""

    detail: str
    template: ClassVar[str] = "program cannot be lowered: {detail}"


# --- the environment: plugins, libraries, worker processes (exit status 3) -------------------------------------------


@dataclass(eq=False)
class EnvironmentFault(TenferroError):
    """The machine lacks something that the call needs, or it failed."""

    exit_status: ClassVar[int] = 3


@dataclass(eq=False)
class CutShort(EnvironmentFault):
    """A file that Python compiled was written in part."""

    detail: str

    template: ClassVar[str] = (
        "{detail}: a compiled Python file was cut short (a full disk?); delete the folders __pycache__"
    )


@dataclass(eq=False)
class MissingEnv(EnvironmentFault):
    """An environment variable that is unset or empty (`state` says which)."""

    var: str
    state: str
    value: str = "a PJRT plugin (.so)"
    template: ClassVar[str] = "environment variable {var} is {state}: set it to the path of {value}"


@dataclass(eq=False)
class PluginLoad(EnvironmentFault):
    """A plugin file that cannot be loaded: absent, not a library, or without `GetPjrtApi`."""

    path: str
    detail: str
    template: ClassVar[str] = "{path}: cannot load this PJRT plugin: {detail}"


@dataclass(eq=False)
class PjrtPluginNotLoaded(EnvironmentFault):
    """No plugin of that name is known, or it was not loaded."""

    name: str
    detail: str
    template: ClassVar[str] = "PJRT plugin {name!r} is not loaded: {detail}"


@dataclass(eq=False)
class PjrtCall(EnvironmentFault):
    """A PJRT call returned an error, or its result breaks the PJRT contract.

    `code` is the name of the PJRT error code (`INVALID_ARGUMENT`, ...), or "" where no PJRT_Error was involved.
    """

    call: str
    code: str
    detail: str
    template: ClassVar[str] = "{call} failed: {detail}"

    def __str__(self) -> str:
        return f"{self.call} failed{f' ({self.code})' if self.code else ''}: {self.detail}"


@dataclass(eq=False)
class MissingDependency(EnvironmentFault):
    """An optional package or tool that is not installed."""

    name: str
    remedy: str
    template: ClassVar[str] = "{name} is not installed: {remedy}"

    @classmethod
    def of_extra(cls, name: str, extra: str, detail: object = "") -> MissingDependency:
        """A package that an extra of this one brings, with the command that works from a clone: no index has this package."""
        words = f" ({detail})" if detail else ""
        return cls(name, f"the extra tenferro-ref[{extra}] brings it, from a clone: pip install '.[{extra}]'{words}")


@dataclass(eq=False)
class WorkerDied(EnvironmentFault):
    """A worker process ended, was killed by a signal, or hung; `how` is "signal SIGSEGV", "exit 1", "timeout 60 s"."""

    worker: str
    how: str
    stderr_tail: str

    @property
    def last_words(self) -> str:
        """The line of its standard error that says why: a failed check of a C++ library, behind which its stack is printed; else the last."""
        lines = [line.strip() for line in self.stderr_tail.splitlines() if line.strip()]
        for line in reversed(lines):
            if fatal := _FATAL.match(line):
                return fatal[1]
        return next((line for line in lines if "Check failed" in line), lines[-1] if lines else "")

    def text(self) -> str:
        words = self.last_words[-200:]
        return f"worker {self.worker} died: {self.how}{f'; its last words: {words}' if words else ''}"
