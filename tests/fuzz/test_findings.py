"""What is known about third-party builds: every page has its reproducer, every reproducer still shows what it says."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_rule

from fuzz.conform.probes import PROBES
from fuzz.findings.corpus import ModuleCase, ReadModule, load
from fuzz.findings.known import CONFORM, DEFAULT_RULES, Known, alternatives, fits, load_known, match, match_all, stale
from fuzz.findings.naming import chain
from fuzz.records import Campaign, Finding, from_json, to_json
from oracle.verdict import Build, Verdict
from reports.html import render
from reports.markdown import summary
from tenferro_ref.errors import FormatError
from tenferro_ref.extensions import linalg
from tenferro_ref.isolation.reader import Reader
from tests.reports import sample
from tools import finding_pages

pytestmark = pytest.mark.once


ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.stem: path.read_text("utf-8") for path in sorted((ROOT / "docs" / "findings").glob("[0-9]*.md"))}
CORPUS = {path.stem for path in (ROOT / "tests" / "corpus").glob("[0-9]*.toml")}
ALWAYS = datetime.date(2999, 1, 1)


#: What JAX makes of a function before there is a program of ours: the page has a script.
TRACED = {"0097-jax-indices-wrap"}
#: What is wrong in some runs only, so that a case of the corpus would fail by chance: the page has a script that counts.
CHANCE = {"0122-library-sum-over-a-broadcast"}
#: Of libraries alone: no executor shows it, since `native` computes such results itself. The page has a script.
LIBRARIES = {
    "0213-openblas-lu-of-a-subnormal-pivot",
    "0214-openblas-solves-by-a-subnormal-diagonal",
    "0239-openblas-complex-schur-vectors",
}
#: What no program of the corpus shows.
SCRIPTED = TRACED | CHANCE | LIBRARIES
#: What no campaign meets: rank 0 is not scattered onto, what is emitted avoids the two that follow, and the others are of operations that
#: only modules have, or are given to JAX in another way.
UNMET = {
    "0018-scatter-onto-rank-0",
    "0022-scatter-window-partly-outside",
    "0023-interpreter-scatter-writes-into-its-operand",
    "0083-random-bits-without-a-sign",
    "0084-interpreter-scan",
    "0085-functions-of-halves-in-steps",
    *TRACED,
    *LIBRARIES,
}


#: What no program shows, but a check of the C API: its page says with which command.
CHECKS = {rule.page: rule for rule in load_known(DEFAULT_RULES) if rule.executor == CONFORM}


@pytest.mark.parametrize("page", CHECKS)
def test_a_page_about_the_c_api_says_how_to_ask_and_its_rule_names_checks_that_there_are(page: str) -> None:
    section = CHECKS[page].signatures[0].partition(":")[0]
    assert re.search(rf"`tenferro-ref conform \w+ --sections {section}`", PAGES[page])
    assert all(any(fnmatchcase(probe, pattern) for probe in PROBES) for pattern in CHECKS[page].signatures)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader() as reader:
        yield reader


@pytest.mark.parametrize("name", sorted(CORPUS))
def test_a_rule_names_the_ops_and_the_dtype_of_its_case(name: str, reader: Reader) -> None:
    case = load(ROOT / "tests" / "corpus" / f"{name}.toml").case
    rules = [s for rule in load_known(DEFAULT_RULES) if rule.page[:4] == name[:4] for s in rule.signatures]
    if isinstance(case, ModuleCase) or not rules:
        pytest.skip("no program of ours shows it, or no campaign meets it")
    if isinstance(case, ReadModule):
        case = case.case(reader)  # whose finding has the names of its operations, or those of its instructions
    chains = [chain(case), chain(replace(case, source=None))]
    seen = [f"{' > '.join(names)} | {case.program.output_types[0].dtype.name} | x | y" for names in chains]
    assert any(fits("{} | {} | x | y".format(*rule.split(" | ")[:2]), s) for rule in rules for s in seen)


#: The value classes of numbers that are compared with their enclosures (`oracle.compare`).
DUE = ("NaN", "+0", "-0", "zero", "finite", "inf", "-inf", "either of two", "NaN or a range", "a range", "a half-line")
SEEN = ("NaN", "+0", "-0", "inf", "-inf", "a number")
CLASSES = {
    f"expected {due}, got {seen}{part}"
    for due in DUE
    for seen in (*SEEN, "finite" if due in ("NaN", "inf", "-inf") else "other finite")
    for part in ("", " (real part)", " (imaginary part)")
} | {"expected integer, got other integer", "expected true, got false", "expected false, got true"}


def test_every_value_class_of_a_rule_can_arise() -> None:
    rules = [rule for rule in load_known(DEFAULT_RULES) if rule.verdict == "mismatch" and rule.executor != CONFORM]
    written = [(rule.page, a) for rule in rules for s in rule.signatures for a in alternatives(s.split(" | ")[2])]
    never = [(page, a) for page, a in written if not any(fnmatchcase(c, a) for c in CLASSES) and not is_check(a)]
    assert never == []


def is_check(words: str) -> bool:
    """Whether a value class is that of a check of a decomposition, by its op or routine and its name."""
    op, _, name = words.partition(": ")
    source = "".join(file.read_text() for file in (ROOT / "oracle" / "decompositions").glob("*.py"))
    return (op in linalg.OPS or f'"{op}"' in source) and f'"{name}"' in source


#: What the maintainers of a build may call a finding.
VERDICTS = ("bug", "documented liberty", "liberty", "ambiguous text")


def test_every_page_has_its_rule_its_verdict_and_its_line_in_the_index() -> None:
    assert {rule.page for rule in load_known(DEFAULT_RULES)} == set(PAGES) - UNMET
    assert set(PAGES) >= UNMET
    index = (ROOT / "docs" / "findings" / "index.md").read_text("utf-8")
    for name, page in PAGES.items():
        title = page.partition("\n")[0].removeprefix("# ")
        (words,) = re.findall(r"^\*\*What its maintainers would say\.\*\* (?:A )?(.*)", page, re.M)
        verdict = next(v for v in VERDICTS if words.lower().startswith(v))
        assert f"| [{name[:4]}]({name}.md) | {title} | {verdict} |" in index


@pytest.mark.parametrize("name", sorted({*PAGES} - {*CHECKS} - SCRIPTED))
def test_a_page_shows_its_case_of_the_corpus_as_it_is(name: str) -> None:
    """`python -m tools.finding_pages` writes it; `test_corpus` holds every case to the verdicts that it records."""
    page = PAGES[name]
    assert f"<!-- tests/corpus/{name}.toml -->" in page
    assert f"`tenferro-ref fuzz replay tests/corpus/{name}.toml`" in page
    assert finding_pages.with_programs(page) == page
    assert any(
        verdict.is_disagreement for verdict in load(ROOT / "tests" / "corpus" / f"{name}.toml").expected.values()
    )


def test_every_numbered_case_of_the_corpus_has_a_page() -> None:
    assert {name[:4] for name in CORPUS} == {name[:4] for name in {*PAGES} - {*CHECKS} - SCRIPTED}


FINDING = replace(
    sample.rich().findings[0], signature="Exp > Log | F32 | expected inf, got finite | rewrite: algsimp",
    verdict="mismatch", executor="pjrt:xla081@parity", build="cpu, PJRT 0.81, StableHLO 1.13.3",
)  # fmt: skip


def test_every_report_says_which_build_was_the_first() -> None:
    asked = (
        Build("old", "0.81", Verdict.PASS),
        Build("new", "0.115", Verdict.MISMATCH),
        Build("gone", reason="absent: pip install gone"),
    )
    campaign = replace(sample.rich(), findings=(replace(FINDING, builds=asked),))
    assert from_json(Campaign, to_json(campaign)) == campaign
    html = render(campaign)
    assert "new (PJRT API 0.115), not yet in old" in html
    assert "old pass, new mismatch, gone (absent: pip install gone)" in html
    assert "first bad build new (PJRT API 0.115), not yet in old" in summary(campaign)


def test_a_record_without_builds_is_read() -> None:
    content = json.loads(to_json(FINDING))
    del content["builds"], content["build"]
    assert from_json(Finding, json.dumps(content)) == replace(FINDING, build="")


EXP_LOG = "Exp > Log | F32 or F64 | expected inf, got * | rewrite: algsimp"


class TestRules:
    def test_a_rule_matches_by_pattern(self) -> None:
        rule = Known("0001-x", (EXP_LOG,), ALWAYS, ("*",))
        assert match(FINDING, (rule,)) == "0001-x"

    @pytest.mark.parametrize(
        ("ops", "fits_it"),
        [
            ("Exp > Log", True),
            ("Exp > BroadcastInDim > Log", True),
            ("Constant > Exp > Log", True),
            ("Exp > Add > Log", False),
            ("Log > Exp > Log", False),
            ("Exp > Log1p", False),
        ],
    )
    def test_ops_are_all_named_but_for_moves_and_constants(self, ops: str, fits_it: bool) -> None:
        assert fits(EXP_LOG, f"{ops} | F64 | expected inf, got finite | rewrite: algsimp") is fits_it

    @pytest.mark.parametrize(
        ("ops", "fits_it"),
        [
            ("Constant > Maximum", False),
            ("Constant > Constant > Maximum", True),
            ("Constant > Constant > BroadcastInDim > Constant > Concatenate > Constant > Maximum", True),
            ("Constant > Constant > Constant > Add > Maximum", False),
        ],
    )
    def test_two_constants_in_a_row_stand_for_more(self, ops: str, fits_it: bool) -> None:
        rest = "F32 | expected NaN, got a number | every lane"
        assert fits(f"Constant > Constant > Maximum | {rest}", f"{ops} | {rest}") is fits_it

    def test_constants_and_moves_of_a_module_are_not_named_either(self) -> None:
        signature = "constant > broadcast_in_dim > reduce_window > maximum | F32 | WorkerDied | rewrite: algsimp"
        assert fits("reduce_window > maximum | F32 | WorkerDied | rewrite: algsimp", signature)
        assert not fits("reduce_window | F32 | WorkerDied | rewrite: algsimp", signature)

    @pytest.mark.parametrize(
        ("ops", "before", "behind"),
        [
            ("reduce_window > add", True, True),
            ("atanh > real > constant > reduce_window > add", True, False),
            ("reduce_window > constant > add", True, True),
            ("reduce_window > add > log", False, True),
            ("exp > reduce_window > add > constant > log", False, False),
            ("exp > reduce_window > log > add", False, False),
            ("add", False, False),
        ],
    )
    def test_three_dots_stand_for_any_other_ops(self, ops: str, before: bool, behind: bool) -> None:
        rest = "F32 | WorkerDied in hlo_computation.cc | only jax"
        assert fits(f"... > reduce_window > add | {rest}", f"{ops} | {rest}") is before
        assert fits(f"reduce_window > add > ... | {rest}", f"{ops} | {rest}") is behind
        around = "reduce_window > add" in ops.replace(" > constant", "")
        assert fits(f"... > reduce_window > add > ... | {rest}", f"{ops} | {rest}") is around

    def test_a_rule_that_matches_nothing_is_stale_where_its_build_took_part(self) -> None:
        met = Known("0001-x", (EXP_LOG, "Log | F32 | expected inf, got * | every lane"), ALWAYS, ("cpu, PJRT 0.81, *",))
        elsewhere = replace_rule(met, builds=("npu, *",))
        assert stale([FINDING], (met, elsewhere)) == [("0001-x", met.signatures[1])]

    @pytest.mark.parametrize(
        "change",
        [
            {"signature": "Log | F32 | expected inf, got finite | every lane"},
            {"verdict": "crash"},
            {"executor": "native"},
        ],
    )
    def test_everything_that_a_rule_names_must_match(self, change: dict[str, str]) -> None:
        rule = Known("0001-x", (EXP_LOG,), ALWAYS, ("*",), executor="pjrt*")
        assert match(replace(FINDING, **change), (rule,)) == ""

    @pytest.mark.parametrize(
        ("who", "known"), [("every lane", True), ("only jax", True), ("only jax-eager", True), ("only iree", False)]
    )
    def test_jax_has_one_lane_which_is_every_lane(self, who: str, known: bool) -> None:
        rule = Known("0001-x", ("Log1p | F64 | * | every lane",), ALWAYS, ("*",))
        finding = replace(FINDING, signature=f"Log1p | F64 | expected finite, got other finite | {who}")
        assert (match(finding, (rule,)) == "0001-x") is known

    def test_a_rule_speaks_of_the_builds_that_it_names(self) -> None:
        """By what they report: another file name changes nothing, another vendor's plugin is not excused."""
        renamed = replace(FINDING, executor="pjrt:/tmp/some.so@parity", signature="Log | F64 | * | every lane")
        rule = Known("0001-x", ("Log | F64 | * | *",), ALWAYS, ("cpu, PJRT 0.81, *",))
        assert match(renamed, (rule,)) == "0001-x"
        assert match(replace(renamed, build="npu, PJRT 0.81, StableHLO 1.13.3"), (rule,)) == ""
        assert match(replace(renamed, build=""), (rule,)) == ""

    def test_a_rule_may_name_the_wrong_instruction(self) -> None:
        rule = Known("0001-x", ("... > Log > ... | F64 | * | *",), ALWAYS, ("*",), op="Log(Exp)")
        finding = replace(
            FINDING, signature="Add > Log > Sin | F64 | expected finite, got other finite | x", op="Log(Exp)"
        )
        assert match(finding, (rule,)) == "0001-x"
        assert match_all([finding], (rule,)) == ["0001-x"]
        assert stale([finding], (rule,)) == []
        other = replace(finding, op="Log(Add)")
        assert match(other, (rule,)) == ""
        assert stale([other], (rule,)) != []

    def test_a_sum_that_differs_from_run_to_run_is_known_though_it_was_not_reduced(self) -> None:
        """As `parity --seed 43` may meet it, by chance."""
        signature = "Convert > BroadcastInDim > ReduceSum > DotGeneral | F32 | expected finite, got other finite | rewrite: algsimp"
        build = "cpu, PJRT 0.115, StableHLO 1.20.0"
        met = replace(FINDING, signature=signature, op="ReduceSum(BroadcastInDim)", build=build)
        assert match(met, load_known(DEFAULT_RULES)) == "0122-library-sum-over-a-broadcast"
        assert match(replace(met, op="DotGeneral"), load_known(DEFAULT_RULES)) == ""

    def test_a_rule_expires(self) -> None:
        rule = Known("0001-x", (EXP_LOG,), datetime.date(2026, 1, 31), ("*",))
        assert match(FINDING, (rule,), datetime.date(2026, 1, 31)) == "0001-x"
        assert match(FINDING, (rule,), datetime.date(2026, 2, 1)) == ""

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("[[known]", "declaration"),
            ("[other]", "unknown field `other`"),
            ("[[known]]\npage = 'x'\n", "missing required field `signatures`"),
            ("[[known]]\npage = 'x'\nsignatures = ['Abs | F32 | x | y']\nbuilds = []\nexpires = 'soon'\n", "expires"),
            (
                "[[known]]\npage = 'x'\nsignatures = ['Abs | F32 | x | y']\nbuilds = []\nexpires = 2027-01-01\ncolour = 'red'\n",
                "colour",
            ),
            (
                "[[known]]\npage = 'x'\nsignatures = ['Abs | F32 | x | y']\nexpires = 2027-01-01\n",
                "missing required field `builds`",
            ),
            (
                "[[known]]\npage = 'x'\nsignatures = ['Abs | F32 | x | y']\nexpires = 2027-01-01\nbuilds = ['b']\n",
                "names the build 'b', which is not in the table",
            ),
            *(
                (
                    f"[builds]\nb = 'b'\n[[known]]\npage = 'x'\nsignatures = ['{s}']\nexpires = 2027-01-01\nbuilds = ['b']\n",
                    "four parts",
                )
                for s in (
                    "Abs | F32 | every lane",
                    "* | F32 | x | y",
                    "... | F32 | x | y",
                    "Abs > * | F32 | x | y",
                    "Abs | F32 | expected *, got * | y",
                )
            ),
        ],
    )
    def test_the_rules_file_is_read_strictly(self, tmp_path: Path, text: str, words: str) -> None:
        path = tmp_path / "known.toml"
        path.write_text(text)
        with pytest.raises(FormatError, match=words):
            load_known(path)
