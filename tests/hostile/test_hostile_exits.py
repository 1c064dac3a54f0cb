"""Text from outside, at each place that shows it."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenferro_ref import console as common
from tenferro_ref.escape import code, code_block, is_identifier, line, markdown, visible
from tests.e2e.command import in_this_process as tenferro_ref
from tests.hostile.attacks import ATTACKS, acts

_ANY = st.one_of(st.text(), st.text(st.sampled_from("`|[]()@#:/w.\\<>\n\r\t\x1b\x00\u2028a")))


@given(_ANY)
def test_a_line_is_one_line(words: str) -> None:
    assert len(line(words).splitlines()) <= 1
    assert not acts(line(words))
    line(words).encode()


@given(_ANY)
@example("https://x")
@example("\\://")
def test_markdown_has_no_markup_left(words: str) -> None:
    shown = markdown(words)
    assert len(shown.splitlines()) <= 1
    # backslashes in pairs stand for themselves; what is left must escape
    bare = re.sub(r"\\\\", "", shown)
    assert not re.search(r"(?<!\\)[`*_{}\[\]<>|#~&@!]", bare)
    assert not re.search(r"(?<!\\)://", bare)
    assert "www." not in shown.lower()


@pytest.mark.parametrize("words", ["@somebody", "see @somebody", "(@a", "#12", "x #12"])
def test_nobody_is_called(words: str) -> None:
    """Services look for mentions when the backslashes are gone."""
    assert not re.search(r"(?<!\w)[@#]\w", markdown(words).replace("\\", ""))
    assert markdown("pjrt:xla@parity") == r"pjrt:xla\@parity"


@given(_ANY)
def test_code_ends_where_it_should(words: str) -> None:
    span = code(words)
    fence = re.match("`+", span)
    assert fence is not None
    assert fence[0] not in re.findall("`+", span[len(fence[0]) : -len(fence[0])])
    block = code_block(words).split("\n")
    assert block[0] == block[-1]
    assert not any(block[0] in inner for inner in block[1:-1])


def test_identifiers() -> None:
    assert all(map(is_identifier, ("ShapeMismatch", "_x1", "x" * 80)))
    assert not any(map(is_identifier, (*ATTACKS, "", "1x", "a-b", "é", "x" * 81, "x\n", None, 3)))


def test_tables_show_markup_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    common.print_table(("name",), [(words,) for words in ATTACKS])
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1 + len(ATTACKS)
    assert "[bold red]rich[/]" in out
    assert not acts(out)


@pytest.mark.parametrize("words", ATTACKS)
def test_an_error_is_one_line(words: str) -> None:
    run = tenferro_ref("check", words.replace("\0", ""))
    assert run.status == 2
    assert len(run.err.splitlines()) == 1
    assert not acts(run.err)


def test_an_error_that_nobody_can_read_keeps_its_status() -> None:
    """1 would say that a disagreement was found."""
    with open("/dev/full", "w") as full:
        run = subprocess.run([sys.executable, "-m", "tenferro_ref", "exec", "nofile"], stderr=full, check=False)
    assert run.returncode == 2


def test_visible_keeps_lines() -> None:
    assert visible("a\r\nb\n\x1b[0m") == "a\nb\n\u241b[0m"
    assert io.StringIO(visible("\u2028\ufeff\u200b")).read() == r"\u2028\ufeff\u200b"
