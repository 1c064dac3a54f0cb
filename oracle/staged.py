"""Programs with decompositions are judged in stages.

Factors are not unique, so values that are computed from them have no enclosure. Instead the program is run with more outputs:
the operands and results of each op that has backward-error checks. These ops are held to their bounds on the executor's own
operands (`decompositions`), all others to the enclosure of the program in which the executor's factors are inputs. With more
outputs a compiler may fuse otherwise than for the program itself: this is the cost of judging in stages. A module that shows these
operands and results by itself is run as it is.

A system of one equation is solved without a loop: where its solution is a product with a reciprocal, it may be used unrounded,
as any product may; where it is a quotient, it may be grouped otherwise with what follows. An instruction that no output depends on is left out: removing it is right (SEMANTICS 4.4), and so is
executing it, which may refuse a matrix (`refuses_dead`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

import oracle.decompositions  # noqa: F401 - the checks of decompositions
from oracle import checks, configurations
from oracle.case import Case, live
from oracle.checks import CHECK_EXTENSION
from oracle.compare import compare, compare_bits
from oracle.enclosure import MODELS, enclose
from oracle.peers import Executor, NativeExecutor, attempt
from oracle.verdict import Comparison
from tenferro_ref.errors import InvalidArgument, NumericalFailure, TenferroError, UnsupportedOp
from tenferro_ref.extensions import lapack, linalg
from tenferro_ref.ops import Conj, Divide, Extension, Multiply, Op, TensorType, Transpose
from tenferro_ref.program import GraphProgram, Instruction
from tenferro_ref.tensor import Array, same_bits, type_of


def decomposing(program: GraphProgram) -> list[Instruction]:
    """The instructions whose results are judged by backward-error checks."""
    return [i for i in program.instructions if isinstance(i.op, Extension) and i.op.key in CHECK_EXTENSION]


def refuses(error: object) -> bool:
    """Whether an error says that a matrix, or a pivot, is one which an op cannot work on."""
    return isinstance(error, NumericalFailure | InvalidArgument) and any(error.op == op for _, op in CHECK_EXTENSION)


def refuses_dead(error: TenferroError, case: Case) -> bool:
    """Whether an op that no output depends on raises this error for its matrix when its results are outputs."""
    if not refuses(error):
        return False
    kept = live(case.program).instructions
    dead = [ins for ins in decomposing(case.program) if ins not in kept]
    cases = (Case(replace(case.program, output_slots=ins.output_slots), case.inputs) for ins in dead)
    results = (attempt(NativeExecutor(), each) for each in cases)
    return any(isinstance(r, TenferroError) and r.to_json() == error.to_json() for r in results)


def judge_stages(executor: Executor, case: Case) -> Comparison:
    """The comparison of all stages: invariants of the factors, and elements of everything else.

    Nothing is decided where all outputs come of factors of which nothing can be asked (of a matrix that is not finite).

    Raises
    ------
    TenferroError
        What the executor raises, or an op of the program that no enclosure knows.
    """
    watched, own = _watched(case), len(case.program.output_slots)
    given, wanted = watched.source is not None, watched.program.output_slots
    case = Case(watched.program, watched.inputs)
    program, ops = case.program, decomposing(case.program)
    made = {slot for ins in ops for slot in ins.output_slots}
    outputs = executor.run(watched).outputs
    native = outputs if executor == NativeExecutor() else NativeExecutor().run(watched).outputs
    if [(a.dtype, a.shape) for a in outputs] != [(a.dtype, a.shape) for a in native]:
        return compare_bits(native, outputs)  # which names what does not fit
    # of each slot the first output that shows it; of a module several may
    places = {slot: n for n, slot in reversed([*enumerate(wanted)])}
    values = {slot: outputs[n] for slot, n in places.items()} | dict(zip(program.input_slots, case.inputs, strict=True))
    stages, unasked = [], set[int]()
    nothing = tuple(slot for slot in _of_nothing(program, ops) if slot not in values)
    if nothing:
        empty = Case(replace(program, output_slots=nothing), case.inputs)
        values.update(zip(nothing, NativeExecutor().run(empty).outputs, strict=True))
    garbage = _without_meaning(program, ops)
    for slot, type_ in garbage.items():
        values[slot] = np.zeros(type_.static_shape, type_.dtype.numpy)
    for slot, (move, back) in _moved(program, set(values)).items():
        values[slot] = np.asfortranarray(_of_moved(move, back, values))
    for ins in ops:
        op = ins.op
        assert isinstance(op, Extension)
        operands, results = ([values[s] for s in slots] for slots in (ins.input_slots, ins.output_slots))
        checked = partial(checks.compare, op, operands, flushes=MODELS[executor.model].flush, given=given)
        stages.append(_placed(checked(results), [places[slot] for slot in ins.output_slots if slot in places]))
        if stages[-1].elements and not stages[-1].decided:
            unasked.update(ins.output_slots)
        shown = {*ins.output_slots} & places.keys() - garbage.keys()
        for n, slot in enumerate(wanted):
            if slot in shown and n != places[slot]:  # a factor that is returned once more
                again = [outputs[n] if own == slot else values[own] for own in ins.output_slots]
                stages.append(_placed(checked(again), [n]))
    rest = [n for n, slot in enumerate(wanted) if slot not in made]
    _check_way(case, watched.deciding, ops, values, executor.model)
    observed = [outputs[n] for n in rest]

    def held(way: type[Op]) -> Comparison:
        cut = _cut(case, ops, [wanted[n] for n in rest], values, way)
        return compare(enclose(cut.program, cut.inputs, MODELS[executor.model]), None, observed, observed)

    elementwise = held(Multiply)
    if elementwise.outside and any(_of_one_equation(ins, values, Divide) for ins in ops):
        elementwise = min(elementwise, held(Divide), key=lambda found: found.outside)
    merged = _merged([*stages, _placed(elementwise, rest)])
    asked = {*wanted[:own]} - _depending(program, unasked)
    return merged if any(values[slot].size for slot in asked) or not unasked else replace(merged, decided=0, tight=0)


def _depending(program: GraphProgram, slots: set[int]) -> set[int]:
    """These slots, and all that is computed from them."""
    found = set(slots)
    for ins in program.instructions:
        if found.intersection(ins.input_slots):
            found.update(ins.output_slots)
    return found


def _placed(found: Comparison, places: Sequence[int]) -> Comparison:
    """The comparison of the outputs at these places, with the wrong one's place among all that are watched, not among these."""
    worst = found.worst_output
    return found if worst is None or worst >= len(places) else replace(found, worst_output=places[worst])


def _watched(case: Case) -> Case:
    """The case with all that goes into and comes out of decompositions as further outputs.

    Raises
    ------
    UnsupportedOp
        A module has a decomposition whose factors it cannot be made to give.
    """
    case = case if _shows_all(case) else case.watched or case.written
    case = replace(case, program=live(case.program))
    ops, given = decomposing(case.program), {*case.program.input_slots, *case.program.output_slots}
    needed = _needed(case.program, ops) - given - set(_moved(case.program, given))
    if case.source is not None and needed:
        hidden = next(ins.op for ins in ops if needed.intersection((*ins.input_slots, *ins.output_slots)))
        raise UnsupportedOp(
            op=hidden.name, reason="its factors are inside a loop of many turns, or an operation of the module"
        )
    wanted = (*case.program.output_slots, *sorted(needed))
    return replace(case, program=replace(case.program, output_slots=wanted))


def _shows_all(case: Case) -> bool:
    """Whether a module has all that goes into and comes out of its decompositions among its arguments and results."""
    program = live(case.program)
    given = {*program.input_slots, *program.output_slots}
    return case.source is not None and not _needed(program, decomposing(program)) - given - set(_moved(program, given))


def _needed(program: GraphProgram, ops: Sequence[Instruction]) -> set[int]:
    """What goes into and comes out of these instructions, but for what has no meaning, or comes of no element."""
    without = {*_without_meaning(program, ops), *_of_nothing(program, ops)}
    return {slot for ins in ops for slot in (*ins.input_slots, *ins.output_slots)} - without


def _moved(program: GraphProgram, given: Collection[int]) -> dict[int, tuple[Instruction, bool]]:
    """Slots that are given ones with their elements moved or conjugated, in an order in which they can be had: by which
    instruction, and whether from its result. A module reads and gives matrices with other axes than the reference.
    """
    found: dict[int, tuple[Instruction, bool]] = {}
    moves = [ins for ins in program.instructions if isinstance(ins.op, Transpose | Conj)]
    for back in (False, True):
        for ins in moves[:: -1 if back else 1]:
            (source,), (result,) = ins.input_slots, ins.output_slots
            known, other = (result, source) if back else (source, result)
            if known in (*given, *found) and other not in (*given, *found):
                found[other] = (ins, back)
    return found


def _of_moved(ins: Instruction, back: bool, values: dict[int, Array]) -> Array:
    """The result of a move, or what it was made of."""
    x = values[ins.output_slots[0] if back else ins.input_slots[0]]
    if not isinstance(ins.op, Transpose):
        return np.conj(x)
    return np.transpose(x, np.argsort(ins.op.perm) if back else ins.op.perm)


def _without_meaning(program: GraphProgram, ops: Sequence[Instruction]) -> dict[int, TensorType]:
    """The results of LAPACK's routines that they leave without a meaning."""
    return {
        (slot := ins.output_slots[i]): program.slot_types[slot]
        for ins in ops
        if isinstance(ins.op, Extension) and ins.op.family == lapack.FAMILY
        for i in lapack.garbage(ins.op, len(ins.output_slots))
    }


def _of_nothing(program: GraphProgram, ops: Sequence[Instruction]) -> tuple[int, ...]:
    """The slots of matrices without elements, and of all results of ops that have no other operands: these depend on no data."""
    found = dict[int, None]()
    for ins in ops:
        found |= {slot: None for slot in ins.input_slots if 0 in program.slot_types[slot].shape}
        if found.keys() >= {*ins.input_slots}:
            found |= dict.fromkeys(ins.output_slots)
    return tuple(found)


def _check_way(
    case: Case, deciding: GraphProgram | None, ops: Sequence[Instruction], values: dict[int, Array], model: str
) -> None:
    """Raise `UnsupportedOp` unless the executor's factors let the module go the way that it was read in."""
    if deciding is None:
        return
    native = NativeExecutor().run(replace(case, program=deciding)).outputs
    cut = _cut(replace(case, program=deciding), ops, deciding.output_slots, values)
    found = compare(enclose(cut.program, cut.inputs, MODELS[model]), None, native, native)
    if found.outside or found.decided < found.elements:
        raise UnsupportedOp(
            op="decomposition", reason="with the executor's factors the module may branch or loop otherwise"
        )


def _cut(
    case: Case, ops: Sequence[Instruction], outputs: Sequence[int], values: dict[int, Array], way: type[Op] = Multiply
) -> Case:
    """The program without `ops`: their results are inputs, with the values that there are; that of one equation comes in a `way`."""
    program = case.program
    instructions: list[Instruction] = []
    slots: list[int] = []
    inputs: list[Array] = []
    free = program.n_slots
    for ins in program.instructions:
        if ins not in ops:
            instructions.append(ins)
        elif operands := _of_one_equation(ins, values, way):
            instructions.append(Instruction(way(), (free, free + 1), ins.output_slots))
            slots += (free, free + 1)
            inputs += operands
            free += 2
        else:
            slots += ins.output_slots
            inputs += [values[slot] for slot in ins.output_slots]
    shorter = replace(
        program,
        instructions=tuple(instructions),
        input_slots=(*program.input_slots, *slots),
        input_types=(*program.input_types, *map(type_of, inputs)),
        output_slots=tuple(outputs),
        n_slots=free,
    )
    return Case(shorter, (*case.inputs, *inputs))


def _of_one_equation(ins: Instruction, values: dict[int, Array], way: type[Op]) -> tuple[Array, Array] | None:
    """Right-hand side and reciprocal of a system of one equation, if their product is the solution that there is; for the way
    `Divide` the divisor, if the quotient is.
    """
    op, (a, b, *_) = ins.op, (*(values[slot] for slot in ins.input_slots), None, None)
    if not isinstance(op, Extension) or op.key != (linalg.FAMILY, "TriangularSolve") or a is None or b is None:
        return None
    if configurations.flags(op)["unit_diagonal"] or a.shape[:2] != (1, 1) or a.dtype.kind != "f":
        return None
    other = np.asfortranarray(np.broadcast_to(a, b.shape))
    with np.errstate(all="ignore"):
        other = other if way is Divide else np.reciprocal(other)
        made = np.divide(b, other, order="F") if way is Divide else np.multiply(b, other, order="F")
        same = same_bits(made, values[ins.output_slots[0]])
    return (b, other) if same else None


def _merged(stages: Sequence[Comparison]) -> Comparison:
    """Sums; the first that is outside speaks for all."""
    wrong = next((c for c in stages if c.outside), Comparison())
    return replace(
        wrong,
        elements=sum(c.elements for c in stages),
        decided=sum(c.decided for c in stages),
        tight=sum(c.tight for c in stages),
        outside=sum(c.outside for c in stages),
        forgiven=0,
        worst_ulp=None,
        widths=(),
    )


__all__ = ["decomposing", "judge_stages", "refuses", "refuses_dead"]
