"""How a program looks to a fault: what the faulty part makes of it, and which executors can say that it is wrong.

A fault in a part shows first in what that part makes: outputs, the text of a module, a loaded program. Programs that look
the same with the fault and without it cannot disagree because of it, and are not judged.
"""

from __future__ import annotations

import hashlib
import signal
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial

from fuzz.generate import DEFAULT, Config
from fuzz.generate.config import DEFAULT as CONFIG
from oracle.case import Case
from oracle.derivation import derive
from oracle.peers import DERIVATIVES, Execution, Executor, NativeExecutor, Pool, attempt, configured, native_variants
from oracle.peers.forms import EXEC_FORMS
from oracle.peers.forms import FORMS as GRAPH_FORMS
from oracle.peers.modules import module_text
from tenferro_ref import ops
from tenferro_ref.compiler import DECOMPOSED
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import dumps
from tenferro_ref.runtime.fusion import FUSIBLE
from tenferro_ref.stablehlo.loader import load

#: Seconds after which a program that does not end is given up.
SECONDS = 10.0
#: What a changed line may raise beside typed errors.
CRASHES = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NameError, OSError, RuntimeError,
    StopIteration, TypeError, ValueError, Warning,
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


_RELOADED = Pool().make("native-reloaded")


@cache
def can_read_back() -> bool:
    """Whether the loader's parser is installed."""
    return _RELOADED.info().available


# --- looks ------------------------------------------------------------------------------------------------------------

#: With every pass, and the decomposer before folding.
SIMPLIFIED = NativeExecutor("native-simplified", passes=("DotDecomposer", *DECOMPOSED))
#: The program in each form, and at its sizes.
_FORMED = (*(configured(form=form) for form in (*GRAPH_FORMS, *EXEC_FORMS) if form), configured(sized=True))
#: Inputs as views and from files, the executor used before and again.
_HANDED = (configured(strided=True, warm=True, twice=True), configured(filed=True))
#: Executors that are made here; a plugin's are made by name.
OWN: dict[str, Executor] = {e.name: e for e in (*native_variants(), SIMPLIFIED, *_FORMED, *_HANDED, _RELOADED)}
#: With segments and without, with passes and without, contractions in one call, other inputs.
WAYS = (
    *("native", "native-unsegmented", "native-nopasses", "native-fused", "native-contracted"),
    *(e.name for e in _HANDED),
)
#: Written and read again, in normal form, built by the front end, with integers for symbols.
FORMS = ("native", *(e.name for e in _FORMED))
#: As they are, and as the front end's functions make them.
_FAMILIES = ("native", configured(form="values").name)
#: With each pass left out.
PASSES = ("native", "native-nopasses", SIMPLIFIED.name, *(name for name in OWN if name.startswith("native-without:")))


def _bits(result: Execution | TenferroError) -> str:
    if isinstance(result, TenferroError):
        return f"{result.kind}: {result}"
    digest = hashlib.sha256()
    for array in result.outputs:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes("F"))
    return digest.hexdigest()


def _outputs(names: tuple[str, ...], case: Case) -> Hashable:
    return tuple(_bits(attempt(OWN[name], case)) for name in names)


_by_ways, _by_forms, _by_passes = (partial(_outputs, names) for names in (WAYS, FORMS, PASSES))


def _text_and_outputs(case: Case) -> Hashable:
    return module_text(case), _outputs(_FAMILIES, case)


def _loaded(case: Case) -> Hashable:
    loaded = load(module_text(case))
    return dumps(loaded.program), _bits(Execution(loaded.bound))


def _derivative(case: Case) -> Hashable:
    derivation = case.derivation
    return None if derivation is None else dumps(derive(derivation.primal, derivation.transforms))


@dataclass(frozen=True)
class Watch:
    """How the faults of a place are looked for with programs.

    Attributes
    ----------
    look
        What they change first; None if that is in another process.
    executors
        Names of the executors that are asked when the look has changed, the cheapest first.
    derivatives
        The programs are derivatives, of short programs.
    """

    look: Look | None
    executors: tuple[str, ...]
    derivatives: bool = False

    def config(self, number: int) -> Config:
        """What the programs of a chunk are like."""
        config = configs()[number % len(configs())]
        return replace(config, derivatives=1, min_instructions=1, max_instructions=6) if self.derivatives else config


_PLUGIN = "pjrt:xla081@fast"
#: Places whose faults no program shows, but only laws: the oracle's own parts, and algebras that no oracle knows.
BY_LAWS = frozenset({"comparison", "enclosure", "semirings", "sets", "verdicts"})


@cache
def watch(place: str) -> Watch:
    """How the faults of `place` are looked for."""
    reloaded = (_RELOADED.name,) if can_read_back() else ()
    if place == "emitter":
        return Watch(module_text, (_PLUGIN, *reloaded))
    if place == "transfer":
        return Watch(None, (_PLUGIN,))
    if place == "loader":
        return Watch(_loaded, reloaded)
    if place == "derivatives":
        return Watch(_derivative, DERIVATIVES, derivatives=True)
    if place in ("extensions", "ops"):
        return Watch(_text_and_outputs, (*_FAMILIES, _PLUGIN, *reloaded))
    if place == "program":
        return Watch(_by_forms, FORMS)
    return Watch(_by_passes, PASSES) if place == "compiler" else Watch(_by_ways, WAYS)


@cache
def configs() -> tuple[Config, ...]:
    """What the programs are like, chunk by chunk in turn: of all kinds, fusible chains, complex numbers, integers."""
    elementwise = tuple(op for op in CONFIG.ops if op in FUSIBLE or op is ops.BroadcastInDim)
    return (
        DEFAULT,
        Config(ops=elementwise, dtypes=(DType.F64,), min_instructions=4, motifs=False),
        Config(dtypes=(DType.C32, DType.C64, DType.I32), motifs=False),
        Config(dtypes=(DType.I32, DType.I64, DType.Bool), motifs=False),
    )


def look(watch: Watch, case: Case) -> Hashable:
    """How a case looks now; errors are a look too."""
    if watch.look is None:
        return None
    try:
        with limited():
            return watch.look(fresh(case))
    except (TenferroError, *CRASHES) as error:
        return f"{type(error).__name__}: {error}"


def fresh(case: Case) -> Case:
    """The same case without what its program remembers: that is of the code as it was."""
    return replace(case, program=replace(case.program))


__all__ = ["BY_LAWS", "CRASHES", "OWN", "SECONDS", "Watch", "configs", "fresh", "limited", "look", "watch"]
