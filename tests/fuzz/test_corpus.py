"""Every case of the corpus is judged on every executor that it names, and the verdict is the recorded one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest

from fuzz.findings.corpus import Entry, load, text
from oracle.peers import Pool
from oracle.verdict import Verdict
from tenferro_ref.errors import FormatError
from tenferro_ref.isolation.reader import Reader
from tests.libraries import peer_or_skip

pytestmark = pytest.mark.once


CORPUS = Path(__file__).resolve().parents[1] / "corpus"
PATHS = sorted(CORPUS.glob("*.toml"))
ENTRIES = [load(path) for path in PATHS]


def asked(name: str) -> str:
    """The part of the executors that one is asked with: IREE and GPUs by themselves, which may not be there; other lanes and JAX at night."""
    if "-cuda" in name:
        return " on a GPU"
    daily = name.startswith(("native", "interpreter")) or name.endswith("@parity")
    return " on IREE" if name == "iree" else "" if daily else " in other lanes"


def at_night(entry: Entry, part: str) -> Sequence[pytest.MarkDecorator]:
    """What hangs takes as long as its limit, each time."""
    return [pytest.mark.nightly] if part or Verdict.TIMEOUT in entry.expected.values() else []


@pytest.fixture(scope="module")
def pools() -> Iterator[dict[float, Pool]]:
    """One pool for each limit of a request."""
    pools = {entry.seconds: Pool(request_seconds=entry.seconds) for entry in ENTRIES}
    yield pools
    for pool in pools.values():
        pool.close()


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader() as reader:
        yield reader


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        pytest.param(entry, tuple(names), id=entry.name + part, marks=at_night(entry, part))
        for entry in ENTRIES
        for part, names in groupby(sorted(entry.expected, key=asked), asked)
    ],
)
def test_the_verdicts_are_those_recorded(
    entry: Entry, names: tuple[str, ...], pools: dict[float, Pool], reader: Reader
) -> None:
    pool = pools[entry.seconds]
    verdicts = {name: entry.judge(peer_or_skip(pool, name), reader).verdict for name in names}
    assert verdicts == {name: entry.expected[name] for name in names}


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_a_case_is_written_as_it_is_read(path: Path) -> None:
    assert text(load(path)) == path.read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("about =", "subject =", "subject"),
        ('"mismatch"', '"sometimes"', "sometimes"),
        ('data = "', 'data = "zz', "hexadecimal"),
        ('data = "', 'data = "00', r"inputs\[0\]"),
        ("[expected]", "[expected", "table declaration"),
        ("about = ", "about = 1 #", r"`str`.*\$\.about"),
        ("[expected]", "seconds = nan\n[expected]", "seconds"),
        ("[expected]", "module = 'module {}'\n[expected]", "either a program, or a module"),
        ("[expected]", "outputs = [{dtype = 'I32', shape = [], data = '00000000'}]\n[expected]", "either a program"),
        ("shape = []", "shape = [1]", "do not fit"),
    ],
)
def test_a_case_is_read_strictly(tmp_path: Path, old: str, new: str, words: str) -> None:
    content = (CORPUS / "0003-algsimp-log-of-exp.toml").read_text("utf-8")
    assert old in content
    path = tmp_path / "case.toml"
    path.write_text(content.replace(old, new, 1))
    with pytest.raises(FormatError, match=words):
        load(path)
