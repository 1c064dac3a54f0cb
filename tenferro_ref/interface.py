"""The command line as data, `interface.json`: help and completion without importing what the commands need, which takes seconds.

`python -m tools.command_reference` writes the file from the commands; a test holds the two together. A command of another
distribution is not in it, and is loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from typing import Any

import click
from click.shell_completion import CompletionItem

#: Functions that give the names of something with their meanings, by topic: `help TOPIC`, completion, docs/reference/names.md.
TOPICS = "tenferro_ref.topics"
#: What an option or argument with this metavar names, and whether it takes several, separated by commas.
_NAMES = {"LIST": ("executors", True), "PASS": ("passes", False), "PLUGIN": ("executors", False), "TOPIC": ("", False)}

Description = dict[str, Any]


@cache
def described() -> dict[str, Description]:
    """The commands of this distribution by name; "entry" is where each is."""
    text = resources.files("tenferro_ref").joinpath("interface.json").read_text("utf-8")
    found: dict[str, Description] = json.loads(text)
    return found


def describe(command: click.Command) -> Description:
    """A command as data."""
    found: Description = {"help": command.help, "params": [_describe_parameter(p) for p in command.params]}
    if isinstance(command, click.Group):
        context = click.Context(command)
        children = {name: command.get_command(context, name) for name in command.list_commands(context)}
        found["commands"] = {name: describe(child) for name, child in children.items() if child is not None}
    return found


def _describe_parameter(parameter: click.Parameter) -> Description:
    type_ = parameter.type
    found: Description = {
        "name": parameter.name, "opts": [*parameter.opts, *("/" + o for o in parameter.secondary_opts)],
        "metavar": parameter.metavar, "required": parameter.required, "nargs": parameter.nargs,
    }  # fmt: skip
    if isinstance(type_, click.Choice):
        found["choices"] = list(type_.choices)
    elif isinstance(type_, click.IntRange | click.FloatRange):
        limits = {k: getattr(type_, k) for k in ("min", "max", "min_open", "max_open")}
        found["range"] = {"float": isinstance(type_, click.FloatRange), **limits}
    elif type_ is not click.STRING:
        found["type"] = type_.name
    if isinstance(parameter, click.Option):
        found |= {
            "help": parameter.help, "flag": parameter.is_flag, "multiple": parameter.multiple,
            "default": parameter.default if parameter.show_default else None,
        }  # fmt: skip
    return {k: v for k, v in found.items() if v not in (None, False) and (k, v) != ("nargs", 1)}


def stand_in(name: str, info: Description, run: Callable[[], Any]) -> click.Command:
    """A command that prints the help and completes the words of the one that it stands for; if it is run, that one runs."""
    params = [_parameter(p) for p in info["params"]]
    if "commands" not in info:
        return click.Command(name, callback=lambda **_: run(), params=params, help=info["help"])
    group = click.Group(name, params=params, help=info["help"])
    for child, about in info["commands"].items():
        group.add_command(stand_in(child, about, run))
    return group


def _parameter(info: Description) -> click.Parameter:
    common: dict[str, Any] = {
        "type": _type(info), "metavar": info.get("metavar"), "required": "required" in info, "nargs": info.get("nargs", 1),
        "shell_complete": _completer(info),
    }  # fmt: skip
    if "opts" in info and not info["opts"][0].startswith("-"):
        return click.Argument([info["name"]], **common)
    first = [o for o in info["opts"] if not o.startswith("/")]
    second = [o[1:] for o in info["opts"] if o.startswith("/")]
    names = [f"{a}/{b}" for a, b in zip(first, second, strict=True)] if second else first
    if "flag" in info:
        common = {"is_flag": True}
    default = {"default": info["default"], "show_default": True} if "default" in info else {}
    return click.Option(
        [*names, info["name"]], help=info.get("help"), multiple="multiple" in info, **default, **common
    )  # fmt: skip


def _type(info: Description) -> click.ParamType[Any]:
    if "choices" in info:
        return click.Choice(info["choices"])
    if "range" in info:
        limits = {k: v for k, v in info["range"].items() if k != "float"}
        return click.FloatRange(**limits) if info["range"]["float"] else click.IntRange(**limits)
    plain: dict[str, click.ParamType[Any]] = {"integer": click.INT, "float": click.FLOAT}
    return plain.get(info.get("type", ""), click.STRING)


def topics() -> dict[str, Callable[[], dict[str, str]]]:
    """What `help` knows, by name."""

    def loader(entry: Any) -> Callable[[], dict[str, str]]:
        return lambda: dict(entry.load()())

    return {entry.name: loader(entry) for entry in sorted(entry_points(group=TOPICS), key=lambda e: e.name)}


def _completer(info: Description) -> Callable[..., list[CompletionItem]] | None:
    """Completes names of executors, passes, ops (of `--generate ops=`), topics and findings; files are the shell's."""
    metavar = info.get("metavar", "")
    if metavar == "KEY=VALUE":
        return lambda ctx, param, word: _completed("ops", "ops=" if word.startswith("ops=") else "", word)
    if metavar == "[ID]...":
        return lambda ctx, param, word: _findings(ctx.params.get("store"), word)
    if metavar not in _NAMES or (metavar == "LIST" and "--executors" not in info["opts"]):
        known = "choices" in info or "flag" in info or "range" in info
        return None if known else lambda ctx, param, word: [CompletionItem(word, type="file")]
    topic, several = _NAMES[metavar]
    return lambda ctx, param, word: _completed(topic, word[: word.rfind(",") + 1] if several else "", word)


def _completed(topic: str, before: str, word: str) -> list[CompletionItem]:
    """The names of a topic that begin as the last part of `word`, behind `before`, does; of a pattern its fixed beginning."""
    if topic == "ops":
        if not before:
            return []
        before = word[: max(word.rfind(","), word.find("=")) + 1]
    names = topics()[topic]() if topic else dict.fromkeys(topics(), "")
    if topic == "executors":
        names = {**names, **_installed()}
    begun = {(re.match(r"[a-z0-9-]+:(?=[A-Z])", name) or [name])[0]: words for name, words in names.items()}
    rest = word[len(before) :]
    return [CompletionItem(before + name, help=words) for name, words in begun.items() if name.startswith(rest)]


def _installed() -> dict[str, str]:
    """Executors on the plugins that are installed."""
    from tenferro_ref.pjrt import discover

    return {f"pjrt:{plugin.package or plugin.name}": plugin.path for plugin in discover()}


def _findings(store: Any, word: str) -> list[CompletionItem]:
    """The ids of a store's findings."""
    if not isinstance(store, str):
        return []
    for entry in entry_points(group="tenferro_ref.findings", name="ids"):
        ids: Sequence[tuple[str, str]] = entry.load()(store)
        return [CompletionItem(name, help=words) for name, words in ids if name.startswith(word)]
    return []
