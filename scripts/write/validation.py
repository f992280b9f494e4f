"""Write docs/validation.md from the pairs of counts in tests/validate.

    python scripts/write/validation.py [--compare]

With `--compare` it records and analyzes every captured kernel first, which takes minutes, and keeps
the pairs in tests/validate/counters.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

from silicon.kept import keep, table  # noqa: E402
from silicon.launches import launched, pairs  # noqa: E402
from silicon.page import FILES, page  # noqa: E402


def main() -> None:
    """Compare if asked to, and write the page."""
    if "--compare" in sys.argv[1:]:
        launches = [launch for file in FILES for launch in launched(file)]
        keep(table(launches, list(pairs(tuple(launches)))))
    (ROOT / "docs" / "validation.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
