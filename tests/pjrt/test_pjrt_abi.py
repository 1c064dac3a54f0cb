"""Our transcription of the C ABI against the oldest and the newest supported headers: every struct, function and enumerator."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tenferro_ref.pjrt import abi, ffi_abi, native
from tests.fake_plugin.build import c_compiler
from tests.plugins import plugin_or_skip
from tools.pjrt_layout import ENUMS, STRUCTS

PJRT = {name: kind for name, kind in STRUCTS.items() if name not in ffi_abi.STRUCTS}
XLA_FFI = {name: kind for name, kind in ffi_abi.STRUCTS.items() if name.startswith("XLA")}
#: What the header of 0.81 has not yet: functions at the end of the table, enumerators at the end of their lists.
FUNCTIONS_OF_081, ENUMERATORS_OF_081 = 118, {"PJRT_Buffer_Type_": 30, "PJRT_Extension_Type_": 16}
#: In the headers these are anonymous: the member through which C finds them, and the name in the record of the newest.
ANONYMOUS = {
    "PJRT_NamedValue.value": ("int64_value", "_anon5"),
    "PJRT_Buffer_MemoryLayout.tiled": ("tiled", "_anon2"),
}


def members(name: str, kind: Any) -> list[str]:
    """Names of a struct's members as the class has them."""
    own = [field for field, *_ in kind._fields_]
    return [field for field, *_ in abi.Sized._fields_] + own if issubclass(kind, abi.Sized) else own


def facts(structs: dict[str, Any], anonymous: int) -> dict[str, str]:
    """Offset and size of each member, by the header's name for it."""
    found = {}
    for name, kind in structs.items():
        for field in members(name, kind):
            ours = f"{name}.{field}"
            theirs = ANONYMOUS[ours][anonymous] if ours in ANONYMOUS else field
            theirs = f"PJRT_{field}" if name == "PJRT_Api" and field in abi.FUNCTIONS else theirs
            place = getattr(kind, field)
            found[f"{name}.{theirs}"] = f"{place.offset} {place.size}"
    return found


def compiled(header: Path, structs: dict[str, Any], enumerators: Iterable[str], folder: Path) -> dict[str, str]:
    """What the C compiler says of them."""
    compiler = c_compiler()
    if compiler is None:
        pytest.skip("no C compiler to lay out the header with")
    lines = [
        f'#include "{header.name}"',
        "#include <stdio.h>",
        "#define P(...) printf(__VA_ARGS__)",
        "int main(void) {",
    ]
    for place in facts(structs, 0):
        name, _, member = place.partition(".")
        where = f"offsetof({name}, {member}), sizeof((({name}*)0)->{member})"
        lines.append(f'P("{place} %zu %zu\\n", {where});')
    lines += [f'P("{name} %d\\n", {name});' for name in enumerators]
    (folder / "layout.c").write_text("\n".join([*lines, "return 0; }", ""]))
    program = folder / "layout"
    subprocess.run([compiler, "-I", header.parent, "-o", program, folder / "layout.c"], check=True)
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(line.split(" ", 1) for line in output.splitlines())


def recorded() -> dict[str, str]:
    text = Path(__file__).with_name("layout_0_114.txt").read_text("ascii")
    return dict(line.split(" ", 1) for line in text.splitlines())


def enumerators(limits: dict[str, int]) -> dict[str, str]:
    return {
        f"{prefix}{name}": str(number)
        for prefix, names in ENUMS.items()
        for number, name in names.items()
        if number < limits.get(prefix, len(names) + 100)
    }


def test_the_oldest_supported_header(tmp_path: Path) -> None:
    package = plugin_or_skip("xla081").package
    header = Path(str(metadata.distribution(package).locate_file("xla_plugins/xla_cpu_pjrt/include/pjrt_c_api.h")))
    newer = abi.FUNCTIONS[FUNCTIONS_OF_081:]
    structs = {name: kind for name, kind in PJRT.items() if not name.endswith(tuple(f"PJRT_{f}_Args" for f in newer))}
    table = abi._sized("PJRT_Api", "pjrt_api_version:Api_Version " + " ".join(abi.FUNCTIONS[:FUNCTIONS_OF_081]))
    structs["PJRT_Api"] = table
    named = {name: number for name, number in enumerators(ENUMERATORS_OF_081).items() if name.startswith("PJRT")}
    ours = facts(structs, 0) | named
    assert compiled(header, structs, named, tmp_path) == ours
    assert len(ours) > 400
    assert table.STRUCT_SIZE == 984


def test_the_newest_supported_header() -> None:
    theirs = recorded()
    ours = facts(STRUCTS, 1) | enumerators({})
    assert {name: theirs.get(name) for name in ours} == ours
    assert theirs["version"] == f"{abi.API_MAJOR}.{abi.API_MINOR}"
    # ours may end earlier, which plugins take for an older caller, never later
    for name, kind in PJRT.items():
        assert int(theirs[f"{name}.STRUCT_SIZE"]) >= kind.STRUCT_SIZE, name
    # neither may the header have a function or an enumerator that we have not
    assert {name for name in theirs if name.startswith("PJRT_Api.PJRT_")} == {
        f"PJRT_Api.PJRT_{f}" for f in abi.FUNCTIONS
    }
    counts = {prefix: sum(name.startswith(prefix) and "." not in name for name in theirs) for prefix in ENUMS}
    assert counts == {prefix: len(names) for prefix, names in ENUMS.items()}


def test_the_header_of_the_foreign_function_interface(tmp_path: Path) -> None:
    spec = find_spec("jaxlib")
    if spec is None or spec.origin is None:
        pytest.skip("jaxlib, which ships the header, is not installed")
    header = Path(spec.origin).with_name("include") / "xla/ffi/api/c_api.h"
    named = {name: number for name, number in enumerators({}).items() if name.startswith("XLA")}
    assert compiled(header, XLA_FFI, named, tmp_path) == facts(XLA_FFI, 0) | named


def test_the_table_has_every_function_once() -> None:
    assert len(abi.FUNCTIONS) == len(set(abi.FUNCTIONS)) == 138
    assert abi.STRUCTS["Api"].STRUCT_SIZE == 1144
    assert set(abi.ARGS) <= set(abi.FUNCTIONS)


def test_functions_of_one_handle_take_nothing_else() -> None:
    """What `native` packs by hand is the struct that the header declares."""
    for name in [*native._DESTROY.values(), "Event_Await"]:
        kind = abi.ARGS[name]
        (field, *_), *others = kind._fields_
        assert (others, getattr(kind, field).offset, kind.STRUCT_SIZE) == ([], 16, native._ONE_HANDLE.size), name
