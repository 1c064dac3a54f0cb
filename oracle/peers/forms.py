"""Forms of a program: what is run in place of a sound program, and gives the same bits."""

from __future__ import annotations

from collections.abc import Callable

from oracle.peers.front_end import as_values
from tenferro_ref.program import GraphProgram, dumps, loads, normal_form, parse, print_program

#: By the word that follows "as-" in the name of an executor; "" for the program as it is.
FORMS: dict[str, Callable[[GraphProgram], GraphProgram]] = {
    "": lambda program: program,
    "json": lambda program: loads(dumps(program)),
    "text": lambda program: parse(print_program(program)),
    "normal": normal_form,
    "values": as_values,
}
