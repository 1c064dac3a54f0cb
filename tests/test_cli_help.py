"""The list of commands: what it says of each is how the command's own help begins, and it imports none of them."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from tenferro_ref.cli import COMMANDS, cli


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_the_beginning_of_the_commands_help(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    words = " ".join((command.help or "").split())
    assert words.startswith(COMMANDS[name][1].rstrip("."))


def test_the_list_of_commands_is_complete_and_imports_no_command() -> None:
    script = (
        "import sys; from tenferro_ref.cli import main; main(['--help']); "
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'hypothesis', 'numpy', 'oracle', 'fuzz', 'rich'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *lines, loaded = done.stdout.splitlines()
    assert loaded == "[]"
    listed = [
        line.split()[0] for line in lines[lines.index("Commands:") + 1 :] if line.startswith("  ") and line[2] != " "
    ]
    assert listed == list(COMMANDS)
