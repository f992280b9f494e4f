"""Write docs/validation.md from the captures: `python scripts/write/validation.py`.

It records and analyzes every kernel that was captured, which takes minutes. With `--programs` it
writes the section about programs alone, from what scripts/compare_programs.py kept.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

from silicon.launches import launched, pairs  # noqa: E402
from silicon.page import FILES, page  # noqa: E402
from silicon.programs_page import renewed  # noqa: E402

PAGE = ROOT / "docs" / "validation.md"


def main() -> None:
    """Compare, and write the page."""
    if "--programs" in sys.argv[1:]:
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    launches = [launch for file in FILES for launch in launched(file)]
    compared = list(pairs(tuple(launches)))
    PAGE.write_text(page(launches, compared), encoding="utf-8")


main()
