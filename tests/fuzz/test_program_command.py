"""`fuzz program`: the program that a report calls by its number."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.campaign.guide import USUAL, draw_of
from fuzz.campaign.programs import cases_of, drawn
from fuzz.campaign.recorded import recorded
from fuzz.store import Plan, Store
from tenferro_ref.tensor import load_npz, same_bits, type_of
from tests.e2e.command import assert_one_line_error
from tests.e2e.command import in_this_process as tenferro_ref

pytestmark = pytest.mark.once


@pytest.mark.parametrize("number", [0, 24, 31, 32, 45])
def test_it_is_the_campaigns(number: int, tmp_path: Path) -> None:
    case = cases_of(Plan(43), number // 32)[number % 32]
    run = tenferro_ref("fuzz", "program", number, "--seed", 43, "--out", tmp_path)
    assert run.status == 0, run
    assert (tmp_path / "program.json").read_text() == case.program_json
    inputs = load_npz(tmp_path / "inputs.npz", "in", [type_of(a) for a in case.arguments])
    assert all(map(same_bits, inputs, case.arguments))
    assert run.out.startswith(
        "module {" if case.source else "// invalid" if case.refusal else ("graph (", "graph policy {")
    )
    assert (tmp_path / "module.mlir").exists() == (case.source is not None)


def test_numbers_in_a_report_are_of_programs_with_the_op(tmp_path: Path) -> None:
    settings = ("--generate", "ops=Add,Exp,Negate", "--generate", "dtypes=F64", "--generate", "invalid=0")
    run = tenferro_ref(
        "fuzz",
        "run",
        tmp_path / "s.sqlite",
        "--seed",
        5,
        "--programs",
        40,
        "--executors",
        "native",
        "--workers",
        1,
        *settings,
    )
    assert run.status == 0, run
    with Store(tmp_path / "s.sqlite", readonly=True) as store:
        campaign = recorded(store, store.shards())
    words = campaign.again.split()[1:]
    assert words[:4] == ["fuzz", "program", "--seed", "5"]
    for cell in campaign.cells:
        assert cell.examples.keys() == cell.verdicts.keys()
        for number in cell.examples.values():
            assert f"= {cell.op}(" in tenferro_ref(*words, number).out


def test_programs_of_a_guided_campaign_follow_from_its_store(tmp_path: Path) -> None:
    store, guided = tmp_path / "g.sqlite", ("--generate", "guided=1", "--generate", "elements=16")
    run = tenferro_ref(
        "fuzz", "run", store, "--seed", 5, "--programs", 3 * 32, "--executors", "native", "--workers", 1, *guided
    )
    assert run.status == 0, run
    with Store(store, readonly=True) as opened:
        campaign, (stream,) = recorded(opened, opened.shards()), opened.streams()
        assert draw_of(opened, stream, 0).mix != USUAL
        case = drawn(opened, stream, 0)[3]
    words = campaign.again.split()[1:]
    run = tenferro_ref(*words, 3, "--out", tmp_path)
    assert (tmp_path / "program.json").read_text() == case.program_json
    assert_one_line_error(tenferro_ref("fuzz", "program", 3, "--seed", 5, *guided), 2)
    assert_one_line_error(tenferro_ref(*words, 9999), 2)
    assert_one_line_error(tenferro_ref("fuzz", "program", 3, "--seed", 6, "--store", store, *guided), 2)


def test_a_number_that_there_is_not(tmp_path: Path) -> None:
    assert_one_line_error(tenferro_ref("fuzz", "program", "-1", "--seed", 3), 2)
    assert_one_line_error(tenferro_ref("fuzz", "program", 3), 2)
