"""The folder of a report: all of it or nothing, and nothing of anybody else's."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from fuzz.records import load
from fuzz.report import Report
from reports.parity import SINGLE_FILE, SITE
from tenferro_ref.errors import OutputError, UsageError
from tenferro_ref.files import Product, write_products
from tests.reports import sample

pytestmark = pytest.mark.once


FILES = [
    "campaign.json", "findings.sarif", "index.html", "junit.xml", "matrix.csv", "report.css", "report.js", "summary.md",
]  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_all_forms_lie_in_one_folder(tmp_path: Path) -> None:
    page = SITE.write(Report(sample.rich()), tmp_path / "deep" / "er")
    assert page == tmp_path / "deep" / "er" / "index.html"
    assert load(page.with_name("campaign.json")) == sample.rich()
    assert sorted(p.name for p in page.parent.iterdir() if p.is_file()) == FILES
    counted = {kind: len(list(page.parent.glob(f"{kind}/*.html"))) for kind in ("findings", "ops", "peers", "known")}
    assert counted == {"findings": 4, "ops": 40, "peers": 9, "known": 0}


def test_equal_campaigns_give_equal_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        SITE.write(Report(sample.rich()), tmp_path / folder)
    one, two = (files(tmp_path / folder) for folder in ("a", "b"))
    assert one == two
    assert not any(str(tmp_path).encode() in content for content in one.values())


@pytest.mark.parametrize("name", ["rich", "clean", "known_only", "short", "empty", "hostile", "many"])
def test_a_report_replaces_an_earlier_one(name: str, tmp_path: Path) -> None:
    SITE.write(Report(getattr(sample, name)()), tmp_path)
    SITE.check(tmp_path)
    SITE.write(Report(sample.empty()), tmp_path)
    assert load(tmp_path / "campaign.json") == sample.empty()
    assert sorted(files(tmp_path)) == FILES


def test_one_file_replaces_a_site_and_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    SITE.write(Report(sample.rich()), tmp_path)
    (tmp_path / "ops" / "mine.html").write_text("mine")
    SINGLE_FILE.write(Report(sample.rich()), tmp_path)
    assert sorted(files(tmp_path)) == sorted([*(f for f in FILES if not f.startswith("report.")), "ops/mine.html"])


def test_a_page_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "ops").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is a link"):
        SITE.write(Report(sample.rich()), tmp_path / "report")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_bundle_is_not_written_through_a_link_above_its_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "findings").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="findings: is a link"):
        write_products(tmp_path, [Product("findings/0a1b2c3d/README.md", "", "# a finding")])
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_report_brings_the_bundles_that_there_are(tmp_path: Path) -> None:
    new, other = (f for f in sample.rich().findings if not f.known)
    bundle = tmp_path / "store.findings" / new.id
    bundle.mkdir(parents=True)
    (bundle / "README.md").write_text("complete")
    (bundle / "program.txt").write_text(new.program_text)
    folder = SITE.write(Report(sample.rich(), bundles=bundle.parent), tmp_path / "out").parent
    assert (folder / "findings" / new.id / "program.txt").read_text() == new.program_text
    page, without = ((folder / "findings" / f"{f.id}.html").read_text() for f in (new, other))
    assert f"tenferro-ref fuzz replay findings/{new.id}" in page
    assert "STORE" not in page
    assert f"tenferro-ref fuzz findings STORE {other.id} --bundles findings" in without


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "summary.md" else pytest.mark.nightly)
        for name in FILES
        if not name.startswith("report.")
    ],
)
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
    for use in (SITE.check, partial(SITE.write, Report(sample.empty()))):
        with pytest.raises(UsageError, match="tenferro-ref has not written it"):
            use(folder)
    assert os.listdir(folder) == [name]
    assert other.read_text() == "mine: tenferro-ref"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="not a folder"):
        SITE.check(tmp_path / "file")
    with pytest.raises(OutputError):
        SITE.check(tmp_path / "file" / "below")


def test_a_full_disk_leaves_the_earlier_report_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SITE.write(Report(sample.rich()), tmp_path)
    before = files(tmp_path)
    fills_up = iter([False, False, True])
    original = os.fdopen

    def fills(descriptor: int, mode: str) -> object:
        if not next(fills_up):
            return original(descriptor, mode)
        os.close(descriptor)
        return open("/dev/full", mode)

    monkeypatch.setattr(os, "fdopen", fills)
    with pytest.raises(OutputError, match="No space left on device"):
        SITE.write(Report(sample.empty()), tmp_path)
    assert files(tmp_path) == before
