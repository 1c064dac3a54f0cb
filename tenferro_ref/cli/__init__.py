"""The command line, `tenferro-ref`: the composition root, the only place here that may import oracle, fuzz and reports.

Exit status (FORMATS.md): 0 all agree, 1 a disagreement, 2 the input or the call is wrong, 3 the environment lacks
something. Every error is one line on standard error; there is no traceback.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from tenferro_ref import __version__
from tenferro_ref.errors import TenferroError
from tenferro_ref.escape import visible

#: Where each command is, imported when it is asked for, so that `exec` does not load what only `parity` needs; and how its
#: help begins, so that the list of commands imports none.
COMMANDS = {
    "check": ("check:check", "Run each of FILES on every executor and print a verdict a line."),
    "emit": ("native:emit", "Print FILE as StableHLO."),
    "exec": ("native:exec_", "Run FILE natively."),
    "fuzz": ("fuzz:fuzz", "Campaigns over a findings store (a file)."),
    "golden": ("golden:golden", "Write golden vectors, or check that they still hold."),
    "mutants": ("mutants:mutants", "Seeded faults: does the harness find each of them?"),
    "parity": (
        "parity:parity",
        "Generate programs, run them on every executor, shrink what disagrees, write the report.",
    ),
    "plugins": ("plugins:plugins", "List the PJRT plugins found."),
    "report": ("parity:report", "Write the report of a findings store, or of a recorded campaign."),
    "show": ("native:show", "Print FILE in readable form, before or after the passes."),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"tenferro_ref.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="tenferro-ref")
def cli() -> None:
    """Run, check and compare tensor programs across executors."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    try:
        result = cli.main(args=arguments, prog_name="tenferro-ref", standalone_mode=False)
        sys.stdout.flush()
    except click.Abort:
        return _fail("interrupted", 130)
    except click.ClickException as error:
        return _fail(error.format_message(), 2)
    except TenferroError as error:
        return _fail(str(error), error.exit_status)
    except MemoryError:
        return _fail("out of memory: this machine cannot hold the program's tensors", 3)
    except RecursionError:
        return _fail("the program is nested too deeply", 2)
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}", 3)
    return result if isinstance(result, int) else 0


def _drop_output() -> None:
    """What is still buffered for an output that refuses it is dropped: the flush at exit would fail on it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> int:
    print("error: " + " ".join(visible(message).split()), file=sys.stderr)
    return status
