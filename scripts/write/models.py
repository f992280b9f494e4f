"""Write docs/models.md from the models' docstrings: `python scripts/write/models.py`."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]

HEAD = """# Models

Made by `scripts/write/models.py` from the files in `models/`: each file is a model, those in
`analyses` answer for a whole launch what needs no stage of a device. Each says at its top what the
hardware does, what is modelled of it, what is not, and where the rules are published.
`cutrace devices NAME` draws which of them a device runs, in what order and of what sizes.
"""


def text() -> str:
    """Return the document."""
    models = ROOT / "models"
    paths = [*sorted(models.glob("*.py")), *sorted((models / "analyses").glob("*.py"))]
    return "\n".join([HEAD, *filter(None, map(page, paths))])


def page(path: Path) -> str:
    """Return a model's page; empty for a file that is no model."""
    written = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    title, _, rest = written.partition("\n\n")
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
