"""Files of others, in the places where a command writes: they are left as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.command import assert_one_line_error, tenferro_ref


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    (tmp_path / "precious").write_text("precious")
    return tmp_path / "precious"


def golden_set(folder: Path) -> None:
    assert tenferro_ref("golden", "--out", folder, "--seed", 1, "--programs", 0).status == 0


@pytest.mark.parametrize("name", ["index.json", "precious.txt"])
def test_golden_does_not_replace_a_folder_of_somebody_else(tmp_path: Path, name: str) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / name).write_text('{"pages": []}')
    assert_one_line_error(tenferro_ref("golden", "--out", tmp_path / "site", "--seed", 1), 2, "holds no golden set")
    assert (tmp_path / "site" / name).read_text() == '{"pages": []}'


def test_golden_does_not_replace_a_set_with_a_stranger_in_it(tmp_path: Path, theirs: Path) -> None:
    golden_set(tmp_path / "set")
    golden_set(tmp_path / "set")
    theirs.rename(tmp_path / "set" / "notes.txt")
    assert_one_line_error(tenferro_ref("golden", "--out", tmp_path / "set"), 2, "holds notes.txt")
    assert (tmp_path / "set" / "notes.txt").read_text() == "precious"


def test_golden_does_not_follow_a_link(tmp_path: Path) -> None:
    golden_set(tmp_path / "set")
    (tmp_path / "link").symlink_to(tmp_path / "set")
    assert_one_line_error(tenferro_ref("golden", "--out", tmp_path / "link"), 2, "no folder")
    assert json.loads((tmp_path / "set" / "index.json").read_text())["tenferro_golden"] == 1


@pytest.mark.parametrize("link", [False, True])
def test_a_lock_file_of_somebody_else_is_left_alone(tmp_path: Path, theirs: Path, link: bool) -> None:
    lock = tmp_path / "poetry.lock"
    if link:
        lock.symlink_to(theirs)
    else:
        lock.write_text("precious")
    result = tenferro_ref("fuzz", "run", tmp_path / "poetry", "--programs", 1, "--executors", "native")
    assert_one_line_error(result, 3, "poetry.lock")
    assert lock.read_text() == "precious"


def test_no_report_replaces_a_page_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("precious")
    result = tenferro_ref("parity", "--out", tmp_path, "--programs", 1, "--executors", "native")
    assert_one_line_error(result, 2, "tenferro-ref has not written it")
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
