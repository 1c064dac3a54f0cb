"""`tenferro-ref help TOPIC` and `tenferro-ref completion SHELL`; the topics of this package."""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from tenferro_ref.interface import TOPICS, topics
from tenferro_ref.suggest import did_you_mean

#: Exit statuses of every command.
EXIT_STATUS = {
    "0": "nothing is wrong; `parity` and `fuzz run` end so, too, if every disagreement is a known one",
    "1": "a disagreement was found (by `parity` and `fuzz run` a new one), or a campaign or `conform` proves too little; a check of `conform`, `conformance` "
    "or `compat` does not hold, or a seeded fault survives",
    "2": "the input or the call is wrong",
    "3": "the environment lacks something (no plugin, no such library, a full disk), which is named",
    "70": "a defect of this program: please report it; TENFERRO_TRACEBACK=1 shows where it is",
    "129, 130, 143": "stopped by SIGHUP, SIGINT (Ctrl-C) or SIGTERM",
}
#: Environment variables that this program reads; tests/test_docs.py looks for others in the code.
ENVIRONMENT = {
    "TENFERRO_PJRT_PLUGIN": "path of the plugin that the executor `pjrt` runs; unset and empty are different messages",
    "TENFERRO_PJRT_GPU_PLUGIN": "path of the plugin that the executor `pjrt:gpu` runs",
    "TENFERRO_PJRT_PLUGIN_DIR": "folder that is searched for plugins, by default ~/.local/share/tenferro/pjrt_plugins; beside any "
    "NAME.so a NAME.toml may stand (how-to: write a plugin)",
    "TENFERRO_PJRT_CACHE": "folder in which plugins' executables are kept",
    "TENFERRO_PJRT_CACHE_BYTES": "how many bytes that folder may take, by default 1 GiB",
    "TENFERRO_PASS_ENV": "names, separated by commas, of further variables that worker processes and engines are given",
    "TENFERRO_XLA_RUN_HLO_MODULE": "path of OpenXLA's run_hlo_module",
    "TENFERRO_XLA_RUN_HLO_PLATFORM": "its platform, by default Host",
    "TENFERRO_TRACEBACK": "1 prints the traceback of a defect of this program",
    "TENFERRO_EXAMPLES": "where the property tests find failing examples of others (how-to: run campaigns)",
}


def exit_status() -> dict[str, str]:
    """Topic `exit-status`."""
    return EXIT_STATUS


def environment() -> dict[str, str]:
    """Topic `environment`."""
    return ENVIRONMENT


def passes() -> dict[str, str]:
    """Topic `passes`: those of the compiler, the default ones marked."""
    from tenferro_ref.compiler import DEFAULT_PIPELINE, PASSES

    marks = {name: "" if name in DEFAULT_PIPELINE else " (not by default)" for name in PASSES}
    return {name: _first_line(function) + marks[name] for name, function in PASSES.items()}


def ops() -> dict[str, str]:
    """Topic `ops`: the vocabulary."""
    from tenferro_ref.ops import OPS

    return {op.__name__: _first_line(op) for op in OPS}


def errors() -> dict[str, str]:
    """Topic `errors`: kinds of errors with the exit status that each leads to."""
    from tenferro_ref.autodiff import errors as of_derivatives
    from tenferro_ref.errors import TenferroError

    def below(kind: type[TenferroError]) -> list[type[TenferroError]]:
        return [one for child in kind.__subclasses__() for one in (child, *below(child))]

    kinds = [
        kind for kind in below(TenferroError) if kind.__module__ in (TenferroError.__module__, of_derivatives.__name__)
    ]
    return {kind.__name__: f"exit status {kind.exit_status}: {_first_line(kind)}" for kind in kinds}


def _first_line(thing: object) -> str:
    return " ".join((thing.__doc__ or "").strip().partition("\n\n")[0].split())


@click.command("help")
@click.argument("topic", required=False, metavar="TOPIC")
def help_(topic: str | None) -> int:
    """Explain a TOPIC: names of executors, lanes, passes, ops and errors, environment variables, exit status.

    Without a TOPIC they are listed.
    """
    from tenferro_ref.console import print_table
    from tenferro_ref.errors import UsageError

    known = topics()
    if topic is None:
        rows = [[entry.name, f"tenferro-ref help {entry.name}"] for entry in entry_points(group=TOPICS)]
        print_table(["topic", ""], sorted(rows))
        return 0
    if topic not in known:
        raise UsageError(detail=f"no help on {topic!r}; topics: {', '.join(known)}{did_you_mean(topic, known)}")
    print_table([topic, "meaning"], [[name, words] for name, words in known[topic]().items()])
    return 0


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a SHELL, with names of executors, passes, ops and findings.

    In bash: tenferro-ref completion bash > ~/.local/share/bash-completion/completions/tenferro-ref
    """
    from click.shell_completion import get_completion_class

    from tenferro_ref.cli import COMPLETE, NAME, cli

    made = get_completion_class(shell)
    assert made is not None
    if shell == "bash":  # names of executors have colons in them, settings an equals sign
        click.echo("COMP_WORDBREAKS=${COMP_WORDBREAKS//[:=]/}")
    click.echo(made(cli, {}, NAME, COMPLETE).source())
