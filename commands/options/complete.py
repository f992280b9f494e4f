"""Shell completion of devices, kernels and gallery folders."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

Complete = Callable[..., list[str]]
Names = Callable[[], Iterable[str]]


def starting(names: Names) -> Callable[[str], list[str]]:
    """Return a completion for one name."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


def last_of(names: Names) -> Callable[[str], list[str]]:
    """Return a completion for a comma-separated list: `8800gtx,h1` gives `8800gtx,h100`."""

    def complete(incomplete: str) -> list[str]:
        prefix, comma, begun = incomplete.rpartition(",")
        return [f"{prefix}{comma}{name}" for name in starting(names)(begun)]

    return complete


def devices() -> list[str]:
    """Return the names of cutrace's own devices."""
    from ...models.replay.device.catalog import device_names

    return device_names()


def gallery() -> list[str]:
    """Return the gallery's families."""

    return [folder.name for folder in folders()]


def kernels(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the kernels of the source file on the line, each with the start of a launch."""
    words = [
        str(word)
        for word in (ctx.params.get("subject") or ctx.params.get("source"), *ctx.args)
        if word
    ]
    source = next((Path(word) for word in words if word.endswith((".cu", ".ptx"))), Path())
    try:
        text = source.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    pattern = r"\.entry\s+(\w+)" if source.suffix == ".ptx" else r"__global__[^;{(]*?(\w+)\s*\("
    names = dict.fromkeys(re.findall(pattern, text))
    return [f"{name}<<<" for name in names if name.startswith(incomplete)]


FOLDER = Path(__file__).parents[2] / "traces" / "gallery"


def folders() -> list[Path]:
    """Return the gallery's folders, in order."""
    return sorted(path.parent for path in FOLDER.glob("*/why.md"))


def headline(folder: Path) -> str:
    """Return the first heading of a family's `why.md`."""
    first, *_ = (folder / "why.md").read_text(encoding="utf-8").splitlines()
    return first.removeprefix("# ")


def suites() -> dict[str, Path]:
    """Return the suites of the gallery, by folder name."""
    return {path.parent.name: path for path in sorted(FOLDER.glob("*/suite.toml"))}
