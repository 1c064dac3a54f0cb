"""The documentation against the code: what is generated is up to date, and what is cited exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tenferro_ref import topics
from tools import command_reference, docs_links, op_reference, op_table

pytestmark = pytest.mark.once


ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("tenferro_ref", "oracle", "fuzz", "reports")
SEMANTICS = (ROOT / "docs/reference/semantics.md").read_text("utf-8")
NEWER = (ROOT / "docs/reference/semantics-0.7.md").read_text("utf-8")
FORMATS = (ROOT / "docs/reference/formats.md").read_text("utf-8")
#: "SEMANTICS 2.3", "SEMANTICS 2.7 and 7.3", "SEMANTICS 0, 2 and 7", "SEMANTICS B.1", "FORMATS 3".
CITATION = re.compile(r"\b(SEMANTICS|FORMATS)((?:,? (?:and )?[0-9A-D](?:\.[0-9]+)*\b)*)")


def sections(text: str) -> set[str]:
    """Numbers of a page's headings."""
    return set(re.findall(r"^#+ ([0-9A-D](?:\.[0-9]+)?)\b", text, flags=re.M))


def sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.toml", "*.j2"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    broken = "tests/hostile/broke/"  # files that are damaged on purpose
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).is_file() and not name.startswith(broken)]


def test_every_cited_section_exists() -> None:
    known = {"SEMANTICS": sections(SEMANTICS) | sections(NEWER), "FORMATS": sections(FORMATS)}
    assert {"2.3", "7.4", "B.1"} <= known["SEMANTICS"]
    wrong = []
    for path in sources():
        if path == Path(__file__) or "docs/reference/semantics" in str(path):
            continue
        for page, numbers in CITATION.findall(path.read_text("utf-8")):
            cited = re.findall(r"[0-9A-D](?:\.[0-9]+)*", numbers)
            missing = [n for n in cited if n not in known[page]]
            wrong += [f"{path.relative_to(ROOT)}: {page} {section}" for section in missing]
    assert not wrong


def test_the_campaign_of_other_repositories_takes_any_list_of_executors() -> None:
    """`--require` takes patterns of names, of which `all` is none; what is named must take part without it."""
    command = (ROOT / ".github" / "workflows" / "campaign.yml").read_text("utf-8")
    assert '--executors "$EXECUTORS"' in command
    assert "--require" not in command


def test_nothing_outside_the_project_is_cited() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match}"
        for path in sources()
        if path != Path(__file__) and path.suffix == ".py"
        for match in re.findall(r"\bDESIGN \d|\bseed 00\d|\b(?:SEMANTICS|FORMATS)\.md", path.read_text("utf-8"))
    ]
    assert not found


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        *command_reference.GENERATED.items(),
        (op_reference.PAGE, op_reference.markdown),
        (op_table.PAGE, lambda: op_table.updated(op_table.PAGE.read_text("utf-8"))),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_generated_pages_are_up_to_date(page: Path, expected: object) -> None:
    assert callable(expected)
    assert page.read_text("utf-8") == expected()


def test_every_environment_variable_is_explained() -> None:
    packages = [path for path in sources() if path.suffix == ".py" and path.parts[len(ROOT.parts)] in PACKAGES]
    read = {name for path in packages for name in re.findall(r"\b_?TENFERRO_[A-Z_]*[A-Z]\b", path.read_text("utf-8"))}
    internal = {
        "_TENFERRO_REF_COMPLETE",
        "TENFERRO_KEEPER",
        "TENFERRO_MUTANT",
    }  # between a process of ours and another, or click
    assert {name for name in read if not name.endswith("_PJRT")} - internal <= topics.ENVIRONMENT.keys()
    elsewhere = (ROOT / "tests/profiles.py").read_text("utf-8")
    assert [name for name in topics.ENVIRONMENT if name not in read and name not in elsewhere] == []


def test_the_files_that_the_architecture_names_are_there_and_linked() -> None:
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    named = re.findall(r"`((?:tenferro_ref|oracle|fuzz|reports|tests)/[\w/]+(?:\.\w+|/))`", text)
    assert len(named) > 40
    assert [name for name in named if not (ROOT / name).exists()] == []
    linked = docs_links.on_page_markdown(text)
    assert [name for name in named if f"[`{name}`]({docs_links.REPOSITORY}/" not in linked] == []
