"""Bundles stand alone: all files, a script that shows the finding, a README that says why, a replay that knows when it is gone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from fuzz.campaign.work import environment
from fuzz.findings import reproduce, upstream
from fuzz.findings.bundle import SCRIPT, VERSION, Facts, confirm, read_bundle, replay, write_bundle
from fuzz.findings.environments import ROOT, FreshEnvironments
from fuzz.findings.suspect import Suspect
from fuzz.findings.triage import to_finding
from fuzz.records import to_json
from oracle.case import Case
from oracle.given_case import given_case
from oracle.judge import Reference, judge
from oracle.peers import ANY, Execution, Executor, NativeExecutor, PjrtExecutor, Pool
from oracle.verdict import Verdict
from tenferro_ref import children, ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError
from tenferro_ref.extensions import linalg
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder, dumps
from tenferro_ref.tensor import load_npz, save_npz
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once


FILES = {
    "program.txt", "program.json", "module.mlir", "inputs.npz", "observed.npz", "enclosure.npz", "environment.json",
    "reproduce.py", "upstream.py", "README.md",
}  # fmt: skip


@pytest.fixture
def case() -> Case:
    b = GraphBuilder()
    return Case.of(b.build(b.apply(ops.Log(), b.apply(ops.Exp(), b.input("F64", (2,))))), [np.array([1.0, 1000.0])])


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    monkeypatch.delenv("FAKE_PJRT_MODE", raising=False)
    pool = Pool(allowed=(ANY,))
    yield pool
    pool.close()


def bundle_of(folder: Path, executor: Executor, case: Case, pool: Pool, budget_seconds: float = 0.0) -> Path:
    answer = judge(executor, Reference(case, NativeExecutor()))
    assert answer.verdict.is_disagreement
    suspect = Suspect(executor, case, answer, "Log(Exp)", "F64", "every lane")
    finding, small = to_finding(suspect, pool, (), programs=3, also=("another",), budget_seconds=budget_seconds)
    target = folder / finding.id
    write_bundle(target, finding, executor, small, environment())
    return target


@pytest.fixture
def copying(fake_library: Path, pool: Pool) -> PjrtExecutor:
    """The plugin that gives its argument back: wrong for every program that computes something."""
    executor = pool.make(f"pjrt:{fake_library}")
    assert isinstance(executor, PjrtExecutor)
    return executor


@pytest.fixture
def bundle(tmp_path: Path, copying: PjrtExecutor, case: Case, pool: Pool) -> Path:
    return bundle_of(tmp_path, copying, case, pool)


def test_it_has_all_that_a_stranger_needs(bundle: Path, case: Case) -> None:
    assert {p.name for p in bundle.iterdir()} == FILES
    facts, again = read_bundle(bundle)
    assert again.fingerprint == case.fingerprint
    assert (facts.verdict, facts.model) == ("mismatch", "xla")
    assert dict(facts.environment).keys() >= {"tenferro-ref", "Python", "NumPy"}
    assert dict(facts.facts)["sha256"]
    (observed,) = load_npz(bundle / "observed.npz", "out")
    assert np.array_equal(observed, [1.0, 1000.0])
    with np.load(bundle / "enclosure.npz") as enclosure:
        assert set(enclosure.files) == {"lo0", "hi0", "nan0", "pos_zero0", "neg_zero0"}
        assert np.array_equal(enclosure["lo0"] == np.inf, [False, True])
    json.loads((bundle / "environment.json").read_text(), parse_constant=pytest.fail)
    assert "stablehlo.log" in (bundle / "module.mlir").read_text()


def test_a_result_of_a_dtype_that_numpy_lacks_is_read_again(tmp_path: Path, pool: Pool) -> None:
    """Finding 0121."""
    plugin_or_skip("xla081")
    executor = pool.make("pjrt:xla081@parity")
    b = GraphBuilder(policy=STABLEHLO)
    program = b.build(b.apply(ops.Convert(DType.BF16), b.input("F64", (1,))))
    folder = bundle_of(tmp_path, executor, Case.of(program, [np.array([1.00390625 + 2.0**-40])]), pool)
    assert read_bundle(folder)[1].program.output_types[0].dtype is DType.BF16
    assert (replay(folder, pool).outcome, replay(folder, pool).same_bits) == ("still fails", True)


MODULE = """func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
  %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %r = stablehlo.add %x, %c : tensor<2xf64>
  return %r : tensor<2xf64>
}
"""


def test_a_module_that_was_handed_in_is_read_anew_for_its_arguments(
    tmp_path: Path, copying: PjrtExecutor, pool: Pool
) -> None:
    module_or_skip("jaxlib")
    case = given_case(pool.reader.source(MODULE, "a module"), [np.array([1.0, 2.0])], pool.reader)
    assert len(case.inputs) == 2  # the constant is the other
    folder = bundle_of(tmp_path, copying, case, pool)
    assert len(load_npz(folder / "inputs.npz", "in")) == 1
    read, again = read_bundle(folder)
    assert again.fingerprint == case.fingerprint
    assert read.requirements[-1].startswith("jaxlib=="), "its module is read in a fresh environment, too"
    b = GraphBuilder(policy=STABLEHLO)
    x, y = b.input("F64", (2,)), b.input("F64", (2,))
    (folder / "program.json").write_text(dumps(b.build(x - y)))  # of a reader with a defect
    assert read_bundle(folder)[1].fingerprint == case.fingerprint
    assert replay(folder, pool, "native").outcome == "gone"
    # as bundles were until version 5
    save_npz(folder / "inputs.npz", {f"in{i}": a for i, a in enumerate(case.inputs)})
    with pytest.raises(FormatError, match=r"does not fit module\.mlir"):
        read_bundle(folder)
    facts = (folder / "environment.json").read_text()
    (folder / "environment.json").write_text(facts.replace(f'"tenferro_bundle": {VERSION}', '"tenferro_bundle": 5'))
    assert read_bundle(folder)[1].fingerprint == case.fingerprint


def test_the_readme_says_why_step_by_step(bundle: Path) -> None:
    text = (bundle / "README.md").read_text()
    assert "## Why the expected value is right" in text
    assert r"| %1 = Exp(%0) | F64\[2\] | \[1\] | inf | inf |" in text
    assert r"| %2 = Log(%1) | F64\[2\] | \[1\] | inf | inf |" in text
    (row,) = (line for line in text.splitlines() if "**outside**" in line)
    assert row == r"| out0 | \[1\] | inf | 1000.0 | **outside** |"


def test_the_readme_says_which_build_was_the_first(
    tmp_path: Path, copying: PjrtExecutor, case: Case, pool: Pool
) -> None:
    folder = bundle_of(tmp_path, copying, case, pool, budget_seconds=5.0)
    (build,) = read_bundle(folder)[0].builds
    assert (build.name, build.verdict) == ("fake_plugin", Verdict.MISMATCH)
    said = r"* first bad build: fake\_plugin (PJRT API 0.81), the only one asked; fake\_plugin mismatch"
    assert said in (folder / "README.md").read_text().splitlines()


def test_a_bundle_of_the_first_version_is_read(bundle: Path) -> None:
    path = bundle / "environment.json"
    content = json.loads(path.read_text())
    assert content.pop("builds") == [
        {"name": "fake_plugin", "api": "", "verdict": None, "reason": "not asked: out of time"}
    ]
    path.write_text(json.dumps({**content, "tenferro_bundle": 1}))
    assert read_bundle(bundle)[0].builds == ()


def test_its_script_shows_it_in_a_clean_interpreter(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert confirm(bundle, allowed=(ANY,)) == ""
    # another verdict is no confirmation, though the status is 1 too; nor is what does not end
    facts = (bundle / "environment.json").read_text()
    (bundle / "environment.json").write_text(facts.replace('"mismatch"', '"crash"'))
    assert confirm(bundle, allowed=(ANY,)).startswith("fails differently: mismatch ")
    (bundle / "environment.json").write_text(facts)
    monkeypatch.setattr("fuzz.findings.bundle._SECONDS", 0.01)
    assert confirm(bundle, allowed=(ANY,)) == "no answer within 0.01 s"


@pytest.mark.nightly
def test_maintainers_see_it_with_jax_alone(bundle: Path) -> None:
    """XLA as jaxlib has it rewrites this program too; where it gives what is permitted, the disagreement is gone."""
    module_or_skip("jax")
    command = [sys.executable, "-I", str(bundle / "upstream.py")]
    named = re.search(r"`python upstream.py (.*?)`", (bundle / "README.md").read_text())
    assert named
    assert named[1].split()[:2] == ["--plugin", "fake_plugin.so"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, "[1]: 1000.0, permitted [[inf, inf]]" in done.stdout) == (1, True), done
    done = subprocess.run([*command, "--option", "xla_disable_hlo_passes=algsimp"], capture_output=True, text=True)
    assert done.returncode == 0, done
    # what cannot be asked is another end than a disagreement
    for arguments in (["--option", "no_such_option=1"], ["--plugin", str(bundle / "README.md")]):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
        assert done.stderr.startswith("error: this cannot be asked: ")
    assert subprocess.run([*command, "--option", "no_value"], capture_output=True).returncode == 2
    hidden = [sys.executable, "-I", "-S", *command[2:]]
    done = subprocess.run(hidden, capture_output=True, text=True)
    assert (done.returncode, "pip install jax" in done.stderr) == (3, True)


def test_its_script_is_the_same_file_in_every_bundle_and_runs(bundle: Path, tmp_path: Path) -> None:
    assert (bundle / "reproduce.py").read_bytes() == SCRIPT == Path(reproduce.__file__).read_bytes()
    command = [sys.executable, str(bundle / "reproduce.py"), "--allow-commands"]
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=children.environment(PYTHONPATH=root)
    )
    assert done.returncode == 1, done.stderr
    assert "still fails" in done.stdout


@pytest.mark.nightly
def test_its_script_runs_in_the_environment_that_it_needs(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def python(_: object, *needs: object) -> str:
        asked.append(needs)
        return sys.executable

    monkeypatch.setattr(FreshEnvironments, "python", python)
    monkeypatch.setenv(children.EXTRA_VARIABLE, "FAKE_PJRT_MODE,FAKE_PJRT_ONCE,PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with FreshEnvironments() as environments:
        assert confirm(bundle, environments, allowed=(ANY,)) == ""
    facts, _ = read_bundle(bundle)
    assert asked == [(facts.executor, facts.requirements)]


def test_replay_knows_when_it_still_fails_and_when_it_is_gone(
    bundle: Path, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = replay(bundle, pool)
    assert (still.outcome, still.same_bits) == ("still fails", True)
    gone = replay(bundle, pool, "native-nopasses")
    assert (gone.outcome, gone.same_bits) == ("gone", False)
    monkeypatch.setenv("FAKE_PJRT_MODE", "compile_abort")
    other = Pool(allowed=(ANY,))
    try:
        result = replay(bundle, other)
    finally:
        other.close()
    assert (result.outcome, result.answer.verdict.value, result.same_bits) == ("fails differently", "crash", None)


@pytest.mark.nightly
def test_a_crash_has_a_bundle_too(
    tmp_path: Path, fake_library: Path, case: Case, monkeypatch: pytest.MonkeyPatch, pool: Pool
) -> None:
    monkeypatch.setenv("FAKE_PJRT_MODE", "execute_segv")
    folder = bundle_of(tmp_path, pool.make(f"pjrt:{fake_library}"), case, pool)
    assert load_npz(folder / "observed.npz", "out") == []
    assert "The program is valid" in (folder / "README.md").read_text()
    assert "SIGSEGV" in (folder / "README.md").read_text()
    assert confirm(folder, allowed=(ANY,)) == ""
    assert replay(folder, pool).outcome == "still fails"


@pytest.mark.parametrize("name", sorted(FILES & {"program.json", "inputs.npz", "environment.json", "observed.npz"}))
@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff\xfe"])
def test_a_bundle_that_is_damaged_is_a_typed_error(bundle: Path, pool: Pool, name: str, content: bytes | None) -> None:
    if content is None:
        (bundle / name).unlink()
    else:
        (bundle / name).write_bytes(content)
    with pytest.raises(FormatError, match=name.replace(".", r"\.")):
        replay(bundle, pool, "native-nopasses")


def test_a_later_version_is_refused(bundle: Path, pool: Pool) -> None:
    path = bundle / "environment.json"
    path.write_text(path.read_text().replace(f'"tenferro_bundle": {VERSION}', '"tenferro_bundle": 99'))
    with pytest.raises(FormatError, match="version 99"):
        replay(bundle, pool)


def test_inputs_of_another_program_are_refused(bundle: Path, pool: Pool) -> None:
    b = GraphBuilder()
    (bundle / "program.json").write_text(dumps(b.build(b.apply(ops.Exp(), b.input("F32", (3, 3))))))
    with pytest.raises(FormatError, match="does not fit"):
        read_bundle(bundle)


def test_facts_are_strict_json() -> None:
    facts = Facts(1, "s", "mismatch", "", "", "", "native", "numpy", (), (("a", "b"),), ())
    assert json.loads(to_json(facts))["environment"] == [["a", "b"]]


@dataclass(frozen=True)
class _Off(NativeExecutor):
    """Doubles what it computes; of a variant that must keep bits if `exact`."""

    name: str = "off"
    exact: bool = True

    def run(self, case: Case) -> Execution:
        execution = NativeExecutor.run(self, case)
        return replace(execution, outputs=tuple(2 * a for a in execution.outputs))

    def bit_exact(self, case: Case) -> bool:
        return self.exact


@pytest.mark.parametrize(("exact", "words"), [(True, "agree bit for bit"), (False, "backward-error bound")])
def test_the_readme_says_how_decompositions_were_judged(tmp_path: Path, pool: Pool, exact: bool, words: str) -> None:
    b = GraphBuilder()
    case = Case.of(b.build(linalg.cholesky(b.input("F64", (2, 2)))), [np.array([[4.0, 2.0], [2.0, 5.0]])])
    text = (bundle_of(tmp_path, _Off(exact=exact), case, pool) / "README.md").read_text()
    assert words in text
    assert ("agree bit for bit" in text) is exact


def test_its_script_without_what_it_needs_is_no_disagreement(bundle: Path, tmp_path: Path) -> None:
    """Status 1 is for "the disagreement is there": in a bare environment it ends with 3, one line, and what to do."""
    for missing in ("tenferro_ref", "numpy"):
        folder = tmp_path / missing
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules[{missing!r}] = None\n")
        path = os.pathsep.join((str(folder), str(ROOT)))
        done = subprocess.run(
            [sys.executable, str(bundle / "reproduce.py")],
            capture_output=True, text=True, env=children.environment(PYTHONPATH=path),
        )  # fmt: skip
        assert done.returncode == 3, done
        *_, last = done.stderr.splitlines()  # a library may write lines of its own when NumPy is not there
        assert last.startswith("error: ")
        assert missing in last
        assert "pip install ." in last


def test_maintainers_get_inputs_of_dtypes_that_numpy_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy writes them as bytes without a type."""
    given = [np.array([1.5, -2], DType[name].numpy) for name in ("BF16", "F8E4M3FN", "F4E2M1FN", "I4", "F32", "F8E5M2")]
    given[3] = np.array([3, -8], DType.I4.numpy)
    given.append(np.array(2.5, np.float32))
    np.savez(tmp_path / "inputs.npz", **{f"in{i}": array for i, array in enumerate(given)})
    types = [{"slot": i, "dtype": DType.of(array).name, "shape": [*array.shape]} for i, array in enumerate(given)]
    (tmp_path / "program.json").write_text(json.dumps({"inputs": types}))
    monkeypatch.setattr(upstream, "HERE", tmp_path)
    read = upstream.arguments()
    assert [(a.dtype, a.shape) for a in read] == [(a.dtype, a.shape) for a in given]
    assert [a.tobytes() for a in read] == [a.tobytes() for a in given]
