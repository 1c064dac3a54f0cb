"""`plugins`: PJRT plugins found on this machine, and what each says of itself."""

from __future__ import annotations

import click

from oracle.executors import Pool
from tenferro_ref.cli.common import json_option, print_json, print_table, say
from tenferro_ref.pjrt import discover


@click.command()
@click.option("--probe", is_flag=True, help="Load each plugin in a worker process and ask it for its facts.")
@json_option
def plugins(probe: bool, as_json: bool) -> int:
    """List the PJRT plugins found: packages, TENFERRO_PJRT_PLUGIN_DIR, TENFERRO_PJRT_PLUGIN."""
    found = discover()
    pool = Pool()
    rows = []
    try:
        for ref in found:
            row: dict[str, object] = {
                "name": ref.name, "path": ref.path, "source": ref.source, "platform": ref.platform or "?",
            }  # fmt: skip
            if probe:
                info = pool.pjrt(ref, "defaults").info()
                row |= {"works": info.available, "reason": info.reason, "facts": dict(info.facts)}
            rows.append(row)
    finally:
        pool.close()
    if as_json:
        print_json(rows)
        return 0
    if not rows:
        click.echo("no PJRT plugin found: pip install xla-cpu-pjrt, or set TENFERRO_PJRT_PLUGIN to a plugin's path")
        return 0
    print_table(("name", "platform", "from", "path"), [
        [str(row[k]) for k in ("name", "platform", "source", "path")] for row in rows
    ])  # fmt: skip
    for row in rows:
        if probe:
            click.echo()
            say(f"{row['name']}: {'works' if row['works'] else row['reason']}")
            facts = row["facts"]
            for key, value in facts.items() if isinstance(facts, dict) else ():
                say(f"  {key}: {value}")
    return 0
