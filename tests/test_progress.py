"""Progress off a terminal: a line now and then, with rate and time left."""

from __future__ import annotations

import re
import time

import pytest

from tenferro_ref import console


def test_a_line_now_and_then_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "LINE_SECONDS", 0.05)
    with console.progress_bar("checking programs", 200) as update:
        time.sleep(0.12)
        for done in range(0, 60, 10):
            update(done, 200, "checking programs (2 disagreements)")
            time.sleep(0.05)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "checking programs: 0 of 200"
    assert re.fullmatch(r"checking programs \(2 disagreements\): \d0 of 200, \d+\.\d/s, about \d+ s left", lines[-1]), (
        lines
    )
    time.sleep(0.2)
    assert capsys.readouterr().err == ""  # it has ended with the work


def test_another_total_is_another_pace() -> None:
    pace = console.Pace("checking", 100)
    pace.update(90, 100, "checking")
    pace.update(1, 7, "reducing")
    assert str(pace) == "reducing: 1 of 7"  # nothing is known of how fast this goes
