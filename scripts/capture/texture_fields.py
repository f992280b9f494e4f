"""Keep what texture_fields.cu wrote on a GPU: its folder, as tests/validate/texture_fields.npz."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

PARTS = ("srgb", "border", "mip", "cube", "view", "errors")
KEPT = Path(__file__).parents[2] / "tests" / "validate" / "texture_fields.npz"


def main() -> None:
    """Of each part the lines of its cases, and the words of all samples."""
    folder = Path(sys.argv[1])
    kept: dict[str, Any] = {}
    for part in PARTS:
        written = folder / f"textures.{part}.bin"
        kept[part] = np.fromfile(written, np.uint32).reshape(-1, 4)
        kept[f"{part}_cases"] = np.array(written.with_suffix(".txt").read_text().split())
    np.savez_compressed(KEPT, **kept)


if __name__ == "__main__":
    main()
