"""`tenferro-ref conform` through the real command line: what conforms, what lies, what is known, what changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema_rs
import pytest

from fuzz.conform.cells import programs
from fuzz.conform.probes import PROBES
from fuzz.conform.record import Check, Conformance, Report, Section, changes, dumps, load
from fuzz.conform.run import SECTIONS
from fuzz.conform.run import Run as Asking
from fuzz.generate.config import admitted
from reports.conform import badge
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError
from tenferro_ref.ops import OPS
from tenferro_ref.pjrt import PluginRef
from tenferro_ref.pjrt.abi import FUNCTIONS
from tests.e2e.command import Run, assert_one_line_error, in_this_process
from tests.example_plugin import build_example_plugin
from tests.fake_plugin.build import write_text_library
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once

C_API = "loading,attributes,devices,transfers,programs,errors,events,donation,serialisation,versions,custom calls"


def conform(plugin: object, out: Path, *arguments: object) -> Run:
    return in_this_process("conform", plugin, "--out", out, *arguments)


def outcomes(out: Path) -> dict[str, str]:
    """Of each check, by "section: name"."""
    return {name: check.outcome for name, check in load(out / "conform.json").checks()}


# --- what conforms ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_example_plugin(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, fake_library: Path) -> Callable[[str], dict[str, str]]:
    """The outcomes of the fake plugin in a section when it does not lie."""

    @cache
    def asked(section: str) -> dict[str, str]:
        out = tmp_path_factory.mktemp("plain")
        conform(fake_library, out, "--sections", section)
        return outcomes(out)

    return asked


def test_the_example_plugin_conforms_on_what_it_supports(example: Path, tmp_path: Path) -> None:
    run = conform(example, tmp_path, "--sections", C_API)
    assert run.status == 0, run.out
    result = load(tmp_path / "conform.json")
    assert result.verdict == "conforms"
    assert dict(result.facts)["platform"] == "example"
    assert "conforms" in (tmp_path / "badge.svg").read_text("utf-8")


SUPPORTED = ("Add", "Maximum", "Compare", "Select", "Transpose", "Reshape", "BroadcastInDim")


@pytest.mark.parametrize(
    ("ops", "dtypes"),
    [((*SUPPORTED, "Exp"), "F32,I32"), pytest.param((), ",".join(DType.__members__), marks=pytest.mark.nightly)],
    ids=["some", "all"],
)
def test_the_example_plugin_conforms_on_the_ops_that_it_supports(
    example: Path, tmp_path: Path, ops: tuple[str, ...], dtypes: str
) -> None:
    chosen = ("--ops", ",".join(ops)) if ops else ()
    run = conform(example, tmp_path, "--sections", "operations,constants", "--dtypes", dtypes, *chosen)
    assert run.status == 0, run.out
    (section, _) = load(tmp_path / "conform.json").sections
    held = {c.op for c in section.checks if c.outcome == "holds"}
    assert set(SUPPORTED) <= held
    assert {c.dtype for c in section.checks if c.op == "Add"} == set(dtypes.split(",")) & {
        c.dtype for c in section.checks
    }


def test_progress_ends_where_it_said(example: Path) -> None:
    told: list[tuple[int, int]] = []
    asking = Asking(
        PluginRef("example", str(example), "test"), "example", ("loading", "operations", "constants"),
        progress=lambda done, total, _: told.append((done, total)), dtypes=(DType.F32, DType.I32), ops=("Add", "Select", "Pad"),
    )  # fmt: skip
    asking.conformance()
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert {total for _, total in told} == {len(told)}


def test_a_renamed_plugin_comes_out_the_same(example: Path, tmp_path: Path) -> None:
    """And without its `NAME.toml`, which names only a platform."""
    renamed = tmp_path / "other name.so"
    shutil.copy(example, renamed)
    sections = ("--sections", "loading,transfers,programs,errors")
    assert conform(example, tmp_path / "a", *sections).status == 0
    run = conform(renamed, tmp_path / "b", *sections, "--against", tmp_path / "a" / "conform.json")
    assert run.status == 0
    assert ": 0 changed" in run.out


@pytest.mark.nightly
@pytest.mark.parametrize("build", ["xla081", "fas106", "lam115"])
def test_what_does_not_hold_in_a_build_of_xla_has_a_page(build: str, tmp_path: Path) -> None:
    """Else a campaign's rules, or the oracle where it judges many sets of inputs at once, have not kept up."""
    run = conform(plugin_or_skip(build).path, tmp_path)
    counts = load(tmp_path / "conform.json").counts
    assert not {"fails", "hangs", "crashes"} & {*counts}, run.out
    assert counts["holds"] > 3000


@pytest.mark.nightly
def test_every_op_and_dtype_has_a_cell() -> None:
    made = {(type(c.case.program.instructions[0].op), c.dtype) for cells in programs() for c in cells}
    for op in OPS:
        if op not in (ops.Constant, ops.DynamicTruncate):
            assert {d for d in DType if (op, d) in made} >= set(admitted(op, tuple(DType))), op


def test_a_cell_has_its_op_alone() -> None:
    for cells in programs((DType.F32, DType.I64), ("Exp", "Pad", "Scatter", "Lu")):
        assert all(len(cell.case.program.instructions) == 1 for cell in cells)
        assert len({cell.values for cell in cells}) == len(cells)


def test_every_probe_is_in_a_section() -> None:
    assert {name.partition(": ")[0] for name in PROBES} | {"operations", "constants"} == set(SECTIONS)


# --- what lies -------------------------------------------------------------------------------------------------------

#: A lie, where it is looked for, and a check that names it.
LIES = [
    ("null_table", "loading", "loading: the file loads and GetPjrtApi gives a table", "fails"),
    ("major_version", "loading", "loading: the file loads and GetPjrtApi gives a table", "fails"),
    ("short_table:100", "loading", "loading: the table has the functions that every client needs", "fails"),
    ("initialize_error", "loading", "loading: the file loads and GetPjrtApi gives a table", "fails"),
    ("initialize_abort", "loading", "loading: the file loads and GetPjrtApi gives a table", "crashes"),
    ("compile_error", "programs", "programs: a program that returns its argument", "fails"),
    ("compile_segv", "programs", "programs: a program that returns its argument", "crashes"),
    ("execute_error", "programs", "programs: a program that returns its argument", "fails"),
    ("execute_abort", "programs", "programs: a program that returns its argument", "crashes"),
    ("event_error", "programs", "programs: a program that returns its argument", "fails"),
    ("offset", "programs", "programs: a program that returns its argument", "fails"),
    ("wrong_shape", "programs", "programs: a program that returns its argument", "fails"),
    ("wrong_dtype", "programs", "programs: a program that returns its argument", "fails"),
    ("fewer_outputs", "programs", "programs: a program that returns its argument", "fails"),
    ("announce_shape", "programs", "programs: number and types of results are announced as the program has them", "fails"),
    ("announce_dtype", "programs", "programs: number and types of results are announced as the program has them", "fails"),
    ("announce_fewer", "programs", "programs: number and types of results are announced as the program has them", "fails"),
    ("download_error", "transfers", "transfers: F32, ranks 0 to 6", "fails"),
    ("row_major", "transfers", "transfers: F32, host layouts", "fails"),
    ("no_host_layout", "transfers", "transfers: F32, host layouts", "skipped"),
    ("leak", "memory", "memory: 10,000 executions with upload and download", "fails"),
]  # fmt: skip
#: One of each way to lie.
SOME = {
    "null_table",
    "compile_error",
    "execute_abort",
    "offset",
    "wrong_dtype",
    "announce_fewer",
    "row_major",
    "no_host_layout",
}


def liar(fake_library: Path, folder: Path, mode: str) -> Path:
    """The fake plugin in a mode, which the `NAME.toml` beside it sets."""
    path = folder / "liar.so"
    shutil.copy(fake_library, path)
    path.with_suffix(".toml").write_text(f'[environment]\nFAKE_PJRT_MODE = "{mode}"\n')
    return path


@pytest.mark.parametrize(
    ("mode", "section", "check", "outcome"),
    [pytest.param(*lie, id=lie[0], marks=[] if lie[0] in SOME else pytest.mark.nightly) for lie in LIES],
)
def test_every_lie_is_named(
    plain: Callable[[str], dict[str, str]],
    fake_library: Path,
    tmp_path: Path,
    mode: str,
    section: str,
    check: str,
    outcome: str,
) -> None:
    run = conform(liar(fake_library, tmp_path, mode), tmp_path / "out", "--sections", section)
    assert run.status == 1 or outcome == "skipped"
    found = outcomes(tmp_path / "out")
    assert (plain(section)[check], found[check]) == ("holds", outcome)
    assert "Traceback" not in run.err


def test_events_that_never_come_are_named(fake_library: Path, tmp_path: Path) -> None:
    plugin = liar(fake_library, tmp_path, "never_ready")
    run = conform(plugin, tmp_path / "out", "--sections", "events", "--seconds", 3)
    assert run.status == 1
    assert outcomes(tmp_path / "out")["events: an uploaded buffer becomes ready"] == "fails"
    assert "not after 0.5 s" in run.out


def test_a_plugin_that_hangs_is_not_waited_for_again_and_again(fake_library: Path, tmp_path: Path) -> None:
    plugin = liar(fake_library, tmp_path, "execute_hang")
    assert conform(plugin, tmp_path / "out", "--sections", "programs", "--seconds", 1).status == 1
    found = [c for n, c in load(tmp_path / "out" / "conform.json").checks()]
    assert [c.outcome for c in found].count("hangs") == 2
    assert found[-1].detail == "2 calls before it hung"


def test_a_file_that_is_no_plugin_does_not_conform_and_has_a_report(tmp_path: Path) -> None:
    """Status 3 would be taken for a machine that lacks the hardware."""
    run = conform(write_text_library(tmp_path), tmp_path / "out", "--sections", "loading,devices")
    assert run.status == 1
    result = load(tmp_path / "out" / "conform.json")
    assert result.verdict == "does not conform"
    first, *rest = [check for _, check in result.checks()]
    assert (first.name, first.outcome) == ("the file loads and GetPjrtApi gives a table", "fails")
    assert "must be a shared library" in first.detail
    assert {check.outcome for check in rest} == {"skipped"}


def test_a_plugin_without_a_client_is_told_apart(fake_library: Path, tmp_path: Path) -> None:
    run = conform(
        liar(fake_library, tmp_path, "client_error:9"),
        tmp_path / "out",
        "--sections",
        "loading,devices,operations",
        "--ops",
        "Add",
    )
    assert run.status == 3
    result = load(tmp_path / "out" / "conform.json")
    assert result.verdict == "no client"
    assert "FAILED_PRECONDITION" in result.no_client
    assert dict(result.facts)["PJRT API"] == "0.81"
    assert {c.outcome for s in result.sections if s.name == "operations" for c in s.checks} == {"skipped"}


@pytest.mark.parametrize("function", ["Client_PlatformName", "Client_PlatformVersion", "Device_AddressableMemories"])
def test_a_client_that_cannot_say_what_it_is_fails_that_check(
    fake_library: Path, tmp_path: Path, function: str
) -> None:
    plugin = liar(fake_library, tmp_path, f"without:{FUNCTIONS.index(function)}")
    assert conform(plugin, tmp_path / "out", "--sections", "attributes,devices").status == 1
    assert outcomes(tmp_path / "out")["devices: a client is made, and says what it is"] == "fails"


# --- what is known, and what changed ----------------------------------------------------------------------------------


def test_known_is_not_passed(tmp_path: Path) -> None:
    """Whatever the file is called: a rule names builds by what they report."""
    plugin = tmp_path / "somebody.so"
    shutil.copy(plugin_or_skip("xla081").path, plugin)
    run = conform(
        plugin, tmp_path / "out", "--sections", "operations", "--ops", "Maximum,Add", "--dtypes", "F64", "--json"
    )
    assert run.status == 1
    (row,) = run.rows
    checks = {c["name"]: c for s in row["sections"] for c in s["checks"]}
    assert checks["Maximum F64 special"]["outcome"] == "known"
    assert checks["Maximum F64 special"]["page"] == "0001-fast-min-max-drops-nan"
    assert checks["Add F64 special"]["outcome"] == "holds"
    assert row["verdict"] == "does not conform"


def test_what_two_causes_make_wrong_is_known_by_the_first(tmp_path: Path) -> None:
    # a NaN is lost in one element (0001), in another the logarithm overflows (0043): no lane tells for both
    plugin = plugin_or_skip("lam115")
    conform(plugin.path, tmp_path / "out", "--sections", "operations", "--ops", "Log1p", "--dtypes", "C64")
    assert outcomes(tmp_path / "out")["operations: Log1p C64 special"] == "known"


RESULT = Conformance(
    "one", "2026-11-22T12:00:00+00:00", 1.0, "", (("platform", "cpu"),),
    (Section("errors", "Errors", (Check("a", "holds"), Check("b", "fails", "why"), Check("c", "known", page="p")), 0.5),),
)  # fmt: skip


def test_changes_are_those_of_outcomes() -> None:
    checks = (Check("a", "crashes", "SIGSEGV"), Check("b", "fails", "why not"), Check("d", "holds"))
    later = replace(RESULT, sections=(replace(RESULT.sections[0], checks=checks),))
    assert [(c.name, c.before, c.after) for c in changes(RESULT, later)] == [
        ("errors: a", "holds", "crashes"),
        ("errors: d", "", "holds"),
        ("errors: c", "known", ""),
    ]
    assert changes(RESULT, RESULT) == []


def test_what_was_skipped_is_no_reproach() -> None:
    skipped = Section("errors", "Errors", (Check("a", "skipped", "not supported"),), 0.5)
    record = replace(RESULT, sections=(skipped,))
    assert (record.verdict, record.wrong) == ("not tested", 0)
    assert replace(record, no_client="no device").verdict == "no client"
    assert replace(record, sections=(skipped, *RESULT.sections)).verdict == "does not conform"
    assert replace(record, sections=()).verdict == "not tested"
    picture = badge(Report(record))
    assert ">not tested<" in picture
    assert "#b3261e" not in picture


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "conform.json"
    path.write_text(dumps(RESULT))
    assert load(path) == RESULT
    assert (RESULT.verdict, RESULT.wrong) == ("does not conform", 2)
    content = json.loads(path.read_text())
    for change, words in (({"tenferro_conform": 2}, "version 2"), ({"colour": "red"}, "unknown key")):
        path.write_text(json.dumps(content | change))
        with pytest.raises(FormatError, match=words):
            load(path)


def test_the_schema_is_that_of_the_record() -> None:
    path = Path(__file__).parents[2] / "docs" / "reference" / "conform.schema.json"
    schema = jsonschema_rs.Draft202012Validator(json.loads(path.read_text()))
    schema.validate(json.loads(dumps(RESULT)))
    assert not schema.is_valid({"tenferro_conform": 1})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no-such-plugin",), "neither a path nor the name"),
        (("/no/such/plugin.so",), "No such file or directory"),
        (("/",), "not a regular file"),
        (("/dev/zero",), "not a regular file"),
        (("x.so", "--sections", "nonsense"), "unknown section 'nonsense'"),
        (("x.so", "--ops", "Sine"), "unknown operation 'Sine'"),
        (("x.so", "--ops", "Add", "--sections", "loading"), "in the sections operations and constants only"),
        (("x.so", "--dtypes", "F32", "--sections", "events"), "in the sections operations and constants only"),
        (("x.so", "--dtypes", "F33"), "unknown element type 'F33'"),
    ],
)
def test_a_wrong_call_is_one_line(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    run = in_this_process("conform", *arguments, "--out", tmp_path)
    assert_one_line_error(run, run.status, words)
    assert run.status in (2, 3)
    assert not list(tmp_path.iterdir())
