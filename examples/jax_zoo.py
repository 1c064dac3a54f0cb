"""150 functions of the kind people write in JAX, checked on this machine: `python examples/jax_zoo.py [--executors LIST] [NAME...]`.

Each function is lowered by JAX and handed to the executors as it is. The table says how each came out: `proved` is the share of
elements that are held to an enclosure, `interpreter` a comparison with StableHLO's interpreter. Exit status 1 if one is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

import jax
from zoo import ZOO

from fuzz.checking import check
from fuzz.checking.subject import function_subject
from oracle.peers import Pool
from oracle.verdict import Verdict
from tenferro_ref.errors import TenferroError

#: What is run unless others are named: the newest plugin and jaxlib's own client.
EXECUTORS = "pjrt:lam115,jax"
#: Every how many functions one is checked unless all are asked for.
SAMPLE = 15


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="functions; a sample of them if left out")
    parser.add_argument("--all", action="store_true", help="all functions")
    parser.add_argument("--executors", default=EXECUTORS)
    options = parser.parse_args(arguments)
    names = options.names or list(ZOO)[:: 1 if options.all else SAMPLE]
    jax.config.update("jax_enable_x64", True)
    pool, count = Pool(), Counter[str]()
    try:
        executors = pool.select(options.executors.split(",")).executors
        print(f"{'function':28} {'executor':18} {'verdict':12} {'by':12} seconds")
        for name in names:
            function, arrays = ZOO[name]
            begin = time.perf_counter()
            count["functions"] += 1
            try:
                checked = check(function_subject(function, arrays, pool.reader, name=name), executors, pool)
            except TenferroError as error:
                print(f"{name:28} {'':18} {'refused':12} {'':12} {error}")
                count["refused"] += 1
                continue
            seconds = time.perf_counter() - begin
            for judged in checked.answers:
                answer = judged.answer
                if answer.executor == "native":
                    continue
                comparison = answer.comparison
                share = f"{comparison.decided / max(1, comparison.elements):.0%} proved"
                by = share if judged.evidence in ("proved", "bits") else judged.evidence
                bad = answer.verdict not in (Verdict.PASS,)
                print(
                    f"{name:28} {answer.executor:18} {answer.verdict.value:12} {by:12} {seconds:.2f} {answer.reason if bad else ''}"
                )
                count["wrong" if answer.verdict.is_disagreement else judged.evidence] += 1
    finally:
        pool.close()
    print(", ".join(f"{number} {what}" for what, number in count.items()))
    return 1 if count["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
