"""The error taxonomy: one line, facts, kinds, exit status."""

from __future__ import annotations

import dataclasses
import json
import string

import pytest

import fuzz.campaign.errors
import fuzz.store.errors
import oracle.peers.errors
from tenferro_ref import errors
from tenferro_ref.errors import (
    AxisOutOfBounds,
    EnvironmentFault,
    FormatError,
    MissingEnv,
    OutputError,
    PluginLoad,
    ShapeMismatch,
    TenferroError,
    ValidationError,
    WorkerDied,
)

KINDS = [
    kind
    for module in (errors, oracle.peers.errors, fuzz.store.errors, fuzz.campaign.errors)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, TenferroError) and kind.__module__ == module.__name__
]
CONCRETE = [kind for kind in KINDS if kind.template or ("text" in vars(kind) and kind is not TenferroError)]


def example(kind: type[TenferroError]) -> TenferroError:
    return kind(**{f.name: f"<{f.name}>" for f in dataclasses.fields(kind)})


@pytest.mark.parametrize("kind", CONCRETE, ids=lambda kind: kind.__name__)
def test_a_message_is_one_line_with_every_fact_that_its_template_names(kind: type[TenferroError]) -> None:
    error = example(kind)
    message = str(error)
    named = [field for _, field, _, _ in string.Formatter().parse(kind.template) if field]
    assert named or "text" in vars(kind)
    assert all(f"<{field}>" in message for field in named)
    assert len(message.splitlines()) == 1
    assert error.kind == kind.__name__
    assert kind.exit_status in (2, 3, 130)


@pytest.mark.parametrize("kind", CONCRETE, ids=lambda kind: kind.__name__)
def test_the_json_line_has_kind_facts_and_message(kind: type[TenferroError]) -> None:
    error = example(kind)
    entry = json.loads(json.dumps(error.to_json()))
    assert entry["kind"] == kind.__name__
    assert entry["message"] == str(error)
    assert set(entry) == {"kind", "message", *error.facts()}


def test_only_families_have_no_message_of_their_own() -> None:
    assert {kind.__name__ for kind in KINDS} - {kind.__name__ for kind in CONCRETE} == {
        "TenferroError",
        "ValidationError",
        "LoweringError",
        "EnvironmentFault",
    }


def test_validation_errors_carry_op_and_axis() -> None:
    error = AxisOutOfBounds(op="Transpose", axis=3, rank=2)
    assert isinstance(error, ValidationError)
    assert (error.kind, error.op, error.axis) == ("AxisOutOfBounds", "Transpose", 3)
    assert error.facts() == {"op": "Transpose", "axis": 3, "rank": 2}


def test_an_error_may_have_other_words_for_the_same_facts() -> None:
    error = ShapeMismatch(op="Solve", lhs=(5, 3), rhs=(3, 5))
    plain = error.facts()
    assert error.saying("Solve: the matrix must be square, not 5 x 3") is error
    assert (error.kind, error.facts()) == ("ShapeMismatch", plain)
    assert str(error) == error.to_json()["message"] == "Solve: the matrix must be square, not 5 x 3"
    assert "do not fit" in str(ShapeMismatch(op="Solve", lhs=(5, 3), rhs=(3, 5)))


def test_shapes_are_plain_json() -> None:
    entry = ShapeMismatch(op="Add", lhs=(2, (3, "n")), rhs=()).to_json()
    assert entry["lhs"] == [2, [3, "n"]]
    assert json.dumps(entry)


def test_the_environment_is_status_3_and_the_rest_2() -> None:
    assert MissingEnv(var="V", state="empty").exit_status == 3
    assert issubclass(PluginLoad, EnvironmentFault)
    assert OutputError(path="p", detail="d").exit_status == 3
    assert FormatError(where="p", detail="d").exit_status == 2


def test_facts_cannot_break_the_line_or_the_terminal() -> None:
    error = FormatError(where="a\nb", detail="two\r\nlines\u2028and \ud800")
    message = str(error)
    assert len(message.splitlines()) == 1
    assert message.encode("utf-8").decode("utf-8") == message
    assert "\\ud800" in message


def test_a_place_stands_in_front_and_is_no_fact() -> None:
    error = AxisOutOfBounds(op="Transpose", axis=3, rank=2)
    plain = str(error)
    error.place = "p.json: $.instructions[3]"
    assert str(error) == f"p.json: $.instructions[3]: {plain}"
    assert "place" not in error.facts()
    assert AxisOutOfBounds(op="Transpose", axis=3, rank=2).place == ""


def test_a_dead_worker_leaves_its_last_words() -> None:
    error = WorkerDied(worker="w", how="signal SIGSEGV", stderr_tail="one\ntwo\n")
    assert str(error) == "worker w died: signal SIGSEGV; its last words: two"
    assert str(WorkerDied(worker="w", how="exit 1", stderr_tail="")) == "worker w died: exit 1"


@pytest.mark.parametrize("date", ["F0000 00:00:1795736086.088430   19424", "F1126 23:35:45.359486 19674"])
def test_the_last_words_are_a_failed_check_not_the_stack_behind_it(date: str) -> None:
    check = "hlo_instruction.cc:1661] Invalid binary instruction opcode map"
    tail = f"a warning\n{date} {check}\n*** Check failure stack trace: ***\n    @     0x7fb58710a5d4  (unknown)\n"
    assert WorkerDied(worker="w", how="signal SIGABRT", stderr_tail=tail).last_words == check


def test_a_failed_check_of_another_log_is_found_above_its_stack_too() -> None:
    tail = "plugin.cc:7: Check failed: a == b (1 vs. 2)\n#0 0x7fb5 in f()\n"
    assert WorkerDied(worker="w", how="signal SIGABRT", stderr_tail=tail).last_words == tail.splitlines()[0]
