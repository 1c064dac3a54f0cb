"""The command line, `tenferro-ref`.

Each package brings its own commands as entry points of the group `tenferro_ref.commands` (`pyproject.toml`), which are
imported when they are asked for. So no package imports the packages above it, and other distributions can add commands.

Exit status: 0 nothing is wrong, 1 a disagreement (for campaigns a new one), 2 the input or the call is wrong, 3 the
environment lacks something, 70 a defect of this program, 130, 143 or 129 stopped by SIGINT, SIGTERM or SIGHUP. Every error is one line on standard error; there is no traceback.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import click

from tenferro_ref import __version__, interface
from tenferro_ref.errors import CutShort, Interrupted, TenferroError, UsageError
from tenferro_ref.escape import visible
from tenferro_ref.suggest import did_you_mean

GROUP = "tenferro_ref.commands"
NAME = "tenferro-ref"
#: The variable that asks click for completions.
COMPLETE = "_TENFERRO_REF_COMPLETE"
#: Packages whose failing imports are defects, not something that is not installed.
_OWN = frozenset({"tenferro_ref", "oracle", "fuzz", "reports"})
#: Exit status of a defect of this program, as EX_SOFTWARE in sysexits.h.
DEFECT = 70
#: The word for each signal that ends a command; its exit status is 128 and their number, as a shell has it.
_STOPS = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated (SIGTERM)",
    signal.SIGHUP: "the terminal is gone (SIGHUP)",
}


class _ReaderGone(Exception):
    """What standard output is a pipe to has ended."""


@contextlib.contextmanager
def _unknown_to_click() -> Iterator[None]:
    """Exceptions that click takes for something else: a closed pipe for status 1, the end of a file for Ctrl-D."""
    try:
        yield
    except BrokenPipeError:
        raise _ReaderGone from None
    except EOFError as error:  # importlib writes what it compiles without a look at what fitted on the disk
        raise CutShort(detail=str(error)) from None


class _Commands(click.Group):
    """The commands of all installed packages."""

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=GROUP)}

    def make_context(self, *words: Any, **extra: Any) -> click.Context:
        with _unknown_to_click():
            return super().make_context(*words, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _unknown_to_click():
            return super().invoke(ctx)

    def _described(self, name: str) -> dict[str, Any] | None:
        """What `interface.json` says of a command, if it is the one that is installed under that name."""
        entry, info = self._entries[name], interface.described().get(name)
        return info if info is not None and info["entry"] == entry.value else None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._entries.get(cmd_name)
        if entry is None:
            return None
        info = self._described(cmd_name) if ctx.resilient_parsing or COMPLETE in os.environ else None
        command: click.Command = interface.stand_in(cmd_name, info, lambda: 0) if info else entry.load()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command; where only its help is asked for, one that is made from `interface.json`."""
        name = args[0]
        if name not in self._entries and not name.startswith("-"):
            hint = did_you_mean(name, self._entries) or "; tenferro-ref --help lists them"
            raise UsageError(detail=f"no command {name!r}{hint}")
        info = self._described(name) if {"-h", "--help"} & set(args) else None
        if info is None:
            return super().resolve_command(ctx, args)

        def run() -> Any:  # "--help" was the value of something else
            return self._entries[name].load().main(args[1:], f"{NAME} {name}", standalone_mode=False)

        return name, interface.stand_in(name, info, run), args[1:]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summary(name)) for name in sorted(self._entries)])

    def _summary(self, name: str) -> str:
        """First sentence of a command's help; other distributions' commands are loaded for it."""
        info = self._described(name)
        words: str = info["help"] if info else self._entries[name].load().help or ""
        return " ".join(words.partition("\n\n")[0].split())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name=NAME)
def cli() -> None:
    """Run, check and compare tensor programs across executors.

    `tenferro-ref COMMAND --help` explains a command, `tenferro-ref help` names of executors, passes, ops, ...
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    _open_standard_streams()
    stopped_by: list[int] = []
    try:
        with _stoppable(stopped_by):
            result = cli.main(args=arguments, prog_name=NAME, standalone_mode=False)
            sys.stdout.flush()
    except click.Abort as abort:
        stopped = abort.__cause__
        number = stopped.number if isinstance(stopped, _Stopped) else signal.SIGINT
        return _fail(_STOPS[number], 128 + number)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return 2
    except click.ClickException as error:
        return _fail(error.format_message(), 2)
    except Interrupted as error:  # a command that says what there is
        return _fail(str(error), 128 + stopped_by[0] if stopped_by else error.exit_status)
    except TenferroError as error:
        return _fail(str(error), error.exit_status)
    except ImportError as error:
        if (error.name or "").partition(".")[0] in _OWN:
            return _fail(_defect(error), DEFECT)
        what = f"{error.name} is not installed" if error.name else f"a library cannot be imported ({error})"
        return _fail(f"{what}: in a clone of tenferro-ref, python -m pip install . brings all that is needed", 3)
    except MemoryError:
        return _fail("out of memory: this machine cannot hold the program's tensors", 3)
    except RecursionError:
        return _fail("the program is nested too deeply", 2)
    except (_ReaderGone, BrokenPipeError):
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}", 3)
    except Exception as error:  # noqa: BLE001 - the one last net: whatever is not typed by here is ours to mend
        return _fail(_defect(error), DEFECT)
    if stopped_by:  # Python ignores what a signal raises within a finalizer
        return _fail(_STOPS[signal.Signals(stopped_by[0])], 128 + stopped_by[0])
    return result if isinstance(result, int) else 0


class _Stopped(KeyboardInterrupt):
    """A signal that asks this process to end; handled as Ctrl-C is, so that nothing is left half-done."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


@contextlib.contextmanager
def _stoppable(numbers_seen: list[int]) -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP raise `_Stopped` and are noted; only the main thread can ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: object) -> None:
        numbers_seen.append(number)
        raise _Stopped(number)

    # a signal that is ignored, as under nohup, stays ignored
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open_standard_streams() -> None:
    """Standard streams that the caller has closed become /dev/null: else the next file, a store say, would take their place."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
    sys.stdin, sys.stdout, sys.stderr = (
        stream or open(descriptor, "r" if descriptor == 0 else "w", closefd=False)  # noqa: SIM115
        for descriptor, stream in enumerate((sys.stdin, sys.stdout, sys.stderr))
    )


def _defect(error: Exception) -> str:
    """The message for an exception that is a defect of this program; with TENFERRO_TRACEBACK set, after its traceback."""
    if os.environ.get("TENFERRO_TRACEBACK"):
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return (
        f"a defect of tenferro-ref: {type(error).__name__}: {error}{place}; "
        "please report it with the command and its input (TENFERRO_TRACEBACK=1 shows where it is)"
    )


def _drop_output() -> None:
    """Discard buffered output that its reader refuses: the flush at exit would fail on it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> int:
    try:
        print("error: " + " ".join(visible(message).split()), file=sys.stderr)
    except OSError:  # nobody can read why, but the status stays what it is
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return status
