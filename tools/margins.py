"""How much of their bounds implementations use: FFTs and decompositions of ordinary and hostile operands.

`python -m tools.margins [--executor native ...]` prints, for each op, dtype and invariant, the worst error over what is
allowed, and where. Over 1 would be a finding; far below 1 is what a bound costs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import oracle.decompositions  # noqa: F401 - the checks of linalg
from oracle.case import Case
from oracle.checks import checks
from oracle.enclosure import MODELS, enclose
from oracle.enclosure.formats import FORMATS
from oracle.enclosure.transforms import by_quarter_turns
from oracle.peers import Executor, Pool
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import LoweringError, TenferroError
from tenferro_ref.extensions import fft, linalg
from tenferro_ref.program import GraphBuilder
from tenferro_ref.tensor import Array

DTYPES = ("F32", "F64", "C32", "C64")
LENGTHS = (2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 17, 31, 32, 60, 64, 67, 97, 127, 128, 211, 360, 509, 512, 1009, 1024, 4096)
SIZES = (1, 2, 3, 5, 8, 16, 33)
#: Worst shares of a bound, by what it is a bound of.
Shares = dict[str, tuple[float, str]]


def run(executor: Executor, op: ops.Extension, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The results of one op."""
    b = GraphBuilder()
    made = b.apply_many(op, *(b.input(DType.of(x), x.shape) for x in inputs))
    return executor.run(Case.of(b.build(*made), list(inputs))).outputs


def worst(shares: Shares, name: str, share: float, where: str) -> None:
    """Keep the larger share; NaN is larger than all."""
    known = shares.get(name, (-1.0, ""))[0]
    if not (share <= known or np.isnan(known)):
        shares[name] = share, where


# --- fft --------------------------------------------------------------------------------------------------------------


def signals(n: int, rng: np.random.Generator) -> dict[str, Array]:
    """Vectors of length n."""
    t = np.arange(n)
    noise = rng.standard_normal((12, n)) + 1j * rng.standard_normal((12, n))
    made = {f"noise {k}": x for k, x in enumerate(noise)}
    made |= {f"impulse {k}": np.eye(n)[k] + 0j for k in {0, 1 % n, n // 2, n - 1}}
    made |= {
        "ones": np.ones(n) + 0j,
        "signs": np.sign(noise[0].real) + 1j * np.sign(noise[0].imag),
        "chirp": np.exp(1j * np.pi * t**2 / n),
        "tone": np.exp(2j * np.pi * t * (n // 3) / n),
        "magnitudes": noise[1] * 10.0 ** rng.uniform(-6, 6, n),
        "tiny": noise[2] * 1e-25,
    }
    return made


def fft_shares(executor: Executor, name: str, dtype: DType, lengths: Sequence[int] = LENGTHS) -> Shares:
    """By kind of length, distances from the middle of the enclosure over its half width."""
    found: Shares = {}
    real = not dtype.is_complex
    for n in lengths:
        drawn = signals(n, np.random.default_rng(n))
        batch = np.stack([x.real if real else x for x in drawn.values()])
        if name == "irfft":
            batch = np.fft.rfft(batch.real)
        batch = np.asarray(batch, dtype.numpy, order="F")
        op = ops.Extension.of(fft.FAMILY, name, {"n": n} if name == "irfft" else {})
        (result,) = run(executor, op, [batch])
        b = GraphBuilder()
        program = b.build(b.apply(op, b.input(dtype, batch.shape)))
        (e,) = enclose(program, [batch], MODELS["ieee"])
        share = np.zeros(result.shape)
        for part, seen in zip(e.parts, (result.real, result.imag), strict=False):
            middle, half = part.lo / 2 + part.hi / 2, part.hi / 2 - part.lo / 2
            share = np.maximum(share, np.abs(seen - middle) / np.where(half > 0, half, 1))
        # of what is bounded by parts, to a few ULP, no share is worth naming
        sharp = by_quarter_turns(n, half=name == "irfft")
        share[:, : len(sharp)] = np.where(e.contains(result), 0, np.inf)[:, : len(sharp)]
        row = int(share.max(1).argmax())
        kind = "2^k" if n & (n - 1) == 0 else "others"
        worst(found, kind, float(share.max()), f"n = {n}, {[*drawn][row]}")
    return found


# --- decompositions ---------------------------------------------------------------------------------------------------


def matrices(n: int, rng: np.random.Generator) -> dict[str, Array]:
    """Square real matrices, some of them singular."""
    i = np.arange(n)
    a = rng.standard_normal((6, n, n))
    q, r = np.linalg.qr(a[0])[0], np.linalg.qr(a[1])[0]
    growth = np.eye(n) + np.tril(-np.ones((n, n)), -1)
    growth[:, -1] = 1
    kahan = np.triu(-0.3 * np.ones((n, n)), 1) + np.eye(n)
    return {
        **{f"normal {k}": x for k, x in enumerate(a[2:])},
        "Hilbert": 1 / (1.0 + i[:, None] + i),
        "growth": growth,
        "Kahan": (0.95**i)[:, None] * kahan,
        "Vandermonde": np.linspace(-1, 1, n)[:, None] ** i,
        "Jordan": np.eye(n) + np.diag(np.ones(n - 1), 1),
        "Frank": np.fmin(i[:, None], i) * 1.0 + (i == i[:, None] + 1),
        "conditioned 1e6": (q * np.logspace(0, -6, n)) @ r,
        "conditioned 1e14": (q * np.logspace(0, -14, n)) @ r,
        "clustered": (q * (1 + (i > n // 2) * 1e-7)) @ q.T,
        "graded rows": a[2] * (10.0 ** -(i % 12))[:, None],
        "graded columns": a[2] * 10.0 ** -(i % 12),
        "small": a[3] * 1e-15,
        "large": a[3] * 1e15,
        "rank one": np.outer(a[0][0], a[0][-1]),
        "ones": np.ones((n, n)),
        "signs": np.sign(a[4]),
    }


#: What is factored: anything, a definite matrix, or a regular one (which solvers ask for).
OPERANDS = {
    "Cholesky": "definite",
    "Lu": "any",
    "LuFactor": "any",
    "FullPivLu": "any",
    "Qr": "any",
    "RankRevealingQr": "any",
    "HouseholderQrFactor": "any",
    "Svd": "any",
    "SvdVals": "any",
    "SvdFull": "any",
    "Eigh": "any",
    "EighVals": "any",
    "Eig": "any",
    "EigVals": "any",
    "Solve": "any",
    "LuSolvePrepared": "any",
    "FullPivLuSolve": "any",
    "TriangularSolve": "triangular",
}


def operands(name: str, dtype: DType, n: int, rng: np.random.Generator) -> Iterator[tuple[str, list[Array]]]:
    """Operands of one op, by name."""
    for where, a in matrices(n, rng).items():
        turned: Any = a * np.exp(2j * np.pi * rng.random(a.shape)) if dtype.is_complex else a
        if OPERANDS[name] == "definite":
            top = np.linalg.norm(turned, 2) or 1.0
            turned = turned @ turned.conj().T + np.eye(n) * top**2 * n * 100 * FORMATS[dtype.real].unit
        if OPERANDS[name] == "triangular":
            turned = np.tril(turned)
            if not np.diag(turned).all():
                continue
        given = [np.asarray(turned, dtype.numpy, order="F")]
        if "Solve" in name:  # right-hand sides as they come, and one with a solution that is much smaller than most
            b = np.column_stack([rng.standard_normal((n, 2)) * 10.0 ** rng.integers(-4, 5), turned.sum(1)])
            given.append(np.asarray(b, dtype.numpy, order="F"))
        yield where, given


def linalg_shares(executor: Executor, name: str, dtype: DType, sizes: Sequence[int] = SIZES) -> Shares:
    """By invariant, errors over their bounds; matrices that the executor refuses are left out."""
    found: Shares = {}
    for n in sizes:
        for where, given in operands(name, dtype, n, np.random.default_rng(n)):
            op = ops.Extension.of(linalg.FAMILY, name, {})
            try:
                if name == "LuSolvePrepared":
                    given[1:1] = run(executor, ops.Extension.of(linalg.FAMILY, "LuFactor", {}), given[:1])[:2]
                made = run(executor, op, given)
            except LoweringError:
                raise
            except TenferroError:
                continue
            for c in checks(op, given, made):
                share = c.error / c.bound if c.bound else float(c.error > 0)
                worst(found, c.name, share, f"{n} x {n}, {where}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.margins", description=__doc__)
    parser.add_argument("what", nargs="*", default=["fft", *OPERANDS], help="fft, names of linalg ops; default: all")
    parser.add_argument("--executor", action="append", help="default: native")
    parser.add_argument("--dtype", choices=DTYPES, action="append", help="default: all")
    parser.add_argument(
        "--size", type=int, action="append", help="of transforms or matrices; default: 2 to 4096, 1 to 33"
    )
    args = parser.parse_args(argv)
    pool = Pool()
    over = False
    try:
        for executor in map(pool.make, args.executor or ["native"]):
            for what in args.what:
                for dtype in [DType[d] for d in args.dtype or DTYPES]:
                    for name, shares in _measured(executor, what, dtype, args.size):
                        for invariant, (share, where) in shares.items():
                            over |= not share <= 1
                            line = f"{executor.name:20} {dtype} {name:16} {invariant:18} {share:9.2g} of the bound"
                            print(f"{line}  ({where})", flush=True)
    finally:
        pool.close()
    return int(over)


def _measured(executor: Executor, what: str, dtype: DType, sizes: Sequence[int] | None) -> Iterator[tuple[str, Shares]]:
    measure: Callable[..., Shares] = fft_shares if what == "fft" else linalg_shares
    names = [n for n in fft.DTYPES if dtype in fft.DTYPES[n]] if what == "fft" else [what]
    for name in names:
        try:
            yield name, measure(executor, name, dtype, *([sizes] if sizes else []))
        except LoweringError as error:
            print(f"{executor.name} {dtype} {name}: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
