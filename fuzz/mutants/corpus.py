"""The programs that mutants are hunted with, and how each looks without a fault: computed once a process.

A fault in a part of the system shows first in what that part makes: outputs, a module's text, a loaded program, a verdict.
Programs that look the same with the fault and without it cannot disagree because of it, and are not judged; nor are those
that do not enter the changed code at all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from types import CodeType, FrameType
from typing import Any

from fuzz.generate import generate
from fuzz.mutants.rewrite import lru_caches
from fuzz.mutants.witnesses import (
    Planted,
    Planter,
    Small,
    algebras_of,
    can_read_back,
    memory,
    module_text,
    read_back,
    run_algebra,
    segments,
    semiring_ops,
)
from fuzz.strategies import DEFAULT, Config
from fuzz.strategies.config import default_ops
from oracle.case import Case
from oracle.executors import Execution, Executor, NativeExecutor, attempt, native_variants
from oracle.judge import Reference, judge
from tenferro_ref.compiler import DEFAULT_PIPELINE
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import (
    STABLEHLO,
    BroadcastInDim,
    Convert,
    Divide,
    Maximum,
    Minimum,
    Op,
    Pow,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from tenferro_ref.program import Instruction, dumps
from tenferro_ref.runtime.fusion import FUSIBLE
from tenferro_ref.tensor import Array

CHUNK = 32
#: Seconds after which a program that does not end is given up.
SECONDS = 10.0
#: What a changed line may raise beside typed errors.
CRASHES = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NameError, OSError, RuntimeError,
    StopIteration, TypeError, ValueError,
)  # fmt: skip

Look = Callable[[Case], Hashable]


@contextmanager
def limited(seconds: float = SECONDS) -> Iterator[None]:
    """Raises TimeoutError inside the block when it takes too long: a changed loop may not end. Main thread only."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no end after {seconds:g} s")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- looks ------------------------------------------------------------------------------------------------------------


def _bits(arrays: tuple[Array, ...]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes("F"))
    return digest.hexdigest()


def _result(result: Execution | TenferroError) -> str:
    return f"{result.kind}: {result}" if isinstance(result, TenferroError) else _bits(result.outputs)


#: With a pass that no default pipeline has.
SIMPLIFIED = NativeExecutor("native-simplified", passes=("AlgebraicLayoutSimplifier", *DEFAULT_PIPELINE))
SMALL = Small()
_VARIANTS: dict[str, Executor] = {e.name: e for e in (*native_variants(), SIMPLIFIED, SMALL)}
#: With segments and without, with passes and without, with the ways for large tensors taken by all.
WAYS = ("native", "native-unsegmented", "native-nopasses", "native-fused", SMALL.name)
#: With each pass left out.
PASSES = (
    "native",
    "native-nopasses",
    SIMPLIFIED.name,
    *(name for name in _VARIANTS if name.startswith("native-without:")),
)


def _native(names: tuple[str, ...], case: Case) -> Hashable:
    return tuple(_result(attempt(_VARIANTS[name], case)) for name in names)


_by_passes, _by_ways = partial(_native, PASSES), partial(_native, WAYS)


def _text(case: Case) -> Hashable:
    try:
        return module_text(case)
    except TenferroError as error:
        return f"{error.kind}: {error}"


def _loaded(case: Case) -> Hashable:
    try:
        loaded = read_back(module_text(case))
    except TenferroError as error:
        return f"{error.kind}: {error}"
    return dumps(loaded.program), _bits(loaded.bound)


def _verdict(case: Case) -> Hashable:
    reference = Reference(case, NativeExecutor())
    answers = [judge(executor, reference) for executor in (_VARIANTS[RIGHT[0]], _VARIANTS[RIGHT[1]], *JUDGED)]
    return tuple((a.verdict, a.comparison.outside, a.comparison.decided) for a in answers)


def _algebra(case: Case) -> Hashable:
    names = [*(n for n in ("standard",) if all(a.dtype.kind != "b" for a in case.inputs)), *algebras_of(case)]
    results = (run_algebra(name, case, fast=fast) for name in names for fast in (True, False))
    return tuple(f"{r.kind}: {r}" if isinstance(r, TenferroError) else _bits(r) for r in results)


def _memory(case: Case) -> Hashable:
    try:
        care: Hashable = memory(case)
    except TenferroError as error:
        care = f"{error.kind}: {error}"
    return care, _by_ways(case)


def _segments(case: Case) -> Hashable:
    return segments(case)[1], _by_ways(case)


def _extension(case: Case) -> Hashable:
    return _text(case), _native(("native",), case)


#: Right answers that a judge has to accept, held to enclosures and bit for bit; and wrong ones that it has to refuse.
RIGHT = ("native", "native-unsegmented")
JUDGED: tuple[NativeExecutor, ...] = (
    Planted(), Planted("planted-bits", bits=True), Planter(), Planter("planted-shape-bits", bits=True),
)  # fmt: skip


@dataclass(frozen=True)
class Watch:
    """How the faults of a place are looked for.

    Attributes
    ----------
    look
        What they change first; None if that is in another process.
    witnesses
        Names of those who are asked when the look has changed, the cheapest first; executors and `fuzz.mutants.witnesses`.
    configs
        What the programs are like, chunk by chunk in turn.
    """

    look: Look | None
    witnesses: tuple[str, ...]
    configs: tuple[Config, ...] = (
        DEFAULT,
        DEFAULT,
        Config(dtypes=(DType.C32, DType.C64, DType.I32), motifs=False),
        Config(dtypes=(DType.I32, DType.I64, DType.Bool), motifs=False),
    )


_PLUGIN = "pjrt:xla081@fast"


@cache
def watch(place: str) -> Watch:
    """How the faults of `place` are looked for."""
    reloaded = ("reloaded",) if can_read_back() else ()
    if place == "emitter":
        return Watch(_text, (_PLUGIN, *reloaded))
    if place == "layout":
        return Watch(None, (_PLUGIN,))
    if place == "loader":
        return Watch(_loaded, reloaded)
    if place == "extensions":
        return Watch(_extension, ("native", _PLUGIN, *reloaded))
    if place in ("comparison", "enclosure"):
        return Watch(_verdict, (*RIGHT, *(e.name for e in JUDGED)))
    if place == "segmentation":
        return Watch(_segments, (*WAYS, "segmentation"))
    if place in ("reclaim", "program"):
        return Watch(_memory, (*WAYS, "ownership"))
    if place == "fusion":
        elementwise = tuple(op for op in default_ops() if op in FUSIBLE or op is BroadcastInDim)
        chains = Config(ops=elementwise, dtypes=(DType.F64,), min_instructions=4, motifs=False)
        return Watch(_by_ways, WAYS, (DEFAULT, chains, chains, chains))
    if place == "semirings":
        floats = Config(ops=semiring_ops(), dtypes=(DType.F32, DType.F64), max_instructions=8)
        return Watch(_algebra, ("tropical", "semiring-standard", "semiring-required"), (floats,))
    return Watch(_by_passes, PASSES) if place == "compiler" else Watch(_by_ways, WAYS)


# --- programs ---------------------------------------------------------------------------------------------------------


def under_stablehlo(case: Case) -> Case:
    """The same program under the policy of imported programs, with what it admits and generated programs lack.

    Integer maxima and minima become quotients and powers; a Bool tensor is reduced; complex numbers are asked whether they
    are nonzero, and real ones become integers, whatever they are.
    """
    program = case.program
    types = program.slot_types
    instructions = []
    for ins in program.instructions:
        if isinstance(ins.op, Maximum | Minimum) and types[ins.output_slots[0]].dtype.is_int:
            ins = dataclasses.replace(ins, op=Divide() if isinstance(ins.op, Maximum) else Pow())
        instructions.append(ins)
    odd, free = len(instructions), program.n_slots
    more: list[tuple[Op, list[int]]] = [
        ((ReduceMax, ReduceMin, ReduceSum, ReduceProd)[odd % 4]((0,)),
         [s for s, t in types.items() if t.dtype is DType.Bool and t.rank]),
        (Convert(DType.Bool), [s for s, t in types.items() if t.dtype.is_complex]),
        (Convert((DType.I32, DType.I64)[odd % 2]), [s for s, t in types.items() if t.dtype.is_float]),
    ]  # fmt: skip
    added = [(op, slots[-1]) for op, slots in more if slots]
    instructions += [Instruction(op, (slot,), (free + i,)) for i, (op, slot) in enumerate(added)]
    program = dataclasses.replace(
        program, policy=STABLEHLO, instructions=tuple(instructions), n_slots=free + len(added),
        output_slots=(*program.output_slots, *range(free, free + len(added))),
    )  # fmt: skip
    return Case(program, case.inputs)


@dataclass(frozen=True, eq=False)
class Item:
    """A program, how it looks without a fault, and the code that looking enters."""

    number: int
    case: Case
    look: Hashable
    entered: frozenset[CodeType]


@dataclass(eq=False)
class Corpus:
    """The programs of one seed for one kind of look, made as they are asked for."""

    seed: int
    watch: Watch
    _chunks: list[list[Item]] = field(default_factory=list)

    def chunk(self, number: int) -> list[Item]:
        """Programs `number * CHUNK + 1` and following; no fault may be there while it is made."""
        while len(self._chunks) <= number:
            batch = len(self._chunks)
            config = self.watch.configs[batch % len(self.watch.configs)]
            cases = generate(self.seed, batch, CHUNK, config)
            if config.ops is None:
                cases[1::2] = [under_stablehlo(case) for case in cases[1::2]]
            self._chunks.append([self._item(batch * CHUNK + i, case) for i, case in enumerate(cases, 1)])
        return self._chunks[number]

    def _item(self, number: int, case: Case) -> Item:
        if self.watch.look is None:
            return Item(number, case, None, frozenset())
        for wrapper in lru_caches_once():
            wrapper.cache_clear()
        entered: set[CodeType] = set()

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                entered.add(frame.f_code)

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            seen = look(self.watch, case)
        finally:
            sys.setprofile(before)
        return Item(number, case, seen, frozenset(entered))


def look(watch: Watch, case: Case) -> Hashable:
    """How a case looks now; untyped errors are a look too."""
    if watch.look is None:
        return None
    try:
        with limited():
            return watch.look(fresh(case))
    except CRASHES as error:
        return f"{type(error).__name__}: {error}"


def fresh(case: Case) -> Case:
    """The same case without what its program remembers: that is of the code as it was."""
    return Case(dataclasses.replace(case.program), case.inputs)


@cache
def lru_caches_once() -> tuple[Any, ...]:
    return lru_caches()


_corpora: dict[tuple[int, str], Corpus] = {}


def corpus(seed: int, place: str) -> Corpus:
    """The programs that faults of `place` are hunted with; places that look alike share them."""
    kind = watch(place)
    for known in _corpora.values():
        if (known.seed, known.watch.look, known.watch.configs) == (seed, kind.look, kind.configs):
            return known
    return _corpora.setdefault((seed, place), Corpus(seed, kind))


__all__ = ["CHUNK", "CRASHES", "JUDGED", "Corpus", "Item", "Watch", "corpus", "fresh", "limited", "look", "watch"]
