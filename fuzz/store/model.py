"""What a findings store holds, as plain data: plans and streams, batches, disagreements and their groups, findings, marks.

Here is also how a case becomes columns of a row, and what identifies a batch and a campaign.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgpack
import msgspec

from fuzz.records import Finding, Seconds, decode, encode
from oracle.case import Case, Derivation, Refusal
from oracle.derivation import derivation_of
from oracle.verdict import Answer, ExecutorInfo
from tenferro_ref import __version__
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, Internal
from tenferro_ref.isolation import wire
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphProgram, dumps, loads
from tenferro_ref.stablehlo import Source
from tenferro_ref.tensor import Array, column_major

#: What a mark may say of a finding; "new" takes back earlier marks.
Status = Literal["new", "known", "reported", "fixed"]
STATUSES: tuple[Status, ...] = get_args(Status)

#: What errors of its rows name.
_WHERE = "findings store"
_Seed = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
_Positive = Annotated[int, msgspec.Meta(ge=1, lt=2**32)]


@dataclass(frozen=True, slots=True)
class Plan:
    """What one stream of a campaign is to do.

    Attributes
    ----------
    programs, minutes
        Whichever is reached first ends the generation; None is no limit. `programs` counts those of all shards.
    shard, shards
        This stream takes batch b of the campaign where b mod `shards` is `shard`.
    batch
        Programs a batch; each input set of a program counts as one.
    input_sets
        Input sets of each program.
    reduce_seconds
        Budget for reducing one disagreement.
    max_findings
        Most findings: groups beyond it are counted, not reduced. A group that is being reduced counts as one.
    generate
        What the programs may contain, as `fuzz.generate.settings.config_of` reads it.
    """

    seed: _Seed
    programs: _Count | None = None
    minutes: Seconds | None = None
    shard: _Count = 0
    shards: _Positive = 1
    batch: _Positive = 32
    reduce_seconds: Seconds = 20.0
    max_findings: _Count = 1000
    command: str = ""
    input_sets: _Positive = 1
    generate: tuple[str, ...] = ()

    def size(self, number: int) -> int:
        """Programs of batch `number`; 0 or less if the campaign ends before it."""
        return self.batch if self.programs is None else min(self.batch, self.programs - number * self.batch)


@dataclass(frozen=True, slots=True)
class Stream:
    """One shard of one campaign, as the store has it. `campaign` is the same for all shards; `elapsed` is in seconds."""

    id: int
    campaign: str
    plan: Plan
    executors: tuple[ExecutorInfo, ...]
    environment: tuple[tuple[str, str], ...]
    started: str
    elapsed: float

    @property
    def available(self) -> tuple[str, ...]:
        """Names of the executors that take part."""
        return tuple(info.name for info in self.executors if info.available)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that a worker holds.

    Attributes
    ----------
    counted
        How many of its programs were counted before: a campaign that ended with a part of the batch was given a later end.
    claims
        How often it was taken since it last got an answer.
    """

    stream: int
    number: int
    programs: int
    counted: int
    claims: int


@dataclass(frozen=True, slots=True, eq=False)
class Disagreement:
    """The answer to program `number` of a batch, the name of its group, and where and why it seems to arise."""

    number: int
    case: Case
    answer: Answer
    group: str
    op: str
    dtype: str
    attribution: str


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Disagreements that look alike, held by a worker that reduces the smallest of them.

    Attributes
    ----------
    programs
        How many programs show it.
    also
        The executors that show it beside that of the smallest.
    seen
        When the first was seen, in seconds since 1970.
    alike
        Signatures of the findings that groups of the same cause on other builds were reduced to.
    """

    stream: int
    name: str
    smallest: Disagreement
    programs: int
    also: tuple[str, ...]
    seen: float
    alike: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """What a person decided about a finding, and when (seconds since 1970)."""

    status: Status
    note: str
    at: float


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding with its inputs.

    Attributes
    ----------
    found
        When it was first written down; seconds since 1970.
    seconds
        From the first disagreement to the end of reduction and confirmation.
    confirmed
        Whether its bundle showed it in a clean interpreter; None if that was not tried.
    afresh
        Whether it did so in a virtual environment made for the purpose.
    """

    finding: Finding
    inputs: bytes
    found: float
    seconds: float
    confirmed: bool | None
    afresh: bool

    @property
    def case(self) -> Case:
        """The reduced program with its inputs."""
        return unpack(self.finding.program_json, self.inputs)


def campaign_key(plan: Plan, executors: Iterable[str]) -> str:
    """What is the same for all shards of a campaign, and for nothing else."""
    sets = [plan.input_sets] if plan.input_sets > 1 else []
    mix = [list(plan.generate)] if plan.generate else []
    content = json.dumps([__version__, plan.seed, plan.batch, *sets, *mix, *executors])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def digest(cases: Iterable[Case]) -> str:
    """Of a batch: 16 hex digits over the fingerprints."""
    return hashlib.sha256("".join(case.fingerprint for case in cases).encode()).hexdigest()[:16]


def pack(case: Case) -> tuple[str, bytes]:
    """A case as program JSON and the inputs in msgpack; beside them the error that an invalid one must raise, or what a
    derivative is one of, or the module that it was read from."""
    inputs: list[Any] = [wire.pack(a) for a in case.inputs]
    if case.source is not None:
        inputs = [encode(_Module.of(case.source, case.deciding)), inputs]
    elif case.refusal is not None:
        inputs = [encode(case.refusal), inputs]
    elif case.derivation is not None:
        inputs = [encode(_Derivation(dumps(case.derivation.primal), case.derivation.transforms)), inputs]
    packed: bytes = msgpack.packb(inputs)
    return case.program_json, packed


def unpack(program: str, inputs: bytes, where: str = _WHERE) -> Case:
    """The case that `pack` took apart.

    Raises
    ------
    FormatError
        It is none; `where` says of which row.
    """
    return _case(program, *_unpack_inputs(inputs, where), where)


def unpack_all(rows: Iterable[tuple[str, bytes]], where: str = _WHERE) -> list[Case]:
    """The cases of consecutive rows; input sets of one program get the same program object, as when they were made."""
    cases: list[Case] = []
    text, beside, last = "", dict[str, Any](), None
    for program, inputs in rows:
        about, arrays = _unpack_inputs(inputs, where)
        if last is not None and program == text and about == beside:
            cases.append(replace(last, inputs=arrays))
            continue
        case = _case(program, about, arrays, where)
        text, beside, last = program, about, case if case.refusal is None else None
        cases.append(case)
    return cases


def _case(program: str, about: dict[str, Any], arrays: tuple[Array, ...], where: str) -> Case:
    if "module" in about:
        kept = decode(_Module, about, where)
        return Case(loads(program, where).to_graph(), arrays, source=kept.source(), deciding=kept.decided())
    derivation = None
    if "primal" in about:
        derivation = decode(_Derivation, about, where).read()
    refusal = decode(Refusal, about, where) if about and derivation is None else None
    return Case(loads(program, where, infer=refusal is None), arrays, refusal, derivation=derivation)


#: A type as it is kept: the dtype's name, and the shape.
_Type: TypeAlias = tuple[str, tuple[_Count, ...]]


@dataclass(frozen=True)
class _Module:
    """The module that a program was read from, as it is kept, and the program of what decided while it was read."""

    module: str
    arguments: tuple[_Type, ...]
    results: tuple[_Type, ...]
    operations: tuple[tuple[str, str], ...]
    deciding: str | None

    @classmethod
    def of(cls, source: Source, deciding: GraphProgram | None) -> _Module:
        if source.text is None:
            raise Internal(detail="a campaign's module is text")
        arguments, results = (
            tuple((t.dtype.name, t.static_shape) for t in ts) for ts in (source.arguments, source.results)
        )
        kept = None if deciding is None else dumps(deciding)
        return cls(source.text, arguments, results, tuple(sorted(source.ops)), kept)

    def source(self) -> Source:
        arguments, results = (tuple(map(_type, types)) for types in (self.arguments, self.results))
        return Source(self.module, arguments, results, frozenset(self.operations), where="module")

    def decided(self) -> GraphProgram | None:
        return None if self.deciding is None else loads(self.deciding, _WHERE).to_graph()


def _type(kept: _Type) -> TensorType:
    if kept[0] not in DType.__members__:
        raise FormatError(where=_WHERE, detail=f"no dtype is called {kept[0]!r}")
    return TensorType(DType[kept[0]], kept[1])


@dataclass(frozen=True)
class _Derivation:
    """What a program is a derivative of, as it is kept."""

    primal: str
    transforms: tuple[str, ...]

    def read(self) -> Derivation:
        return derivation_of(self.primal, self.transforms, _WHERE)


def _unpack_inputs(packed: bytes, where: str) -> tuple[dict[str, Any], tuple[Array, ...]]:
    """What is beside the arrays, and these."""
    about: dict[str, Any] = {}
    try:
        content = msgspec.msgpack.decode(packed)
        if isinstance(content, list) and content and isinstance(content[0], dict):
            about, content = content
        arrays = msgspec.convert(content, list[tuple[str, tuple[int, ...], bytes]])
        return about, tuple(column_major(wire.unpack(list(array))) for array in arrays)
    except (msgspec.DecodeError, KeyError, ValueError) as error:
        raise FormatError(where=where, detail=f"inputs of a program: {error}") from None
