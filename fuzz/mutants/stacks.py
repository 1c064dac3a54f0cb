"""Input sets that are judged at once, held to what each alone gives: enclosing, comparing, settling.

Each function looks at a program with several input sets and says what is broken, "" for nothing. Sets that are all the same
give what one of them gives, to the last bit; other sets give something that meets what each alone gives, whatever their order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count, zip_longest
from math import prod
from unittest import mock

import numpy as np

import oracle.enclosure.stacked as stacking
import oracle.judge as judges
from fuzz.generate.input_sets import input_sets_of
from fuzz.mutants.directed import apply, case_of
from fuzz.mutants.elements import SLOW, by_bits, by_element, facts
from fuzz.mutants.promises import same, samples
from fuzz.mutants.witnesses import wrong_value
from oracle.case import Case, live
from oracle.compare import Asked, compare, compare_many
from oracle.enclosure import IEEE, NUMPY, XLA, Enclosure, enclose, enclose_stacked, sets_at_once
from oracle.enclosure.model import Model
from oracle.judge import Reference, all_slots, judge_many, prepare
from oracle.peers import Execution, NativeExecutor, attempt
from oracle.verdict import Answer, Comparison, Verdict
from tenferro_ref import ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.errors import Internal, TenferroError, UnsupportedOp, WorkerDied
from tenferro_ref.tensor import Array

#: What results are held to.
MODELS = (IEEE, NUMPY, XLA)
#: Input sets of a program, and how many of them are enclosed at once where that is asked for.
SETS, FEW = 4, 3
#: Another order of the sets.
_ORDER = (2, 0, 3, 1)
#: Terms of a sum up to which its partial sums are looked at one by one.
_TERMS = 2**15
#: Place, among the input sets that are judged, of one whose program has no other.
_SINGLE = 6
#: Programs whose single sets are kept.
_KEPT = 4000


@dataclass(frozen=True, eq=False)
class Single:
    """An input set by itself, which no fault of judging several at once is in.

    Attributes
    ----------
    enclosures
        By model; none if the program has none.
    terms
        The most that an operation of the program reads or adds up.
    given
        What an executor may give, and what none must: the native answer, one end of each element, an error, the other end.
    """

    case: Case
    native: Execution | TenferroError
    enclosures: dict[str, list[Enclosure]]
    given: tuple[tuple[Array, ...], ...]
    terms: int = 1

    @property
    def outputs(self) -> tuple[Array, ...]:
        """Of the native executor; none where it refuses."""
        return self.native.outputs if isinstance(self.native, Execution) else ()


def _single(case: Case) -> Single:
    native, program = attempt(NativeExecutor(), case), live(case.program)
    if isinstance(native, TenferroError):
        return Single(case, native, {}, ((np.zeros(2, np.int32),),) * SETS)
    planted = _planted(native.outputs, int(case.fingerprint[:12], 16))
    try:
        alone = {model.name: enclose(program, case.inputs, model) for model in MODELS}
    except UnsupportedOp:
        return Single(case, native, {}, (native.outputs, planted) * 2, _terms(case))
    lower, upper = (_end(alone[XLA.name], upper) for upper in (False, True))
    return Single(case, native, alone, (native.outputs, lower, planted, upper), _terms(case))


def _terms(case: Case) -> int:
    program = live(case.program)
    result = attempt(NativeExecutor(), all_slots(Case(program, case.inputs)))
    computed = [s for ins in program.instructions for s in ins.output_slots]
    arrays = [*case.inputs, *(result.outputs if isinstance(result, Execution) else ())]
    values = dict(zip([*program.input_slots, *computed], arrays, strict=True))
    sizes = [1]
    for ins in program.instructions:
        operands = [values[s] for s in ins.input_slots]
        sizes += [a.size for a in operands]
        if isinstance(ins.op, ops.DotGeneral):
            contracted = [operands[0].shape[axis] for axis in ins.op.lhs_contracting_dims]
            sizes.append(values[ins.output_slots[0]].size * prod(contracted))
    return max(sizes)


_KNOWN: dict[str, list[Single]] = {}


def singles(case: Case) -> list[Single]:
    """Input sets that the native executor computes, some of them twice if there are few; none if it computes none."""
    if case.fingerprint not in _KNOWN:
        if len(_KNOWN) > _KEPT:
            _KNOWN.clear()
        drawn = [_single(s) for s in input_sets_of(case, SETS)]
        drawn = [s for s in drawn if s.outputs]
        _KNOWN[case.fingerprint] = [replace(s, case=s.case.with_inputs(s.case.inputs)) for s in (drawn * SETS)[:SETS]]
    return _KNOWN[case.fingerprint]


@cache
def _beside() -> list[Single]:
    """Input sets of a quotient of integers, the first of which is refused, and another program, with one."""
    first = case_of(lambda x, y: apply(ops.Divide(), x, y), *(np.array(v, np.int32) for v in ([6, 4], [0, 1])))
    others = (first.with_inputs((first.inputs[0], np.array(v, np.int32))) for v in ([6, 3], [2, -1]))
    single = case_of(lambda x: x + x, np.array([0.1, 1e-310]))
    return [_single(case) for case in (first, *others, single)]


def stacks(case: Case) -> str:
    """What judging input sets at once changes, "" for nothing."""
    sets = singles(case)
    if not sets:
        return ""
    laws = (_enclosing, _comparing, _judging) if all(s.enclosures for s in sets) else (_judging,)
    try:
        return _size(sets) or next(filter(None, (law(sets) for law in laws if _fit(sets))), "")
    except TenferroError as error:
        return f"judging at once raises {error.kind}: {error}"


def stacked(case: Case) -> Hashable:
    """How input sets that are judged at once look."""
    sets = singles(case)
    try:
        return repr(list(_seen(sets))) if sets else ""
    except TenferroError as error:
        return f"{error.kind}: {error}"


def _fit(sets: Sequence[Single]) -> bool:
    """So many sets may be enclosed at once."""
    return sets[0].terms * SETS <= _TERMS


def _seen(sets: Sequence[Single]) -> Iterator[object]:
    yield sets_at_once(live(sets[0].case.program), sets[0].case.shapes)
    if not _fit(sets):
        return
    if sets[0].enclosures:
        with mock.patch.object(stacking, "_joined", wraps=stacking._joined) as joined:
            own = _together(sets, XLA)
        yield joined.called, _bits(own), list(_misfitting(sets, own or ()))
        yield [told for _, told in _apart(sets[0], _taken(own, 0))] if own else None
    both, references, compiled = _prepared(sets)
    yield compiled, [a.verdict for a in judge_many(NativeExecutor(), references)]
    for r in references:
        yield r.stack and [references.index(s) for s in r.stack.references]
        yield _bits(r.enclosures(IEEE.name)) if r.stack and sets[0].enclosures else None
    for told in _scripts(both)[1:4]:
        for asked in (references, references[_SINGLE : _SINGLE + 1]):
            answers, calls = _judged(told, asked)
            yield calls, *((a.verdict, a.comparison, a.seconds) for a in answers)


# --- enclosing --------------------------------------------------------------------------------------------------------


def _together(sets: Sequence[Single], model: Model) -> list[Enclosure] | None:
    return enclose_stacked(live(sets[0].case.program), [s.case.inputs for s in sets], model)


def _taken(together: Sequence[Enclosure], place: int) -> list[Enclosure]:
    return [e.map(lambda a: np.asarray(a[..., place])) for e in together]


def _bits(enclosures: Sequence[Enclosure] | None) -> tuple[Hashable, ...] | None:
    if enclosures is None:
        return None
    return tuple(
        (p.dtype, a.shape, a.tobytes("F"))
        for e in enclosures
        for p in e.parts
        for a in map(np.asarray, (p.lo, p.hi, p.nan, p.pos_zero, p.neg_zero))
    )


def _meet(a: Enclosure, b: Enclosure) -> bool:
    return a.shape == b.shape and all(
        ((np.maximum(p.lo, q.lo) <= np.minimum(p.hi, q.hi)) | (p.nan & q.nan)).all()
        for p, q in zip(a.parts, b.parts, strict=True)
    )


def _enclosing(sets: Sequence[Single]) -> str:
    for model in (IEEE, XLA):
        alone = [s.enclosures[model.name] for s in sets]
        with mock.patch.object(stacking, "_joined", wraps=stacking._joined) as joined:
            copies = _together([sets[0]] * SETS, model)
        if joined.called and not _alone(sets[0]):
            return f"{model.name}: an operation is enclosed set by set for nothing"
        if copies is None:
            return f"{model.name}: equal sets are remembered differently"
        if any(_bits(_taken(copies, i)) != _bits(alone[0]) for i in range(SETS)):
            return f"{model.name}: a set beside its copies has another enclosure than alone"
        together, mixed = _together(sets, model), _together([sets[i] for i in _ORDER], model)
        if together is None or mixed is None:
            continue
        if not all(all(map(_meet, _taken(together, i), alone[i])) for i in range(SETS)):
            return f"{model.name}: a set among others has an enclosure that its own does not meet"
        if any(_bits(_taken(mixed, i)) != _bits(_taken(together, j)) for i, j in enumerate(_ORDER)):
            return f"{model.name}: the order of the sets shows"
    return ""


def _alone(single: Single) -> bool:
    """Some operation has to be enclosed set by set: what it gives, or where it looks, is not the same for all."""
    program = live(single.case.program)
    values = enclose(program, single.case.inputs, IEEE, all_slots=True)
    for ins in program.instructions:
        if isinstance(ins.op, ops.DynamicTruncate | ops.DynamicUpdateSlice | ops.Extension):
            return True
        if isinstance(ins.op, ops.DynamicSlice | ops.Gather | ops.GatherDynamicSliceSizes | ops.Scatter):
            indices = values[ins.input_slots[1]]
            if (indices.lo != indices.hi).any():
                return True
    return False


def _size(sets: Sequence[Single]) -> str:
    """As many sets are enclosed at once as the rule of sums goes through term by term."""
    program, terms = live(sets[0].case.program), sets[0].terms
    n = sets_at_once(program, sets[0].case.shapes)
    if n < 1 or (n > 1 and n * terms > _TERMS):
        return f"{n} sets of {terms} terms are too many"
    bounded = any(isinstance(ins.op, ops.DynamicTruncate) for ins in program.instructions)  # extents are bounds
    return f"{n} sets of {terms} terms are too few" if (n + 1) * terms <= _TERMS and not bounded else ""


# --- comparing --------------------------------------------------------------------------------------------------------


def _end(enclosures: Sequence[Enclosure], upper: bool) -> tuple[Array, ...]:
    """One of the ends of each element."""
    found = []
    for e in enclosures:
        parts = [samples(p)[1 if upper and not p.is_point else 0] for p in e.parts]
        whole = np.empty(e.shape, e.dtype.numpy, order="F")
        for side, part in zip((whole.real, whole.imag) if len(parts) > 1 else (whole,), parts, strict=True):
            side[...] = part
        found.append(whole)
    return tuple(found)


def _planted(native: Sequence[Array], seed: int) -> tuple[Array, ...]:
    """One element of each output is wrong."""
    outputs = [a.copy("F") for a in native]
    for a in outputs:
        if a.size:
            index = np.unravel_index(seed % a.size, a.shape)
            a[index] = wrong_value(a[index], seed % 6)
    return tuple(outputs)


def _misfits(outputs: tuple[Array, ...]) -> list[tuple[Array, ...]]:
    """Another dtype, another shape, too many, too few."""
    first, *rest = outputs
    other = np.zeros(first.shape, np.int32 if first.dtype != np.int32 else np.int64, order="F")
    return [(other, *rest), (first[np.newaxis], *rest), (*outputs, first), tuple(rest)]


def _comparing(sets: Sequence[Single]) -> str:
    """Comparisons of several sets are what going through each, element by element, gives."""
    native = [s.outputs for s in sets]
    if sum(a.size for a in native[0]) > SLOW:
        return ""
    own, strict = _together(sets, XLA), _together(sets, IEEE)
    if own is None or strict is None:
        return ""
    for shift in range(SETS):
        observed = [s.given[(i + shift) % SETS] for i, s in enumerate(sets)]
        for reference, finer in ((strict, None), (own, strict)):
            (told,) = compare_many([Asked(reference, finer, observed, native, stacked=True)])
            for i, (got, outputs) in enumerate(zip(told, observed, strict=True)):
                fine = None if finer is None else _taken(finer, i)
                expected = by_element(_taken(reference, i), fine, outputs, native[i])
                if (got is None) != bool(expected[2]):
                    return f"{expected[2]} elements of a set are outside, and it is {'not ' * bool(got)}to be asked"
                if got and facts(got) != expected:
                    return f"of set {i} is said {facts(got)}, not {expected}"
                points = compare(_taken(reference, i), None, outputs, native[i]).widths if i == 0 else ()
                if got and got.widths != points:
                    return f"set {i} has other points in the plot"
    alone = _taken(own, 0)
    for other, got in _apart(sets[0], alone):
        if got and facts(got) != by_element(alone, None, native[0], other):
            return f"beside a native answer of another form is said {facts(got)}"
    return "results of another form are compared" if any(map(any, _misfitting(sets, own))) else ""


def _apart(single: Single, enclosures: Sequence[Enclosure]) -> Iterator[tuple[tuple[Array, ...], Comparison | None]]:
    """Native answers of another form, from which nothing is at a known distance, and what is said beside them."""
    for other in _misfits(single.outputs)[:2]:
        ((told,),) = compare_many([Asked(enclosures, None, [single.outputs], [other])])
        yield other, told


def _misfitting(sets: Sequence[Single], own: Sequence[Enclosure]) -> Iterator[list[bool]]:
    """What is said where the results of one set are of another form."""
    native = [s.outputs for s in sets]
    for outputs in _misfits(native[1]):
        (told,) = compare_many([Asked(own, None, [native[0], outputs, *native[2:]], native, stacked=True)])
        yield [c is not None for c in told]


# --- judging ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Told(NativeExecutor):
    """Gives what it is told for each case, in company and alone."""

    name: str = "told"
    model: str = XLA.name
    bits: bool = False
    company: Mapping[int, Execution | TenferroError] = field(default_factory=dict, compare=False)
    alone: Mapping[int, Execution] = field(default_factory=dict, compare=False)

    def run(self, case: Case) -> Execution:
        if id(case) not in self.alone:
            raise Internal(detail="asked alone")
        return self.alone[id(case)]

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        return [self.company[id(case)] for case in cases]

    def bit_exact(self, case: Case) -> bool:
        return self.bits


def _prepared(sets: Sequence[Single]) -> tuple[list[Single], list[Reference], int]:
    """Input sets, those of other programs between them, their references prepared as if only few were enclosed at once, and
    how many programs were compiled for it.
    """
    both = [s for pair in zip_longest(_beside(), sets) for s in pair if s is not None]
    references = [Reference(s.case, NativeExecutor()) for s in both]
    with (
        mock.patch.object(judges, "sets_at_once", side_effect=lambda *of: min(FEW, sets_at_once(*of))),
        mock.patch("oracle.peers.native.compile_std_to_exec", wraps=compile_std_to_exec) as compiled,
    ):
        prepare(references)
    return both, references, compiled.call_count


def _scripts(both: Sequence[Single]) -> list[_Told]:
    """What executors give for these: right and wrong, in company and alone; an error."""
    died = WorkerDied(worker="w", how="signal 11", stderr_tail="")

    def script(shift: int, *, model: str = XLA.name, bits: bool = False, shared: bool = False, alone: int = 0) -> _Told:
        company: dict[int, Execution | TenferroError] = {
            id(s.case): Execution(s.given[(i // 2 + shift) % SETS], shared=shared) for i, s in enumerate(both)
        }
        if shift % 2:
            company[id(both[2].case)] = died
        again = {id(s.case): Execution(s.given[alone]) for s in both if shared}
        return _Told(model=model, bits=bits, company=company, alone=again)

    ways = script(1, shared=True), script(2, shared=True, alone=2), script(2, model=IEEE.name), script(2, bits=True)
    return [script(0), *ways, script(3)]


@dataclass(eq=False)
class _Memory:
    """What the judge has to know of a case, said a second time.

    Attributes
    ----------
    enclosures
        By model; empty if the program has none.
    at_once
        Models under which the case is compared with others.
    known
        Outputs that were found inside, under which model, and the facts.
    """

    native: tuple[Array, ...]
    enclosures: dict[str, list[Enclosure]]
    at_once: frozenset[str]
    known: list[tuple[str, tuple[Array, ...], tuple[object, ...]]] = field(default_factory=list)

    def ask(self, model: str, outputs: tuple[Array, ...], *, alone: bool = False) -> tuple[tuple[object, ...], int]:
        """The facts, and how many comparisons of this case alone they take; `alone`: nobody is asked with it."""
        found = self.recall(model, outputs)
        if found:
            return found, 0
        strict = self.enclosures[IEEE.name]
        at_once = frozenset() if alone else self.at_once
        told, held, settled = by_element(strict, None, outputs, self.native), IEEE.name, IEEE.name in at_once
        if told[2] and model != IEEE.name:
            told, held = by_element(self.enclosures[model], strict, outputs, self.native), model
            settled = settled and model in at_once
        if not told[2] and (settled or held == IEEE.name):
            self.known.append((held, outputs, told))
        return told, 0 if settled and not told[2] else 1 if held == IEEE.name else 2

    def recall(self, model: str, outputs: tuple[Array, ...]) -> tuple[object, ...] | None:
        """The facts of the same bits."""
        for held, seen, told in self.known:
            if held in (IEEE.name, model) and len(seen) == len(outputs) and all(map(same, seen, outputs)):
                return told
        return None


def _judging(sets: Sequence[Single]) -> str:
    """Each set is judged by what it alone gives and by the enclosures that it has, and compared alone only if it has to be."""
    both, references, compiled = _prepared(sets)
    programs = {id(s.case.program): s.case.program for s in both}.values()
    if compiled != len(programs):
        return f"{compiled} programs are compiled, of {len(programs)}"
    memories: dict[Reference, _Memory] = {}
    for program in programs:
        sound: list[tuple[Single, Reference]] = []
        for single, r in zip(both, references, strict=True):
            if single.case.program is not program:
                continue
            got = r.execution
            if isinstance(single.native, TenferroError) or isinstance(got, TenferroError):
                if r.stack or type(single.native) is not type(got):
                    return "other sets are refused than alone"
            elif not all(map(same, single.outputs, got.outputs)):
                return "native results are those of another set"
            else:
                sound.append((single, r))
        for start in range(0, len(sound), FEW):
            part = [r for _, r in sound[start : start + FEW]]
            (stack, *more) = {r.stack for r in part}
            if more or list(stack.references if stack else ()) != (part if len(part) > 1 else []):
                return "other sets are enclosed together than those that follow each other"
            memories.update(_remembered(sound[start : start + FEW]))
    fault = _prepare_fault(memories) or _own_fault(references, memories)
    for told in _scripts(both):
        alone = references[_SINGLE]
        fault = fault or _told(told, references, memories) or _told(told, [alone], {alone: memories[alone]})
    return fault


def _remembered(part: Sequence[tuple[Single, Reference]]) -> dict[Reference, _Memory]:
    """What there has to be known after preparing sets that are enclosed together."""
    sets = [single for single, _ in part]
    if not sets[0].enclosures:
        return {}
    together = {model.name: _together(sets, model) if len(part) > 1 else None for model in MODELS}
    found = {}
    for place, (single, r) in enumerate(part):
        own = {name: single.enclosures[name] if e is None else _taken(e, place) for name, e in together.items()}
        at_once = frozenset(name for name, e in together.items() if e or len(part) == 1)
        memory = found[r] = _Memory(single.outputs, own, at_once)
        memory.ask(NUMPY.name, memory.native)
    return found


def _prepare_fault(memories: Mapping[Reference, _Memory]) -> str:
    for r, memory in memories.items():
        if any(_bits(r.enclosures(model)) != _bits(e) for model, e in memory.enclosures.items()):
            return "a set has the enclosure of another"
        fault = _recalled(r, memory, NUMPY.name, memory.native)
        if fault:
            return f"prepared: {fault}"
    return ""


def _own_fault(references: Sequence[Reference], memories: Mapping[Reference, _Memory]) -> str:
    for r, answer in zip(references, judge_many(NativeExecutor(), references), strict=True):
        memory = memories.get(r)
        if answer.verdict.is_disagreement != isinstance(r.execution, TenferroError):
            return f"the native answer is judged {answer.verdict.value}"
        if memory and facts(answer.comparison) != memory.ask(NUMPY.name, memory.native)[0]:
            return "of the native answer is said something else"
    return ""


def _recalled(reference: Reference, memory: _Memory, model: str, outputs: tuple[Array, ...]) -> str:
    """Just what was inside is remembered, by its bits."""
    for asked in (outputs, tuple(a.copy("F") for a in outputs), outputs[:-1], _planted(outputs, 3)):
        for name in (IEEE.name, model):
            found, expected = reference.known(name, asked), memory.recall(name, asked)
            if (found and facts(found)) != expected:
                return f"of what was seen {found and facts(found)} is remembered under {name}, not {expected}"
    return ""


def _judged(told: _Told, references: Sequence[Reference]) -> tuple[list[Answer], int]:
    """The answers, by a clock that ticks when it is looked at, and how many comparisons of one case alone they took."""
    with (
        mock.patch.object(judges, "compare", wraps=compare) as asked,
        mock.patch("oracle.judge.time.perf_counter", side_effect=count(3)),
    ):
        return judge_many(told, references), asked.call_count


def _told(told: _Told, references: Sequence[Reference], memories: Mapping[Reference, _Memory]) -> str:
    """Answers to what an executor gives are those that its results deserve, and the time is shared out."""
    answers, asked = _judged(told, references)
    calls = 0
    for r, answer in zip(references, answers, strict=True):
        result, native = told.company[id(r.case)], r.execution
        if isinstance(result, TenferroError) or isinstance(native, TenferroError):
            verdict = Verdict.CRASH if isinstance(result, TenferroError) else Verdict.MISMATCH
            if answer.verdict is not verdict:
                return f"an error is judged {answer.verdict.value}, not {verdict.value}"
            continue
        memory = memories.get(r)
        if memory is None and not told.bits:  # nothing to hold it to, or judged by residuals
            fresh = judges.judge_result(told, Reference(r.case, NativeExecutor()), result)
            if answer.verdict is not fresh.verdict and not result.shared:
                return f"a set is judged {answer.verdict.value}, and alone {fresh.verdict.value}"
            continue
        ticks = 1 + 1 / len(references)
        if told.bits or memory is None:
            expected = by_bits(native.outputs, result.outputs)
        else:
            expected, more = memory.ask(told.model, result.outputs)
            calls += more
            if expected[2] and result.shared:
                again, more = memory.ask(told.model, told.alone[id(r.case)].outputs, alone=True)
                calls += more
                expected, ticks = (again, 1) if again[2] else (expected, ticks)
        verdict = (
            Verdict.MISMATCH if expected[2] else Verdict.PASS if expected[1] or not expected[0] else Verdict.UNDECIDED
        )
        if (answer.verdict, facts(answer.comparison)) != (verdict, expected):
            return f"a set is judged {answer.verdict.value} {facts(answer.comparison)}, not {verdict.value} {expected}"
        output, index = answer.comparison.worst_output, answer.comparison.worst_index
        if told.bits and output is not None and answer.comparison.observed != str(result.outputs[output][index]):
            return "what was observed is said to be expected"
        if answer.seconds != {"compare": ticks}:
            return f"comparing took {answer.seconds} ticks of the clock, not {ticks}"
        fault = "" if memory is None else _recalled(r, memory, told.model, result.outputs)
        if fault:
            return fault
    if len(memories) == sum(isinstance(r.execution, Execution) for r in references) and asked != calls:
        return f"{asked} comparisons of sets alone, not {calls}"
    return ""


__all__ = ["FEW", "SETS", "singles", "stacked", "stacks"]
