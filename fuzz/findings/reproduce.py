"""Show the disagreement of the bundle that this file lies in: the same file in every bundle, with all data beside it.

Run: python reproduce.py   (README.md says what it needs; --help what else it can do)
Exit status 1 while the disagreement is there, 0 when it is gone, 2 or 3 where it cannot be asked.
"""

import sys
from pathlib import Path

try:
    from tenferro_ref.cli import main
except ImportError as error:
    name = str(error.name).partition(".")[0]
    print(
        f"error: {name} is not installed, so this cannot be asked; README.md says what it needs: from a clone of "
        "tenferro-ref, `python -m pip install .`",
        file=sys.stderr,
    )
    sys.exit(3)

if __name__ == "__main__":
    sys.exit(main(["fuzz", "replay", str(Path(__file__).parent), *sys.argv[1:]]))
