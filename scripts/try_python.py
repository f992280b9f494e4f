"""Try what Python packages publish, examples and tests, as `cutrace record` runs them.

python scripts/try_python.py [NAME=CHECKOUT...] [--only WORD...] [--seconds N] [--json FILE]
python scripts/try_python.py --json FILE --table tests/validate/tried/python.csv

NAME is a table of try_python.toml, CHECKOUT a folder with its repository in it, of which nothing is
kept here; the packages themselves are installed where this runs. try_python.toml lists what is
tried. Launches are run and recorded, and the traces dropped.
"""

import argparse
import csv
import importlib
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_suffix(".toml")
MOST_ROWS = 20
_COUNTS = {
    "failed": re.compile(r"(\d+) (?:failed|errors?)\b|(?<!expected )(?:failures|errors)=(\d+)"),
    "passed": re.compile(r"(\d+) passed"),
    "skipped": re.compile(r"(\d+) skipped|skipped=(\d+)"),
    "ran": re.compile(r"^Ran (\d+) tests?", re.MULTILINE),
}
_LAUNCHES = re.compile(r"has (\d+) launch")
_NO_DEVICE = "it made no CUDA calls"
_WHY = re.compile(r"^(?:E\s+)?((?:\w+\.)*\w*(?:Error|Exception)\b.*)", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """What is run: words for Python in a folder."""

    package: str
    name: str
    folder: Path
    words: tuple[str, ...]


@dataclass
class Outcome:
    """How many passed of how many, without those that skip themselves; 0 of 0 without a device."""

    package: str
    name: str
    passed: int = 0
    tried: int = 0
    launches: int = 0
    seconds: float = 0.0
    why: str = ""


def find_cases(checkouts: Mapping[str, Path], scratch: Path) -> Iterator[Case]:
    """List what there is to try; scripts that are changed are copied to `scratch`."""
    for package, listed in tomllib.loads(LIST.read_text()).items():
        for module in _modules(listed.get("packages", ())):
            yield Case(package, module, scratch, ("-m", "unittest", module))
        if package not in checkouts:
            continue
        root = checkouts[package].resolve()
        for path in map(Path, listed.get("tests", ())):
            words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *listed.get("pytest", ()))
            yield Case(package, path.as_posix(), root / path.parent, (*words, path.name))
        for call in listed.get("scripts", ()):
            name, *arguments = shlex.split(call)
            script = _changed(root / name, listed.get("changes", {}), scratch)
            yield Case(package, call, (root / name).parent, (str(script), *arguments))


def _modules(packages: Iterable[str]) -> Iterator[str]:
    """The modules of tests in packages that are installed."""
    for package in packages:
        for folder in importlib.import_module(package).__path__:
            for path in sorted(Path(folder).glob("test_*.py")):
                yield f"{package}.{path.stem}"


def _changed(script: Path, changes: Mapping[str, str], scratch: Path) -> Path:
    text = script.read_text()
    for old, new in changes.items():
        text = text.replace(old, new)
    copy = scratch / script.name
    copy.write_text(text)
    return copy if changes else script


def try_case(case: Case, seconds: float) -> Outcome:
    """Record one; what it prints says how many of its tests passed."""
    outcome = Outcome(case.package, case.name)
    with tempfile.TemporaryDirectory(prefix="cutrace-try-") as folder:
        limits = ("--timeout", str(seconds), "-o", str(Path(folder, "t.cutrace")))
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "cutrace", "record", *limits, "--", sys.executable, *case.words],
            cwd=case.folder, capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        outcome.seconds = time.perf_counter() - start
    _judge(outcome, done.returncode, done.stdout + done.stderr)
    return outcome


def _judge(outcome: Outcome, status: int, printed: str) -> None:
    if _NO_DEVICE in printed and "Traceback" not in printed:
        return
    summary = printed[max(0, printed.rfind("\nRan ")) :]  # unittest's; else all, of pytest
    found = {name: _sum(pattern, summary) for name, pattern in _COUNTS.items()}
    ran = found["ran"] or found["passed"] + found["failed"] + found["skipped"]
    tests = ran - found["skipped"]
    if ran and not tests:
        return
    outcome.tried = tests or 1
    outcome.passed = max(0, tests - found["failed"]) if tests else int(status == 0)
    launches = _LAUNCHES.search(printed)
    outcome.launches = int(launches[1]) if launches else 0
    if "it was ended after" in printed:
        outcome.passed, outcome.why = 0, f"over {outcome.seconds:.0f} s"
    elif outcome.passed < outcome.tried:
        said = dict.fromkeys(_WHY.findall(printed))
        outcome.why = "; ".join(list(said)[-3:])


def _sum(pattern: re.Pattern[str], text: str) -> int:
    return sum(int(next(filter(None, each.groups()))) for each in pattern.finditer(text))


def write_table(table: Path, outcomes: list[Outcome]) -> None:
    """Write a row for each module; scripts/write/tried.py writes their sums."""
    listed = tomllib.loads(LIST.read_text())
    with table.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("package", "name", "passed", "of", "launches", "why"))
        for package, known in listed.items():
            mine = [each for each in outcomes if each.tried and each.package == package]
            rows.writerows(_row(each, known.get("why", {})) for each in _joined(mine))


def _row(each: Outcome, known: Mapping[str, str]) -> tuple[object, ...]:
    why = re.sub(r"(?<!\w)/[\w.+/-]*/", "", known.get(each.name, each.why))[:160]
    return each.package, each.name, each.passed, each.tried, each.launches or "-", why


def _joined(outcomes: list[Outcome]) -> Iterator[Outcome]:
    """Many modules whose tests all pass are one row."""
    whole = [each for each in outcomes if each.passed == each.tried and not each.why]
    if len(whole) <= MOST_ROWS:
        yield from outcomes
        return
    yield from (each for each in outcomes if each not in whole)
    sums = (sum(getattr(o, name) for o in whole) for name in ("passed", "tried", "launches"))
    yield Outcome(outcomes[0].package, f"{len(whole)} other modules", *sums)


def main() -> None:
    """Try all, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    asked = parser.parse_args()
    known = json.loads(asked.json.read_text()) if asked.json and asked.json.exists() else []
    outcomes = [Outcome(**each) for each in known]
    if asked.table:
        write_table(asked.table, outcomes)
        return
    with tempfile.TemporaryDirectory(prefix="cutrace-try-") as scratch:
        _try_all(asked, outcomes, Path(scratch))


def _try_all(asked: Any, outcomes: list[Outcome], scratch: Path) -> None:
    pairs = (text.partition("=") for text in asked.checkouts)
    checkouts = {name: Path(path) for name, _, path in pairs}
    for case in find_cases(checkouts, scratch):
        if asked.only and not any(word in f"{case.package} {case.name}" for word in asked.only):
            continue
        outcome = try_case(case, asked.seconds)
        outcomes[:] = [o for o in outcomes if (o.package, o.name) != (case.package, case.name)]
        outcomes.append(outcome)
        print(f"{outcome.passed}/{outcome.tried} {case.name} {outcome.seconds:.0f} s {outcome.why}")
        if asked.json:
            asked.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1))


if __name__ == "__main__":
    main()
