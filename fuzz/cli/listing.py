"""`fuzz findings`, `fuzz stale`: the findings of a store.

A list is read often and must come at once: what runs programs is imported only where something is written down.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from fuzz.findings.known import load_known, stale
from fuzz.findings.listed import Listed, date, listed
from fuzz.records import encode
from fuzz.store import STATUSES, Store
from tenferro_ref.console import allow_option, json_option, print_json, say
from tenferro_ref.errors import UsageError

store_argument = click.argument("store", metavar="STORE")
campaign_option = click.option(
    "--campaign", type=int, metavar="N", help="Number in `fuzz status`; default: the latest."
)


@click.command()
@store_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--status", "wanted", multiple=True, type=click.Choice([*STATUSES, "regressed"]), help="May be repeated.")
@click.option("--executor", default="*", metavar="PATTERN")
@click.option("--signature", default="*", metavar="PATTERN")
@click.option("--verdict", default="*", metavar="PATTERN")
@campaign_option
@click.option("--mark", type=click.Choice(STATUSES), help="Mark all that is listed; later campaigns know it.")
@click.option("--note", default="", help="With --mark: a page, a link, a reason.")
@click.option("--bundles", metavar="DIR", help="Run what is listed again, and write its bundles.")
@click.option("--corpus", "corpus_folder", metavar="DIR", help="Write what is listed as files of the corpus.")
@allow_option
@json_option
def findings(
    store: str, ids: tuple[str, ...], wanted: tuple[str, ...], executor: str, signature: str, verdict: str,
    campaign: int | None, mark: str | None, note: str, bundles: str | None, corpus_folder: str | None, allow_commands: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """List the findings of a store, or mark them, or write them down."""
    if note and not mark:
        raise UsageError(detail="--note goes with --mark")
    with Store(store, readonly=not mark) as opened:
        streams = None if campaign is None else opened.shards(campaign)

        def select() -> list[Listed]:
            return [
                row
                for row in listed(opened, streams)
                if (not ids or any(row.id.startswith(i) for i in ids))
                and fnmatchcase(row.finding.signature, signature)
                and fnmatchcase(row.finding.verdict, verdict)
                and any(fnmatchcase(e, executor) for e in (*row.executors, row.finding.executor))
            ]

        rows = [row for row in select() if not wanted or row.status in wanted]
        for name in ids:
            if not any(row.id.startswith(name) for row in rows):
                raise UsageError(detail=f"{store}: no finding {name!r} is listed")
        if mark:
            if mark != "new" and not (ids or wanted or (executor, signature, verdict) != ("*", "*", "*")):
                raise UsageError(detail="--mark without an ID or a filter would mark everything")
            if not rows:
                raise UsageError(detail=f"{store}: no finding is listed, so none was marked")
            for row in rows:
                opened.mark(row.finding.signature, mark, note)
            marked = {row.id for row in rows}
            rows = [row for row in select() if row.id in marked]
        if bundles:
            from fuzz.cli import findings as runs

            runs.write_bundles(opened, rows, Path(bundles), runs.allowed_names(allow_commands, executor))
        if corpus_folder:
            from fuzz.cli import findings as runs

            runs.write_corpus(rows, Path(corpus_folder))
    for row in rows:
        if as_json:
            print_json(_finding_json(row))
        else:
            say(line(row))


def line(row: Listed) -> str:
    """A finding in one line."""
    finding = row.record
    sure = f", UNCONFIRMED: {finding.unconfirmed}" if finding.unconfirmed else ""
    why = f", {row.why}" if row.why else ""
    status = row.status.upper() if row.is_new else row.status
    return f"{status:8} {row.id}  {finding.signature}  [{finding.executor}, {row.programs} programs{why}{sure}]"


def _finding_json(row: Listed) -> dict[str, Any]:
    content: dict[str, Any] = encode(row.record)
    return {
        "id": row.id,
        "status": row.status,
        "why": row.why,
        "confirmed": row.stored.confirmed,
        "confirmed_in_fresh_venv": row.stored.afresh,
        "seconds_to_bundle": round(row.stored.seconds, 3),
        "first_seen": row.first and date(row.first),
        "last_seen": row.last and date(row.last),
        "marks": [{"status": m.status, "note": m.note, "date": date(m.at)} for m in row.marks],
        **content,
    }


@click.command("stale")
@store_argument
@json_option
def stale_(store: str, as_json: bool) -> None:
    """List the rules of known findings that nothing in a store matches.

    Only rules about builds of which the store has findings are listed. After a long campaign such a rule is too narrow, or what
    its page describes is gone from the builds, or no program draws it any more.
    """
    with Store(store, readonly=True) as opened:
        rules = stale([stored.finding for stored in opened.findings()], load_known())
    for page, signature in rules:
        if as_json:
            print_json({"page": page, "signature": signature})
        else:
            say(f"{page}: {signature}")
