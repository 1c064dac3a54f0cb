"""A command that is kept running: it answers one program after the other, and every other end has its verdict."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import Executor, NativeExecutor, Pool
from oracle.peers.external import _array, _Tensor, _tensor
from oracle.verdict import Answer, Verdict
from tenferro_ref import children
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder
from tenferro_ref.tensor import same_bits
from tests.e2e.command import tenferro_ref

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/engine"
#: What it is told on its command line comes back for each line, with {n} for the number of the request.
ECHO = """
import sys, time
for n, line in enumerate(sys.stdin):
    if sys.argv[1] == "die" and n: sys.exit("last words")
    if sys.argv[1] == "hang": time.sleep(30)
    if sys.argv[1] == "flood":
        while True: print("x" * 100, end="")
    if sys.argv[1] == "deaf": time.sleep(30)
    if sys.argv[1] == "loud":
        while True: print("x" * 10_000, file=sys.stderr)
    if sys.argv[1].startswith("babble "): print(sys.argv[1][7:], end="\\n" if n else "\\nand more\\n", flush=True); continue
    print(sys.argv[1].replace("{n}", f"{n:02x}"), flush=True)
"""
B = GraphBuilder()
CASE = Case.of(B.build(-B.input("I32", (2,))), [np.array([1, -2], np.int32)])
RIGHT = '{"outputs":[{"dtype":"I32","shape":[2],"data":"ffffffff02000000"}]}'


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(request_seconds=20)
    yield made
    made.close()


Engine: TypeAlias = Callable[[str], Executor]


@pytest.fixture
def engine(tmp_path: Path, pool: Pool) -> Engine:
    """`engine(MODE)` is one that behaves so."""
    (tmp_path / "echo.py").write_text(ECHO)
    return lambda mode: pool.make(f"external-served:{sys.executable} {tmp_path / 'echo.py'} '{mode}'")


def verdict(executor: Executor, case: Case = CASE) -> Answer:
    return judge(executor, Reference(case, NativeExecutor()))


@pytest.mark.parametrize("compiler", ["cc", "rustc"])
def test_the_examples_answer_and_refuse(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    source = EXAMPLES / ("engine.c" if compiler == "cc" else "engine.rs")
    strict = ["-Wall", "-Wextra", "-Werror"] if compiler == "cc" else ["-D", "warnings"]
    subprocess.run([compiler, *strict, "-o", tmp_path / "engine", source], check=True)
    for op in ("Negate", "Exp"):
        text = f"graph (%0: F64[2, 3]) -> (%1) slots 2 {{\n  %1 = {op}(%0) : F64[2, 3]\n}}\n"
        (tmp_path / f"{op}.txt").write_text(text)
    files = ("Negate.txt", "Exp.txt", "--executors", "external-served:./engine", "--json")
    run = tenferro_ref("check", *files, cwd=tmp_path)
    assert run.status == 0, run
    assert [row["verdict"] for row in run.rows] == ["pass", "pass", "pass", "unsupported"]
    assert "only Negate of F64" in run.rows[-1]["reason"]
    assert run.rows[1]["executor"] == f"external-served:{tmp_path}/engine", "a name that other folders understand"


@pytest.mark.parametrize(
    ("answer", "want", "words"),
    [
        (RIGHT, Verdict.PASS, ""),
        (RIGHT.replace("02000000", "03000000"), Verdict.MISMATCH, "3 is not in 2"),
        (RIGHT.replace("I32", "F32"), Verdict.MISMATCH, "dtype"),
        (RIGHT.replace("[2]", "[3]"), Verdict.ERROR, "malformed answer"),
        (RIGHT.replace("I32", "I33"), Verdict.ERROR, "no dtype 'I33'"),
        (RIGHT.replace("ff", "zz"), Verdict.ERROR, "malformed answer"),
        ('{"outputs":[]}', Verdict.MISMATCH, "outputs"),
        (RIGHT.replace("I32", "Bool").replace("ffffffff02000000", "01ff"), Verdict.ERROR, "neither 0 nor 1"),
        ("no JSON", Verdict.ERROR, "malformed answer"),
        ("{}", Verdict.ERROR, "one of outputs and error"),
        ('{"error":null}', Verdict.ERROR, "one of outputs and error"),
        (RIGHT.replace("}]}", '}],"error":null}'), Verdict.PASS, ""),
        ('{"outputs":[],"error":{"kind":"UnsupportedOp"}}', Verdict.ERROR, "one of outputs and error"),
        ('{"error":{"kind":"BackendFailure","message":"no kernel"}}', Verdict.UNSUPPORTED, "no kernel"),
        ('{"error":{"kind":3}}', Verdict.ERROR, "must be an identifier"),
        ("[" * 10_000, Verdict.ERROR, "malformed answer"),
    ],
)
def test_what_it_answers_is_judged(engine: Engine, answer: str, want: Verdict, words: str) -> None:
    found = verdict(engine(answer))
    assert found.verdict is want, found.reason
    assert words in found.reason


def test_one_process_answers_them_all(engine: Engine) -> None:
    counting = engine('{"error":{"kind":"No","message":"request {n}"}}')
    assert [verdict(counting).reason.split()[-1] for _ in range(3)] == ["00", "01", "02"]


def test_one_that_ends_is_started_again(engine: Engine) -> None:
    dying = engine("die")
    first, second, third = (verdict(dying) for _ in range(3))
    assert (first.verdict, third.verdict) == (Verdict.ERROR, Verdict.ERROR)  # "die" is no JSON
    assert second.verdict is Verdict.CRASH
    assert "exit status 1; its last words: last words" in second.reason


@pytest.mark.parametrize(
    ("mode", "want"), [("hang", Verdict.TIMEOUT), ("flood", Verdict.TIMEOUT), ("deaf", Verdict.TIMEOUT)]
)
def test_one_that_does_not_answer_ends_at_the_time_limit(engine: Engine, pool: Pool, mode: str, want: Verdict) -> None:
    pool.request_seconds = 1.0
    # more than a pipe holds, so that one that does not read is noticed too
    b = GraphBuilder()
    case = Case.of(b.build(-b.input("F64", (50_000,))), [np.ones(50_000)])
    assert verdict(engine(mode), case).verdict is want


@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.name)
def test_tensors_survive_the_line(dtype: DType) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype.numpy)
    assert same_bits(_array(_Tensor(**_tensor(array))), array)


def test_a_line_too_many_is_not_the_answer_to_the_next_program(engine: Engine) -> None:
    babbling = engine(f"babble {RIGHT}")
    for _ in range(2):  # the process is a new one each time
        found = verdict(babbling)
        assert found.verdict is Verdict.ERROR
        assert "more than one line" in found.reason


def test_an_answer_before_the_request_is_read_leaves_nothing_for_the_next(tmp_path: Path, pool: Pool) -> None:
    script = tmp_path / "early.py"
    script.write_text(
        "import sys\n"
        "while sys.stdin.buffer.read(100):\n"
        """    print('{"error":{"kind":"No","message":"too large"}}', flush=True)\n"""
        "    sys.stdin.buffer.readline()\n"
    )
    b = GraphBuilder()
    case = Case.of(b.build(-b.input("F64", (50_000,))), [np.ones(50_000)])
    early = pool.make(f"external-served:{sys.executable} {script}")
    assert [verdict(early, case).verdict for _ in range(3)] == [Verdict.UNSUPPORTED] * 3


def test_what_it_says_beside_its_answers_stays_small_on_the_disk(
    engine: Engine, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.request_seconds = 1.0
    sizes: list[int] = []
    tail = children.tail

    def measured(log: IO[bytes], size: int) -> bytes:
        sizes.append(os.fstat(log.fileno()).st_blocks * 512)
        return tail(log, size)

    monkeypatch.setattr(children, "tail", measured)
    assert verdict(engine("loud")).verdict is Verdict.TIMEOUT
    assert sizes
    assert max(sizes) <= 4 * children.LOG_BYTES
