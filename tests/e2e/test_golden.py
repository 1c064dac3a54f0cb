"""Golden vectors: written whole, the same for a seed, and refused or found wrong where they are damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fuzz.cli.golden import check_case, read_case, read_index, write_golden
from fuzz.cli.golden_cases import curated
from oracle.enclosure.files import load_enclosures
from tenferro_ref.errors import TenferroError
from tenferro_ref.tensor import load_npz, save_npz
from tests.e2e.command import assert_one_line_error
from tests.e2e.command import in_this_process as tenferro_ref

pytestmark = pytest.mark.once


SEED, PROGRAMS = 11, 12


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "set"
    write_golden(folder, SEED, PROGRAMS)
    return folder


@pytest.fixture
def copy(golden: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(golden, tmp_path / "copy"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_set_is_complete_and_holds(golden: Path) -> None:
    index = read_index(golden)
    assert (index.seed, index.programs, index.model) == (SEED, PROGRAMS, "numpy")
    assert len(index.cases) == PROGRAMS + len(list(curated()))
    assert sorted(e.folder for e in index.cases) == sorted(p.name for p in golden.iterdir() if p.is_dir())
    for entry in index.cases:
        assert check_case(golden / entry.folder, entry) == ""
        files = {p.name for p in (golden / entry.folder).iterdir()}
        results = set() if entry.error else {"outputs.npz"} | (set() if entry.no_enclosure else {"enclosure.npz"})
        assert files == {"program.json", "program.txt", "inputs.npz"} | results
    assert sum(e.error is not None for e in index.cases) >= 4
    assert {dict(index.versions)["NumPy"]} == {np.__version__}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(golden: Path, tmp_path: Path) -> None:
    run = tenferro_ref("golden", "--out", tmp_path / "again", "--seed", SEED, "--programs", PROGRAMS, "--json")
    assert (run.status, run.rows[0]["seed"]) == (0, SEED)
    assert contents(tmp_path / "again") == contents(golden)
    write_golden(tmp_path / "again", SEED + 1, PROGRAMS)  # replaces the set as a whole
    assert contents(tmp_path / "again") != contents(golden)
    assert [p.name for p in tmp_path.iterdir()] == ["again"]  # no temporary file stays


def test_check_runs_a_set_and_says_what_no_longer_holds(copy: Path) -> None:
    run = tenferro_ref("golden", "--check", copy)
    assert (run.status, run.out.splitlines()[-1]) == (0, f"{len(read_index(copy).cases)} cases: all hold")
    entry = next(e for e in read_index(copy).cases if e.folder.endswith("integer-wrap"))
    shutil.rmtree(copy / entry.folder)
    assert_one_line_error(tenferro_ref("golden", "--check", copy), 2, entry.folder, "cannot be read")


def test_a_changed_expectation_fails(copy: Path) -> None:
    index = json.loads((copy / "index.json").read_text())
    wrong = next(e for e in index["cases"] if e["error"])
    wrong["error"]["kind"] = "ShapeMismatch"
    (copy / "index.json").write_text(json.dumps(index))
    run = tenferro_ref("golden", "--check", copy, "--json")
    assert run.status == 1
    assert [row["case"] for row in run.rows if not row["holds"]] == [wrong["folder"]]
    assert "NumericalFailure, recorded ShapeMismatch" in next(row["reason"] for row in run.rows if not row["holds"])


def one(golden: Path, name: str) -> Path:
    return golden / next(e.folder for e in read_index(golden).cases if e.folder.endswith(name))


def entry_of(folder: Path) -> object:
    return next(e for e in read_index(folder.parent).cases if e.folder == folder.name)


def test_other_bits_pass_inside_the_enclosure_and_fail_outside(copy: Path) -> None:
    folder = one(copy, "-subnormals")
    outputs = load_npz(folder / "outputs.npz", "out")
    enclosures = load_enclosures(folder / "enclosure.npz", outputs)
    assert all(e.contains(o).all() for e, o in zip(enclosures, outputs, strict=True))
    assert not enclosures[0].contains(outputs[0] * 2).all()
    outputs[0] = outputs[0] * 2
    save_npz(folder / "outputs.npz", {f"out{i}": a for i, a in enumerate(outputs)})
    with pytest.raises(TenferroError, match="recorded outputs are not in the recorded enclosures"):
        check_case(folder, entry_of(folder))  # type: ignore[arg-type]


def test_enclosures_of_complex_outputs_have_both_parts(golden: Path) -> None:
    folder = one(golden, "-complex")
    outputs = load_npz(folder / "outputs.npz", "out")
    (dot, modulus, conjugate, equal) = load_enclosures(folder / "enclosure.npz", outputs)
    assert dot.contains(outputs[0]).all()
    assert not dot.contains(outputs[0] + 1j).any()
    assert [modulus.dtype.name, conjugate.dtype.name, equal.dtype.name] == ["F64", "C64", "Bool"]


DAMAGE: list[tuple[str, Callable[[Path], object]]] = [
    ("program.json", lambda f: f.write_text(f.read_text()[:-30])),
    ("program.json", lambda f: f.write_text(f.read_text().replace('"F64"', '"F32"', 1))),
    ("program.txt", lambda f: f.write_text("graph () -> () slots 0 {\n}\n")),
    ("inputs.npz", lambda f: f.write_bytes(f.read_bytes()[:-40])),
    ("inputs.npz", lambda f: save_npz(f, {"in0": np.zeros((2, 3)), "in1": np.ones(2)})),
    ("outputs.npz", lambda f: f.unlink()),
    ("enclosure.npz", lambda f: save_npz(f, {"lo0": np.zeros(2)})),
    ("enclosure.npz", lambda f: save_npz(f, {f"{p}0": np.zeros((2, 3)) for p in ("lo", "hi", "nan", "pos_zero", "neg_zero")})),
]  # fmt: skip


@pytest.mark.parametrize(("name", "damage"), DAMAGE)
def test_damaged_files_are_refused_by_name(copy: Path, name: str, damage: Callable[[Path], object]) -> None:
    folder = one(copy, "-column-major-reshape")
    damage(folder / name)
    with pytest.raises(TenferroError) as caught:
        check_case(folder, entry_of(folder))  # type: ignore[arg-type]
    assert folder.name in str(caught.value)


@pytest.mark.parametrize("folder", ["", ".", "..", "a/b", "/etc"])
def test_an_index_names_folders_of_its_set_only(copy: Path, folder: str) -> None:
    index = json.loads((copy / "index.json").read_text())
    index["cases"][0]["folder"] = folder
    (copy / "index.json").write_text(json.dumps(index))
    assert_one_line_error(tenferro_ref("golden", "--check", copy), 2, "no folder of the set")


def test_bad_calls(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("x")
    assert_one_line_error(tenferro_ref("golden", "--out", tmp_path / "full", "--seed", 1), 2, "holds no golden set")
    assert (tmp_path / "full" / "precious.txt").read_text() == "x"
    assert_one_line_error(tenferro_ref("golden"), 2, "--out DIR or --check DIR")
    assert_one_line_error(tenferro_ref("golden", "--check", tmp_path / "none"), 2, "index.json", "cannot be read")


def test_the_curated_cases_show_what_their_titles_say(golden: Path) -> None:
    def outputs(name: str) -> list[list[object]]:
        return [a.tolist() for a in load_npz(one(golden, name) / "outputs.npz", "out")]

    assert outputs("-scatter-clamps") == [[5, 0, 6, 7]]
    assert outputs("-gather-clamps") == [[1, 3, 5]]
    assert outputs("-cast-to-integer")[0] == [1, -1, 2**31 - 1, -(2**31), 2**31 - 1, 0, 2**31 - 1]
    assert outputs("-integer-division") == [[3, -3, -(2**31)]]
    assert outputs("-column-major-reshape") == [[[1, 4], [2, 5], [3, 6]]]
    assert outputs("-truncate-rounds") == [[1, 2, 3]]
    assert outputs("-dot-of-nothing") == [[[0, 0, 0], [0, 0, 0]]]
    assert outputs("-pad-crops") == [[0, 2, 0, 3, 0, 4, 0, 0]]
    assert read_case(one(golden, "-clamp")).program.name == "clamp"
    zeros = load_npz(one(golden, "-sum-order") / "outputs.npz", "out")
    assert [np.signbit(a).tolist() for a in zeros] == [False, [True, True]]
