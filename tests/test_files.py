"""Reading text, and writing so that nothing half-written is ever seen."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

import pytest

from tenferro_ref.errors import FormatError, OutputError
from tenferro_ref.files import read_text, write_atomically


def listing(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_writes_text_and_bytes_and_makes_folders(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "out.txt"
    write_atomically(target, "grüße\n")
    assert target.read_bytes() == "grüße\n".encode()
    write_atomically(str(target), b"\x00\xff")
    assert target.read_bytes() == b"\x00\xff"
    assert listing(target.parent) == ["out.txt"]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert read_text(tmp_path / "x") == "one\ntwo\n"


def test_mode_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "x", "")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("step", ["write", "flush", "replace", "chmod"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def onto_a_full_disk(descriptor: int, mode: str) -> object:
        os.close(descriptor)
        return open("/dev/full", mode, buffering=0 if step == "write" else -1)

    if step in ("write", "flush"):
        monkeypatch.setattr(os, "fdopen", onto_a_full_disk)
    else:
        monkeypatch.setattr(os, step, full)
    with pytest.raises(OutputError) as caught:
        write_atomically(target, "new")
    assert caught.value.detail == "No space left on device"
    assert caught.value.path == str(target)
    monkeypatch.undo()
    assert target.read_text() == "old"
    assert listing(tmp_path) == ["out.txt"]


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "x", "new")
    assert listing(tmp_path) == []


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match="cannot write"):
        write_atomically(tmp_path / "out", "new")
    assert listing(tmp_path) == ["out"]
    assert listing(tmp_path / "out") == []


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        write_atomically(tmp_path / "file" / "out", "new")


def test_an_unwritable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)  # root may write anywhere, so the mode will not do
    with pytest.raises(OutputError, match="Permission denied"):
        write_atomically(tmp_path / "x", "new")
    assert listing(tmp_path) == []


@pytest.mark.parametrize("name", ["nul\0byte", "x" * 300])
def test_impossible_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError) as caught:
        write_atomically(tmp_path / name, "new")
    assert len(str(caught.value).splitlines()) == 1
    assert listing(tmp_path) == []


def test_reads_utf_8(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("grüße".encode())
    assert read_text(tmp_path / "x") == "grüße"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", bytes(range(256))])
def test_binary_garbage_is_not_text(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FormatError, match="not UTF-8") as caught:
        read_text(tmp_path / "x")
    assert caught.value.where == str(tmp_path / "x")


@pytest.mark.parametrize("name", [".", "missing", "missing/below", "nul\0byte", "y" * 300])
def test_what_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="cannot be read") as caught:
        read_text(tmp_path / name)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_a_device_is_written_into_and_stays_one(device: str, tmp_path: Path) -> None:
    node = tmp_path / "device"
    try:
        os.mknod(node, 0o666 | stat.S_IFCHR, os.stat(device).st_rdev)
    except OSError as error:  # root alone may make one
        pytest.skip(str(error))
    if device == "/dev/full":
        with pytest.raises(OutputError, match="No space left"):
            write_atomically(node, "text")
    else:
        write_atomically(node, "text")
    assert stat.S_ISCHR(node.stat().st_mode)


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError):  # nobody reads
        write_atomically(pipe, "text")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, "text")
    assert os.read(reader, 9) == b"text"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
