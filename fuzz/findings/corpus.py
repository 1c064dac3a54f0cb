"""The corpus: small cases that once disagreed, each with the verdict that every executor must reach.

A case is one TOML file: what it is about, the program in its text form, the inputs as hexadecimal bytes (column-major), and
under `[expected]` a verdict by executor name. What third-party builds get wrong stays in with the verdict "mismatch", so
that a build in which it is fixed is noticed. A finding that no program of ours can show has, instead of the program, a
StableHLO module that is run as it is written: with the outputs that are due, bit for bit, or, if it has none, judged by the enclosure of
the program that it is read as. `seconds` limits a request to an executor, for
cases that a compiler does not finish.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from oracle.case import Case
from oracle.compare import compare_bits
from oracle.given_case import given_case
from oracle.judge import Reference, judge
from oracle.peers import Executor, ModuleExecutor, NativeExecutor
from oracle.peers.modules import Module
from oracle.verdict import Answer, Verdict
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, TenferroError, UsageError
from tenferro_ref.files import read_toml
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.program import parse, print_program
from tenferro_ref.tensor import Array, type_of

SECONDS = 60.0
#: The most that an entry may ask for.
MOST_SECONDS = 3600


class _Tensor(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: list[int]
    data: str


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The content of a file; either `program`, or `module`, which may have `outputs`."""

    about: str
    inputs: list[_Tensor]
    expected: dict[str, Verdict]
    program: str = ""
    module: str = ""
    outputs: list[_Tensor] = []
    seconds: float = SECONDS


@dataclass(frozen=True, eq=False)
class ModuleCase:
    """A StableHLO module that is run as it is written, its inputs, and the outputs that are due, bit for bit."""

    stablehlo: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]

    def judge(self, executor: Executor) -> Answer:
        """The verdict on an executor.

        Raises
        ------
        UsageError
            The executor takes no modules.
        """
        if not isinstance(executor, ModuleExecutor):
            raise UsageError(
                detail=f"{executor.name} does not run StableHLO modules; choose a plugin, interpreter or iree"
            )
        parameters, results = ([type_of(a) for a in arrays] for arrays in (self.inputs, self.outputs))
        module = Module(self.stablehlo, parameters, results, {}, {})
        message = module.message(executor.options, [[wire.pack(a) for a in self.inputs]])
        try:
            answer = executor.worker.request({**message, "as_written": True})
        except TenferroError as error:
            return Answer(executor.name, Verdict.ERROR, reason=f"{error.kind}: {error}", error=error.to_json())
        comparison = compare_bits(self.outputs, [wire.unpack(packed) for packed in answer["output_sets"][0]])
        if not comparison.outside:
            return Answer(executor.name, Verdict.PASS, comparison, seconds=answer["seconds"])
        place = f"output {comparison.worst_output}{list(comparison.worst_index or ())}"
        reason = f"{place}: {comparison.observed} is not {comparison.expected}"
        return Answer(executor.name, Verdict.MISMATCH, comparison, reason, seconds=answer["seconds"])


@dataclass(frozen=True, eq=False)
class ReadModule:
    """A StableHLO module that is run as it is written, and its inputs; what is right is said by the program that it is read as."""

    stablehlo: str
    inputs: tuple[Array, ...]

    def case(self, reader: Reader) -> Case:
        """The case of that program, which has the module as its source."""
        return given_case(reader.source(self.stablehlo, "module"), self.inputs, reader)


@dataclass(frozen=True, eq=False)
class Entry:
    """One case of the corpus.

    Attributes
    ----------
    expected
        Verdict by executor name, as `oracle.peers.Pool.make` knows it.
    seconds
        Limit of one request to an executor.
    """

    name: str
    about: str
    case: Case | ModuleCase | ReadModule
    expected: dict[str, Verdict]
    seconds: float = SECONDS

    def judge(self, executor: Executor, reader: Reader) -> Answer:
        """The verdict on an executor."""
        if isinstance(self.case, ModuleCase):
            return self.case.judge(executor)
        case = self.case.case(reader) if isinstance(self.case, ReadModule) else self.case
        return judge(executor, Reference(case, NativeExecutor()))


def load(path: Path) -> Entry:
    """Read one case.

    Raises
    ------
    FormatError
        Unreadable, not TOML, a missing or unknown key, a wrong type, an unknown verdict, no program, inputs that do not
        fit it.
    """
    try:
        content = msgspec.convert(read_toml(path), _File)
    except msgspec.MsgspecError as error:
        raise FormatError(where=str(path), detail=f"no case of the corpus: {error}") from None
    if bool(content.program) == bool(content.module) or (content.program and content.outputs):
        raise FormatError(where=str(path), detail="needs either a program, or a module, which may have outputs")
    if not 0 < content.seconds <= MOST_SECONDS:
        raise FormatError(where=f"{path}: seconds", detail=f"must be positive and at most {MOST_SECONDS}")
    inputs, outputs = (
        tuple(_array(f"{path}: {key}[{i}]", tensor) for i, tensor in enumerate(getattr(content, key)))
        for key in ("inputs", "outputs")
    )
    case: Case | ModuleCase | ReadModule
    if not content.module:
        case = _case(content.program, inputs, path)
    else:
        case = ModuleCase(content.module, inputs, outputs) if outputs else ReadModule(content.module, inputs)
    return Entry(path.stem, content.about, case, content.expected, content.seconds)


def _case(text: str, inputs: tuple[Array, ...], path: Path) -> Case:
    program = parse(text, f"{path}: program")
    if program.kind != "graph":
        raise FormatError(where=f"{path}: program", detail="must be a graph program")
    try:
        program.check_inputs([type_of(a) for a in inputs])
    except TenferroError as error:
        raise FormatError(where=f"{path}: inputs", detail=f"do not fit the program: {error}") from None
    return Case.of(program, inputs)


def _array(where: str, tensor: _Tensor) -> Array:
    try:
        data = np.frombuffer(bytes.fromhex(tensor.data), DType[tensor.dtype].numpy)
        return data.reshape(tensor.shape, order="F")
    except (KeyError, ValueError) as error:
        raise FormatError(where=where, detail=f"needs dtype, shape and data in hexadecimal: {error}") from None


def text(entry: Entry) -> str:
    """The file of a case."""
    case = entry.case
    lines = [f"about = {_quoted(entry.about)}"]
    lines += [f"seconds = {entry.seconds}"] if entry.seconds != SECONDS else []
    if isinstance(case, Case) and case.source is not None and case.source.text is not None:
        case = ReadModule(case.source.text, case.arguments)
    if isinstance(case, ModuleCase | ReadModule):
        lines += [f"module = {_block(case.stablehlo)}", *_tensors("inputs", case.inputs)]
        lines += _tensors("outputs", case.outputs) if isinstance(case, ModuleCase) else []
    else:
        lines += [f"program = {_block(print_program(case.program))}", *_tensors("inputs", case.inputs)]
    lines += [
        "",
        "[expected]",
        *(f'{_quoted(name)} = "{verdict.value}"' for name, verdict in entry.expected.items()),
    ]
    return "\n".join(lines) + "\n"


def _quoted(words: str) -> str:
    """A basic string of TOML, which is one of JSON but for a character that TOML wants escaped."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")


def _block(words: str) -> str:
    return _quoted(words) if "'''" in words else f"'''\n{words}'''"


def _tensors(key: str, arrays: tuple[Array, ...]) -> list[str]:
    rows = [
        f'    {{ dtype = "{DType.of(a).name}", shape = {list(a.shape)}, data = "{a.tobytes("F").hex()}" }},'
        for a in arrays
    ]
    return [f"{key} = [", *rows, "]"]
