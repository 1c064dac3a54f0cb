"""What a finding is called: the names of the ops of its program, its signature, its subject."""

from __future__ import annotations

import re

from fuzz.findings.alike import how_of
from oracle.case import Case
from oracle.peers.expressible import INDICES
from oracle.verdict import Answer
from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.program import GraphProgram


def named(program: GraphProgram, index: int) -> str:
    """The op at `index`, with what its code depends on: `Special(erf)`, `Extension(einsum)`, `Scatter(U8)`.

    `Scatter(U8)` where it has indices of a narrow or unsigned type;
    `Compare(F32)` by what it compares, which its result, a truth value, does not tell; `Convert(F32)` of a float to an integer,
    of a float of less than eight bits or of F8E8M0FNU, which has no zero; `Abs(C32)` of complex numbers.
    """
    ins = program.instructions[index]
    if isinstance(ins.op, ops.Special | ops.Special2 | ops.Bits):
        return f"{ins.op.name}({ins.op.function})"
    if isinstance(ins.op, ops.Extension):
        return f"{ins.op.name}({ins.op.op})"
    if isinstance(ins.op, ops.Compare):
        return f"{ins.op.name}({program.slot_types[ins.input_slots[0]].dtype.name})"
    if isinstance(ins.op, ops.Convert):
        read = program.slot_types[ins.input_slots[0]].dtype
        to_integer = read.is_float and program.slot_types[ins.output_slots[0]].dtype.is_int
        told = to_integer or (read.is_float and read.bits < 8) or read is DType.F8E8M0FNU
        return f"{ins.op.name}({read.name})" if told else ins.op.name
    if isinstance(ins.op, ops.Abs) and (read := program.slot_types[ins.input_slots[0]].dtype).is_complex:
        return f"{ins.op.name}({read.name})"
    if (place := INDICES.get(type(ins.op))) is None:
        return ins.op.name
    dtype = program.slot_types[ins.input_slots[place]].dtype
    return ins.op.name if dtype in ENGINE_DTYPES else f"{ins.op.name}({dtype.name})"


def of_cell(op: str) -> str:
    """The name under which a campaign counts what was located in an op: `Log` of `Log(Exp)`."""
    return op.partition("(")[0] or "(none)"


def with_operands(case: Case, index: int) -> str:
    """`Log(Exp)`: the op at `index` with the ops that made its operands; a rewrite shows in the pair."""
    program = case.program
    ins = program.instructions[index]
    makers = [program.producers.get(slot) for slot in ins.input_slots]
    names = sorted({program.instructions[i].op.name for i in makers if i is not None})
    return f"{named(program, index)}({', '.join(names)})" if names else named(program, index)


def signature(case: Case, answer: Answer, attribution: str) -> str:
    """ "ops | dtype | value class | attribution" of a reduced case; "fault | kind due | what came instead | ..." of an invalid one.

    The dtype is that of the output which is wrong, or of the first one where no value is.
    """
    if case.refusal is not None:
        return f"{case.refusal.fault} | {case.refusal.kind} | {how_of(answer)} | {attribution}"
    names = " > ".join(chain(case)) or "no instruction"
    names = f"{case.derivation} of {names}" if case.derivation else names
    types, worst = case.program.output_types, answer.comparison.worst_output or 0
    dtype = types[worst if worst < len(types) else 0].dtype.name if types else "none"
    return f"{names} | {dtype} | {how_of(answer)} | {attribution}"


#: An operation of a module; of a slice the type of its starts, if that is narrow or unsigned; of a conversion the type of its operand,
#: if that is a float of less than eight bits or F8E8M0FNU.
_OPERATION = re.compile(
    r"\b(?:stablehlo|chlo)\.([a-z]\w*)"
    r"(?:(?<=slice)[^\n]* tensor<(u?i(?:8|16)|ui(?:32|64))>\) ->"
    r"|(?<=\.convert).(?:\(%[^)]*\))?[^\n(]*\(tensor<(?:\d+x)*(f[46]E\w+|f8E8M0FNU)>\) ->)?"
)


def chain(case: Case) -> list[str]:
    """The ops of a program; the operations of a module that disagrees only as it is given, in the order of its text."""
    if case.source is not None and case.source.text is not None:
        found = re.finditer(_OPERATION, _without_attributes(case.source.text))
        told = ((m[1], m[2] or m[3]) for m in found if m[1] != "return")
        return [f"{name}({_dtype(dtype)})" if dtype else name for name, dtype in told]
    return [named(case.primal, i) for i in range(len(case.primal.instructions))]


def _dtype(text: str) -> str:
    return text.upper().replace("UI", "U")


def _without_attributes(text: str) -> str:
    return re.sub(r"#stablehlo[.<]|#chlo[.<]", "", text)


def subject(case: Case) -> str:
    """The last ops of a program, as its title names them."""
    if case.refusal is not None:
        return case.refusal.fault
    last = [name.partition("(")[0] for name in chain(case)][-3:]
    return " of ".join([*([str(case.derivation)] if case.derivation else []), *reversed(last)]) or "no instruction"
