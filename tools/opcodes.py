"""Which opcodes a compiler is left with after optimisation, and what in a program gives the rarest of them.

`python -m tools.opcodes` compiles programs one by one, without running them, and prints the classes of programs that a rare opcode
comes with, and what to give to `fuzz run --generate` so that these become more frequent (docs/adr/0009-opcodes.md). What a campaign counts
by itself does not live here (`fuzz.campaign.work`).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuzz.generate.batches import generate
from fuzz.generate.describe import describe
from fuzz.generate.settings import config_of
from oracle.peers import Executor, Pool
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError, UsageError
from tenferro_ref.ops import BY_NAME

#: An opcode belongs to a class if it is in that share of its programs at least, and so many times as often as elsewhere.
_SHARE, _LIFT = 0.3, 5


@dataclass(frozen=True, slots=True)
class Seen:
    """One program: the classes it is in (`fuzz.generate.describe`), and the opcodes that it gives."""

    classes: frozenset[str]
    opcodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rare:
    """A class of programs, the rarest opcode that it gives, and in how many programs that was."""

    name: str
    opcode: str
    programs: int


def look(executor: Executor, seed: int, programs: int, words: Sequence[str] = ()) -> Iterator[Seen]:
    """Compile programs one by one; those that the executor refuses are left out."""
    config = config_of(words)
    for batch in range(-(-programs // 32)):
        for case in generate(seed, batch, 32, config)[: programs - 32 * batch]:
            if opcodes := executor.opcodes([case]):
                yield Seen(frozenset(describe(case)), frozenset(opcodes))


def rarest(seen: Sequence[Seen], fewer: float) -> list[Rare]:
    """The classes that give an opcode which less than `fewer` percent of the programs have, the rarest first."""
    programs = Counter(name for s in seen for name in s.classes)
    opcodes = Counter(opcode for s in seen for opcode in s.opcodes)
    limit = fewer / 100 * len(seen)
    few = {opcode for opcode, n in opcodes.items() if n < limit}
    both = Counter((name, opcode) for s in seen for opcode in s.opcodes & few for name in s.classes)
    found: dict[str, Rare] = {}
    for (name, opcode), n in both.items():
        inside, outside = n / programs[name], (opcodes[opcode] - n) / max(1, len(seen) - programs[name])
        best = found.get(name)
        if n > 1 and inside >= _SHARE and inside > _LIFT * outside and (not best or opcodes[opcode] < best.programs):
            found[name] = Rare(name, opcode, opcodes[opcode])
    return sorted(found.values(), key=lambda r: (r.programs, r.name))


def to_words(rare: Sequence[Rare]) -> str:
    """The pairs of op and dtype among them, for `--generate`; "" if there is none."""
    pairs = [r.name.removeprefix("op: ").split(" ") for r in rare if r.name.startswith("op: ")]
    known = [f"{op}:{dtype}" for op, dtype in pairs if op in BY_NAME and dtype in DType.__members__]
    return f"rare={','.join(known)}" if known else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.opcodes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--executor", default="pjrt:xla081@parity", help="a PJRT plugin in a lane")
    parser.add_argument("--programs", type=int, default=1984)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--fewer", type=float, default=0.64, metavar="PERCENT", help="of the programs: what is rare")
    parser.add_argument("--generate", action="append", default=[], metavar="KEY=VALUE", help="as for `fuzz run`")
    given = parser.parse_args(arguments)
    pool = Pool()
    try:
        executor = pool.make(given.executor)
        if executor.peer.family != "pjrt":
            raise UsageError(detail=f"{given.executor} does not tell what it makes of a program: expected pjrt:NAME")
        executor.open()
        seen = list(look(executor, given.seed, given.programs, given.generate))
    except TenferroError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        pool.close()
    counts = Counter(opcode for s in seen for opcode in s.opcodes)
    for opcode, n in sorted(counts.items(), key=lambda item: (item[1], item[0])):
        print(f"{n:6}  {opcode}")
    print(f"{len(counts)} opcodes with element types in {len(seen)} programs")
    rare = rarest(seen, given.fewer)
    for r in rare:
        print(f"{r.programs:6}  {r.opcode:28} {r.name}")
    print(f"--generate {to_words(rare)}" if to_words(rare) else "nothing is rare")
    return 0


if __name__ == "__main__":
    sys.exit(main())
