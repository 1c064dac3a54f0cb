"""The commands of the reference alone: `exec`, `emit` and `show` take one program; `plugins` lists PJRT plugins."""

from __future__ import annotations

import json
import sys
from difflib import unified_diff

import click

from tenferro_ref.compiler import DEFAULT_PIPELINE, compile_std_to_exec, run_passes
from tenferro_ref.console import (
    at_sizes,
    fitting,
    json_option,
    parse_passes,
    print_json,
    print_table,
    read_graph,
    read_program,
    read_source,
    save_or_print,
    say,
    transform_option,
    transformed,
)
from tenferro_ref.errors import TenferroError, UsageError
from tenferro_ref.isolation import Worker, WorkerSpec
from tenferro_ref.pjrt import PluginRef, discover
from tenferro_ref.program import Program, print_program, to_exec
from tenferro_ref.runtime import ALGEBRAS, GraphExecutor, SemiringBackend, segment_exec_program
from tenferro_ref.stablehlo.loader import Loaded, lower_loaded
from tenferro_ref.stablehlo.serialized import serialize
from tenferro_ref.tensor import load_npz


@click.command("exec")
@click.argument("file")
@click.argument("inputs_npz", required=False)
@click.argument("out_npz", required=False)
@click.option("--inputs", metavar="NPZ", help="Inputs in0, in1, ...; not needed by a program without inputs.")
@click.option(
    "--out",
    metavar="NPZ",
    help="Where the outputs out0, out1, ... go; without it they are printed, long ones shortened.",
)
@click.option("--path", "route", type=click.Choice(["segmented", "unsegmented"]), default="segmented")
@click.option("--passes", default=None, metavar="all|none|A,B", help="Default: all for graph, none for exec programs.")
@click.option(
    "--algebra", type=click.Choice(list(ALGEBRAS)), help="Add and multiply in this semiring; only ops that it has."
)
def exec_(
    file: str, inputs_npz: str | None, out_npz: str | None, inputs: str | None, out: str | None, route: str,
    passes: str | None, algebra: str | None,
) -> int:  # fmt: skip
    """Run FILE natively.

    Called as `exec FILE INPUTS.npz OUTPUTS.npz` it is an external executable under test: a typed refusal is exit status
    3 and one JSON line on standard error.
    """
    if out_npz is None:
        if inputs_npz is not None:
            raise UsageError(detail="exec: give FILE INPUTS.npz OUTPUTS.npz, or FILE with --inputs NPZ and --out NPZ")
        _execute(file, inputs, out, route, passes, algebra, names_files=True)
        return 0
    if inputs is not None or out is not None or inputs_npz is None:
        raise UsageError(detail="exec: give the two files either as arguments or as --inputs and --out")
    try:
        _execute(file, inputs_npz, out_npz, route, passes, algebra)
    except TenferroError as error:
        print(json.dumps({"error": error.to_json()}), file=sys.stderr)
        return 3
    return 0


def _execute(
    file: str, inputs: str | None, out: str | None, route: str, passes: str | None, algebra: str | None,
    *, names_files: bool = False,
) -> None:  # fmt: skip
    program, bound = read_source(file)
    exec_program = _compiled(program, passes)
    executor = GraphExecutor(None if algebra is None else SemiringBackend.of(algebra), checking=True)
    run = executor.eval_exec_ir if route == "segmented" else executor.eval_unsegmented
    given = [] if inputs is None else load_npz(inputs, "in", exec_program.input_types)
    arguments = len(program.input_slots) - len(bound)
    if inputs is None and arguments:
        raise UsageError(detail=f"{file} has {arguments} inputs: exec needs --inputs NPZ")
    if names_files:  # an executable under test says the typed error of the program instead
        fitting(exec_program, file, inputs or "", given, arguments, bound)
    save_or_print(run(exec_program, [*given, *bound]), out)


def _compiled(program: Program, passes: str | None) -> Program:
    """Passes run on graph programs by default; an exec program is taken as it is unless passes are asked for."""
    if program.kind == "exec":
        return program if passes is None else _after(program, parse_passes(passes, DEFAULT_PIPELINE))
    return compile_std_to_exec(program, parse_passes(passes or "all", DEFAULT_PIPELINE))


def _after(program: Program, passes: tuple[str, ...]) -> Program:
    results = run_passes(program, passes)
    return results[-1].program if results else program


@click.command()
@click.argument("file")
@click.option("--format", "form", default="text", metavar="text|bytecode|portable[=VERSION]")
@click.option("--phase1-only", is_flag=True, help="Only the engine's present subset; refuse the rest as it does.")
@click.option("--sizes", metavar="NAME=SIZE,...", help="Sizes of the symbolic extents, such as n=10,m=3.")
def emit(file: str, form: str, phase1_only: bool, sizes: str | None) -> None:
    """Print FILE as StableHLO."""
    program, bound = read_graph(file)
    text = lower_loaded(Loaded(at_sizes(program, sizes, file), bound), phase1_only=phase1_only)
    content = text if form == "text" else serialize(text, form)
    if isinstance(content, bytes) and sys.stdout.isatty():
        raise UsageError(detail=f"--format {form}: bytes are not for a terminal; redirect them to a file")
    click.echo(content, nl=False)


@click.command()
@click.argument("file")
@click.option("--after", metavar="PASS", help="Show the program after this pass, and what it changed, as a diff.")
@click.option("--segments", is_flag=True, help="Show the segments of the compiled program.")
@transform_option
def show(file: str, after: str | None, segments: bool, transform: str | None) -> None:
    """Print FILE in readable form, before or after the passes.

    Passes run in the order of the default pipeline; one that is not in it runs behind it. Notes are comments: whatever is
    printed can be read again.
    """
    program = read_program(file)
    if transform is not None:
        program, bound = read_graph(file)
        program = transformed(program, transform, len(program.input_slots) - len(bound))
    if after is None and not segments:
        click.echo(print_program(program), nl=False)
        return
    names = DEFAULT_PIPELINE
    if after is not None:
        names = names[: names.index(after) + 1] if after in names else (*names, after)
    exec_program = program if program.kind == "exec" else to_exec(program)
    results = run_passes(exec_program, names)
    for name, result in zip(names, results, strict=True):
        for change in result.changes or ("nothing to do",):
            click.echo(f"// {name}: {change}")
    final = results[-1].program
    if after is not None:
        before = results[-2].program if len(results) > 1 else exec_program
        for line in _diff(before, final):
            click.echo(f"// {line}")
    click.echo(_with_segments(final) if segments else print_program(final), nl=False)


def _diff(before: Program, after: Program) -> list[str]:
    """Removed and added lines with a line of context around them."""
    old, new = (print_program(program).splitlines() for program in (before, after))
    return [line for line in unified_diff(old, new, n=1, lineterm="") if not line.startswith(("---", "+++"))]


def _with_segments(program: Program) -> str:
    """The program's text, each segment's instructions under a line that names it."""
    head, *lines = print_program(program).splitlines()
    drawn = [head]
    for number, segment in enumerate(segment_exec_program(program)):
        ops = ", ".join(program.instructions[i].op.name for i in segment.instructions)
        slots = f"({_slots(segment.inputs)}) -> ({_slots(segment.outputs)})"
        drawn.append(f"  // segment {number}: {segment.kind}: {ops} {slots}")
        drawn += [lines[i] for i in segment.instructions]
    return "\n".join([*drawn, *lines[len(program.instructions) :]]) + "\n"


def _slots(slots: tuple[int, ...]) -> str:
    return ", ".join(f"%{s}" for s in slots)


@click.command()
@click.option("--probe", is_flag=True, help="Load each plugin in a worker process and ask it for its facts.")
@json_option
def plugins(probe: bool, as_json: bool) -> int:
    """List the PJRT plugins found: in packages, in the folder of plugins, and by TENFERRO_PJRT_[GPU_]PLUGIN."""
    rows = []
    for ref in discover():
        row: dict[str, object] = {
            "name": ref.name, "path": ref.path, "source": ref.source, "platform": ref.platform or "?",
        }  # fmt: skip
        rows.append(row | _probed(ref) if probe else row)
    if as_json:
        print_json(rows)
        return 0
    if not rows:
        click.echo("no PJRT plugin found: pip install xla-cpu-pjrt, or set TENFERRO_PJRT_PLUGIN to a plugin's path")
        return 0
    print_table(("name", "platform", "from", "path"), [
        [str(row[k]) for k in ("name", "platform", "source", "path")] for row in rows
    ])  # fmt: skip
    for row in rows:
        if probe:
            click.echo()
            say(f"{row['name']}: {'works' if row['works'] else row['reason']}")
            facts = row["facts"]
            for key, value in facts.items() if isinstance(facts, dict) else ():
                say(f"  {key}: {value}")
    return 0


def _probed(ref: PluginRef) -> dict[str, object]:
    """Whether a plugin loads and makes a client, and what it says of itself."""
    facts = {"plugin": ref.source, "file": ref.path}
    try:
        facts["sha256"] = ref.sha256()
        with Worker(ref.name, WorkerSpec(ref)) as worker:
            facts |= worker.facts
    except TenferroError as error:
        return {"works": False, "reason": str(error), "facts": facts}
    return {"works": True, "reason": "", "facts": facts}
