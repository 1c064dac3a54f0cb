"""Error parity: what must fail fails alike on every path, and before anything is compiled (SEMANTICS 2.7 and 7.3)."""

from __future__ import annotations

import random
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from fuzz.generate import DEFAULT
from fuzz.generate.batches import generate
from fuzz.generate.decode import GENE
from fuzz.generate.faults import decode_invalid, kinds
from fuzz.generate.header import HEADER
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import Executor, ExternalExecutor, NativeExecutor, Pool, attempt, native_variants
from oracle.peers.jax import JaxExecutor
from oracle.peers.modules import ModuleExecutor, write
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.dims import DimOp, InputDim
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidProgram, LoweringError, TenferroError, UnsupportedOp, WorkerDied
from tenferro_ref.isolation import Worker, wire
from tenferro_ref.pjrt import PluginRef
from tenferro_ref.program import GraphBuilder, GraphProgram, dumps
from tenferro_ref.tensor import save_npz
from tenferro_ref.xla import XlaExecutor
from tests.libraries import executor_or_skip
from tests.plugins import CPU_PLUGINS

pytestmark = pytest.mark.once


@dataclass
class CountingClient:
    """A PJRT client that compiles nothing, and counts how often it is asked to."""

    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        self.calls.append(name)
        raise AssertionError(f"the client was asked for {name}")


def facts(error: TenferroError) -> tuple[object, ...]:
    """What error parity compares: kind, op and axis."""
    return (error.kind, *(getattr(error, name, None) for name in ("op", "axis")))


def due(case: Case) -> tuple[object, ...]:
    """What it must be of an invalid case."""
    assert case.refusal is not None
    return (case.refusal.kind, case.refusal.op, case.refusal.axis)


def raised(run: Callable[[], object]) -> TenferroError:
    with pytest.raises(TenferroError) as caught:
        run()
    return caught.value


def natively(
    program: GraphProgram, inputs: list[np.ndarray[Any, Any]], *, symbolic: bool = True
) -> list[TenferroError]:
    """The error of every native variant, or of those that put no symbols in place of extents."""
    case = Case(program, tuple(inputs))
    variants = [e for e in native_variants() if symbolic or "symbolic" not in e.settled(case).name]
    return [raised(lambda e=e: e.run(case)) for e in variants]


def through_xla(program: GraphProgram, inputs: list[np.ndarray[Any, Any]]) -> TenferroError:
    client = CountingClient()
    error = raised(lambda: XlaExecutor(client).run_many_with_inputs(program, inputs))  # type: ignore[arg-type]
    assert client.calls == []
    return error


# --- programs that are invalid whatever their inputs hold -------------------------------------------------------------


def sample(count: int) -> list[Case]:
    rng = random.Random(5)
    return [
        decode_invalid(DEFAULT, None, rng.randbytes(HEADER), [rng.randbytes(GENE) for _ in range(rng.randrange(4))], rng.randbytes(GENE))
        for _ in range(count)
    ]  # fmt: skip


def simplest(kind: str) -> Case:
    """A small program that raises an error of that kind."""
    return decode_invalid(DEFAULT, kind, b"", [], b"")


def test_native_variants_and_the_emitter_agree_on_kind_op_and_axis() -> None:
    for case in (*sample(400), *map(simplest, kinds())):
        assert {facts(error) for error in natively(case.program, list(case.inputs))} == {due(case)}, case
        assert facts(through_xla(case.program, list(case.inputs))) == due(case), case


MISFITS: dict[str, list[np.ndarray[Any, Any]]] = {
    "none": [],
    "too many": [np.zeros((2, 3))] * 2,
    "another shape": [np.zeros((3, 2))],
    "another dtype": [np.zeros((2, 3), np.float32)],
}


def of_two_by_three() -> GraphProgram:
    b = GraphBuilder()
    return b.build(b.input("F64", (2, 3)).sum([0]))


@pytest.mark.parametrize("wrong", MISFITS.values(), ids=MISFITS)
def test_inputs_that_do_not_fit_are_refused_alike(wrong: list[np.ndarray[Any, Any]]) -> None:
    program = of_two_by_three()
    # a symbol admits any extent
    (native,) = {facts(error) for error in natively(program, wrong, symbolic=False)}
    assert facts(through_xla(program, wrong)) == native


# --- everybody else: isolated, as in a campaign -----------------------------------------------------------------------

PEERS = ("jax", "jax-eager", "interpreter", "iree", *(f"pjrt:{name}@parity" for name in CPU_PLUGINS))
COMMAND = f"external:{sys.executable} -m tenferro_ref exec"


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Executor]:
    """Makes peers that need not be installed, since nobody may start their processes."""

    def start(worker: Worker) -> NoReturn:
        raise AssertionError(f"{worker.name} was asked")

    monkeypatch.setattr(Worker, "_ensure_started", start)
    pool = Pool()

    def make(name: str) -> Executor:
        return pool.pjrt(PluginRef(name, "no such file", "test"), "parity") if "pjrt" in name else pool.make(name)

    return make


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_refuses_an_invalid_program_as_the_native_executor_and_asks_nobody(
    name: str, unasked: Callable[[str], Executor]
) -> None:
    peer = unasked(name)
    for case in (*sample(150), *map(simplest, kinds())):
        error = raised(lambda case=case: peer.run(case))
        assert facts(error) == due(case), case


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("wrong", MISFITS.values(), ids=MISFITS)
def test_a_peer_refuses_inputs_that_do_not_fit(
    name: str, wrong: list[np.ndarray[Any, Any]], unasked: Callable[[str], Executor]
) -> None:
    case = Case(of_two_by_three(), tuple(wrong))
    assert facts(raised(lambda: unasked(name).run(case))) == facts(raised(lambda: NativeExecutor().run(case)))


# each breaks a module's text somewhere, so that hardly any of them is a program still
def _another(pattern: str, words: tuple[str, ...]) -> Callable[[str, random.Random], str]:
    def damage(code: str, rng: random.Random) -> str:
        start, end = rng.choice(
            [m.span() for m in re.finditer(pattern, code) if m.start() > code.index("{")] or [(0, 0)]
        )
        return code[:start] + rng.choice(words) + code[end:]

    return damage


DAMAGES: dict[str, Callable[[str, random.Random], str]] = {
    "number": _another(r"(?<![%\w.])\d+(?![\w.])", ("0", "1", "7", "-1", "9999999999")),
    "extent": _another(r"\d+(?=x)", ("0", "7", "?", "-3")),
    "element type": _another(r"(f32|f64|i32|i64|i1)(?=>)", ("f32", "i64", "i1", "f16", "complex<f32>", "index", "i7")),
    "operand": _another(r"%\w+", ("%nobody", "%0", "%arg0")),
    "op": _another(r"stablehlo\.\w+", ("stablehlo.none_such", "stablehlo.while", "stablehlo.gather", "stablehlo.transpose")),
    "end": lambda code, rng: code[: rng.randrange(len(code))],
    "line": lambda code, rng: "".join(code.splitlines(True)[: (at := rng.randrange(code.count("\n")))] + code.splitlines(True)[at + 1 :]),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.nightly if n[:11] in ("pjrt:xla081", "pjrt:lam115") else ())
        for n in PEERS
        if "jax" not in n
    ],
)
def test_compilers_refuse_a_damaged_module_and_live(name: str, pool: Pool) -> None:
    """Beyond what the harness refuses: executors of StableHLO are given text that is no program."""
    peer = executor_or_skip(pool, name)
    assert isinstance(peer, ModuleExecutor)
    rng, ends = random.Random(3), Counter[str]()
    for case in generate(77, 0, 18):
        module = write(peer.check, peer.plain, [case])
        if not module.types or isinstance(attempt(peer, case), WorkerDied):  # a finding of its own: 0030 in IREE
            continue
        for damage in DAMAGES.values():
            try:
                peer.worker.request({**module.message(peer.options, []), "code": damage(module.code, rng)})
                ends["compiled"] += 1
            except TenferroError as error:
                ends[error.kind] += 1
    assert ends.keys() <= {"compiled", "PjrtCall", "EngineFault"}  # not WorkerDied
    assert ends.total() > 30
    assert ends["compiled"] < 0.2 * ends.total()


@pytest.mark.parametrize("name", ["jax", "jax-eager"])
def test_jax_refuses_an_invalid_program_and_lives(name: str, pool: Pool) -> None:
    """Beyond what the harness refuses: the worker is given the program all the same."""
    peer = executor_or_skip(pool, name)
    assert isinstance(peer, JaxExecutor)
    for case in (*sample(40), *map(simplest, kinds())):
        inputs = [wire.pack(array) for array in case.inputs]
        message = {"program": dumps(case.program), "jit": peer.jit, "options": {}, "input_sets": [inputs]}
        error = raised(lambda message=message: peer.worker.request(message))
        assert facts(error) == due(case), case


def test_a_command_refuses_an_invalid_program_as_the_native_executor() -> None:
    command = Pool().make(COMMAND)
    for kind in ("AxisOutOfBounds", "InvalidCompiledGraph", "UnsupportedOp"):  # half a second each
        case = simplest(kind)
        assert facts(raised(lambda case=case: command.run(case))) == due(case)


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("kill -ABRT $$", Verdict.CRASH),
        ('cp {} "$3"', Verdict.MISMATCH),
        ("exit 0", Verdict.ERROR),
        ("sleep 20", Verdict.TIMEOUT),
    ],
)
def test_any_other_end_than_a_refusal_is_a_disagreement(script: str, verdict: Verdict, tmp_path: Path) -> None:
    save_npz(tmp_path / "out.npz", {"out0": np.zeros(3)})
    case = simplest("ShapeMismatch")
    words = script.format(tmp_path / "out.npz")
    executor = ExternalExecutor(f"sh -c {shlex.quote(words)} sh", request_seconds=2.0)
    answer = judge(executor, Reference(case, NativeExecutor()))
    assert answer.verdict is verdict, answer
    assert answer.verdict.is_disagreement


# --- faults that only values show -------------------------------------------------------------------------------------

Made = tuple[GraphProgram, list[np.ndarray[Any, Any]]]


def program_of(op: Any, *arrays: Any) -> Made:
    b = GraphBuilder()
    inputs = [np.asarray(a) for a in arrays]
    return b.build(b.apply(op, *(b.input(DType.of(a), a.shape) for a in inputs))), inputs


X = np.arange(12.0).reshape(3, 4)
FRACTION, NAN, HUGE = 0.5, np.nan, 2.0**60
RUNTIME: dict[str, tuple[Made, str, str]] = {
    **{f"zero divisor, {t}": (program_of(ops.Divide(), t([4, 5]), t([2, 0])), "NumericalFailure", "Divide") for t in (np.int32, np.int64)},
    **{f"negative exponent, {t}": (program_of(ops.Pow(), t([4, 5]), t([2, -1])), "InvalidArgument", "Pow") for t in (np.int32, np.int64)},
    **{f"index {v} of Gather": (program_of(ops.Gather((1,), (0,), (0,), 1, (1, 4)), X, np.array([[v], [0.0]])), "InvalidArgument", "index_tensor") for v in (FRACTION, NAN, HUGE)},
    **{f"index {v} of Scatter": (program_of(ops.Scatter((1,), (0,), (0,), 1), X, np.array([[v]]), np.ones((1, 4))), "InvalidArgument", "index_tensor") for v in (FRACTION, NAN, HUGE)},
    **{f"start {v} of DynamicSlice": (program_of(ops.DynamicSlice((1, 2)), X, np.array([0, v])), "InvalidArgument", "index_tensor") for v in (FRACTION, NAN, HUGE)},
    **{f"start {v} of DynamicUpdateSlice": (program_of(ops.DynamicUpdateSlice(), X, X[:1], np.array([0, v])), "InvalidArgument", "index_tensor") for v in (FRACTION, NAN, HUGE)},
    **{f"size {v} of DynamicTruncate": (program_of(ops.DynamicTruncate(0), X, np.array(v)), "InvalidArgument", "DynamicTruncate") for v in (NAN, np.inf)},
}  # fmt: skip


@pytest.mark.parametrize("name", RUNTIME)
def test_faults_in_values_are_the_same_error_on_every_native_path(name: str) -> None:
    (program, inputs), kind, op = RUNTIME[name]
    assert {facts(error)[:2] for error in natively(program, inputs)} == {(kind, op)}


@pytest.mark.parametrize("name", RUNTIME)
def test_what_xla_cannot_check_is_refused_before_any_compile(name: str) -> None:
    """XLA gives a result for each of these; the engine raises: the emitter must not let them through."""
    (program, inputs), _, _ = RUNTIME[name]
    assert isinstance(through_xla(program, inputs), LoweringError)


@pytest.mark.parametrize("peer", [name for name in PEERS if "jax" not in name])
def test_no_compiling_peer_is_asked_for_what_only_the_native_executor_checks(
    peer: str, unasked: Callable[[str], Executor]
) -> None:
    for (program, inputs), _, _ in RUNTIME.values():
        assert isinstance(raised(lambda p=program, i=inputs: unasked(peer).run(Case(p, tuple(i)))), LoweringError)


@pytest.mark.parametrize("peer", ["jax", "jax-eager"])
def test_jax_refuses_what_only_the_native_executor_checks(peer: str, pool: Pool) -> None:
    executor = executor_or_skip(pool, peer)
    for (program, inputs), _, op in RUNTIME.values():
        error = raised(lambda p=program, i=inputs: executor.run(Case(p, tuple(i))))
        assert isinstance(error, UnsupportedOp), op


def symbolic(op: Any) -> GraphProgram:
    b = GraphBuilder()
    return b.build(b.apply(op, b.input("F64", ("n", 3))))


def test_a_symbolic_program_that_breaks_a_rule_at_a_size(pool: Pool) -> None:
    program, inputs = symbolic(ops.Reshape((6,))), [np.zeros((3, 3))]
    (native,) = {facts(error) for error in natively(program, inputs)}
    assert native == ("ShapeMismatch", "Reshape", None)
    assert facts(through_xla(program, inputs)) == native
    for name in PEERS:
        if name.startswith("pjrt"):
            continue  # as the others that take StableHLO
        assert facts(raised(lambda name=name: executor_or_skip(pool, name).run(Case(program, tuple(inputs))))) == native


@pytest.mark.parametrize(
    "expr",
    [DimOp("sub", InputDim(0, 0), 4), DimOp("floordiv", 12, DimOp("sub", InputDim(0, 0), 3))],
    ids=["underflow", "division by zero"],
)
def test_a_dim_expression_that_cannot_be_evaluated_at_a_size(expr: DimOp) -> None:
    """The lowering view has a kind of its own for it (SEMANTICS 7.1, InvalidDimExpr), which says the same."""
    program, inputs = symbolic(ops.Reshape((expr, 3))), [np.zeros((3, 3))]
    (native,) = {error.kind: error for error in natively(program, inputs)}.values()
    assert facts(native) == ("InvalidArgument", "DimExpr", None)
    lowering = through_xla(program, inputs)
    assert isinstance(lowering, InvalidProgram)
    assert native.argument in str(lowering)  # type: ignore[attr-defined]
