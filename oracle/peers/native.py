"""The native executor under any configuration: one with a name, or one drawn with the program.

A configuration is part of the executor's name, `native:passes=DotDecomposer/TransposeFolding+unsegmented+fusion=0`, so that
whatever keeps the name of an executor (findings, bundles, the corpus) keeps its configuration, too.
"""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracle.case import Case, by_program
from oracle.compilation import compiled, passed
from oracle.equivalent import equivalent, equivalents
from oracle.peers.base import Execution, Executor, attempt, validate
from oracle.peers.forms import EXEC_FORMS, FORMS, at_sizes, with_symbols
from oracle.peers.front_end import spelled_otherwise
from oracle.peers.layouts import copied, data_of, filed, memory_of, strided
from oracle.peers.modules import module_text
from oracle.peers.peer import Peer
from oracle.peers.promises import Inputs, check_again, check_buffers, check_refusals, check_types
from oracle.peers.reread import reread, rereadable
from oracle.peers.semirings import PATHS, backend_of, fits
from oracle.peers.warm import warm_up
from tenferro_ref import __version__
from tenferro_ref.compiler import DECOMPOSED, DEFAULT_PIPELINE, PASSES, compile_std_to_exec
from tenferro_ref.errors import Internal, TenferroError, UnsupportedOp, UsageError, defects_in
from tenferro_ref.ops import Conj, Extension
from tenferro_ref.program import GraphProgram, infer_types, to_exec
from tenferro_ref.runtime import BLOCK, FUSION_THRESHOLD, ContractingBackend, GraphExecutor, NumpyBackend, TensorBackend
from tenferro_ref.stablehlo.loader import bindings, load
from tenferro_ref.suggest import did_you_mean
from tenferro_ref.tensor import Array


@dataclass(frozen=True)
class NativeExecutor(Executor):
    """This package's own executor; the input sets of a program are run by one `GraphExecutor`, compiled once.

    Attributes
    ----------
    passes
        Names of the optimiser passes, in order.
    segmented
        Whether programs run in segments (`eval_exec_ir`), else one instruction at a time.
    fusion_threshold, reclaim, checking, decline_reused
        See `GraphExecutor`.
    contracts, block
        Whether contractions that are spelled out are one call of the backend, and how many elements a fused run computes at a time.
    form
        In which the program is handed over (`oracle.peers.forms`): "" as it is, else "json", "text", "normal" or "values"; or in
        which the compiled program is, whose invariants are checked after each pass, "exec-json" or "exec-text".
    sized
        Whether symbolic extents are integers before the program is compiled.
    strided
        Whether the inputs are handed over in other layouts (`oracle.peers.layouts`).
    warm
        Whether the executor has run something else before (`oracle.peers.warm`).
    symbolic
        Whether extents of the inputs of a program without symbols are symbols.
    twice
        Whether it is run twice.
    filed
        Whether the inputs are written into a file and read again.
    semiring
        Which path of the engine of the algebras runs it, over the standard one: "fast", "required", or "" for the usual backend.
    reread
        Whether the module of a case is read again without its inputs (`oracle.peers.reread`), in place of its program.
    """

    name: str = "native"
    passes: tuple[str, ...] = DEFAULT_PIPELINE
    segmented: bool = True
    fusion_threshold: int = FUSION_THRESHOLD
    model: str = "numpy"
    reclaim: bool = True
    checking: bool = True
    decline_reused: bool = True
    contracts: bool = False
    block: int = BLOCK
    form: str = ""
    strided: bool = False
    warm: bool = False
    sized: bool = False
    symbolic: bool = False
    twice: bool = False
    filed: bool = False
    semiring: str = ""
    reread: bool = False

    def facts(self) -> Iterator[tuple[str, str]]:
        yield "tenferro-ref", __version__
        yield from self._configuration()
        yield from (("NumPy", np.__version__), ("Python", platform.python_version()))

    def _configuration(self) -> Iterator[tuple[str, str]]:
        yield "passes", ", ".join(self.passes) or "none"
        yield "execution", ", ".join(_words(self)[1:]) or "as by default"

    def _compiled(self, first: Case) -> Callable[[Case], tuple[Array, ...]]:
        """A function that runs cases of the program of the first one, at its extents, as many as it is given."""
        program = self._formed(first)
        if self.form in EXEC_FORMS:
            with defects_in("the native compiler"):
                exec_program = compile_std_to_exec(program, self.passes, verify=True)
            with defects_in("the form of a compiled program"):
                exec_program = EXEC_FORMS[self.form](exec_program)
        else:
            with defects_in("the native compiler"):
                exec_program = compiled(program, self.passes)
        executor = GraphExecutor(
            self._backend(program), checking=self.checking, reclaim=self.reclaim,
            fusion_threshold=self.fusion_threshold, decline_reused=self.decline_reused,
        )  # fmt: skip
        evaluate = executor.eval_exec_ir if self.segmented else executor.eval_unsegmented

        def outputs(case: Case) -> tuple[Array, ...]:
            # what it writes into them must not reach who is asked next
            taken: Inputs = strided(case) if self.strided else filed(case) if self.filed else copied(case.inputs)
            before = [memory_of(data_of(x)) for x in taken]
            with defects_in("the native executor"):
                if self.warm:
                    stated = to_exec(program)
                    warm_up(evaluate, exec_program, copied(case.inputs), stated)
                    if stated.shape_guards:  # they hold of dead instructions, too
                        idle = replace(program, output_slots=program.input_slots)
                        check_refusals(evaluate, compiled(idle, self.passes), copied(case.inputs), to_exec(idle))
                given = tuple(evaluate(exec_program, taken))
                if self.twice:
                    check_again(evaluate, exec_program, taken, given)
                check_types(exec_program, taken, given)
                check_buffers(before, taken, given)
            return given

        return outputs

    def _formed(self, case: Case) -> GraphProgram:
        """The program of a case as it is handed over; errors as those of the program itself."""
        program = case.program
        with defects_in("the form of a program"):
            if self.form or self.sized or self.symbolic:
                infer_types(program)  # readers have errors of their own for what is malformed
            if self.sized:
                program = at_sizes(program, case.shapes)
            if self.symbolic and program.is_static:
                program = with_symbols(program)
            return FORMS[self.form](program) if self.form in FORMS else program

    def _backend(self, program: GraphProgram) -> TensorBackend:
        if not self.semiring:
            return (ContractingBackend if self.contracts else NumpyBackend)(self.block)
        if not fits(program, self.semiring):
            raise UnsupportedOp(op="program", reason="not all of it is the same in the engine of the algebras")
        return backend_of("standard", self.semiring)

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        results: dict[int, Execution | TenferroError] = {}
        for group in by_program(cases):
            start = time.perf_counter()
            own = [cases[i] for i in group]
            try:
                own = reread(own) if self.reread and own[0].source is not None else own
                evaluate = self._compiled(own[0])
            except TenferroError as error:
                results.update(dict.fromkeys(group, error))
                continue
            share = (time.perf_counter() - start) / len(group)
            for i, case in zip(group, own, strict=True):
                start = time.perf_counter()
                try:
                    outputs = evaluate(case)
                    results[i] = Execution(outputs, {"compile": share, "execute": time.perf_counter() - start})
                except TenferroError as error:
                    results[i] = error
        return [results[i] for i in range(len(cases))]

    def bit_exact(self, case: Case) -> bool:
        """Whether no pass of this pipeline or the default one moves a rounding of the program."""
        if self.reread and case.source is not None:
            return False
        if self.passes == DEFAULT_PIPELINE and self.form != "values" and not self.sized and not self.symbolic:
            return True
        try:
            own = self._formed(case)
        except TenferroError:
            return True  # which it raises, too
        if self.form == "values" and spelled_otherwise(case.program, own):
            return False
        runs = ((own, self.passes), (case.program, DEFAULT_PIPELINE))
        return not any(moves_roundings(program, passes) for program, passes in runs)


def moves_roundings(program: GraphProgram, passes: tuple[str, ...]) -> bool:
    """Whether a pass makes a contraction round elsewhere, or fails, as it does when an executor compiles the program."""
    try:
        return any(result.inexact for result in passed(program, passes))
    except TenferroError:
        return True


#: Elements that inputs may have for a program to run in small blocks.
_FEW = 1024
#: One of sixteen each.
_DRAWN_FORMS = (
    *[""] * 6, "json", "exec-json", "text", "exec-text", "normal", "normal", *["values"] * 4,
)  # fmt: skip


class DrawnExecutor(NativeExecutor):
    """The native executor, each program under a configuration of its own, which its fingerprint and the executor's name decide."""

    def settled(self, case: Case) -> NativeExecutor:
        b = hashlib.sha256(f"{self.name} {case.fingerprint}".encode()).digest()
        order = sorted(enumerate(PASSES), key=lambda entry: b[13 + entry[0]])
        some = tuple(name for i, name in order if b[5] >> i & 1)
        passes = DEFAULT_PIPELINE if b[6] < 64 else () if b[6] < 68 else some
        sized, symbolic = b[-7] >= 128 and bool(case.program.symbols), b[-7] >= 208 and case.program.is_static
        form = _DRAWN_FORMS[b[-2] >> 4]
        if b[-6] < 192 and any(isinstance(ins.op, Extension) for ins in case.program.instructions):
            # few programs have such ops: the front end has a function for each, and symbols beside them make guards
            form = ("values", "exec-json", "exec-text")[b[-6] % 3] if symbolic else "values"
        again = b[-10] >= 128 and rereadable(case)
        # where it would not take long, so that small tensors have several blocks, too
        block = (BLOCK, 3, 7, 64)[b[-11] >> 6] if all(a.size <= _FEW for a in case.inputs) else BLOCK
        return configured(
            passes=passes if b[7] >= 32 else passes * 2, segmented=b[8] >= 64,
            fusion_threshold=(FUSION_THRESHOLD, 0, 1, 64)[b[9] >> 6], reclaim=b[10] >= 64, checking=b[11] >= 64,
            decline_reused=b[12] >= 64, contracts=b[-1] >= 128, block=block, form=form, strided=b[-3] >= 128, warm=b[-4] >= 128,
            sized=sized, symbolic=symbolic, twice=b[-8] >= 192, filed=b[-9] >= 224,
            semiring="" if again else _semiring(NativeExecutor(form=form, sized=sized, symbolic=symbolic), case, b[-5]),
            reread=again,
        )  # fmt: skip

    def _configuration(self) -> Iterator[tuple[str, str]]:
        yield "configuration", "drawn"

    def run(self, case: Case) -> Execution:
        return self.settled(case).run(case)

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        return [attempt(self, case) for case in cases]

    def bit_exact(self, case: Case) -> bool:
        return self.settled(case).bit_exact(case)


def _semiring(executor: NativeExecutor, case: Case, draw: int) -> str:
    """A path that the program is for, in the form that the executor has; few are for any, of which three in four take one."""
    if draw < 64 or not fits(case.program, "fast"):
        return ""
    try:
        formed = executor._formed(case)
    except TenferroError:
        return ""  # which it raises as well when it runs
    paths = (PATHS[draw % 2], "fast")
    return next((path for path in paths if fits(case.program, path) and fits(formed, path)), "")


class RewrittenExecutor(NativeExecutor):
    """The native executor on an equal program, written another way (`oracle.equivalent`)."""

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        return NativeExecutor.run_many(self, equivalents(cases))

    def bit_exact(self, case: Case) -> bool:
        """Whether the two programs give the same bits: not where ConjSinking may change the sign of a zero in one of them."""
        if not any(isinstance(ins.op, Conj) for ins in case.program.instructions):
            return True
        return not any(moves_roundings(each.program, self.passes) for each in (case, equivalent(case)))


class ReloadedExecutor(NativeExecutor):
    """The native executor on what is read of the module that is written of a program: StableHLO out and in.

    Of a case that came with a module this one is read again without its inputs, or the one that is written; the other one of both
    where the first is refused. Which comes first its fingerprint decides.
    """

    def facts(self) -> Iterator[tuple[str, str]]:
        bindings.mlir()
        yield from NativeExecutor.facts(self)

    def open(self) -> None:
        bindings.mlir()

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        results: dict[int, Execution | TenferroError] = {}
        for group in by_program(cases):
            own = [cases[i] for i in group]
            ways = [_rewritten, reread] if own[0].source is not None else [_rewritten]
            if int(own[0].fingerprint[:2], 16) % 2:
                ways.reverse()
            try:
                for case in own:
                    validate(case)
                read = NativeExecutor.run_many(self, _first_way(ways, own))
            except TenferroError as error:
                read = [error] * len(group)
            results.update(zip(group, read, strict=True))
        return [results[i] for i in range(len(cases))]

    def bit_exact(self, case: Case) -> bool:
        return False


def _rewritten(cases: Sequence[Case]) -> list[Case]:
    """The input sets of a program, with what is read of the module that is written of it."""
    text = module_text(cases[0])
    with defects_in("the reader of StableHLO"):
        try:
            loaded = load(text)
        except UnsupportedOp as error:
            raise Internal(detail=f"the reader refuses what the emitter has written: {error}") from None
    return [Case.of(loaded.program, loaded.inputs(case.inputs)) for case in cases]


def _first_way(ways: Sequence[Callable[[Sequence[Case]], list[Case]]], cases: Sequence[Case]) -> list[Case]:
    """What the first way gives that does not refuse the cases; the refusal of the last one if all do."""
    for way in ways[:-1]:
        try:
            return way(cases)
        except UnsupportedOp:
            continue
    return ways[-1](cases)


# --- configurations in words ------------------------------------------------------------------------------------------

#: Words in a name, with the option that each sets and its value.
_OPTIONS: dict[str, tuple[str, bool | str]] = {
    "unsegmented": ("segmented", False),
    "no-reclaim": ("reclaim", False),
    "unchecked": ("checking", False),
    "keep-reused": ("decline_reused", False),
    "contracts": ("contracts", True),
    "as-json": ("form", "json"),
    "as-text": ("form", "text"),
    "as-normal": ("form", "normal"),
    "as-values": ("form", "values"),
    "as-exec-json": ("form", "exec-json"),
    "as-exec-text": ("form", "exec-text"),
    "sized": ("sized", True),
    "symbolic": ("symbolic", True),
    "twice": ("twice", True),
    "filed": ("filed", True),
    "strided": ("strided", True),
    "warm": ("warm", True),
    "semiring": ("semiring", "fast"),
    "semiring-required": ("semiring", "required"),
    "reread": ("reread", True),
}


def _words(executor: NativeExecutor) -> list[str]:
    """The configuration as words of a name: the passes, then what else differs from the default."""
    words = [f"passes={'/'.join(executor.passes)}"]
    if executor.fusion_threshold != FUSION_THRESHOLD:
        words.append(f"fusion={executor.fusion_threshold}")
    if executor.block != BLOCK:
        words.append(f"block={executor.block}")
    return words + [word for word, (option, value) in _OPTIONS.items() if getattr(executor, option) == value]


def configured(**options: Any) -> NativeExecutor:
    """The native executor with these options, which are in its name."""
    executor = replace(NativeExecutor(), **options)
    words = _words(executor)[executor.passes == DEFAULT_PIPELINE :]
    return replace(executor, name=str(Peer("native", build="+".join(words))))


def from_peer(peer: Peer) -> NativeExecutor:
    """The native executor of that identity: one of `native_variants`, or one that `configured` made.

    Raises
    ------
    UsageError
        No such variant, or a pass or option that does not exist.
    """
    name, variants = str(peer), {e.name: e for e in (*native_variants(), ReloadedExecutor("native-reloaded"))}
    if name in variants:
        return variants[name]
    if peer.variant == "without":
        hint = did_you_mean(peer.build, DEFAULT_PIPELINE)
        known = ", ".join(DEFAULT_PIPELINE)
        raise UsageError(detail=f"executor {name!r}: no pass {peer.build!r}; known: {known}{hint}")
    if peer.variant:
        known = ", ".join(other for other in variants if other.partition(":")[0] == name.partition(":")[0])
        raise UsageError(detail=f"executor {name!r}: known are {known}; options follow native: only")
    options: dict[str, object] = {}
    for word in filter(None, peer.build.split("+")):
        key, equals, value = word.partition("=")
        given = len(options)
        if word in _OPTIONS:
            option, flag = _OPTIONS[word]
            options[option] = flag
        elif key + equals == "passes=" and set(filter(None, value.split("/"))) <= PASSES.keys():
            options["passes"] = tuple(filter(None, value.split("/")))
        elif key == "fusion" and value.isdecimal():
            options["fusion_threshold"] = int(value)
        elif key == "block" and value.isdecimal() and int(value):
            options["block"] = int(value)
        else:
            known = f"passes={'/'.join(PASSES)}, fusion=ELEMENTS, block=ELEMENTS, {', '.join(_OPTIONS)}"
            hint = did_you_mean(word, _OPTIONS)
            raise UsageError(detail=f"executor {name!r}: no option {word!r}; known, joined by +: {known}{hint}")
        if len(options) == given:
            raise UsageError(detail=f"executor {name!r}: {word!r} says again what is said before it")
    return configured(**options)


def native_variants() -> tuple[NativeExecutor, ...]:
    """The native executors that have a name of their own.

    `native`; `native-unsegmented`; `native-nopasses`; `native-fused`, which fuses tensors of any size, and contractions with the
    transposes that they read; `native-decomposed`, with every pass, which decomposes contractions; `native-contracted`, which
    takes them together again, in one call of the backend; `native-drawn`, `native-drawn:2` and `native-drawn:3`, whose
    configurations are drawn with the program, each another one; `native-rewritten`, which runs an equal program;
    `native-without:PASS`.
    """
    return (
        NativeExecutor(),
        NativeExecutor("native-unsegmented", segmented=False),
        NativeExecutor("native-nopasses", passes=()),
        NativeExecutor("native-fused", fusion_threshold=0, contracts=True),
        NativeExecutor("native-decomposed", passes=DECOMPOSED),
        NativeExecutor("native-contracted", passes=DECOMPOSED, contracts=True),
        *map(DrawnExecutor, ("native-drawn", "native-drawn:2", "native-drawn:3")),
        RewrittenExecutor("native-rewritten"),
        *(
            NativeExecutor(f"native-without:{name}", passes=tuple(p for p in DEFAULT_PIPELINE if p != name))
            for name in DEFAULT_PIPELINE
        ),
    )
