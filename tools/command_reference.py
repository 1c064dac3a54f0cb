"""What is generated from the commands and topics, and written by `python -m tools.command_reference`.

These are docs/reference/commands.md, docs/reference/names.md, `tenferro_ref/interface.json`, and the schema of campaign.json.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click
import msgspec

from fuzz import records
from tenferro_ref import interface
from tenferro_ref.cli import GROUP, cli

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reference/commands.md"
NAMES = ROOT / "docs/reference/names.md"
INTERFACE = ROOT / "tenferro_ref/interface.json"
_HEAD = """# Command line

`tenferro-ref`, also `python -m tenferro_ref`. Generated from the commands by `python -m tools.command_reference`. Exit status, names of
executors, passes and lanes, environment variables and errors are in [names.md](names.md).
"""


def markdown() -> str:
    """The page: every command with its help and options."""
    context = click.Context(cli, info_name="tenferro-ref", **cli.context_settings)
    return "\n".join([_HEAD, *_sections(context, cli)])


def _sections(parent: click.Context, group: click.Group) -> Iterator[str]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if command is None:
            continue
        context = click.Context(command, info_name=name, parent=parent)
        yield f"{'#' * len(context.command_path.split())} {context.command_path}\n"
        yield f"    {context.command_path} {' '.join(command.collect_usage_pieces(context))}\n"
        yield f"{inspect.cleandoc(command.help or '')}\n"
        options = [o for o in command.get_params(context) if isinstance(o, click.Option) and "--help" not in o.opts]
        if options:
            yield "| option | meaning |\n|---|---|"
            yield from (f"| {_cell(f'`{name}`')} | {_cell(words)} |" for name, words in _records(options, context))
            yield ""
        if isinstance(command, click.Group):
            yield from _sections(context, command)


def _records(options: list[click.Option], context: click.Context) -> Iterator[tuple[str, str]]:
    for option in options:
        record = option.get_help_record(context)
        if record is not None:
            yield record


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_NAMES_HEAD = """# Names, variables, errors

What `tenferro-ref help TOPIC` prints; generated from the code by `python -m tools.command_reference`.
"""


def names() -> str:
    """The page of topics: each a table of names and meanings."""
    sections = [_NAMES_HEAD]
    for topic, found in interface.topics().items():
        rows = [f"| `{_cell(name)}` | {_cell(words)} |" for name, words in found().items()]
        sections.append("\n".join([f"## {topic}\n", "| name | meaning |\n|---|---|", *rows, ""]))
    return "\n".join(sections)


def interface_json() -> str:
    """Every command as data."""
    found = {e.name: {"entry": e.value, **interface.describe(e.load())} for e in entry_points(group=GROUP)}
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


CAMPAIGN_SCHEMA = ROOT / "docs/reference/campaign.schema.json"


def campaign_schema() -> str:
    """The schema of campaign.json, from its record; distances that JSON has no number for are words."""
    schema = msgspec.json.schema(records.Campaign)
    campaign = schema["$defs"]["Campaign"]
    campaign["properties"] = {"tenferro_campaign": {"const": records.VERSION}, **campaign["properties"]}
    campaign["required"] = ["tenferro_campaign", *campaign["required"]]
    words = {"enum": ["inf", "-inf", "nan"]}
    for definition in schema["$defs"].values():
        definition.pop("description", None)  # a docstring, whose indentation depends on the interpreter
        for field, kind in definition.get("properties", {}).items():
            if field == "worst_ulp":
                kind["anyOf"].append(words)
            elif field == "widths":
                kind["items"]["prefixItems"] = [{"anyOf": [{"type": "number"}, words]}] * 2
    return json.dumps(schema, indent=1) + "\n"


GENERATED = {PAGE: markdown, NAMES: names, INTERFACE: interface_json, CAMPAIGN_SCHEMA: campaign_schema}

if __name__ == "__main__":
    for path, text in GENERATED.items():
        path.write_text(text(), "utf-8")
