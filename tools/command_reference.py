"""docs/reference/commands.md, generated from the commands: `python -m tools.command_reference` writes it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from tenferro_ref.cli import cli

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/commands.md"
_HEAD = """# Command line

`tenferro-ref`, also `python -m tenferro_ref`. Generated from the commands by `python -m tools.command_reference`. Exit status, names of
executors and environment variables are in [formats.md](formats.md).
"""


def markdown() -> str:
    """The page: every command with its help and options."""
    context = click.Context(cli, info_name="tenferro-ref")
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


if __name__ == "__main__":
    PAGE.write_text(markdown(), "utf-8")
