"""The folder of a report: all of it or nothing, and nothing of anybody else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuzz.records import load
from reports import site
from tenferro_ref.errors import OutputError, UsageError
from tests.reports import sample

FILES = ["campaign.json", "index.html", "junit.xml", "summary.md"]


def test_all_forms_lie_in_one_folder(tmp_path: Path) -> None:
    page = site.write(sample.rich(), tmp_path / "deep" / "er")
    assert page == tmp_path / "deep" / "er" / "index.html"
    assert load(page.with_name("campaign.json")) == sample.rich()
    assert sorted(p.name for p in page.parent.iterdir()) == FILES


def test_equal_campaigns_give_equal_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        site.write(sample.rich(), tmp_path / folder)
    for name in FILES:
        one, two = ((tmp_path / folder / name).read_bytes() for folder in ("a", "b"))
        assert one == two
        assert str(tmp_path).encode() not in one


@pytest.mark.parametrize("name", ["rich", "clean", "known_only", "short", "empty", "hostile", "many"])
def test_a_report_replaces_an_earlier_one(name: str, tmp_path: Path) -> None:
    site.write(getattr(sample, name)(), tmp_path)
    site.check(tmp_path)
    site.write(sample.empty(), tmp_path)
    assert load(tmp_path / "campaign.json") == sample.empty()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_a_file_of_somebody_else_is_left_alone(name: str, kind: str, tmp_path: Path) -> None:
    folder, other = tmp_path / "report", tmp_path / "other"
    folder.mkdir()
    other.write_text("mine: tenferro-ref")
    theirs = folder / name
    if kind == "file":
        theirs.write_text("mine: tenferro-ref")
    elif kind == "link":
        theirs.symlink_to(other)
    else:
        theirs.mkdir()
    for use in (site.check, lambda place: site.write(sample.rich(), place)):
        with pytest.raises(UsageError, match="tenferro-ref has not written it"):
            use(folder)
    assert os.listdir(folder) == [name]
    assert other.read_text() == "mine: tenferro-ref"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="not a folder"):
        site.check(tmp_path / "file")
    with pytest.raises(OutputError):
        site.check(tmp_path / "file" / "below")


def test_a_full_disk_leaves_the_earlier_report_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.write(sample.rich(), tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    files = iter([False, False, True])
    original = os.fdopen

    def fills(descriptor: int, mode: str) -> object:
        if not next(files):
            return original(descriptor, mode)
        os.close(descriptor)
        return open("/dev/full", mode)

    monkeypatch.setattr(os, "fdopen", fills)
    with pytest.raises(OutputError, match="No space left on device"):
        site.write(sample.empty(), tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in sorted(os.listdir(tmp_path))} == before
