"""Bundles: a finding as a folder that stands alone, the check that it does, and the question whether it still fails.

`program.txt`, `program.json`, `module.mlir`, `inputs.npz`, `observed.npz` (none inside if the executor gave nothing),
`enclosure.npz` (`lo0`, `hi0`, `nan0`, `pos_zero0`, `neg_zero0`, ...), `environment.json`, `reproduce.py`, `README.md`, and
`upstream.py` where JAX alone can show it.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from fuzz.findings.alike import value_class
from fuzz.findings.environments import ROOT, FreshEnvironments
from fuzz.findings.explain import explained
from fuzz.records import Finding, encode, from_json
from oracle.case import Case, Refusal
from oracle.derivation import derivation_of
from oracle.enclosure import MODELS, Enclosure, enclose
from oracle.enclosure.files import save_enclosures
from oracle.given_case import given_case
from oracle.judge import Reference, judge_result
from oracle.peers import Execution, Executor, NativeExecutor, Peer, PjrtExecutor, Pool, attempt
from oracle.unmade import unread
from oracle.verdict import Answer, Build, first_bad
from tenferro_ref import children
from tenferro_ref.errors import FormatError, TenferroError
from tenferro_ref.escape import code, code_block, line, markdown
from tenferro_ref.files import read_bytes, read_text, write_atomically
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.program import GraphProgram, dumps, loads
from tenferro_ref.tensor import Array, load_npz, same_bits, save_npz, type_of

#: Version 1 knows no `Facts.builds`, version 2 no `Facts.refusal`; until version 3 `reproduce.py` had the data in it; version 4 knows
#: no `Facts.given` and no derivatives, and its script ended with status 1 where it could not run; until version 5 `inputs.npz` had
#: the arrays that a given module brings along, too. All are still read; no script of an earlier version is run.
VERSION = 6
_READABLE = (1, 2, 3, 4, 5, VERSION)
#: The first version whose `inputs.npz` has the arguments of a given module alone.
_ARGUMENTS_ALONE = 6
#: The script of every bundle.
SCRIPT = Path(__file__).with_name("reproduce.py").read_bytes()
#: The script for maintainers of a compiler, which needs JAX alone; in bundles that it can show (`_upstream`).
UPSTREAM = Path(__file__).with_name("upstream.py").read_bytes()
#: A script that takes longer than this hangs.
_SECONDS = 600.0
#: Characters of why a bundle does not show its finding.
_REASON = 200


@dataclass(frozen=True, slots=True)
class Facts:
    """`environment.json`: what was seen, by which executor, where.

    Attributes
    ----------
    executor
        A name that is understood on any machine.
    facts
        What the executor says of itself.
    requirements
        What a fresh environment needs, as for pip.
    builds
        As in `Finding`.
    refusal
        The error that the program must raise, if it is invalid.
    given
        `module.mlir` is what was handed in, and what executors of StableHLO are given; else it is written from the program.
    transforms
        Those by which the program was derived from that of `primal.json`; empty if it was not.
    """

    tenferro_bundle: int
    signature: str
    verdict: str
    value_class: str
    reason: str
    attribution: str
    executor: str
    model: str
    facts: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    requirements: tuple[str, ...]
    builds: tuple[Build, ...] = ()
    refusal: Refusal | None = None
    given: bool = False
    transforms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """What became of a bundle.

    Attributes
    ----------
    outcome
        "still fails", "fails differently" or "gone".
    same_bits
        Whether the executor gave the recorded values again; None if one of the two has none.
    """

    outcome: str
    answer: Answer
    same_bits: bool | None


def write_bundle(
    folder: Path, finding: Finding, executor: Executor, case: Case, environment: Sequence[tuple[str, str]]
) -> None:
    """Write a finding as a folder.

    Raises
    ------
    OutputError
        Something cannot be written.
    """
    observed = attempt(executor, case)
    outputs = observed.outputs if isinstance(observed, Execution) else ()
    if not finding.explanation.why:  # of a version that did not explain
        finding = explained(finding, executor, case)
    facts = Facts(
        VERSION, finding.signature, finding.verdict, finding.value_class, finding.reason, finding.attribution,
        executor.portable_name, executor.model, executor.info().facts, tuple(environment),
        _requirements(executor, case), finding.builds, case.refusal, case.source is not None,
        case.derivation.transforms if case.derivation else (),
    )  # fmt: skip
    if case.derivation is not None:
        write_atomically(folder / "primal.json", dumps(case.derivation.primal))
    write_atomically(folder / "program.txt", finding.program_text)
    write_atomically(folder / "program.json", finding.program_json)
    write_atomically(folder / "module.mlir", finding.stablehlo)
    save_npz(folder / "inputs.npz", {f"in{i}": a for i, a in enumerate(case.arguments)})
    save_npz(folder / "observed.npz", {f"out{i}": a for i, a in enumerate(outputs)})
    expected = _expected(case, executor.model)
    save_enclosures(folder / "enclosure.npz", expected)
    write_atomically(folder / "environment.json", json.dumps(encode(facts), indent=1, allow_nan=False))
    write_atomically(folder / "reproduce.py", SCRIPT)
    upstream = _upstream(finding, executor, case, expected)
    if upstream:
        write_atomically(folder / "upstream.py", UPSTREAM)
    # last: a folder with a README is complete
    write_atomically(folder / "README.md", "\n".join(_readme(finding, facts, upstream)) + "\n")


def _requirements(executor: Executor, case: Case) -> tuple[str, ...]:
    """What a fresh environment needs, as for pip: a module that was handed in is read by what jaxlib brings along."""
    reader = [] if case.source is None else [f"jaxlib=={metadata.version('jaxlib')}"]
    return tuple(dict.fromkeys([*executor.requirements(), *reader]))


def _upstream(finding: Finding, executor: Executor, case: Case, expected: Sequence[Enclosure]) -> str:
    """The command by which JAX alone shows the disagreement, "" if it cannot: only a module with enclosures, or a crash."""
    runs_module = isinstance(executor, PjrtExecutor) or (executor.peer.kind == "jax" and case.source is not None)
    shows = finding.verdict == "crash" or (finding.verdict == "mismatch" and expected)
    if not (runs_module and shows) or finding.stablehlo.startswith("//"):
        return ""
    words = [f"--option {name}={value}" for name, value in getattr(executor, "options", {}).items()]
    if isinstance(executor, PjrtExecutor):
        words.insert(0, f"--plugin {shlex.quote(Path(executor.plugin.path).name)}")
    return " ".join(["python upstream.py", *words])


def read_bundle(folder: Path) -> tuple[Facts, Case]:
    """The facts and the case of a bundle.

    Raises
    ------
    FormatError
        Something is missing, or is not what a bundle of this version has.
    TenferroError
        A module that was handed in is not read any more.
    """
    path = folder / "environment.json"
    facts = from_json(Facts, read_text(path), str(path))
    if facts.tenferro_bundle not in _READABLE:
        raise FormatError(where=str(path), detail=f"a bundle of version {facts.tenferro_bundle}; this reads {VERSION}")
    program = loads(read_text(folder / "program.json"), str(folder / "program.json"), infer=facts.refusal is None)
    graph = program.to_graph()
    if facts.given:
        return facts, _given(folder, graph, alone=facts.tenferro_bundle >= _ARGUMENTS_ALONE)
    inputs = load_npz(folder / "inputs.npz", "in", graph.input_types)
    _check_fit(graph, inputs, folder, "program.json")
    derivation = None
    if facts.transforms:
        primal = folder / "primal.json"
        derivation = derivation_of(read_text(primal), facts.transforms, str(primal))
    return facts, Case.of(graph, inputs, facts.refusal, derivation=derivation)


def _given(folder: Path, recorded: GraphProgram, *, alone: bool) -> Case:
    """The case of a module that was handed in. It is read anew: a reader that was mended makes another program of it.

    Parameters
    ----------
    recorded
        What the module was read as.
    alone
        Whether `inputs.npz` has the module's arguments alone, or all inputs of `recorded`.
    """
    path = folder / "module.mlir"
    with Reader() as reader:
        source = reader.source(read_text(path), str(path))
        types = source.arguments if alone else recorded.input_types
        inputs = load_npz(folder / "inputs.npz", "in", types)
        arguments = inputs if alone else inputs[: len(source.arguments)]
        case = unread(source, arguments)
        _check_fit(case.program, arguments, folder, path.name)
        # what could not be read is judged by whether it can be read now
        return given_case(source, arguments, reader) if recorded.output_types else case


def _check_fit(program: GraphProgram, inputs: Sequence[Array], folder: Path, name: str) -> None:
    try:
        program.check_inputs([type_of(a) for a in inputs])
    except TenferroError as error:
        raise FormatError(where=str(folder / "inputs.npz"), detail=f"does not fit {name}: {error}") from None


def replay(folder: Path, pool: Pool, executor: str = "") -> Replay:
    """Run a bundle's program again, on the executor that it was found on or on another one.

    Raises
    ------
    CommandRefused
        The bundle names a command or a library that the pool does not allow it.
    """
    facts, case = read_bundle(folder)
    target = pool.make(executor) if executor else executor_of(folder, facts, pool)
    target.open()
    result = attempt(target, case)
    answer = judge_result(target, Reference(case, NativeExecutor()), result)
    sound = case.refusal is None  # an invalid program has no types
    recorded = load_npz(folder / "observed.npz", "out", case.program.output_types if sound else None)
    same = None
    if recorded and isinstance(result, Execution):
        same = len(recorded) == len(result.outputs) and all(map(same_bits, recorded, result.outputs))
    if not answer.verdict.is_disagreement:
        return Replay("gone", answer, same)
    words = answer.comparison.value_class, facts.value_class
    alike = answer.verdict.value == facts.verdict and value_class(words[0]) == value_class(words[1])
    return Replay("still fails" if alike else "fails differently", answer, same)


def executor_of(folder: Path, facts: Facts, pool: Pool) -> Executor:
    """The executor that a bundle names; errors as `Pool.recorded`."""
    return pool.recorded(facts.executor, str(folder / "environment.json"))


def confirm(folder: Path, environments: FreshEnvironments | None = None, *, allowed: Collection[str] = ()) -> str:
    """Why what the bundle's script does, done in another folder by a clean interpreter, does not show the finding; "" if it does.

    No file of the bundle is run: the script must be the one that all bundles have.

    Parameters
    ----------
    environments
        Whose interpreters have nothing but what the bundle asks for; by default this process's own.
    allowed
        As in `Pool`: what the bundle may name.

    Raises
    ------
    FormatError
        The script is another one, or the bundle asks for what is no package that an executor needs.
    CommandRefused
        It names a command or a library.
    MissingDependency
        Such an environment cannot be made: no network, or a package that is not to be had.
    """
    facts, _ = read_bundle(folder)
    if facts.tenferro_bundle == VERSION and read_bytes(folder / "reproduce.py") != SCRIPT:
        raise FormatError(where=str(folder / "reproduce.py"), detail="not the script of a bundle; it is not run")
    Pool(allowed=allowed).permit(facts.executor, str(folder / "environment.json"))
    if environments is None:
        python, variables = sys.executable, children.environment(python=False, PYTHONPATH=str(ROOT))
    else:
        python, variables = environments.python(facts.executor, facts.requirements), children.environment(python=False)
    command = [python, "-P", "-m", "tenferro_ref", "fuzz", "replay", str(folder.resolve()), "--json"]
    command += ["--allow-commands"] if Peer.parse(facts.executor).code else []
    with tempfile.TemporaryDirectory() as elsewhere:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", env=variables, cwd=elsewhere,
                timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no answer within {_SECONDS:g} s"
    shown = done.returncode == 1 and f'"verdict": {json.dumps(facts.verdict)}' in done.stdout
    return "" if shown else _instead(done)


def _instead(done: subprocess.CompletedProcess[str]) -> str:
    """What a replay came to, in a line."""
    try:
        row = json.loads(done.stdout)
        words = f"{row['outcome']}: {row['verdict']} {row['reason']}"
    except (ValueError, KeyError, TypeError):
        words = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return words.strip()[:_REASON]


def _expected(case: Case, model: str) -> list[Enclosure]:
    """Of every output; none where an op has no rule, or an error is due."""
    if case.refusal is not None:
        return []
    try:
        return enclose(case.program, case.inputs, MODELS[model], arguments=len(case.arguments))
    except TenferroError:
        return []


# --- the README -------------------------------------------------------------------------------------------------------


def _readme(finding: Finding, facts: Facts, upstream: str) -> Iterator[str]:
    yield f"# {markdown(finding.title)}"
    yield ""
    yield f"{code(facts.executor)} ends this program with **{markdown(finding.verdict)}**: {markdown(finding.reason)}"
    yield ""
    yield f"* signature: {code(finding.signature)}"
    yield f"* attribution: {markdown(finding.attribution) or 'nothing was learned'}"
    if finding.builds:
        others = markdown(", ".join(map(str, finding.builds)))
        none = "none" if any(build.verdict for build in finding.builds) else "not determined"
        yield f"* first bad build: {markdown(first_bad(finding.builds)) or none}; {others}"
    generated = f"; {finding.programs} generated programs" if finding.programs else ""
    yield f"* seen on: {markdown(', '.join((finding.executor, *finding.also)))}{generated}"
    yield f"* reduced from {finding.original_instructions} to {finding.instructions} instructions"
    yield ""
    yield from (code_block(finding.program_text), "")
    if finding.derivation:
        yield f"Found as {markdown(finding.derivation)} of a generated program."
        yield ""
    if finding.primal_text:
        yield from ("That program, reduced:", "", code_block(finding.primal_text), "")
    for name, value in finding.inputs:
        yield f"    {line(name)} = {' '.join(line(value).split())}"
    yield ""
    yield "## Why the expected value is right"
    yield ""
    yield markdown(finding.explanation.why)
    if finding.explanation.steps:
        yield ""
        yield from ("| value | type | element | may be | reference |", "|---|---|---|---|---|")
        for step in finding.explanation.steps:
            yield f"| {' | '.join(map(markdown, (step.value, step.type, step.index, step.enclosure, step.reference)))} |"
    if finding.values:
        yield ""
        yield "## Expected and observed"
        yield ""
        yield from ("| output | element | expected | observed | |", "|---|---|---|---|---|")
        for row in finding.values:
            wrong = "**outside**" if row.outside else ""
            cells = map(markdown, (row.name, row.index, row.expected, row.observed))
            yield f"| {' | '.join(cells)} | {wrong} |"
    yield ""
    yield "## Reproduce"
    yield ""
    yield "    python reproduce.py          # exit status 1 while the disagreement is there, 0 when it is gone, 2 or 3: cannot be asked"
    yield "    tenferro-ref fuzz replay .   # the same, and whether the values are those of observed.npz"
    if upstream:
        yield ""
        yield f"With JAX alone, on the path of the plugin's library: {code(upstream)} (without `--plugin`: XLA as jaxlib has it); the same exit statuses."
    if wants := Peer.parse(facts.executor).code:
        yield ""
        yield f"The first two {markdown(wants)}, and so need `--allow-commands`: look at it first."
    packages = " ".join((".", *map(shlex.quote, facts.requirements)))
    yield ""
    yield f"Needs tenferro-ref, from a clone of it: {code(f'python -m pip install {packages}')}. Versions and the machine on which it was found are in `environment.json`."
