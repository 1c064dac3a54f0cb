"""Show the disagreement of the bundle that this file lies in with JAX alone: for the maintainers of a compiler or plugin.

Run: python upstream.py [--plugin PLUGIN.so] [--option NAME=VALUE ...]   (README.md has the line for this bundle)

Compiles module.mlir, runs it on inputs.npz, and holds each output to enclosure.npz, the set of all results that a correct
implementation may have. Without --plugin it asks XLA as jaxlib has it. Needs `pip install jax`.
Exit status 1 while the disagreement is there (or the process dies), 0 when it is gone, 3 where it cannot be asked.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DISAGREES, CANNOT = 1, 3
#: What the process that runs the module ends with if it disagrees: Python ends with 1 after any error.
_INSIDE = 10
#: What JAX raises for a plugin, an option or a module that it does not take.
_REFUSALS = (OSError, RuntimeError, TypeError, ValueError)


def arguments() -> list[Any]:
    """`inputs.npz`, in which dtypes that NumPy lacks are bytes: `program.json` names them."""
    import ml_dtypes
    import numpy as np

    types = json.loads((HERE / "program.json").read_text())["inputs"]
    arrays = []
    with zipfile.ZipFile(HERE / "inputs.npz") as given:
        files = [given.read(f"in{number}.npy") for number in range(len(given.namelist()))]
    for number, file in enumerate(files):
        # NumPy does not read the dtype that it writes for F8E5M2; the first 128 bytes of a file are always header
        head = file[:128].replace(b"'descr': '<f1'", b"'descr': '|V1'", 1)
        array = np.array(np.lib.format.read_array(io.BytesIO(head + file[128:]), allow_pickle=False), order="C")
        if array.dtype.kind == "V":
            letter, bits, rest = re.fullmatch(r"(BF|[FIU])(\d+)(\w*)", types[number]["dtype"]).groups()  # type: ignore[union-attr]
            kind = {"BF": "bfloat", "F": "float", "I": "int", "U": "uint"}[letter]
            array = array.view(getattr(ml_dtypes, f"{kind}{bits}_{rest.lower()}" if rest else kind + bits))
        arrays.append(array)
    return arrays


def run(plugin: str, options: dict[str, Any]) -> list[Any]:
    """The outputs of the module."""
    import jax
    import numpy as np
    from jax._src import compiler, xla_bridge

    name = "cpu"
    if plugin:
        name = "under_test"
        xla_bridge.register_plugin(name, library_path=str(Path(plugin).resolve()))
    client = xla_bridge.get_backend(name)
    print(f"{client.platform}: {client.platform_version}", flush=True)
    device = client.devices()[0]
    inputs = [jax.device_put(array, device) for array in arguments()]
    settings = compiler.get_compile_options(1, 1, env_options_overrides=options)
    executable = client.compile_and_load((HERE / "module.mlir").read_bytes(), client.devices()[:1], settings)
    return [np.asarray(array) for array in executable.execute(inputs)]


def outside(observed: Any, allowed: Any, number: int) -> Any:
    """Which elements of an output are outside the set of permitted values."""
    import numpy as np

    wrong = np.zeros(observed.shape, bool)
    sides = (("", observed.real), ("imag_", observed.imag)) if np.iscomplexobj(observed) else (("", observed),)
    for side, x in sides:
        lo, hi, nan, positive, negative = (
            allowed[f"{side}{part}{number}"] for part in ("lo", "hi", "nan", "pos_zero", "neg_zero")
        )
        if x.dtype.kind in "biu" or x.dtype.name.startswith(("int", "uint")):
            wrong |= (x < lo) | (x > hi)
            continue
        x = x.astype(np.float64)
        signed = np.where(np.signbit(x), negative, positive)
        wrong |= ~np.where(np.isnan(x), nan, (lo <= x) & (x <= hi) & ((x != 0) | signed))
    return wrong


def ask(plugin: str, options: dict[str, Any]) -> int:
    """Run, compare and say what is outside; the exit status."""
    import numpy as np

    allowed = np.load(HERE / "enclosure.npz", allow_pickle=False)
    status = 0
    for number, observed in enumerate(run(plugin, options)):
        if f"lo{number}" not in allowed.files:
            continue
        wrong = outside(observed, allowed, number)
        print(f"output {number}: {int(wrong.sum())} of {wrong.size} elements are outside what is permitted")
        for index in map(tuple, np.argwhere(wrong)[:8].tolist()):
            sides = ("", "imag_") if np.iscomplexobj(observed) else ("",)
            limits = [[allowed[f"{side}{end}{number}"][index].item() for end in ("lo", "hi")] for side in sides]
            print(
                f"  {list(index)}: {observed[index].item()!r}, permitted {limits}, NaN {bool(allowed[f'nan{number}'][index])}"
            )
        status = _INSIDE if wrong.any() else status
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask in a process of its own, since native code can end it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--plugin", default="", help="PJRT plugin, a shared library; default: jaxlib's own XLA:CPU")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="XLA debug option")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.inside:
        words = {"True": True, "False": False}
        pairs = (option.partition("=")[::2] for option in given.option)
        try:
            return ask(given.plugin, {k: words.get(v, int(v) if v.isdecimal() else v) for k, v in pairs})
        except _REFUSALS as error:
            print(f"error: this cannot be asked: {(str(error).splitlines() or [''])[0]}", file=sys.stderr)
            return CANNOT
    if wrong := [option for option in given.option if not option.partition("=")[0] or "=" not in option]:
        parser.error(f"--option {wrong[0]}: expected NAME=VALUE")
    try:
        import jax  # noqa: F401
    except ImportError:
        print("error: JAX is not installed, so this cannot be asked: python -m pip install jax", file=sys.stderr)
        return CANNOT
    command = [sys.executable, __file__, "--inside", *(sys.argv[1:] if arguments is None else arguments)]
    own = {"JAX_ENABLE_X64": "1"} | ({} if given.plugin else {"JAX_PLATFORMS": "cpu"})
    status = subprocess.run(command, env={**os.environ, **own}, check=False).returncode
    if status < 0:
        print(f"the process died of signal {-status}")
        return DISAGREES
    return {0: 0, _INSIDE: DISAGREES}.get(status, CANNOT)


if __name__ == "__main__":
    sys.exit(main())
