"""Our transcription of the C ABI against the header that a plugin package ships, as the C compiler lays it out."""

from __future__ import annotations

import ctypes
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from tenferro_ref.pjrt import abi
from tests.fake_plugin.build import c_compiler
from tests.plugins import plugin_or_skip

STRUCTS = {f"PJRT_{name}": kind for name, kind in abi.STRUCTS.items() if name != "Value"}
STRUCTS |= {f"PJRT_{name}_Args": kind for name, kind in abi.ARGS.items()}
# in the header these two are anonymous; their members are found through the struct around them
ANONYMOUS = {("PJRT_NamedValue", "value"): "int64_value"}


def facts_of_python() -> set[str]:
    facts = set()
    for name, kind in STRUCTS.items():
        facts.add(f"{name} sizeof {ctypes.sizeof(kind)}")
        facts.add(f"{name} STRUCT_SIZE {kind.STRUCT_SIZE}")
        for field, *_ in (*abi.Sized._fields_, *kind._fields_):
            facts.add(f"{name}.{c_member(name, field)} {getattr(kind, field).offset} {getattr(kind, field).size}")
    for field, *_ in abi.ExtensionBase._fields_:
        facts.add(f"PJRT_Extension_Base.{field} {getattr(abi.ExtensionBase, field).offset} 8")
    for prefix, names in ENUMS.items():
        facts |= {f"{prefix}{name} {number}" for number, name in enumerate(names)}
    facts.add(f"version {abi.API_MAJOR}.{abi.API_MINOR}")
    return facts


ENUMS = {
    "PJRT_Error_Code_": abi.ERROR_CODES,
    "PJRT_Buffer_Type_": abi.BUFFER_TYPES,
    "PJRT_NamedValue_": abi.NAMED_VALUE_TYPES,
    "PJRT_Extension_Type_": abi.EXTENSION_TYPES,
}


def c_member(struct: str, field: str) -> str:
    if struct == "PJRT_Api" and field in abi.FUNCTIONS:
        return f"PJRT_{field}"
    return ANONYMOUS.get((struct, field), field)


def c_program() -> str:
    lines = ['#include "pjrt_c_api.h"', "#include <stdio.h>", "#define P(...) printf(__VA_ARGS__)", "int main(void) {"]
    for name, kind in STRUCTS.items():
        lines.append(f'P("{name} sizeof %zu\\n", sizeof({name}));')
        lines.append(f'P("{name} STRUCT_SIZE %zu\\n", (size_t){name}_STRUCT_SIZE);')
        for field, *_ in (*abi.Sized._fields_, *kind._fields_):
            member = c_member(name, field)
            where = f"offsetof({name}, {member}), sizeof((({name}*)0)->{member})"
            lines.append(f'P("{name}.{member} %zu %zu\\n", {where});')
    for field, *_ in abi.ExtensionBase._fields_:
        lines.append(f'P("PJRT_Extension_Base.{field} %zu 8\\n", offsetof(PJRT_Extension_Base, {field}));')
    for prefix, names in ENUMS.items():
        lines += [f'P("{prefix}{name} %d\\n", {prefix}{name});' for name in names]
    return "\n".join([*lines, 'P("version %d.%d\\n", PJRT_API_MAJOR, PJRT_API_MINOR); return 0; }', ""])


def test_layout_is_that_of_the_header(tmp_path: Path) -> None:
    compiler = c_compiler()
    if compiler is None:
        pytest.skip("no C compiler to lay out the header with")
    package = plugin_or_skip("xla081").package
    header = Path(str(metadata.distribution(package).locate_file("xla_plugins/xla_cpu_pjrt/include/pjrt_c_api.h")))
    (tmp_path / "layout.c").write_text(c_program())
    program = tmp_path / "layout"
    subprocess.run([compiler, "-I", header.parent, "-o", program, tmp_path / "layout.c"], check=True)
    facts_of_c = set(subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines())
    ours = facts_of_python()
    assert ours - facts_of_c == facts_of_c - ours == set()
    assert len(ours) > 400


def test_the_table_has_every_function_once() -> None:
    assert len(abi.FUNCTIONS) == len(set(abi.FUNCTIONS)) == 118
    assert abi.STRUCTS["Api"].STRUCT_SIZE == 984
    assert set(abi.ARGS) <= set(abi.FUNCTIONS)
