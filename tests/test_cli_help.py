"""The list of commands: complete, and made without importing what the commands need."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points

import click
import pytest

from tenferro_ref.cli import GROUP, cli, summary

COMMANDS = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_a_summary_is_the_beginning_of_the_commands_help(entry: EntryPoint) -> None:
    command = cli.get_command(click.Context(cli), entry.name)
    assert command is not None
    words = " ".join((command.help or "").split())
    assert summary(entry)
    assert words.startswith(summary(entry))


def test_the_list_of_commands_is_complete_and_imports_no_command() -> None:
    script = (
        "import sys; from tenferro_ref.cli import main; main(['--help']); "
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'hypothesis', 'numpy', 'oracle', 'rich', 'matplotlib'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *lines, loaded = done.stdout.splitlines()
    assert loaded == "[]"
    listed = [
        line.split()[0] for line in lines[lines.index("Commands:") + 1 :] if line.startswith("  ") and line[2] != " "
    ]
    assert listed == [entry.name for entry in COMMANDS]
