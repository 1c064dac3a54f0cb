"""`fuzz`: campaigns over a findings store, and what is done with what they find."""

from __future__ import annotations

import click

from fuzz.cli.campaigns import resume, run, status
from fuzz.cli.findings import findings, merge, reduce, replay, stale_
from fuzz.cli.program import program


@click.group()
def fuzz() -> None:
    """Campaigns over a findings store (a file)."""


for command in (run, resume, status, program, findings, stale_, replay, reduce, merge):
    fuzz.add_command(command)
