"""The readable text form, in the manner of MLIR: `parse(print_program(p)) == p`.

    graph @name policy {"dtypes": "stablehlo"} (%0: F64[n, 3], %1: F64[3, 4]) -> (%3) slots 4 {
      %2 = Transpose(%1) {"perm": [1, 0]} : F64[4, 3]
      %3 = DotGeneral(%0, %2) {"lhs_contracting_dims": [1], ...} : F64[n, 4]
    }

Attributes are JSON objects and read by the codecs of the JSON form. Result types are there for the reader's sake: they
are inferred, whatever the text says. In an `exec` program a `!` behind an operand marks its last use.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from tenferro_ref.dims import Extent, InputDim
from tenferro_ref.errors import FormatError, TenferroError
from tenferro_ref.ops import DEFAULT_POLICY, TensorType
from tenferro_ref.program import json_form, records
from tenferro_ref.program.program import Instruction, Program


def print_program(program: Program) -> str:
    """The program in readable form; without result types if it breaks a rule, so that there are none."""
    names = dict(program.symbols) if program.kind == "graph" else {}

    def extent(e: Extent) -> str:
        return names[e] if isinstance(e, InputDim) and e in names else str(e)

    def type_text(t: TensorType) -> str:
        return f"{t.dtype}[{', '.join(map(extent, t.shape))}]"

    head: list[str] = [program.kind]
    if program.name:
        head.append("@" + json.dumps(program.name))
    if program.policy != DEFAULT_POLICY:
        head.append("policy " + json.dumps(json_form.write_policy(program.policy)))
    inputs = ", ".join(f"%{s}: {type_text(t)}" for s, t in zip(program.input_slots, program.input_types, strict=True))
    head.append(f"({inputs}) -> ({_slots(program.output_slots)}) slots {program.n_slots} {{")
    lines = [" ".join(head)]
    try:
        slot_types = program.slot_types
    except TenferroError:
        slot_types = {}
    for ins in program.instructions:
        types = ", ".join(type_text(slot_types[s]) if slot_types else "?" for s in ins.output_slots)
        lines.append(f"  {_instruction(ins)} : {types}")
    return "\n".join([*lines, "}"]) + "\n"


def _slots(slots: tuple[int, ...]) -> str:
    return ", ".join(f"%{s}" for s in slots)


def _instruction(ins: Instruction) -> str:
    attrs = records.write_attrs(ins.op)
    dies = ins.last_use or (False,) * len(ins.input_slots)
    operands = ", ".join(f"%{s}{'!' if die else ''}" for s, die in zip(ins.input_slots, dies, strict=True))
    results = f"{_slots(ins.output_slots)} = " if ins.output_slots else ""
    return f"{results}{ins.op.name}({operands})" + (f" {json.dumps(attrs)}" if attrs else "")


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
_NUMBER = re.compile(r"-?\d+", re.ASCII)


def _fail(where: str, detail: str) -> NoReturn:
    raise FormatError(where=where, detail=detail)


def _integer(digits: str, where: str) -> int:
    if len(digits) > 20:
        _fail(where, f"{json_form.shown(digits)} does not fit 64 bits")
    return int(digits)


def _slot_list(text: str, where: str) -> list[tuple[int, bool]]:
    """`%3, %4!` as [(3, False), (4, True)]."""
    matches = [_SLOT.fullmatch(part) for part in text.split(", ")] if text else []
    if not all(matches):
        _fail(where, f"expected slots `%0, %1`, got {json_form.shown(text)}")
    return [(_integer(m[1], where), bool(m[2])) for m in matches if m]


def _extent(text: str, where: str) -> Any:
    if match := _INPUT_DIM.fullmatch(text):
        return {"input": _integer(match[1], where), "axis": _integer(match[2], where)}
    return _integer(text, where) if _NUMBER.fullmatch(text) else text


def _inputs(text: str, where: str) -> list[dict[str, Any]]:
    entries = []
    for part in text.split("], ") if text else []:
        whole = part if part.endswith("]") else part + "]"
        match = _INPUT.fullmatch(whole)
        if not match:
            _fail(where, f"expected an input `%0: F64[2, 3]`, got {json_form.shown(part)}")
        shape = match["shape"].split(", ") if match["shape"] else []
        slot = _integer(match["slot"], where)
        entries.append({"slot": slot, "dtype": match["dtype"], "shape": [_extent(e, where) for e in shape]})
    return entries


def _instruction_entry(line: str, kind: str, where: str) -> dict[str, Any]:
    match = _LINE.fullmatch(line)
    if not match:
        _fail(where, f"expected `%N = Op(%A, %B) {{attributes}} : type`, got {json_form.shown(line)}")
    operands = _slot_list(match["operands"], where)
    entry: dict[str, Any] = {
        "op": match["op"],
        "inputs": [slot for slot, _ in operands],
        "outputs": [slot for slot, _ in _slot_list(match["results"] or "", where)],
        "attrs": json_form.read_json(match["attrs"] or "{}", where),
    }
    if kind == "exec":
        entry["last_use"] = [dies for _, dies in operands]
    elif any(dies for _, dies in operands):
        _fail(where, "`!` marks a last use, which only exec programs have")
    return entry


def parse(text: str, where: str = "program") -> Program:
    """Read the text form, by way of the JSON form's reader, which does all the checking.

    Raises
    ------
    FormatError
        `where` is `FILE:LINE`, or `FILE: JSON path` for what the line's values break.
    TenferroError
        A well-formed text whose program breaks a rule; its `place` is `FILE: JSON path`.
    """
    numbered = [(f"{where}:{i}", line.strip()) for i, line in enumerate(text.split("\n"), 1)]
    lines = [(at, line) for at, line in numbered if line and not line.startswith("//")]
    if not lines or not (head := _HEAD.fullmatch(lines[0][1])):
        _fail(lines[0][0] if lines else f"{where}:1", "expected `graph (%0: F64[2, 3], ...) -> (%1) slots N {`")
    if lines[-1][1] != "}":
        _fail(lines[-1][0], "the closing } is missing")
    at = lines[0][0]
    entries: dict[str, Any] = {
        "tenferro_program": records.VERSION,
        "kind": head["kind"],
        "n_slots": _integer(head["slots"], at),
        "inputs": _inputs(head["inputs"], at),
        "outputs": [slot for slot, _ in _slot_list(head["outputs"], at)],
        "instructions": [_instruction_entry(line, head["kind"], at) for at, line in lines[1:-1]],
    }
    for key in ("name", "policy"):
        if head[key]:
            entries[key] = json_form.read_json(head[key], at)
    return json_form.read_located(entries, where)
