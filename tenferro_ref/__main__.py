"""`python -m tenferro_ref`: the same as the console script `tenferro-ref`."""

import sys

from tenferro_ref.cli import main

if __name__ == "__main__":
    sys.exit(main())
