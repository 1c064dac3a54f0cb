"""StableHLO versions and custom calls: which forms of a program the plugin takes."""

from __future__ import annotations

from functools import partial

from fuzz.conform.probes.session import F32_4, SUM, Lacks, Session, X, Y, same_bits
from fuzz.conform.probes.table import probe
from tenferro_ref.errors import MissingDependency, UsageError
from tenferro_ref.stablehlo.serialized import serialize


def _form(form: str, s: Session) -> None:
    try:
        code = SUM.encode() if form == "text" else serialize(SUM, form)
    except (MissingDependency, UsageError) as error:
        raise Lacks(str(error)) from None
    with s.client.compile(code, parameters=[F32_4, F32_4]) as executable:
        same_bits(executable.run([X, Y])[0], X + Y, "x + y")


for _name in ("text", "bytecode"):
    probe("versions", f"StableHLO as {_name}")(partial(_form, _name))


@probe("versions", "a portable artifact of the least version that the plugin names")
def _(s: Session) -> None:
    _form(f"portable={_version(s, 'stablehlo_minimum_version')}", s)


@probe("versions", "a portable artifact of the current version that the plugin names")
def _(s: Session) -> None:
    _form(f"portable={_version(s, 'stablehlo_current_version')}", s)


def _version(s: Session, name: str) -> str:
    value = s.plugin.attributes.get(name)
    if not isinstance(value, tuple):
        raise Lacks(f"the plugin names no {name}")
    return ".".join(map(str, value))


@probe("custom calls", "the FFI extension, by which handlers are registered")
def _(s: Session) -> None:
    if "FFI" not in s.plugin.extensions:
        raise Lacks("the plugin's chain of extensions has no FFI")


@probe("custom calls", "the program's own functions may be called")
def _(s: Session) -> None:
    text = (
        SUM.replace("  func.func @main", "  func.func @main", 1)
        .replace(
            "module @sum {",
            "module @sum {\n  func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            "    %0 = stablehlo.add %x, %x : tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }",
        )
        .replace(
            "%0 = stablehlo.add %arg0, %arg1",
            "%t = call @twice(%arg0) : (tensor<4xf32>) -> tensor<4xf32>\n    %0 = stablehlo.add %t, %arg1",
        )
    )
    with s.compile(text, F32_4, F32_4) as executable:
        same_bits(executable.run([X, Y])[0], X + X + Y, "x + x + y")
