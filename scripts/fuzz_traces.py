"""Damage traces and ask cutrace about them: `scripts/fuzz_traces.py [--traces N] [--first N]`.

Each has to end in a clear error or an answer, within ten seconds and a gigabyte: tests/fuzz does
the same to a few. Those that do not are kept in the folder of `--out`.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from fuzz.answer import MEMORY, ask_all, peak  # noqa: E402
from fuzz.damaged_trace import damage  # noqa: E402
from fuzz.sound_trace import sound_traces  # noqa: E402


def main() -> int:
    """Try so many; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("fuzz-found"))
    asked = parser.parse_args()
    found, ends = 0, {0: 0, 1: 0, 2: 0}
    begin, slowest = time.perf_counter(), 0.0
    with TemporaryDirectory() as folder:
        sources = sound_traces(Path(folder))
        for number in range(asked.first, asked.first + asked.traces):
            path = damage(number, sources, Path(folder))
            for verb, answer in ask_all(path):
                ends[answer.status] = ends.get(answer.status, 0) + 1
                slowest = max(slowest, answer.seconds)
                problem = answer.problem
                if peak() > MEMORY:
                    problem = problem or f"{peak() >> 20} MiB"
                if problem:
                    found += 1
                    print(f"{number} {verb}: {problem}", flush=True)
                    _keep(path, asked.out)
            shutil.rmtree(path, ignore_errors=True)
    took = time.perf_counter() - begin
    print(
        f"{asked.traces} traces in {took:.0f} s, {found} without an answer; exit statuses {ends},"
        f" slowest {slowest:.2f} s, {peak() >> 20} MiB at most"
    )
    return int(found > 0)


def _keep(path: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    if not (out / path.name).exists():
        shutil.copytree(path, out / path.name)


if __name__ == "__main__":
    sys.exit(main())
