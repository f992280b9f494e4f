"""`cutrace gallery`: kernels to begin with, each with its expected counters and why."""

import shutil
from pathlib import Path
from typing import Annotated

from ..base.errors import CutraceError, nearest
from .options import complete
from .options.command_line import quote
from .options.complete import folders, headline, starting
from .options.verb import argument, value, verb
from .terminal.screen import width


@verb(
    "Look up", "cutrace gallery", "cutrace gallery transpose", "cutrace gallery transpose --copy ."
)
def gallery(
    name: Annotated[
        str | None, argument("A family of kernels", complete=starting(complete.gallery))
    ] = None,
    copy: Annotated[Path | None, value("Copy the family's files into a folder.", "FOLDER")] = None,
) -> str:
    """List the kernels that come with cutrace, explain a family, or copy it."""
    from ..analyzer.text.layout import align

    if name is None:
        if copy is not None:
            raise CutraceError("--copy: say which family, `cutrace gallery NAME --copy FOLDER`")
        rows = [(folder.name, headline(folder)) for folder in folders()]
        return "\n".join((*align(rows), "", "next: cutrace gallery NAME"))
    families = {folder.name: folder for folder in folders()}
    if name not in families:
        raise CutraceError(f"no family {name!r} in the gallery{nearest(name, families)}")
    return _explain(families[name]) if copy is None else _copy(families[name], copy)


def _explain(folder: Path) -> str:
    """Return a family's explanation and its files."""
    from ..analyzer.text.layout import fit

    text = (folder / "why.md").read_text(encoding="utf-8")
    if width():
        text = "\n\n".join(map(_unbroken, text.split("\n\n")))
    files = "\n".join(f"  {path.name}" for path in sorted(folder.iterdir()) if path.is_file())
    whole = f"{text}\nfiles:\n{files}\n\nnext: cutrace gallery {folder.name} --copy ."
    columns = width() or len(whole)
    return "\n".join(part for line in whole.split("\n") for part in fit(line, columns))


def _unbroken(paragraph: str) -> str:
    """Join a paragraph to one line for the terminal to wrap; keep tables, lists and code."""
    lines = paragraph.split("\n")
    is_text = not any(line.startswith(("|", "-", "#", "```", " ")) for line in lines)
    return " ".join(lines) if is_text else paragraph


def _copy(folder: Path, to: Path) -> str:
    """Copy a family to a new folder; refuse to overwrite."""
    target = to / folder.name
    if target.exists():
        raise CutraceError(f"{target} is there already: name another folder, or remove it")
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    scripts = set(target.glob("*.py")) - {target / "reference.py"}
    first = min(scripts or target.glob("*.cu"))  # prefer a script: a comment is not enough there
    return f"{target}\nnext: cutrace analyze {quote(first)}"
