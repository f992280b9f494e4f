"""Record the programs of scripts/capture/pack_unseen.py, and compare them with what a chip did.

    python scripts/compare_unseen.py FOLDER PROGRAMS.jsonl.gz... [--seconds N] [--draw NAME]

FOLDER is what was packed; the lines are what scripts/capture/programs.py brought back, a later file
in place of an earlier one. Recordings are kept in FOLDER/traces: a second run records what is
missing alone. A draw has its own files and its own text (tests/silicon/unseen.py). How each program
ended, the counts and the pairs go to tests/validate/programs, and
`python scripts/write/validation.py --programs` writes the section of docs/validation.md.
"""

import argparse
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts" / "capture")]

from keep_programs import launches as table_of  # noqa: E402
from silicon.programs_page import keep_pairs  # noqa: E402
from silicon.unseen import DRAWS, Ended, compare_captured  # noqa: E402

import cutrace  # noqa: E402
from cutrace.errors import CutraceError  # noqa: E402

NOTHING = "it called nothing of CUDA"
WHY = {"it was ended after": "it was cut off by time", NOTHING: NOTHING}
"""Why a program has no whole trace, by what cutrace says then."""
PRINTED = 60_000
"""Characters that are compared."""
OF_TIME = re.compile(
    r"(?i)\b(m|u|n|micro|milli)?s(ec(onds?)?)?\b|[GMT]B/s|G?FLOP|Gops|throughput|speed|bandwidth|time"
    r"|elapsed|overhead|clock|driver|memory|H100|H200|artifact dir|utiliz|ratio|/s"
)
"""Lines that tell times, or what the device is called."""


def captured(files: list[Path]) -> dict[tuple[str, str], dict[str, Any]]:
    """What was captured of each program."""
    found = {}
    for file in files:
        for line in gzip.decompress(file.read_bytes()).decode().splitlines():
            run = json.loads(line)
            found[run["collection"], run["name"]] = run
    return found


def record(said: dict[str, Any], folder: Path, seconds: float) -> dict[str, Any]:
    """Record a program; return its exit status, what it printed, why it did not end."""
    name = Path(said["binary"]).name
    trace, told = folder / "traces" / f"{name}.cutrace", folder / "traces" / f"{name}.json"
    if not told.exists():
        limits = ["-d", "h200", "--timeout", str(seconds), "-o", str(trace)]
        command = ["-m", "cutrace", "record", *limits, "--", str(folder / said["binary"])]
        done = subprocess.run(
            [sys.executable, *command, *said["arguments"].split()],
            cwd=folder / said["folder"], stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        err = done.stderr.decode(errors="replace")
        why = next((told for word, told in WHY.items() if word in err), "")
        refused = re.search(r"cutrace: (.* is not supported)", err)
        told.write_text(json.dumps({
            "status": done.returncode,
            "printed": done.stdout.decode(errors="replace"),
            "why": why or (refused[1] if refused and done.returncode else ""),
        }))  # fmt: skip
    found: dict[str, Any] = json.loads(told.read_text())
    return {**found, "trace": trace}


def lines_of(printed: str) -> list[str]:
    """The lines that do not tell times."""
    return [line for line in printed[:PRINTED].splitlines() if not OF_TIME.search(line)]


def ends(
    packed: list[dict[str, Any]], chip: dict[tuple[str, str], dict[str, Any]], place: Path,
    seconds: float,
) -> Iterator[tuple[Ended, list[Any]]]:  # fmt: skip
    """How each program ended that was built, and its pairs."""
    for said in packed:
        run = chip.get((said["collection"], said["name"]))
        if run is None or "status" not in run:
            continue  # it was not built there, or there was no time
        if not (place / said["binary"]).is_file():
            why = "it was not built"
            yield Ended(said["collection"], said["name"], run["status"], -1, 0, False, why), []
            continue
        done = record(said, place, seconds)
        if done["why"] == NOTHING:
            continue  # a program of the host's alone
        found, count = [], 0
        try:
            trace = cutrace.read_trace(done["trace"])
            count = len(trace.launches)
            found = compare_captured(
                ("small", said["collection"], said["name"]), run["launches"], trace
            )
        except CutraceError as problem:
            print(said["name"], problem, file=sys.stderr)
        same = lines_of(run["printed"]) == lines_of(done["printed"])
        near = sum(beside.is_near for beside in found)
        print(said["name"], run["status"], done["status"], f"{near} of {len(found)}", flush=True)
        how = Ended(
            said["collection"], said["name"], run["status"], done["status"], count, same,
            done["why"],
        )  # fmt: skip
        yield how, found


def main() -> None:
    """Record, compare, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("captured", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--draw", choices=[each.name for each in DRAWS], default=DRAWS[-1].name)
    asked = parser.parse_args()
    kept_in = next(each for each in DRAWS if each.name == asked.draw)
    place = asked.folder.resolve()
    (place / "traces").mkdir(exist_ok=True)
    packed = json.loads((place / "programs.json").read_text())
    both = list(ends(packed, captured(asked.captured), place, asked.seconds))
    pl.DataFrame([asdict(how) for how, _ in both]).write_parquet(kept_in.outcomes)
    pairs = [beside for _, found in both for beside in found]
    keep_pairs(pairs, kept_in.compared)
    names = {how.program for how, _ in both}
    tables = [table_of(file).filter(pl.col("program").is_in(names)) for file in asked.captured]
    every = pl.concat(tables, how="diagonal_relaxed")
    kept = sorted({beside.metric for beside in pairs} & set(every.columns))
    facts = ["size", "collection", "program", "number", "kernel", "grid", "block"]
    times = ["gpu__time_duration.sum", "gpc__cycles_elapsed.max"]
    every.select(*facts, *times, *(name for name in kept if name not in times)).write_parquet(
        kept_in.launches, compression="zstd", compression_level=19
    )


if __name__ == "__main__":
    main()
