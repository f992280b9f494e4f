"""The gallery: kernels that come with cutrace, a folder a family, in `traces/gallery/`."""

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "traces" / "gallery"


def folders() -> list[Path]:
    """Its folders, in order."""
    return sorted(path.parent for path in FOLDER.glob("*/why.md"))


def headline(folder: Path) -> str:
    """The first heading of its `why.md`."""
    first, *_ = (folder / "why.md").read_text(encoding="utf-8").splitlines()
    return first.removeprefix("# ")


def suites() -> dict[str, Path]:
    """The suites of its folders, by the folder's name."""
    return {path.parent.name: path for path in sorted(FOLDER.glob("*/suite.toml"))}
