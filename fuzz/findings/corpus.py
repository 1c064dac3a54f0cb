"""The regression corpus: small cases that once disagreed, each with the verdict that every executor must reach.

A case is one TOML file: what it is about, the program in its text form, the inputs as hexadecimal bytes, and under
`[expected]` a verdict by executor name. What third-party builds get wrong stays in with the verdict "mismatch", so that
a build in which it is fixed is noticed.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oracle.case import Case
from oracle.verdict import Verdict
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError
from tenferro_ref.files import read_text
from tenferro_ref.program import parse, print_program

_KEYS = {"about": str, "program": str, "inputs": list, "expected": dict}


@dataclass(frozen=True, eq=False)
class Entry:
    """One case of the corpus.

    Attributes
    ----------
    expected
        Verdict by executor name, as `oracle.peers.Pool.make` knows it.
    """

    name: str
    about: str
    case: Case
    expected: dict[str, Verdict]


def load(path: Path) -> Entry:
    """Read one case.

    Raises
    ------
    FormatError
        Unreadable, not TOML, a missing or unknown key, an unknown verdict, inputs that are no arrays.
    """
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise FormatError(where=str(path), detail=f"not TOML: {error}") from None
    if content.keys() != _KEYS.keys():
        odd = ", ".join(sorted(content.keys() ^ _KEYS.keys()))
        raise FormatError(where=str(path), detail=f"missing or unknown keys: {odd}")
    for key, kind in _KEYS.items():
        if not isinstance(content[key], kind):
            raise FormatError(where=f"{path}: {key}", detail=f"must be a {kind.__name__}")
    known = {verdict.value: verdict for verdict in Verdict}
    unknown = [f"{name} = {v!r}" for name, v in content["expected"].items() if v not in known]
    if unknown:
        raise FormatError(where=f"{path}: expected", detail=f"unknown verdicts: {', '.join(unknown)}")
    inputs = [_array(f"{path}: inputs[{i}]", given) for i, given in enumerate(content["inputs"])]
    program = parse(content["program"])
    if program.kind != "graph":
        raise FormatError(where=f"{path}: program", detail="must be a graph program")
    return Entry(
        path.stem,
        content["about"],
        Case.of(program, inputs),
        {name: known[v] for name, v in content["expected"].items()},
    )


def _array(where: str, given: Any) -> np.ndarray[Any, Any]:
    try:
        dtype, shape = DType[given["dtype"]], tuple(given["shape"])
        return np.frombuffer(bytes.fromhex(given["data"]), dtype.numpy).reshape(shape, order="F")
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(where=where, detail=f"needs dtype, shape and data in hexadecimal: {error}") from None


def text(entry: Entry) -> str:
    """The file of a case."""
    program = print_program(entry.case.program)
    program = _quoted(program) if "'''" in program else f"'''\n{program}'''"
    lines = [f"about = {_quoted(entry.about)}", f"program = {program}", "inputs = ["]
    for array in entry.case.inputs:
        data = array.tobytes("F").hex()
        lines.append(f'    {{ dtype = "{DType.of(array).name}", shape = {list(array.shape)}, data = "{data}" }},')
    lines += ["]", "", "[expected]"]
    lines += [f'{_quoted(name)} = "{verdict.value}"' for name, verdict in entry.expected.items()]
    return "\n".join(lines) + "\n"


def _quoted(words: str) -> str:
    """A basic string of TOML, which is one of JSON but for a character that TOML wants escaped."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")


__all__ = ["Entry", "load", "text"]
