"""Record the programs of docs/python.md that use further packages, as they stand there.

python scripts/try_page.py [WORD...]: programs whose packages contain a word, or all. Another Python
that has the packages may run them: RUN_BY=/path/python.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
_PROGRAM = re.compile(r"^# ([\w -]+)\n(.*?)(?=^# |^```)", re.M | re.S)


def programs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the packages of each program, and its source."""
    yield from _PROGRAM.findall(text.partition("## Other packages")[2])


def main(words: list[str]) -> int:
    """Record each program; return how many ended with an error or without a launch."""
    failed = 0
    python = os.environ.get("RUN_BY", sys.executable)
    for packages, source in programs(PAGE.read_text(encoding="utf-8")):
        if words and not any(word in packages for word in words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "app.py").write_text(source, encoding="utf-8")
            command = [sys.executable, "-m", "cutrace", "record", "-o", "app.cutrace", "--"]
            command += [python, "app.py"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        count = re.search(r"has ([1-9]\d*) launch", done.stderr)
        outcome = f"{count[1]} launches" if count and not done.returncode else done.stderr[-2000:]
        failed += not outcome.endswith("launches")
        print(f"{packages}: {outcome}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
