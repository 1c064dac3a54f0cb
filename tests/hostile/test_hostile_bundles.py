"""A bundle may be anybody's: its words become no code, and what it names to be run needs the caller's leave."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from fuzz.findings import bundle
from fuzz.findings.bundle import SCRIPT, confirm, read_bundle, write_bundle
from fuzz.findings.environments import ROOT, FreshEnvironments
from oracle.peers import NativeExecutor, Pool
from oracle.peers.errors import CommandRefused
from tenferro_ref import children
from tenferro_ref.errors import FormatError
from tests.e2e.command import assert_one_line_error
from tests.e2e.command import in_this_process as tenferro_ref
from tests.hostile.attacks import ATTACKS, acts, finding, program

pytestmark = pytest.mark.once


def written(folder: Path, **changes: object) -> Path:
    write_bundle(folder, finding(**changes), NativeExecutor(), program(), ())
    return folder


def changed(folder: Path, **changes: object) -> Path:
    """The bundle with other facts, as its sender may write them."""
    path = folder / "environment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


@pytest.fixture
def owned(tmp_path: Path) -> Path:
    """What is there if somebody else's command ran."""
    return tmp_path / "owned"


@pytest.fixture
def command(owned: Path) -> str:
    return f"external:sh -c 'touch {owned}; exit 4'"


@pytest.mark.parametrize("words", ATTACKS)
def test_words_become_no_source_and_no_markup(tmp_path: Path, words: str, owned: Path) -> None:
    words = words.replace("{owned}", str(owned))
    names = (
        "signature",
        "title",
        "reason",
        "attribution",
        "value_class",
        "executor",
        "verdict",
        "stablehlo",
        "program_text",
    )
    folder = written(tmp_path / "b", **dict.fromkeys(names, words))
    assert (folder / "reproduce.py").read_bytes() == SCRIPT
    plain = written(tmp_path / "plain")
    page, usual = (f / "README.md" for f in (folder, plain))
    text = page.read_text("utf-8")
    assert not acts(text)
    prose = re.sub(r"(?s)(?<!\\)(`+)(?!`).+?(?<!`)\1(?!`)", "", text)  # without code, in which nothing acts
    for mark in ("\nimport os", "\nnew  ", " <img", "[link](https", " @somebody", " www.evil"):
        assert mark not in prose
    assert text.count("\n#") == usual.read_text("utf-8").count("\n#")
    python = [sys.executable, str(folder / "reproduce.py")]
    done = subprocess.run(python, capture_output=True, text=True, env=children.environment(PYTHONPATH=str(ROOT)))
    assert done.returncode == 0, done.stderr
    assert not owned.exists()


def calls(folder: Path) -> dict[str, tuple[object, ...]]:
    return {
        "replay": ("fuzz", "replay", folder),
        "fresh": ("fuzz", "replay", folder, "--fresh-venv"),
        "reduce": ("fuzz", "reduce", folder),
    }


@pytest.mark.parametrize("call", ["replay", "fresh", "reduce"])
def test_a_command_needs_leave(tmp_path: Path, owned: Path, command: str, call: str) -> None:
    folder = changed(written(tmp_path / "b"), executor=command)
    run = tenferro_ref(*calls(folder)[call])
    assert_one_line_error(run, 2, "environment.json", f"touch {owned}", "--allow-commands")
    assert not owned.exists()


def test_it_runs_where_the_call_allows_or_names_it(tmp_path: Path, owned: Path, command: str) -> None:
    folder = changed(written(tmp_path / "b"), executor=command)
    for allowed in (("--allow-commands",), ("--executor", command)):
        assert tenferro_ref("fuzz", "replay", folder, *allowed).status == 1
        assert owned.exists()
        owned.unlink()


def test_the_script_needs_leave_as_well(tmp_path: Path, owned: Path, command: str) -> None:
    folder = changed(written(tmp_path / "b"), executor=command)
    python = [sys.executable, str(folder / "reproduce.py")]
    variables = children.environment(PYTHONPATH=str(ROOT))
    done = subprocess.run(python, capture_output=True, text=True, env=variables)
    assert done.returncode == 2
    assert "--allow-commands" in done.stderr
    assert not owned.exists()
    assert subprocess.run([*python, "--allow-commands"], capture_output=True, env=variables).returncode == 1
    assert owned.exists()


@pytest.mark.parametrize("name", ["pjrt:/evil.so", "pjrt:evil.so@parity", "pjrt:./evil", "pjrt:../x/evil.dylib@fast"])
def test_a_library_needs_leave(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = changed(written(tmp_path / "b"), executor=name)

    def loads(*_: object) -> NoReturn:
        pytest.fail("something was started")

    monkeypatch.setattr("tenferro_ref.isolation.process.Worker._ensure_started", loads)
    assert_one_line_error(tenferro_ref("fuzz", "replay", folder), 2, "load the library", "--allow-commands")


def test_a_script_of_its_own_is_not_run(tmp_path: Path, owned: Path) -> None:
    folder = written(tmp_path / "b")
    (folder / "reproduce.py").write_text(f"open({str(owned)!r}, 'w'); print('mismatch'); raise SystemExit(1)")
    with pytest.raises(FormatError, match="it is not run"):
        confirm(folder)
    # those of earlier versions are scripts of their own, and so are not run either
    assert confirm(changed(folder, tenferro_bundle=3)).startswith("gone: pass")
    assert not owned.exists()


def test_modules_beside_the_bundle_are_not_imported(
    tmp_path: Path, owned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "b")
    for name in ("numpy.py", "click.py", "tenferro_ref.py", "sitecustomize.py"):
        (folder / name).write_text(f"open({str(owned)!r}, 'w')")
    monkeypatch.chdir(folder)
    assert confirm(folder).startswith("gone: pass")  # the native executor is right
    assert not owned.exists()


@pytest.mark.parametrize(
    "given",
    [
        "--index-url=http://evil.example", "-r evil.txt", "/tmp/evil", "./evil", "evil", "evil==1.0", "jax @ file:///tmp/evil",
        "jax==0.7 --pre", "jax==0.7\n--pre", "jax>=0.1", "git+https://evil.example/x", "jax==", "", "JAX==1;evil", "jax[evil]",
    ],
)  # fmt: skip
def test_requirements_are_packages_that_executors_come_with(
    tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = changed(written(tmp_path / "b"), requirements=[given])

    def installs(*_: object) -> NoReturn:
        pytest.fail("something was installed")

    monkeypatch.setattr("fuzz.findings.environments._run", installs)
    run = tenferro_ref("fuzz", "replay", folder, "--fresh-venv")
    assert_one_line_error(run, 2, "requirements", "nothing was installed")


def test_requirements_that_are_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr("fuzz.findings.environments._run", lambda _, command: made.append(command))
    fine = ("jax==0.10.2", "jaxlib", "xla-cpu-pjrt==0.0.1", "iree-base-compiler==3.9.0rc1+cpu")
    with FreshEnvironments() as environments:
        environments.python("jax", fine)
    assert made[-1][-4:] == [*fine]


def test_what_the_call_names_is_compared_by_what_it_runs() -> None:
    pool = Pool(allowed=("pjrt:/there/x.so", "external:engine --fast"))
    pool.permit("pjrt:/there/x.so@parity", "file")
    pool.permit("pjrt:xla081@parity", "file")
    for name in ("pjrt:/there/y.so", "external:engine", "external:engine --fast; evil", "pjrt:/there/x.so/../y.so"):
        with pytest.raises(CommandRefused):
            pool.permit(name, "file")


def test_bundles_of_version_3_are_read(tmp_path: Path, pool: Pool) -> None:
    folder = changed(written(tmp_path / "b"), tenferro_bundle=3)
    (folder / "reproduce.py").unlink()
    facts, case = read_bundle(folder)
    assert (facts.tenferro_bundle, case.fingerprint) == (3, program().fingerprint)
    assert bundle.replay(folder, pool).outcome == "gone"
    shutil.rmtree(folder)
