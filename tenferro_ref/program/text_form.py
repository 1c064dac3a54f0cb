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
from tenferro_ref.errors import FormatError
from tenferro_ref.ops import ENGINE, TensorType
from tenferro_ref.program import json_form
from tenferro_ref.program.program import ExecInstruction, ExecProgram, GraphProgram, Instruction


def print_program(program: GraphProgram | ExecProgram) -> str:
    """The program in readable form."""
    names = dict(program.symbols) if isinstance(program, GraphProgram) else {}

    def extent(e: Extent) -> str:
        return names[e] if isinstance(e, InputDim) and e in names else str(e)

    def type_text(t: TensorType) -> str:
        return f"{t.dtype}[{', '.join(map(extent, t.shape))}]"

    kind = "graph" if isinstance(program, GraphProgram) else "exec"
    head = [kind]
    if program.name:
        head.append("@" + json.dumps(program.name))
    if program.policy != ENGINE:
        head.append("policy " + json.dumps(json_form.write_policy(program.policy)))
    inputs = ", ".join(f"%{s}: {type_text(t)}" for s, t in zip(program.input_slots, program.input_types, strict=True))
    head.append(f"({inputs}) -> ({_slots(program.output_slots)}) slots {program.n_slots} {{")
    lines = [" ".join(head)]
    slot_types = program.slot_types
    for ins in program.instructions:
        types = ", ".join(type_text(slot_types[s]) for s in ins.output_slots)
        lines.append(f"  {_instruction(ins)} : {types}")
    return "\n".join([*lines, "}"]) + "\n"


def _slots(slots: tuple[int, ...]) -> str:
    return ", ".join(f"%{s}" for s in slots)


def _instruction(ins: Instruction) -> str:
    attrs = json_form.write_attrs(ins.op)
    dies = ins.last_use if isinstance(ins, ExecInstruction) else (False,) * len(ins.input_slots)
    operands = ", ".join(f"%{s}{'!' if die else ''}" for s, die in zip(ins.input_slots, dies, strict=True))
    results = f"{_slots(ins.output_slots)} = " if ins.output_slots else ""
    return f"{results}{ins.op.name}({operands})" + (f" {json.dumps(attrs)}" if attrs else "")


_HEAD = re.compile(
    r'(?P<kind>graph|exec)(?: @(?P<name>"(?:[^"\\]|\\.)*"))?(?: policy (?P<policy>\{[^}]*\}))? '
    r"\((?P<inputs>.*)\) -> \((?P<outputs>[^)]*)\) slots (?P<slots>\d+) \{"
)
_INPUT = re.compile(r"%(?P<slot>\d+): (?P<dtype>\w+)\[(?P<shape>[^\]]*)\]")
_LINE = re.compile(
    r"(?:(?P<results>%[\d, %]*) = )?(?P<op>\w+)\((?P<operands>[^)]*)\)(?: (?P<attrs>\{.*\}))? : (?P<types>.*)"
)
_INPUT_DIM = re.compile(r"in(\d+)\.(\d+)")


def _fail(where: str, number: int, detail: str) -> NoReturn:
    raise FormatError(where=f"{where}:{number}", detail=detail)


def _slot_list(text: str) -> list[tuple[int, bool]]:
    """`%3, %4!` as [(3, False), (4, True)]."""
    return [(int(m[1]), bool(m[2])) for m in re.finditer(r"%(\d+)(!?)", text)]


def _input_extent(text: str) -> Any:
    if match := _INPUT_DIM.fullmatch(text):
        return {"input": int(match[1]), "axis": int(match[2])}
    return int(text) if text.lstrip("-").isdigit() else text


def parse(text: str, where: str = "program") -> GraphProgram | ExecProgram:
    """Read the text form, by way of the JSON form's reader, which does all the checking.

    Raises
    ------
    FormatError
        `where` is `FILE:LINE`, or `FILE: JSON path` for what the line's values break.
    """
    numbered = [(i, line.strip()) for i, line in enumerate(text.splitlines(), 1)]
    lines = [(i, line) for i, line in numbered if line and not line.startswith("//")]
    if not lines or not (head := _HEAD.fullmatch(lines[0][1])):
        _fail(where, lines[0][0] if lines else 1, "expected `graph (%0: F64[2, 3], ...) -> (%1) slots N {`")
    if lines[-1][1] != "}":
        _fail(where, lines[-1][0], "the closing } is missing")
    entries: dict[str, Any] = {
        "tenferro_program": json_form.VERSION,
        "kind": head["kind"],
        "n_slots": int(head["slots"]),
        "inputs": [
            {
                "slot": int(m["slot"]),
                "dtype": m["dtype"],
                "shape": [_input_extent(e.strip()) for e in m["shape"].split(",") if e.strip()],
            }
            for m in _INPUT.finditer(head["inputs"])
        ],
        "outputs": [slot for slot, _ in _slot_list(head["outputs"])],
        "instructions": [],
    }
    if head["name"]:
        entries["name"] = json.loads(head["name"])
    try:
        if head["policy"]:
            entries["policy"] = json.loads(head["policy"])
        for number, line in lines[1:-1]:
            match = _LINE.fullmatch(line)
            if not match:
                _fail(where, number, f"expected `%N = Op(%A, %B) {{attributes}} : type`, got {line[:60]!r}")
            operands = _slot_list(match["operands"])
            entry: dict[str, Any] = {
                "op": match["op"],
                "inputs": [slot for slot, _ in operands],
                "outputs": [slot for slot, _ in _slot_list(match["results"] or "")],
                "attrs": json.loads(match["attrs"] or "{}"),
            }
            if head["kind"] == "exec":
                entry["last_use"] = [dies for _, dies in operands]
            entries["instructions"].append(entry)
    except json.JSONDecodeError as error:
        raise FormatError(where=where, detail=f"attributes are not JSON: {error.msg}") from None
    return json_form.loads(json.dumps(entries), where)
