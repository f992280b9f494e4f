"""The drawn pictures of the documents are those that their scripts draw today."""

import runpy
from pathlib import Path

LANES = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "write" / "lanes.py"))


def test_the_picture_in_readme_is_drawn_from_its_two_kernels() -> None:
    drawn = LANES["picture"]()
    assert LANES["PICTURE"].read_text("utf-8") == drawn
    # a warp of 32 lanes, 4 bytes each, rows of 4096 bytes: a sector of 32 bytes for each lane;
    # then side by side: 128 bytes are 4 sectors
    assert "before: one load of a warp touches 32 sectors" in drawn
    assert "after: one load of a warp touches 4 sectors" in drawn
