"""`fuzz`: campaigns over a findings store, and what is done with what they find."""

from __future__ import annotations

from importlib import import_module

import click

#: Where each command is: `run` needs the generators and SciPy, whose import takes longer than `findings` does.
_PLACES = {
    "run": "campaigns:run",
    "resume": "campaigns:resume",
    "status": "campaigns:status",
    "program": "program:program",
    "findings": "listing:findings",
    "stale": "listing:stale_",
    "replay": "findings:replay",
    "reduce": "findings:reduce",
    "merge": "findings:merge",
}


class _Fuzz(click.Group):
    """The commands, imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _PLACES:
            return None
        module, _, name = _PLACES[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"fuzz.cli.{module}"), name)
        return command


@click.group(cls=_Fuzz)
def fuzz() -> None:
    """Campaigns over a findings store (a file)."""
