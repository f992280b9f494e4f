"""Write docs/validation.md from the captures: `python scripts/write/validation.py`.

It records and analyzes every kernel that was captured, which takes minutes.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

from silicon.launches import launched, pairs  # noqa: E402
from silicon.page import FILES, page  # noqa: E402


def main() -> None:
    """Compare, and write the page."""
    launches = [launch for file in FILES for launch in launched(file)]
    compared = list(pairs(tuple(launches)))
    (ROOT / "docs" / "validation.md").write_text(page(launches, compared), encoding="utf-8")


main()
