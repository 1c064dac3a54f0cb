"""Programs damaged at random, in both forms: read, or refused in a typed line."""

from __future__ import annotations

import re
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_ref.errors import TenferroError
from tenferro_ref.program import ExecProgram, GraphProgram, dumps, loads, parse, print_program, to_exec
from tests.program.samples import every_op, small, symbolic

_PIECES = (
    '"', "{", "}", "[", "]", ",", ":", "-1", "0", "1e400", "NaN", "null", "true", "99999999999999999999", "1.5", '"n"', "\\",
    "\n", "\u2028", "²", "%", "!", "-", " ", '"\\ud800"', "9" * 5000, '{"input": 0, "axis": 0}', '{"add": [1, 2]}', "in0.0",
    "9223372036854775807", "Transpose", "[[[[[[[[",
)  # fmt: skip
_SOURCES = (small(), to_exec(small(symbol=False)), symbolic(), to_exec(symbolic()), every_op(), to_exec(every_op()))


@st.composite
def damaged(draw: st.DrawFn, sources: tuple[str, ...]) -> str:
    text = draw(st.sampled_from(sources))
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):  # a number becomes another one
            numbers = list(re.finditer(r"-?\d+", text))
            if numbers:
                m = draw(st.sampled_from(numbers))
                new = draw(
                    st.sampled_from(("-1", "0", "1", "2", "7", "64", "4096", str(2**63 - 1), str(2**64), "1e3", "2.0"))
                )
                text = text[: m.start()] + new + text[m.end() :]
                continue
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 20)))
        text = text[:start] + draw(st.one_of(st.just(""), st.sampled_from(_PIECES))) + text[end:]
    return text


def read_or_refuse(text: str, read: Callable[[str], GraphProgram | ExecProgram]) -> None:
    try:
        program = read(text)
    except TenferroError as error:
        message = str(error)
    else:
        message = ""
        assert loads(dumps(program)) == program  # what was accepted is whole
    assert len(message.splitlines()) <= 1
    assert len(message) < 500
    message.encode("utf-8")


@settings(max_examples=150)
@given(damaged(tuple(map(dumps, _SOURCES))))
def test_damaged_json_is_read_or_refused(text: str) -> None:
    read_or_refuse(text, loads)


@settings(max_examples=150)
@given(damaged(tuple(map(print_program, _SOURCES))))
def test_damaged_text_is_read_or_refused(text: str) -> None:
    read_or_refuse(text, parse)


@given(st.text())
def test_any_text_at_all_is_read_or_refused(text: str) -> None:
    read_or_refuse(text, loads)
    read_or_refuse(text, parse)
