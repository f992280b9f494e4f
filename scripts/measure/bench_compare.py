"""Two commits side by side: CPU seconds of the same work, in turn, and their ratios.

    scripts/bench --compare main --runs 3 --cases transpose search
    scripts/bench --compare HEAD~1 --keep    # every night: a row each in docs/history.csv

The working tree is compared with a commit, which is checked out beside it for as long as this
takes. Both run in the same environment, on the cases of the working tree; of each number the least
counts, since others on the machine only add. A ratio above 1 is faster than that commit.
"""

import csv
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench_cases import ROOT, large_cases

MEASURE = ROOT / "scripts" / "measure"
KERNEL = """// cutrace: scale<<<32, 128>>>(a:f32[4096]=arange)
__global__ void scale(float *a) { a[blockIdx.x * 128 + threadIdx.x] *= 3; }
"""
HISTORY = ROOT / "docs" / "history.csv"
HEADS = ("date", "commit", "against", "work", "seconds", "seconds_against")
VERBS = ("--version", "devices", "record small.cu -o again.cutrace", "analyze small.cutrace")
"""What a day is full of: mostly start-up."""


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A folder that holds the package `cutrace` as it was at a commit."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "cutrace"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def run(package: Path, folder: Path, *words: str) -> tuple[float, str]:
    """Run Python with a package; return the CPU seconds of it and its children, and its words."""
    found = os.pathsep.join((str(package), str(MEASURE)))
    own = {"PYTHONPYCACHEPREFIX": package / ".python", "XDG_CACHE_HOME": package / ".cache"}
    environment = os.environ | {"PYTHONPATH": found} | {key: str(at) for key, at in own.items()}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages are compiled, too
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, done.stdout


def measure(package: Path, folder: Path, names: Sequence[str]) -> dict[str, float]:
    """CPU seconds by row."""
    found = {}
    (folder / "small.cu").write_text(KERNEL)
    if not (folder / "small.cutrace").exists():
        run(package, folder, "-m", "cutrace", "record", "small.cu")
    for verb in VERBS:
        found[f"cutrace {verb}"], _ = run(package, folder, "-m", "cutrace", *verb.split())
    for name in names:
        _, printed = run(package, folder, str(MEASURE / "bench_once.py"), name)
        found[f"{name}: record"], found[f"{name}: replay"] = map(float, printed.split())
    return found


def append(against: str, found: dict[str, tuple[float, float]], path: Path = HISTORY) -> None:
    """Add to the history what the working tree took for each work, and what the commit did."""
    today, commits = datetime.now(UTC).date().isoformat(), (_short("HEAD"), _short(against))
    rows = [(today, *commits, work, *(f"{s:.3f}" for s in each)) for work, each in found.items()]
    head = [] if path.exists() else [HEADS]
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([*head, *rows])


def _short(commit: str) -> str:
    words = ["git", "-C", str(ROOT), "rev-parse", "--short=7", commit]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def compare(commit: str, runs: int, names: Sequence[str], keep: bool = False) -> None:
    """Measure both in turn, so many times, and print the table; `keep` adds it to the history."""
    cases = [case.name for case in large_cases() if not names or case.name in names]
    with checked_out(commit) as before, tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "cutrace").symlink_to(ROOT)
        least: dict[Path, dict[str, float]] = {before: {}, here: {}}
        for turn in range(runs):
            for package in (before, here) if turn % 2 else (here, before):
                which = "here" if package == here else commit
                print(f"run {turn + 1} of {runs}, {which} ...", file=sys.stderr)
                work = package / "work"
                work.mkdir(exist_ok=True)
                for row, seconds in measure(package, work, cases).items():
                    least[package][row] = min(seconds, least[package].get(row, seconds))
    print(f"{'CPU seconds':44}{commit:>12.12}{'here':>12}{'ratio':>9}")
    for row, seconds in least[here].items():
        was = least[before][row]
        print(f"{row:44}{was:12.3f}{seconds:12.3f}{was / seconds:9.2f}")
    if keep:
        append(commit, {row: (s, least[before][row]) for row, s in least[here].items()})
