"""The readable text form, in the manner of MLIR: `parse(print_program(p)) == p`.

    graph @name policy {"dtypes": "stablehlo"} (%0: F64[n, 3], %1: F64[3, 4]) -> (%3) slots 4 {
      %2 = Transpose(%1) {"perm": [1, 0]} : F64[4, 3]
      %3 = DotGeneral(%0, %2) {"lhs_contracting_dims": [1], ...} : F64[n, 4]
    }

Attributes are JSON objects and read by the codecs of the JSON form. Result types are
inferred, and those in the text must agree (`?` agrees with any). In an `exec` program a `!` behind an operand marks its last use,
and lines `guard {"source": ..., "relation": "Equal", "lhs": ..., "rhs": ...}` behind the instructions are its shape guards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from tenferro_ref.dims import InputDim
from tenferro_ref.errors import FormatError, TenferroError, UsageError
from tenferro_ref.ops import DEFAULT_POLICY, TensorType
from tenferro_ref.program import json_form, records
from tenferro_ref.program.program import Instruction, Program


def print_program(program: Program) -> str:
    """The program in readable form; without result types if it breaks a rule, so that there are none."""
    names = dict(program.symbols) if program.kind == "graph" else {}

    head: list[str] = [program.kind]
    if program.name:
        head.append("@" + json.dumps(program.name))
    if program.policy != DEFAULT_POLICY:
        head.append("policy " + json.dumps(json_form.write_policy(program.policy)))
    inputs = ", ".join(
        f"%{s}: {_type_text(t, names)}" for s, t in zip(program.input_slots, program.input_types, strict=True)
    )
    head.append(f"({inputs}) -> ({_slots(program.output_slots)}) slots {program.n_slots} {{")
    lines = [" ".join(head)]
    try:
        slot_types = program.slot_types
    except TenferroError:
        slot_types = {}
    for ins in program.instructions:
        types = ", ".join(_type_text(slot_types[s], names) if slot_types else "?" for s in ins.output_slots)
        lines.append(f"  {_instruction(ins)} : {types}")
    lines += [f"  {_GUARD}{json.dumps(records.write_guard(guard))}" for guard in program.shape_guards]
    return "\n".join([*lines, "}"]) + "\n"


def _type_text(t: TensorType, names: Mapping[InputDim, str]) -> str:
    shape = (names[e] if isinstance(e, InputDim) and e in names else str(e) for e in t.shape)
    return f"{t.dtype}[{', '.join(shape)}]"


def _slots(slots: tuple[int, ...]) -> str:
    return ", ".join(f"%{s}" for s in slots)


def _instruction(ins: Instruction) -> str:
    attrs = records.write_attrs(ins.op)
    dies = ins.last_use or (False,) * len(ins.input_slots)
    operands = ", ".join(f"%{s}{'!' if die else ''}" for s, die in zip(ins.input_slots, dies, strict=True))
    results = f"{_slots(ins.output_slots)} = " if ins.output_slots else ""
    return f"{results}{ins.op.name}({operands})" + (f" {json.dumps(attrs)}" if attrs else "")


_GUARD = "guard "
_HEAD = re.compile(
    r'(?P<kind>graph|exec)(?: @(?P<name>"(?:[^"\\]|\\.)*"))?(?: policy (?P<policy>\{[^}]*\}))? '
    r"\((?P<inputs>.*)\) -> \((?P<outputs>[^)]*)\) slots (?P<slots>\d+) \{",
    re.ASCII,
)
_INPUT = re.compile(r"%(?P<slot>\d+): (?P<dtype>\w+)\[(?P<shape>[^\]]*)\]", re.ASCII)
_LINE = re.compile(
    r"(?:(?P<results>%[^=]*) = )?(?P<op>\w+)\((?P<operands>[^)]*)\)(?: (?P<attrs>\{.*\}))? : (?P<types>.*)", re.ASCII
)
_SLOT = re.compile(r"%(\d+)(!?)", re.ASCII)
_INPUT_DIM = re.compile(r"in(\d+)\.(\d+)", re.ASCII)
_BETWEEN_TYPES = re.compile(r",(?![^\[]*\])")
_NUMBER = re.compile(r"-?\d+", re.ASCII)


@dataclass(frozen=True)
class _Place:
    """A place in a file, whose line and column count from 1: `FILE:LINE:COLUMN`."""

    file: str
    line: int
    column: int = 1

    def __add__(self, characters: int) -> _Place:
        return replace(self, column=self.column + characters)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def _fail(at: _Place, detail: str) -> NoReturn:
    raise FormatError(where=str(at), detail=detail)


def _integer(digits: str, at: _Place) -> int:
    if len(digits) > 20:
        _fail(at, f"{json_form.shown(digits)} does not fit 64 bits")
    return int(digits)


def _json(text: str, at: _Place) -> Any:
    return json_form.read_json(text, str(at), lambda _, column: str(at + (column - 1)))


def _parts(text: str, separator: str, at: _Place) -> list[tuple[str, _Place]]:
    """The parts of a list, with their places; none of an empty text."""
    parts = []
    for part in text.split(separator) if text else []:
        parts.append((part, at))
        at += len(part) + len(separator)
    return parts


def _slot_list(text: str, at: _Place) -> list[tuple[int, bool, _Place]]:
    """`%3, %4!` as [(3, False, its place), (4, True, its place)]."""
    slots = []
    for part, place in _parts(text, ", ", at):
        if not (match := _SLOT.fullmatch(part)):
            _fail(place, f"expected slots `%0, %1`, got {json_form.shown(text)}")
        slots.append((_integer(match[1], place), bool(match[2]), place))
    return slots


def _extent(text: str, at: _Place) -> Any:
    if match := _INPUT_DIM.fullmatch(text):
        return {"input": _integer(match[1], at), "axis": _integer(match[2], at)}
    return _integer(text, at) if _NUMBER.fullmatch(text) else text


@dataclass
class _Reader:
    """Makes the entries of the JSON form, and keeps where in the text each of them stands.

    Attributes
    ----------
    places
        By JSON path.
    types
        Result types of each instruction, as the text has them.
    """

    places: dict[str, _Place] = field(default_factory=dict)
    types: list[str] = field(default_factory=list)

    def slots(self, text: str, path: str, at: _Place) -> list[tuple[int, bool]]:
        """A list of slots and whether each has a `!`."""
        self.places[path] = at
        found = _slot_list(text, at)
        self.places |= {f"{path}[{i}]": place for i, (_, _, place) in enumerate(found)}
        return [(slot, dies) for slot, dies, _ in found]

    def inputs(self, text: str, at: _Place) -> list[dict[str, Any]]:
        """The program's inputs."""
        entries = []
        for i, (part, place) in enumerate(_parts(text, "], ", at)):
            match = _INPUT.fullmatch(part if part.endswith("]") else part + "]")
            if not match:
                _fail(place, f"expected an input `%0: F64[2, 3]`, got {json_form.shown(part)}")
            shape = _parts(match["shape"], ", ", place + match.start("shape"))
            self.places[f"$.inputs[{i}]"] = place
            self.places[f"$.inputs[{i}].dtype"] = place + match.start("dtype")
            self.places |= {f"$.inputs[{i}].shape[{axis}]": where for axis, (_, where) in enumerate(shape)}
            slot, extents = _integer(match["slot"], place), [_extent(e, where) for e, where in shape]
            entries.append({"slot": slot, "dtype": match["dtype"], "shape": extents})
        return entries

    def instruction(self, line: str, kind: str, at: _Place) -> dict[str, Any]:
        """The next instruction."""
        match = _LINE.fullmatch(line)
        if not match:
            _fail(at, f"expected `%N = Op(%A, %B) {{attributes}} : type`, got {json_form.shown(line)}")
        path = f"$.instructions[{len(self.types)}]"
        self.places[path] = at
        for name in ("op", "attrs", "types"):
            self.places[f"{path}.{name}"] = at + (match.start(name) if match[name] else match.start("op"))
        operands = self.slots(match["operands"], f"{path}.inputs", at + match.start("operands"))
        self.types.append(match["types"])
        entry: dict[str, Any] = {
            "op": match["op"],
            "inputs": [slot for slot, _ in operands],
            "outputs": [slot for slot, _ in self.slots(match["results"] or "", f"{path}.outputs", at)],
            "attrs": _json(match["attrs"] or "{}", self.places[f"{path}.attrs"]),
        }
        if kind == "exec":
            entry["last_use"] = [dies for _, dies in operands]
            self.places[f"{path}.last_use"] = self.places[f"{path}.inputs"]
        elif any(dies for _, dies in operands):
            _fail(self.places[f"{path}.inputs"], "`!` marks a last use, which only exec programs have")
        return entry

    def locate(self, path: str) -> str:
        """The place of what a JSON path leads to, or of the nearest thing around it that the text has."""
        known = path
        while known not in self.places:
            known = known[: max(known.rfind("."), known.rfind("["))] if known.strip("$") else "$"
        return str(self.places[known]) + (
            f": {path[len(known) :].lstrip('.')}" if known != "$" and known != path else ""
        )

    def check_types(self, program: Program) -> None:
        """Refuse result types that are not those inferred; `?` stands for any."""
        names = dict(program.symbols) if program.kind == "graph" else {}
        for i, (ins, text) in enumerate(zip(program.instructions, self.types, strict=True)):
            types = [program.slot_types[slot] for slot in ins.output_slots]
            said = _BETWEEN_TYPES.split(_without_spaces(text)) if text else []
            forms = [{"?", *(_without_spaces(_type_text(t, n)) for n in (names, {}))} for t in types]
            if len(said) != len(types) or any(word not in form for word, form in zip(said, forms, strict=True)):
                rule = ", ".join(_type_text(t, names) for t in types)
                detail = f"the type {json_form.shown(text)} contradicts what {ins.op.name} gives here: {rule}"
                _fail(self.places[f"$.instructions[{i}].types"], detail)


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _check_end(lines: list[tuple[_Place, str]]) -> None:
    """Refuse a program without its closing brace, or with anything behind it."""
    end = next((i for i, (_, line) in enumerate(lines) if line.startswith("}")), None)
    if end is None:
        _fail(lines[-1][0], "the closing } is missing")
    at, line = lines[end]
    if line != "}":
        _fail(at + 1, "text after the closing }")
    if lines[end + 1 :]:
        _fail(lines[end + 1][0], "text after the closing }")


def parse(text: str, where: str = "program") -> Program:
    """Read the text form, by way of the JSON form's reader, which checks all but the result types.

    Raises
    ------
    FormatError
        Not the text form, or a result type that is not the inferred one; `where` is `FILE:LINE:COLUMN`.
    TenferroError
        A well-formed text whose program breaks a rule; its `place` is `FILE:LINE:COLUMN`.
    UsageError
        It is no `str`.
    """
    if not isinstance(text, str):
        raise UsageError(detail=f"{type(text).__name__} where the text of a program is needed")
    numbered = [
        (_Place(where, i, 1 + len(line) - len(line.lstrip())), line.strip())
        for i, line in enumerate(text.split("\n"), 1)
    ]
    lines = [(at, line) for at, line in numbered if line and not line.startswith("//")]
    if not lines or not (head := _HEAD.fullmatch(lines[0][1])):
        _fail(lines[0][0] if lines else _Place(where, 1), "expected `graph (%0: F64[2, 3], ...) -> (%1) slots N {`")
    _check_end(lines)
    at = lines[0][0]
    reader = _Reader({"$": at, "$.n_slots": at + head.start("slots"), "$.inputs": at + head.start("inputs")})
    entries: dict[str, Any] = {
        "tenferro_program": records.VERSION,
        "kind": head["kind"],
        "n_slots": _integer(head["slots"], at + head.start("slots")),
        "inputs": reader.inputs(head["inputs"], at + head.start("inputs")),
        "outputs": [slot for slot, _ in reader.slots(head["outputs"], "$.outputs", at + head.start("outputs"))],
        "instructions": [
            reader.instruction(line, head["kind"], at) for at, line in lines[1:-1] if not line.startswith(_GUARD)
        ],
    }
    guards = [(at + len(_GUARD), line[len(_GUARD) :]) for at, line in lines[1:-1] if line.startswith(_GUARD)]
    if guards:
        reader.places |= {f"$.shape_guards[{i}]": at for i, (at, _) in enumerate(guards)} | {
            "$.shape_guards": guards[0][0]
        }
        entries["shape_guards"] = [_json(line, at) for at, line in guards]
    for key in ("name", "policy"):
        if head[key]:
            reader.places[f"$.{key}"] = at + head.start(key)
            entries[key] = _json(head[key], at + head.start(key))
    program = json_form.read_located(entries, where, locate=reader.locate)
    reader.check_types(program)
    return program
