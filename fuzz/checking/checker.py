"""What `tenferro_ref.check` runs: programs and JAX functions checked from Python, with a result to print."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from fuzz.checking.judged import check
from fuzz.checking.rows import Row, missing_row, notes, row, table
from fuzz.checking.subject import Subject, function_subject
from oracle.case import Case
from oracle.enclosure import MODELS
from oracle.peers import OTHERS, Pool
from tenferro_ref.console import plain_table, split
from tenferro_ref.errors import UsageError
from tenferro_ref.escape import line, visible
from tenferro_ref.program import Program
from tenferro_ref.suggest import did_you_mean
from tenferro_ref.tensor import Tensor

_HTML = """\
<table class="tenferro-check"><thead><tr>{% for h in headers %}<th>{{ h }}</th>{% endfor %}</tr></thead>
<tbody>{% for cells in rows %}<tr>{% for cell in cells %}
<td style="text-align:left{% if cell in bad %};color:#b00020;font-weight:bold{% endif %}">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
{% for words in notes %}<p>{{ words }}</p>{% endfor %}"""
_BAD = ("mismatch", "crash", "timeout", "error")


@dataclass(frozen=True)
class Result:
    """The verdict of every executor on one program or function.

    Attributes
    ----------
    ok
        Whether no executor is wrong.
    rows
        One an executor, with the keys of `check --json` (FORMATS 4).
    compared
        Names of the executors, `native` aside, whose results were compared with something.
    """

    ok: bool
    rows: tuple[Row, ...]

    @property
    def compared(self) -> tuple[str, ...]:
        return tuple(r["executor"] for r in self.rows if r["evidence"] != "none" and r["executor"] != "native")

    def __str__(self) -> str:
        out = io.StringIO()
        Console(file=out, width=10_000).print(plain_table(*table(self.rows)))
        lines = [text.rstrip() for text in out.getvalue().splitlines()]
        return "\n".join([*lines, *map(line, notes(self.rows))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from jinja2 import Environment

        escaping = Environment(autoescape=True, finalize=lambda v: visible(v) if isinstance(v, str) else v)
        headers, cells = table(self.rows)
        rows = [[str(cell) for cell in one] for one in cells]
        return escaping.from_string(_HTML).render(headers=headers, rows=rows, notes=notes(self.rows), bad=_BAD)


def _names(executors: Sequence[str]) -> tuple[str, ...]:
    if isinstance(executors, Sequence) and executors and all(isinstance(name, str) for name in executors):
        return tuple(executors)
    raise UsageError(detail=f"{executors!r} where names of executors are needed")


class Checker:
    """Checks one thing after the other; executors of one plugin share a worker process until `close`."""

    def __init__(self) -> None:
        self._pool = Pool()

    def close(self) -> None:
        """End all worker processes."""
        self._pool.close()

    def check(
        self,
        what: Program | Callable[..., Any],
        inputs: Sequence[Any],
        *,
        executors: str | Sequence[str] = "all",
        model: str | None = None,
    ) -> Result:
        """As `tenferro_ref.check`, which see."""
        if isinstance(inputs, str) or not isinstance(inputs, Sequence):
            raise UsageError(detail=f"{type(inputs).__name__} where a list of inputs is needed")
        if model not in (None, *MODELS):
            hint = did_you_mean(str(model), MODELS)
            raise UsageError(detail=f"unknown model {model!r}; known: {', '.join(sorted(MODELS))}{hint}")
        names = split(executors) if isinstance(executors, str) else _names(executors)
        selection = self._pool.select(names, others=OTHERS)
        if isinstance(what, Program):
            graph = what.to_graph()
            tensors = [Tensor.of(x) for x in inputs]
            graph.check_inputs([t.type for t in tensors])
            subject = Subject(graph.name or "program", Case.of(graph, [t.data for t in tensors]))
        elif callable(what):
            subject = function_subject(what, inputs, self._pool.reader)
        else:
            raise UsageError(detail=f"neither a program nor a function: {type(what).__name__}")
        checked = check(subject, selection.executors, self._pool, model)
        rows = [row(subject.name, judged) for judged in checked.answers]
        rows += [missing_row(subject.name, info.name, info.reason) for info in selection.missing]
        return Result(not checked.disagrees, tuple(rows))
