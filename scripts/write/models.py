"""Write docs/models.md from the models' docstrings: `python scripts/write/models.py`."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

from silicon.filled import filled  # noqa: E402

HEAD = """# Models

What each model counts, and what it leaves out. `scripts/write/models.py` writes this page from the
docstrings of `models/`, which also say what the hardware does, with sources. A device's file lists
its *stages*: the units that an access passes, such as L1, each with its model and the model's keys.
`scope` says which SMs share a unit. `cutrace devices NAME` draws the stages in order, with their
sizes. Names in backticks are raw counters, or keys of a stage.
"""
LEFT_OUT = ("What the hardware does", "Hardware:", "Source:")
"""How the paragraphs begin that are in the files alone."""


def text() -> str:
    """Return the document."""
    models = ROOT / "models"
    paths = [*sorted(models.glob("*.py")), *sorted((models / "analyses").glob("[!_]*.py"))]
    return filled("\n".join([HEAD, *filter(None, map(page, paths))]))


def docstring(path: Path) -> str:
    """Return what a file says at its top."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def page(path: Path) -> str:
    """Return a model's section; empty for a file that is no model."""
    title, *parts = docstring(path).split("\n\n")
    rest = "\n\n".join(part for part in parts if not part.startswith(LEFT_OUT))
    name, colon, what = title.partition(": ")
    if not (colon and rest):
        return ""
    about = " ".join(what.split())
    return f"## {name}\n\n{about[0].upper()}{about[1:]} (`{path.relative_to(ROOT)}`)\n\n{rest}\n"


def main() -> None:
    """Write the document."""
    (ROOT / "docs" / "models.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
