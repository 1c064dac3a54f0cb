"""`conform`: does a PJRT plugin do what the C API and StableHLO say?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import click

from fuzz.conform import record
from fuzz.conform.cells import names
from fuzz.conform.run import CELLS, SECTIONS, Run
from fuzz.records import encode
from tenferro_ref.console import (
    RealRange,
    json_option,
    print_json,
    print_table,
    progress_bar,
    report_site,
    say,
    split,
)
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UsageError
from tenferro_ref.pjrt import PluginRef, is_path, require_file, resolve

#: Checks that a terminal is shown of a section; the report has all.
_SHOWN = 12


@click.command()
@click.argument("plugin")
@click.option("--out", default="conform-report", show_default=True, metavar="DIR", help="For page, summary and badge.")
@click.option("--against", metavar="OTHER", help="A `conform.json`, or another plugin: print what changed from it.")
@click.option("--sections", metavar="LIST", help=f"Only these, of: {', '.join(SECTIONS)}.")
@click.option("--ops", metavar="LIST", help="Cells of these operations only, as `Exp,Lu`.")
@click.option("--dtypes", metavar="LIST", help="Cells of these element types only, as `F32,I32`.")
@click.option("--seconds", type=RealRange(min=1), default=60.0, show_default=True, help="For one call.")
@json_option
def conform(
    plugin: str, out: str, against: str | None, sections: str | None, ops: str | None, dtypes: str | None, seconds: float,
    as_json: bool,
) -> int:  # fmt: skip
    """Test a PJRT plugin, by name or path, and write a report, a JSON summary and a badge.

    Exit status 0 if all that was tested holds, 1 if something does not (what docs/findings/ describes is shown as known, and
    does not hold either; that the file loads as a plugin is the first check) or all that was asked was skipped, 3 if there is no
    such file, or the plugin loads and makes no client here.
    """
    chosen = Asked(
        _listed("section", sections, SECTIONS),
        tuple(DType[name] for name in _listed("element type", dtypes, DType.__members__)),
        _listed("operation", ops, names()) if ops else (),
        seconds,
    )
    if (ops or dtypes) and not set(chosen.sections) & set(CELLS):
        raise UsageError(
            detail=f"--ops and --dtypes choose cells, which are in the sections {' and '.join(CELLS)} only"
        )
    ref, site = _named(plugin), report_site(Path(out), "conform")
    other = None if against is None else _other(against, chosen)
    result = _ask(ref, plugin, chosen)
    changed = [] if other is None else record.changes(other, result)
    page = site.write(record.Report(result, other), Path(out))
    if as_json:
        print_json(encode(result) | {"verdict": result.verdict, "changes": encode(changed)})
    else:
        _print(result)
        if other is not None:
            say(f"against {other.plugin}: {len(changed)} changed")
            for change in changed:
                say(f"  {change.name}: {change.before or 'not there'} -> {change.after or 'not there'} {change.detail}")
        say(f"{result.plugin} {result.verdict}: {_counts(result.counts)}, in {result.seconds:.0f} s; {page}")
    return {"conforms": 0, "does not conform": 1, "not tested": 1, "no client": 3}[result.verdict]


class Asked(NamedTuple):
    """What is asked of a plugin: the fields of a `Run`."""

    sections: tuple[str, ...]
    dtypes: tuple[DType, ...]
    ops: tuple[str, ...]
    request_seconds: float


def _listed(what: str, text: str | None, known: Iterable[str]) -> tuple[str, ...]:
    """The names of a list, all that are known if there is none."""
    known = tuple(known)
    names = known if text is None else tuple(split(text))
    if unknown := [name for name in names if name not in known]:
        raise UsageError(detail=f"unknown {what} {unknown[0]!r}; known: {', '.join(known)}")
    return names


def _named(plugin: str) -> PluginRef:
    """The plugin; of a file that is not there no report is written."""
    if is_path(plugin):
        require_file(plugin)
    return resolve(plugin)


def _other(against: str, asked: Asked) -> record.Conformance:
    """What to compare with: a summary from before, or another plugin that is asked now."""
    if not against.endswith(".json"):
        return _ask(_named(against), against, asked)
    return record.only(record.load(Path(against)), asked.sections, {d.name for d in asked.dtypes}, asked.ops)


def _ask(ref: PluginRef, plugin: str, asked: Asked) -> record.Conformance:
    with progress_bar(f"conform {ref.name}", None) as update:
        return Run(ref, plugin, progress=update, **asked._asdict()).conformance()


def _print(result: record.Conformance) -> None:
    print_table(
        ("section", "outcome", "checks", "s"),
        [(s.title, s.outcome, _counts(s.counts), f"{s.seconds:.1f}") for s in result.sections],
    )
    for section in result.sections:
        wrong = record.wrong(section)
        for check in wrong[:_SHOWN]:
            page = f" [docs/findings/{check.page}.md]" if check.page else ""
            say(f"{section.name}: {check.name}: {check.outcome}{page}: {check.detail}")
        if len(wrong) > _SHOWN:
            say(f"{section.name}: and {len(wrong) - _SHOWN} more")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {outcome}" for outcome, n in counts.items()) or "nothing"
