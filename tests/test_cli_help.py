"""Help and completion: the same as the commands have, and made without importing what the commands need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import click
import pytest

from tenferro_ref import interface
from tenferro_ref.cli import GROUP, NAME
from tests.e2e.command import assert_one_line_error, in_this_process
from tests.plugins import plugin_or_skip

COMMANDS = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
HEAVY = {"hypothesis", "numpy", "oracle", "fuzz", "reports", "rich", "matplotlib", "scipy"}


def helps(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """The help of a command and of those below it."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 110, "terminal_width": 100}
    context = click.Context(command, info_name=path, parent=parent, **settings)  # type: ignore[arg-type]
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in sorted(command.list_commands(context)):
            child = command.get_command(context, name)
            assert child is not None
            yield from helps(child, name, context)


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_a_stand_in_has_the_help_of_the_command(entry: EntryPoint) -> None:
    stand_in = interface.stand_in(entry.name, interface.described()[entry.name], lambda: 0)
    assert dict(helps(stand_in, entry.name)) == dict(helps(entry.load(), entry.name))


@pytest.mark.once
@pytest.mark.parametrize("words", [(), *((entry.name,) for entry in COMMANDS), ("fuzz", "run")], ids=" ".join)
def test_help_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    script = (
        f"import sys; from tenferro_ref.cli import main; main([*{words!r}, '--help']); "
        f"print(sorted({{m.partition('.')[0] for m in sys.modules}} & {HEAVY!r}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert done.stdout.startswith(f"Usage: {' '.join((NAME, *words))}")


def test_the_list_of_commands_is_complete() -> None:
    lines = in_this_process("--help").out.splitlines()
    shown = lines[lines.index("Commands:") + 1 :]
    listed = [line.split()[0] for line in shown if line.startswith("  ") and line[2] != " "]
    assert listed == [entry.name for entry in COMMANDS]


@pytest.mark.parametrize("words", [(), ("fuzz",)])
def test_no_command_prints_the_help_readably_and_ends_with_status_2(words: tuple[str, ...]) -> None:
    run = in_this_process(*words)
    assert (run.status, run.out) == (2, "")
    assert run.err == in_this_process(*words, "--help").out


def test_a_misspelt_command_or_topic_is_guessed() -> None:
    assert_one_line_error(in_this_process("chek"), 2, "no command 'chek'; did you mean 'check'?")
    assert_one_line_error(in_this_process("help", "executor"), 2, "did you mean 'executors'?")


def test_help_that_is_the_value_of_something_else() -> None:
    run = in_this_process("show", "--after", "--help")
    assert_one_line_error(run, 2, "Missing argument")


def test_topics() -> None:
    assert {line.split()[0] for line in in_this_process("help").out.splitlines()[1:]} == set(interface.topics())
    for name, topic in interface.topics().items():
        found = topic()
        assert found
        assert all(words and words == " ".join(words.split()) for words in found.values())
        assert len(in_this_process("help", name).out.splitlines()) == len(found) + 1


def completions(words: str, cwd: Path | None = None) -> list[str]:
    """What bash is offered at the end of `words`."""
    variables = {
        "_TENFERRO_REF_COMPLETE": "bash_complete",
        "COMP_WORDS": f"{NAME} {words}",
        "COMP_CWORD": str(words.count(" ") + 1),
    }
    command = [sys.executable, "-m", "tenferro_ref"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True, cwd=cwd)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.once
@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("che", {"check"}),
        ("fuzz re", {"resume", "reduce", "replay"}),
        ("check f.txt --ex", {"--executors"}),
        ("check f.txt --executors native-f", {"native-fused"}),
        ("check f.txt --executors jax,interp", {"jax,interpreter"}),
        ("fuzz run s --generate ops=Exp,Lo", {"ops=Exp,Log"}),
        ("fuzz findings s --mark re", {"reported"}),
    ],
)
def test_completion(words: str, some: set[str]) -> None:
    assert some <= set(completions(words))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script(shell: str) -> None:
    run = in_this_process("completion", shell)
    assert run.status == 0
    assert f"_TENFERRO_REF_COMPLETE={shell}_complete" in run.out


@pytest.mark.once
def test_a_real_bash_completes_a_name_with_a_colon(tmp_path: Path) -> None:
    plugin_or_skip("xla081")
    (tmp_path / NAME).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tenferro_ref "$@"\n')
    (tmp_path / NAME).chmod(0o755)
    script = (
        f"source <({NAME} completion bash); [[ $COMP_WORDBREAKS != *[:=]* ]] || exit 9; "
        f"COMP_WORDS=({NAME} check f.txt --executors pjrt:xla-); COMP_CWORD=4; "
        f'_tenferro_ref_completion {NAME}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["pjrt:xla-cpu-pjrt"]), done
