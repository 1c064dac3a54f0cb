"""Every case of the corpus is replayed on every executor that it names, and the verdict is the one it had."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from fuzz.findings.corpus import Entry, load, text
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool
from tenferro_ref.errors import FormatError
from tests.libraries import peer_or_skip

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
FINDINGS = Path(__file__).resolve().parents[2] / "docs" / "findings"
PATHS = sorted(CORPUS.glob("*.toml"))
ENTRIES = [load(path) for path in PATHS]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.close()


@pytest.mark.parametrize(
    ("entry", "names"),
    # IREE by itself: where it is not installed, the others are asked all the same
    [
        pytest.param(entry, tuple(names), id=entry.name + (" on IREE" if iree else ""))
        for entry in ENTRIES
        for iree, names in groupby(sorted(entry.expected, key="iree".__eq__), "iree".__eq__)
    ],
)
def test_the_verdicts_are_what_they_were(entry: Entry, names: tuple[str, ...], pool: Pool) -> None:
    reference = Reference(entry.case, NativeExecutor())
    verdicts = {name: judge(peer_or_skip(pool, name), reference).verdict for name in names}
    assert verdicts == {name: entry.expected[name] for name in names}


def test_every_finding_is_in_the_corpus() -> None:
    assert {path.stem for path in FINDINGS.glob("[0-9]*.md")} <= {entry.name for entry in ENTRIES}


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_a_case_is_written_as_it_is_read(path: Path) -> None:
    assert text(load(path)) == path.read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("about =", "subject =", "about"),
        ('"mismatch"', '"sometimes"', "sometimes"),
        ('data = "', 'data = "zz', "hexadecimal"),
        ("[expected]", "[expected", "not TOML"),
        ("about = ", "about = 1 #", "must be a str"),
    ],
)
def test_a_case_is_read_strictly(tmp_path: Path, old: str, new: str, words: str) -> None:
    content = (CORPUS / "0003-algsimp-log-of-exp.toml").read_text("utf-8")
    assert old in content
    path = tmp_path / "case.toml"
    path.write_text(content.replace(old, new, 1))
    with pytest.raises(FormatError, match=words):
        load(path)
