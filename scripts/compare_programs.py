"""Record the programs that were captured on a chip, and compare cutrace's counts with the chip's.

    python scripts/compare_programs.py WORK CHECKOUT... [--only NAME...] [--sizes small large]

WORK keeps what is built and recorded: a second run records what is missing alone. The checkouts are
those of scripts/try_programs.py. What was compared goes to tests/validate/programs, and
`python scripts/write/validation.py` writes docs/validation.md from there.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts" / "capture")]

from pack_programs import main as pack  # noqa: E402
from silicon.programs import Agreement, Beside, Run, compare, counted, runs, tables  # noqa: E402
from silicon.programs_page import keep  # noqa: E402
from try_collections import link_nvrtc  # noqa: E402
from try_inputs import write_inputs  # noqa: E402

import cutrace  # noqa: E402

LAUNCHES = 24
MORE = {"lu": 130, "adi": 130}
"""Launches that are recorded: all that were captured are among them."""
SECONDS = 300
TIMES = {"small": 1, "large": 16}
"""How many times larger the inputs are, as in capture/programs.py."""


class Workplace:
    """The packed programs, and what is built and recorded of them."""

    def __init__(self, folder: Path, checkouts: list[Path]) -> None:
        self.packed = folder / "packed"
        self.built, self.traces = folder / "built", folder / "traces"
        if not self.packed.exists():
            pack(self.packed, checkouts)
            for size, times in TIMES.items():
                self.inputs(size).mkdir()
                write_inputs(self.inputs(size), times)
        for place in (self.built, self.traces):
            place.mkdir(parents=True, exist_ok=True)
        said = json.loads((self.packed / "programs.json").read_text())
        self.programs = {(p["size"], p["collection"], p["name"]): p for p in said}

    def inputs(self, size: str) -> Path:
        """Where the inputs of a size are."""
        return self.packed / f"inputs-{size}"

    def words(self, run: Run, texts: list[str]) -> list[str]:
        """Options or arguments with the folders put in."""
        places = {"{folder}": str(self.packed), "{inputs}": str(self.inputs(run[0]))}
        found: list[str] = []
        for text in texts:
            for name, place in places.items():
                text = text.replace(name, place)
            found += link_nvrtc() if text == "-lnvrtc" else [text]
        return found

    def trace(self, run: Run) -> Path | None:
        """The trace of a run, made if it is not there; None if it cannot be."""
        name = re.sub(r"\W", "-", f"{run[0]}-{run[2]}")
        binary, trace = self.built / name, self.traces / f"{name}.cutrace"
        if not trace.exists():
            if not binary.exists():
                self.build(run, binary)
            self.record(run, binary, trace)
        return trace if trace.exists() else None

    def build(self, run: Run, binary: Path) -> None:
        """Build a program by `cutrace nvcc`."""
        said = self.programs[run]
        home = self.packed / said["folder"]
        flags = self.words(run, said["flags"])
        for option, name, source in said["modules"]:
            headers = [flag for flag in flags if flag.startswith("-I")]
            _cutrace(["nvcc", option, *headers, source, "-o", name], home)
        _cutrace(["nvcc", "-O3", "-o", str(binary), *flags, *said["sources"]], home)

    def record(self, run: Run, binary: Path, trace: Path) -> None:
        """Record a program's first launches."""
        said = self.programs[run]
        place = Path(*self.words(run, [said["runs_in"]])) if said["runs_in"] else None
        inside = place or self.packed / said["folder"]
        inside.mkdir(parents=True, exist_ok=True)
        arguments = self.words(run, said["arguments"].split())
        limits = ["--launches", str(MORE.get(run[2], LAUNCHES)), "--timeout", str(SECONDS)]
        options = ["-d", "h200", *limits, "-o", str(trace)]
        _cutrace(["record", *options, "--", str(binary), *arguments], inside)


def _cutrace(words: list[str], folder: Path) -> None:
    command = [sys.executable, "-m", "cutrace", *words]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace")
        print(f"{' '.join(words[:2])} ... {words[-1]}: {said[-300:]}", file=sys.stderr)


def compare_all(place: Workplace, chosen: list[Run]) -> Iterator[Beside]:
    """Compare what can be recorded, run by run."""
    agreed: dict[tuple[str, str], Agreement] = {}
    for run in chosen:
        path = place.trace(run)
        if path is None:
            print(*run, "was not recorded", flush=True)
            continue
        trace = cutrace.read_trace(path)
        profiles = list(cutrace.analyze(trace, "h200").launches)
        found = list(compare(run, trace, profiles, agreed))
        near = sum(beside.is_near for beside in found)
        print(*run, f"{near} of {len(found)} within 1 %", flush=True)
        yield from found


def missing(found: list[Beside]) -> dict[str, int]:
    """How many launches of each program were captured and have no like in what was recorded."""
    have = Counter(run for run, _ in {(beside.run, beside.launch) for beside in found})
    sizes = {run[0] for run in have}
    lacks = {run: len(list(counted(run))) - have[run] for run in runs() if run[0] in sizes}
    return {f"{run[2]} ({run[0]})": many for run, many in sorted(lacks.items()) if many}


def about(found: list[Beside]) -> dict[str, Any]:
    """What the page says of a comparison: when, of which commit, of how many programs."""
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    launches, _ = tables()
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": head.stdout.strip(),
        "caches": head.stdout.strip(),
        "tried": len({run[1:] for run in runs()}),
        "captured": missing(found),
        "hardware": launches.select("collection", "program").n_unique(),
    }


def main() -> None:
    """Compare the programs, and keep what came of it if it was all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--sizes", nargs="*", default=("small", "large"))
    asked = parser.parse_args()
    place = Workplace(asked.work.resolve(), [path.resolve() for path in asked.checkouts])
    chosen = [
        run for run in runs() if run[0] in asked.sizes and (not asked.only or run[2] in asked.only)
    ]
    found = list(compare_all(place, chosen))
    if not asked.only:
        keep(found, about(found))


if __name__ == "__main__":
    main()
