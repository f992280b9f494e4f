"""Record the programs of scripts/capture/pack_unseen.py, and compare them with what a chip did.

    python scripts/compare_unseen.py FOLDER PROGRAMS.jsonl.gz... [--seconds N] [--draw NAME]

FOLDER is what was packed; the lines are what scripts/capture/programs.py brought back, a later file
in place of an earlier one. Each program is recorded and judged in processes of its own, some at a
time; what became of it is in FOLDER/judged as soon as it is known, and its recording in
FOLDER/traces: a second run does what is missing alone. `--rejudge` compares again what is recorded.
A draw has its own files and its own text (tests/silicon/unseen.py). How each program ended, the
counts, the pairs and the times go to tests/validate, and `python scripts/write/validation.py`
writes docs/validation.md. `--chip` keeps what the chip counted, and no
more.
"""

import argparse
import csv
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), *(str(ROOT / "scripts" / f) for f in ("capture", "measure"))]

import compare_times  # noqa: E402
from keep_programs import launches as table_of  # noqa: E402
from silicon.programs import Beside  # noqa: E402
from silicon.programs_page import keep_pairs  # noqa: E402
from silicon.unseen import DRAWS, Draw, Ended, Matched, compare_matched, matches  # noqa: E402

import cutrace  # noqa: E402
from cutrace.base.errors import CutraceError  # noqa: E402

NOTHING = "it made no CUDA calls"
WHY = {"it was ended after": "it was cut off by time", NOTHING: NOTHING}
"""Why a program has no whole trace, by what cutrace says then."""
PRINTED = 60_000
"""Characters that are compared."""
OF_TIME = re.compile(
    r"(?i)\b(m|u|n|micro|milli)?s(ec(onds?)?)?\b|[GMT]B/s|G?FLOP|Gops|throughput|speed|bandwidth|time"
    r"|elapsed|overhead|clock|driver|memory|H100|H200|artifact dir|utiliz|ratio|/s"
)
"""Lines that tell times, or what the device is called."""
Said = Mapping[str, Any]
"""What is known of a program that was packed, or of its run on the chip."""


def captured(files: list[Path]) -> dict[tuple[str, str], Said]:
    """What was captured of each program."""
    found = {}
    for file in files:
        for line in gzip.decompress(file.read_bytes()).decode().splitlines():
            run = json.loads(line)
            found[run["collection"], run["name"]] = run
    return found


def _name(said: Said) -> str:
    return Path(said["binary"]).name


def record(said: Said, folder: Path, seconds: float, chip: str) -> None:
    """Record a program; keep its exit status, what it printed, why it did not end."""
    trace, told = (folder / "traces" / f"{_name(said)}.{end}" for end in ("cutrace", "json"))
    if told.exists():
        return
    limits = ["-d", chip, "--timeout", str(seconds), "-o", str(trace)]
    command = [sys.executable, "-m", "cutrace", "record", *limits, "--"]
    try:
        done = subprocess.run(
            ["nice", *command, str(folder / said["binary"]), *said["arguments"].split()],
            cwd=folder / said["folder"], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=3 * seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        found = {"status": -1, "printed": "", "why": "it did not stop when its time was up"}
    else:
        found = _told(done)
    told.write_text(json.dumps(found))


def _told(done: subprocess.CompletedProcess[bytes]) -> dict[str, object]:
    err = done.stderr.decode(errors="replace")
    why = next((told for word, told in WHY.items() if word in err), "")
    refused = re.search(r"cutrace: (.* is not supported)", err)
    return {
        "status": done.returncode,
        "printed": done.stdout.decode(errors="replace"),
        "why": why or (refused[1] if refused and done.returncode else ""),
        "stderr": err[-2000:],
    }


def lines_of(printed: str) -> list[str]:
    """The lines that do not tell times."""
    return [line for line in printed[:PRINTED].splitlines() if not OF_TIME.search(line)]


def judge(said: Said, run: Said, folder: Path, chip: str) -> None:
    """Compare a recorded program with the chip's run; keep what is found as it is found."""
    done = json.loads((folder / "traces" / f"{_name(said)}.json").read_text())
    matched: list[Matched] = []
    count, problem = 0, ""
    try:
        trace = cutrace.read_trace(folder / "traces" / f"{_name(said)}.cutrace")
        count = len(trace.launches)
        matched = matches(run["launches"], trace, chip)
    except CutraceError as error:
        problem = str(error)
    same = lines_of(run["printed"]) == lines_of(done["printed"])
    which = said["collection"], said["name"]
    ended = Ended(
        *which, run["status"], done["status"], count, same, done["why"],
        sum(bool(each["counters"]) for each in run["launches"]), len(matched),
    )  # fmt: skip
    pairs = compare_matched(("small", *which), matched)
    times: list[list[object]] = []
    found = {
        "ended": asdict(ended),
        "problem": problem,
        "pairs": [asdict(beside) for beside in pairs],
        "times": times,
    }
    place = folder / "judged" / f"{_name(said)}.json"
    place.write_text(json.dumps(found))
    for each in matched:
        if each.trace.launch.kept.is_whole:
            times.append(_time(said, each, chip))
            place.write_text(json.dumps(found))


def _time(said: Said, matched: Matched, chip: str) -> list[object]:
    """A line of the table of times."""
    told = matched.captured["counters"]
    mhz = told["gpc__cycles_elapsed.avg.per_second"] / 1e6
    name = "drawn programs", _name(said)
    return compare_times.line(chip, name, matched.trace, matched.profile, told, mhz)


def one(said: Said, asked: argparse.Namespace, draw: Draw) -> dict[str, Any]:
    """Record and judge a program; return what is kept of it."""
    place = asked.folder / "judged" / f"{_name(said)}.json"
    record(said, asked.folder, asked.seconds, draw.chip)
    if not place.exists():
        command = [sys.executable, __file__, str(asked.folder), *map(str, asked.captured)]
        problem = ""
        try:
            done = subprocess.run(
                ["nice", *command, "--only", _name(said), "--draw", draw.name],
                capture_output=True, timeout=3 * asked.seconds,
            )  # fmt: skip
            problem = done.stderr.decode(errors="replace")[-1000:] if done.returncode else ""
        except subprocess.TimeoutExpired:
            problem = "comparing took too long"
        if problem:
            so_far = json.loads(place.read_text()) if place.exists() else {}
            place.write_text(json.dumps({**so_far, "problem": problem}))
    found: dict[str, Any] = json.loads(place.read_text())
    near = sum(Beside(**_run(each)).is_near for each in found.get("pairs", ()))
    print(
        _name(said), *(found.get("ended", {}).get(key) for key in ("on_chip", "recorded")),
        f"{near} of {len(found.get('pairs', ()))}", found.get("problem", ""), flush=True,
    )  # fmt: skip
    return found


def _run(pair: dict[str, Any]) -> dict[str, Any]:
    return {**pair, "run": tuple(pair["run"])}


def keep_chip(files: list[Path], draw: Draw) -> None:
    """Keep what the chip counted, and how often each opcode that touches memory ran."""
    every = pl.concat([table_of(file) for file in files], how="diagonal_relaxed")
    names = ["collection", "program", "number"]
    every.unique(names, keep="last").sort(names).write_parquet(
        draw.launches, compression="zstd", compression_level=19
    )
    rows = [
        {**dict(zip(names, (*key, n), strict=True)), "opcode": op, "instructions": times}
        for key, run in sorted(captured(files).items())
        for n, launch in enumerate(each for each in run["launches"] if each["counters"])
        for op, times in sorted(launch.get("sass", {}).items())
    ]
    pl.DataFrame(rows).write_parquet(draw.code, compression="zstd", compression_level=19)


def keep(found: list[dict[str, Any]], draw: Draw) -> None:
    """Keep how the programs ended, the pairs and the times."""
    ended = [each["ended"] for each in found if "ended" in each]
    pl.DataFrame([each for each in ended if each["why"] != NOTHING]).write_parquet(draw.outcomes)
    keep_pairs([Beside(**_run(p)) for each in found for p in each.get("pairs", ())], draw.compared)
    with draw.times.open("w", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(compare_times.COLUMNS)
        writer.writerows(row for each in found for row in each.get("times", ()) if row)


def options() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("captured", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--draw", choices=[each.name for each in DRAWS], default=DRAWS[-1].name)
    parser.add_argument("--chip", action="store_true")
    parser.add_argument("--rejudge", action="store_true")
    parser.add_argument("--only", default="", help="judge this program, which is recorded")
    asked = parser.parse_args()
    asked.folder = asked.folder.resolve()
    return asked


def main() -> None:
    """Record, compare, keep."""
    asked = options()
    draw = next(each for each in DRAWS if each.name == asked.draw)
    packed = json.loads((asked.folder / "programs.json").read_text())
    chip = captured(asked.captured)
    if asked.only:
        said = next(each for each in packed if _name(each) == asked.only)
        judge(said, chip[said["collection"], said["name"]], asked.folder, draw.chip)
        return
    keep_chip(asked.captured, draw)
    if asked.chip:
        return
    for name in ("traces", "judged"):
        (asked.folder / name).mkdir(exist_ok=True)
    for old in (asked.folder / "judged").glob("*.json") if asked.rejudge else ():
        old.unlink()
    ran = [each for each in packed if "status" in chip.get((each["collection"], each["name"]), {})]
    with ThreadPoolExecutor(asked.at_once) as pool:
        keep(list(pool.map(lambda said: one(said, asked, draw), ran)), draw)


if __name__ == "__main__":
    main()
