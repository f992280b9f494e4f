"""Write docs/founding-documents.md: what the founding documents ask for, and the tests of it.

The items are in docs/founding-documents.toml; the tests say which they prove, and with which
figure, by the mark `document(item, figure)`. Usage:

    python scripts/write/founding_documents.py [--print]
"""

import contextlib
import io
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ITEMS = ROOT / "docs" / "founding-documents.toml"
MARK = b"mark.document("


@dataclass(frozen=True)
class Proof:
    """A test that proves an item, or the gallery source whose counters do."""

    figure: str
    file: str
    test: str

    @property
    def line(self) -> str:
        """The proof as the page shows it."""
        return f"{self.figure}: [{self.test}](../{self.file})"


class Marks:
    """A pytest plugin that collects the marks, by item."""

    def __init__(self) -> None:
        self.proofs: dict[str, list[Proof]] = defaultdict(list)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Read the marks of what was collected, before anything is left out."""
        for test in items:
            for mark in test.iter_markers("document"):
                item, figure = mark.args
                proof = Proof(figure, *place(test))
                if proof not in self.proofs[item]:
                    self.proofs[item].append(proof)


def place(test: pytest.Item) -> tuple[str, str]:
    """The file of a test and its name; for a gallery case those of the source."""
    case = getattr(test, "callspec", None)
    source = case.params.get("source") if case else None
    if isinstance(source, Path):
        file = source.resolve().relative_to(ROOT).as_posix()  # the package may lie behind a link
        return file, file.removeprefix("traces/gallery/")
    return test.path.relative_to(ROOT).as_posix(), test.name.partition("[")[0]


def collect() -> Marks:
    """Collect the tests of all files that have such a mark, without running them."""
    marks = Marks()
    said = io.StringIO()
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if MARK in path.read_bytes()]
    with contextlib.redirect_stdout(said):
        status = pytest.main(["--collect-only", "-q", *map(str, sorted(files))], plugins=[marks])
    if status != pytest.ExitCode.OK:
        sys.exit(said.getvalue())
    return marks


def render(documents: dict[str, Any], marks: Marks) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# What the founding documents ask for"
    yield ""
    yield "cutrace was founded to reproduce what these documents on CUDA teach. Tests, or gallery"
    yield "sources, prove each item; `scripts/write/founding_documents.py` lists these by marks."
    for document in documents["document"]:
        yield f"\n## {document['number']} {document['title']}\n"
        yield "| | item | proofs |\n|---|---|---|"
        for item, text in document["items"].items():
            proofs = [proof.line for proof in marks.proofs[item]]
            if item in documents["later"]:
                proofs.append(f"later: {documents['later'][item]}")
            yield f"| {item} | {text} | {'<br>'.join(proofs)} |"


def main() -> None:
    """Write the page; stop if an item is neither tested nor put off, or a mark names none."""
    documents = tomllib.loads(ITEMS.read_text(encoding="utf-8"))
    marks = collect()
    known = {item for document in documents["document"] for item in document["items"]}
    if unknown := marks.proofs.keys() - known:
        sys.exit(f"marks of items that do not exist: {', '.join(sorted(unknown))}")
    if bare := known - marks.proofs.keys() - documents["later"].keys():
        sys.exit(f"items without a test: {', '.join(sorted(bare))}")
    page = "\n".join(render(documents, marks)) + "\n"
    if "--print" in sys.argv:
        sys.stdout.write(page)
    else:
        ITEMS.with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
