"""Write anew what the commands in the documents print, so that a reader sees what happens today.

All of a document happens in one folder, as in tests/golden/test_documents.py, which fails where a
document shows something else. Read the changes before you commit them: they are what users see.

    python scripts/write/consoles.py [DOCUMENT ...]
"""

import contextlib
import io
import os
import runpy
import shlex
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = runpy.run_path(str(ROOT / "tests" / "golden" / "test_documents.py"))


def renewed(document: Path) -> str:
    """The text of a document with what its commands print now."""
    text = document.read_text(encoding="utf-8")
    pieces, end = [], 0
    for block in TEST["FENCE"].finditer(text):
        kind, name, inner = block.groups()
        if kind in ("cuda", "toml") and name:
            Path(name).write_text(inner, encoding="utf-8")
        elif kind == "python":
            exec(compile(inner, document.name, "exec"), {})
        elif kind == "console":
            pieces += [text[end : block.start("text")], _console(inner)]
            end = block.end("text")
    return "".join((*pieces, text[end:]))


def _console(block: str) -> str:
    """A block of commands, each with what it prints."""
    shown = [(c.line, _run(c.line), c.printed) for c in TEST["commands"](block)]
    gaps = [printed[len(printed.rstrip()) :] or "\n" for *_, printed in shown]
    return "".join(
        f"$ {line}\n{said.rstrip()}{gap}" if said.strip() else f"$ {line}\n{gap.lstrip()}"
        for (line, said, _), gap in zip(shown, gaps, strict=True)
    )


def _run(line: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        TEST["run"](shlex.split(line)[1:])
    return out.getvalue() + err.getvalue()


def main(names: list[str]) -> None:
    """Renew the documents named, or all."""
    os.environ.pop("CUTRACE_DEVICE", None)
    chosen = [Path(name).resolve() for name in names] or TEST["DOCUMENTS"]
    for document in chosen:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            text = renewed(document)
        if text != document.read_text(encoding="utf-8"):
            document.write_text(text, encoding="utf-8")
            print(document.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
