import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "traces" / "gallery").glob("*/*.cu"))
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "write" / "gallery_ptx.py"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_ptx_beside_a_gallery_source_is_what_the_compiler_makes_of_it(source: Path) -> None:
    kept = source.with_suffix(".ptx").read_text(encoding="utf-8")
    without_comments = SCRIPT["without_comments"]
    assert without_comments(kept) == without_comments(SCRIPT["ptx_of"](source))
