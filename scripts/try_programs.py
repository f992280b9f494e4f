"""Try whole programs of public collections: build each with `cutrace nvcc`, record it, judge it.

python scripts/try_programs.py CHECKOUT... [--only NAME...] [--seconds N] [--keep FOLDER]
                               [--json FILE]
python scripts/try_programs.py --json FILE --table tests/validate/tried/programs.csv

A checkout is a folder with NVIDIA/cuda-samples, yuhc/gpu-rodinia or sgrauerg/polybenchGpu in it;
nothing of them is kept here. Sizes are made smaller by the programs' own arguments, which
try_programs.toml lists, and why some programs are left out.
"""

import argparse
import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from try_collections import Program, find_programs
from try_inputs import write_inputs

from cutrace.base.errors import CutraceError
from cutrace.tracer.front.toolkit import find_toolkit
from cutrace.traces.reader import read_trace

_PASSED = re.compile(
    r"\bpass(ed)?\b|\bsuccess|\bOK\b|(Non-Matching|Number of misses)[^\n]*: 0\b", re.IGNORECASE
)
_ERROR = re.compile(r"\berror\b|undefined|cannot find", re.IGNORECASE)
_FAILED = re.compile(
    r"\bfail(ed|ure)?\b(?! as expected)|mismatch(?![-\w ]*[:=] 0\b)|incorrect"
    r"|(Non-Matching|Number of misses)[^\n]*: [1-9]",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Places:
    """Folders: of what is built, of what is read."""

    built: Path
    inputs: Path


@dataclass
class Outcome:
    """What became of a program; `passed` is None where it does not check itself."""

    collection: str
    name: str
    arguments: str
    built: bool = False
    ran: bool = False
    passed: bool | None = None
    launches: int = 0
    seconds: float = 0.0
    why: str = ""
    left_out: bool = False


def try_program(program: Program, places: Places, seconds: float) -> Outcome:
    """Build a program, unless it was built before, and record it."""
    outcome = Outcome(program.collection, program.name, _shown_call(program))
    if program.left_out:
        outcome.why, outcome.left_out = program.left_out, True
        return outcome
    binary = places.built / file_name(program)
    printed = "" if binary.is_file() else build(program, places, binary)
    outcome.built = binary.is_file()
    if not outcome.built:
        outcome.why = _first_error(printed)
        return outcome
    with tempfile.TemporaryDirectory(prefix="cutrace-try-") as folder:
        trace = Path(folder, "t.cutrace")
        words = call_of(program, places)
        limits = ["--timeout", str(seconds), "-o", str(trace)]
        inside = folder_of(program, places)
        status, printed, outcome.seconds = _run(
            ["record", *limits, "--", str(binary), *words], inside, 3 * seconds
        )
        _judge(outcome, status, printed, trace)
    return outcome


def call_of(program: Program, places: Places) -> list[str]:
    """Return what a program is called with."""
    words = shlex.split(program.arguments)
    return [word.replace("{inputs}", str(places.inputs)) for word in words]


def folder_of(program: Program, places: Places) -> Path:
    """Return the folder in which a program runs, made if need be."""
    inside = Path(program.runs_in.replace("{inputs}", str(places.inputs)) or program.folder)
    inside.mkdir(parents=True, exist_ok=True)
    return inside


def _shown_call(program: Program) -> str:
    """Arguments, and what makes its size smaller, for the table."""
    sizes = [word for word in program.flags if word.startswith("-D")]
    words = [*shlex.split(program.arguments), *sizes, *(new for _, new in program.changes)]
    return " ".join(words).replace("{inputs}/", "")


def build(program: Program, places: Places, binary: Path) -> str:
    """Build a program, of changed copies of its files where constants are to be changed."""
    with tempfile.TemporaryDirectory(prefix="cutrace-try-") as copy:
        folder = program.folder
        if program.changes:
            folder = _copy(program, Path(copy))
            change_constants(folder, program)
        flags = [flag.replace("{inputs}", str(places.inputs)) for flag in program.flags]
        _link_headers(program)
        for option, name, source in program.modules:
            headers = [flag for flag in flags if flag.startswith("-I")]
            _run(["nvcc", option, *headers, source, "-o", name], program.folder, 900)
        command = ["nvcc", "-O3", "-o", str(binary), *flags, *program.sources]
        return _run(command, folder, 900)[1]


def _link_headers(program: Program) -> None:
    """Put headers of the toolkit into a program's folder, which it compiles itself as it runs."""
    for name in program.headers:
        place = program.folder / Path(name).name
        if not place.exists():
            place.symlink_to(find_toolkit().include / name)


def _copy(program: Program, root: Path) -> Path:
    """Copy a program's folder; what lies beside it in the checkout is there by links."""
    inside = program.folder.relative_to(program.root)
    for entry in program.root.iterdir():
        if entry.name != inside.parts[0]:
            (root / entry.name).symlink_to(entry)
    return Path(shutil.copytree(program.folder, root / inside))


def change_constants(folder: Path, program: Program) -> None:
    """Write the constants of a program that its settings change into its files."""
    for path in (p for p in folder.iterdir() if p.suffix in (".cu", ".cuh", ".h", ".cpp", ".c")):
        text = path.read_text(errors="surrogateescape")
        for old, new in program.changes:
            pattern = re.escape(old).replace(r"\ ", r"\s+")
            text = re.sub(rf"(?<!\w){pattern}(?!\w)", new.replace("\\", r"\\"), text)
        path.write_text(text, errors="surrogateescape")


def file_name(program: Program) -> str:
    """Return what the binary of a program is called."""
    return f"{program.collection}-{program.name}".replace(":", "-").replace("/", "-")


def _judge(outcome: Outcome, status: int | None, printed: str, trace: Path) -> None:
    printed = printed.replace("cutrace: ", "\ncutrace: ")  # also behind a line without an end
    own = "\n".join(line for line in printed.splitlines() if not line.startswith("cutrace:"))
    ours = [line for line in printed.splitlines() if line.startswith("cutrace:")]
    over = any("it was ended after" in line for line in ours)
    outcome.ran = status == 0 and not over
    if _FAILED.search(own):
        outcome.passed = False
    elif _PASSED.search(own):
        outcome.passed = True
    try:
        outcome.launches = len(read_trace(trace).launches)
    except CutraceError:
        outcome.launches = 0
    problems = [line for line in ours if ".cutrace has " not in line and "next:" not in line]
    if status is None or over:
        outcome.why = f"over {outcome.seconds:.0f} s"
    elif status or outcome.passed is False or problems:
        failed = _FAILED.search(own)
        said = "" if failed is None else _line_of(own, failed.start())
        outcome.why = (problems or [said or f"exit status {status}"])[0]


def _line_of(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    return text[start:].partition("\n")[0].strip()


def _run(words: list[str], folder: Path, seconds: float) -> tuple[int | None, str, float]:
    """Run cutrace; return its exit status (None: it took too long), what it printed, seconds."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as printed:
        child = subprocess.Popen(
            [sys.executable, "-m", "cutrace", *words],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            status: int | None = child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.terminate()
            status = None
            child.wait()
        printed.seek(0)
        text = printed.read(1 << 22).decode(errors="replace")
    return status, text, time.perf_counter() - start


def _first_error(printed: str) -> str:
    lines = [line for line in printed.splitlines() if _ERROR.search(line)]
    return (lines or printed.splitlines() or ["nvcc failed"])[0].strip()


HEADS = (
    *("collection", "program", "arguments", "built", "ran", "check", "launches", "seconds", "why"),
)


def write_table(table: Path, outcomes: list[Outcome]) -> None:
    """Write a row for each program; scripts/write/tried.py writes their sums."""
    with table.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(HEADS)
        rows.writerows(map(_row, outcomes))


def _row(outcome: Outcome) -> tuple[str, ...]:
    check = {True: "passed", False: "failed", None: "has none"}[outcome.passed]
    return (
        outcome.collection,
        outcome.name,
        outcome.arguments,
        "yes" if outcome.built else "-",
        "yes" if outcome.ran else "-",
        check if outcome.ran or outcome.passed is not None else "-",
        str(outcome.launches or "-"),
        f"{outcome.seconds:.0f}" if outcome.seconds else "-",
        f"not tried: {outcome.why}" if outcome.left_out else _shown(outcome.why),
    )


def _shown(why: str) -> str:
    """One line of a message, not too long for a table, without paths of this machine."""
    line = re.sub(r"(?<!\w)/[\w.+/-]*/", "", why.removeprefix("cutrace: "))
    return textwrap.shorten(line, 160, placeholder=" ...")


def main() -> None:
    """Try the programs of the checkouts, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--keep", type=Path, help="a folder for what is built")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    asked = parser.parse_args()
    if asked.table:
        write_table(asked.table, [Outcome(**each) for each in json.loads(asked.json.read_text())])
        return
    with tempfile.TemporaryDirectory(prefix="cutrace-try-") as folder:
        places = Places(asked.keep or Path(folder, "built"), Path(folder, "inputs"))
        for place in (places.built, places.inputs):
            place.mkdir(parents=True, exist_ok=True)
        write_inputs(places.inputs)
        _try_all(asked, places)


def _try_all(asked: argparse.Namespace, places: Places) -> None:
    outcomes = []
    for program in find_programs([checkout.resolve() for checkout in asked.checkouts]):
        if asked.only and program.name not in asked.only:
            continue
        outcome = try_program(program, places, asked.seconds)
        outcomes.append(outcome)
        print(
            f"{outcome.name:36} built={outcome.built:d} ran={outcome.ran:d}"
            f" passed={outcome.passed} launches={outcome.launches}"
            f" {outcome.seconds:.1f} s {outcome.why[:150]}",
            flush=True,
        )
        if asked.json:
            asked.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1))


if __name__ == "__main__":
    main()
