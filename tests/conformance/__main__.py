"""`python -m tests.conformance FOLDER [EXECUTORS]`: the score of a folder, and the reason of each failure.

EXECUTORS are names as for `tenferro-ref check --executors` (such as `pjrt:xla081,pjrt:fas106`), run beside the native one.
Exit status 1 if anything does not hold, 2 if there is nothing to run.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from tenferro_ref.errors import TenferroError
from tests.conformance.run import run


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        found = run(Path(arguments[0]), arguments[1] if len(arguments) == 2 else "")
    except TenferroError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    for outcome in found:
        for stage, reason in {"read": outcome.read, **outcome.executors}.items():
            if reason:
                print(f"{outcome.name}: {stage}: {reason}")
    read = [o for o in found if not o.read]
    print(f"read: {len(read)} of {len(found)}")
    held = Counter(name for o in read for name, reason in o.executors.items() if not reason)
    for name in dict.fromkeys(name for o in read for name in o.executors):
        print(f"{name}: {held[name]} of {len(read)}")
    return 2 if not found else int(not all(o.holds for o in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
