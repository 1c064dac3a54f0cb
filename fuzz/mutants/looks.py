"""How programs look to a fault: what each part of the system makes of a program, and who can say that it is wrong.

A fault in a part shows first in what that part makes: outputs, a module's text, a loaded program, a verdict. Programs that
look the same with the fault and without it cannot disagree because of it, and are not judged.
"""

from __future__ import annotations

import dataclasses
import hashlib
import signal
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial

from fuzz.generate import DEFAULT, Config
from fuzz.mutants.promises import again, comparison, dense, rewritten, strided
from fuzz.mutants.stacks import stacked
from fuzz.mutants.verdicts import told
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
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import Execution, Executor, NativeExecutor, Peer, attempt, native_variants
from tenferro_ref import ops
from tenferro_ref.compiler import DEFAULT_PIPELINE
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import dumps
from tenferro_ref.runtime.fusion import FUSIBLE
from tenferro_ref.tensor import Array

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
    *(name for name in _VARIANTS if Peer.parse(name).variant == "without"),
)


def _native(names: tuple[str, ...], case: Case) -> Hashable:
    return tuple(_result(attempt(_VARIANTS[name], case)) for name in names)


_by_ways = partial(_native, WAYS)


def _passes(case: Case) -> Hashable:
    try:
        made = tuple(
            (repr(r.program.instructions), r.program.n_slots, len(r.changes)) for r in rewritten(case).values()
        )
    except TenferroError as error:
        return f"{error.kind}: {error}"
    return made, _native(PASSES, case)


def _layout(case: Case) -> Hashable:
    try:
        return strided(case), dense(case), _by_ways(case)
    except TenferroError as error:
        return f"{error.kind}: {error}"


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


def _enclosure(case: Case) -> Hashable:
    reference = Reference(case, NativeExecutor())
    try:
        enclosures = [e for model in ("numpy", "xla") for e in reference.enclosures(model)]
    except TenferroError as error:
        return f"{error.kind}: {error}"
    parts = [p for e in enclosures for p in e.parts]
    return _bits(tuple(a for p in parts for a in (p.lo, p.hi, p.nan, p.pos_zero, p.neg_zero)))


def _comparison(case: Case) -> Hashable:
    return comparison(case), _verdict(case), stacked(case)


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


def _executed(case: Case) -> Hashable:
    return again(case), _by_ways(case)


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
        What the programs are like, chunk by chunk in turn; `invalid` counts where verdicts are looked at.
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
        return Watch(_layout, (*WAYS, "layout"))
    if place == "transfer":
        return Watch(None, ("transfers", _PLUGIN))
    if place == "loader":
        return Watch(_loaded, reloaded)
    if place == "extensions":
        return Watch(_extension, ("native", _PLUGIN, *reloaded))
    # these go through the elements one by one
    small = Config(max_instructions=6, max_elements=200, usual_elements=40, symbolic=0)
    if place == "comparison":
        return Watch(_comparison, (*RIGHT, *(e.name for e in JUDGED), "comparison", "stacks"), (small,))
    if place == "verdicts":
        return Watch(told, ("verdicts",), (dataclasses.replace(small, invalid=1), small))
    if place == "stacks":
        return Watch(stacked, ("stacks",), (small,))
    if place == "enclosure":
        real = dataclasses.replace(small, dtypes=(DType.F32, DType.F64, DType.I32), max_instructions=12)
        return Watch(
            _enclosure,
            ("enclosed", "freedoms", *RIGHT, _PLUGIN, *(e.name for e in JUDGED)),
            (real, DEFAULT, real, real),
        )
    if place == "segmentation":
        return Watch(_segments, (*WAYS, "segmentation"))
    if place in ("reclaim", "program"):
        return Watch(_memory, (*WAYS, "ownership"))
    if place == "fusion":
        elementwise = tuple(op for op in ops.OPS if op in FUSIBLE or op is ops.BroadcastInDim)
        chains = Config(ops=elementwise, dtypes=(DType.F64,), min_instructions=4, motifs=False)
        return Watch(_by_ways, WAYS, (DEFAULT, chains, chains, chains))
    if place == "semirings":
        floats = Config(ops=semiring_ops(), dtypes=(DType.F32, DType.F64), max_instructions=8)
        return Watch(_algebra, ("tropical", "semiring-standard", "semiring-required"), (floats,))
    if place == "compiler":
        return Watch(_passes, (*PASSES, "passes"))
    if place == "executor":
        return Watch(_executed, (*WAYS, "refused", "again"))
    return Watch(_by_ways, (*WAYS, "refused"))


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
    return dataclasses.replace(case, program=dataclasses.replace(case.program))


__all__ = ["CRASHES", "JUDGED", "SECONDS", "SIMPLIFIED", "SMALL", "Watch", "fresh", "limited", "look", "watch"]
