"""Try whole programs of public collections: build each with `cutrace nvcc`, record it, judge it.

python scripts/try_programs.py CHECKOUT... [--only NAME...] [--seconds N] [--json FILE]
python scripts/try_programs.py --json FILE --page docs/programs.md

A checkout is a folder with NVIDIA/cuda-samples, yuhc/gpu-rodinia or sgrauerg/polybenchGpu in it;
nothing of them is kept here. Sizes are made smaller by the programs' own arguments, which
try_programs.toml lists, and why some programs are left out.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from cutrace.errors import CutraceError
from cutrace.traces.reader import read_trace

SETTINGS = Path(__file__).with_suffix(".toml")
SAMPLES = re.compile(r"^(0|2|3|5|6)_")
_EXECUTABLE = re.compile(r"add_executable\(\s*([\w-]+)\s+([^)]*)\)")
_SOURCES = (".cu", ".cpp", ".c")
_PASSED = re.compile(r"\bpass(ed)?\b|\bsuccess|\bOK\b|Non-Matching[^\n]*: 0\b", re.IGNORECASE)
_FAILED = re.compile(r"\bfail(ed|ure)?\b(?! as expected)|mismatch|incorrect", re.IGNORECASE)


@dataclass(frozen=True)
class Program:
    """A program of a collection: where it lies, what it is built of, how it is called."""

    collection: str
    name: str
    folder: Path
    sources: tuple[str, ...]
    flags: tuple[str, ...]
    arguments: str = ""
    left_out: str = ""


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


def find_programs(checkout: Path) -> Iterator[Program]:
    """List the programs of a collection."""
    settings = tomllib.loads(SETTINGS.read_text())
    found = [*_samples(checkout), *_polybench(checkout), *_rodinia(checkout, settings)]
    for program in found:
        own = settings.get(program.collection, {}).get(program.name, {})
        yield Program(
            program.collection,
            program.name,
            program.folder,
            tuple(own.get("sources", program.sources)),
            (*program.flags, *shlex.split(own.get("flags", ""))),
            own.get("arguments", ""),
            own.get("left_out", ""),
        )


def _samples(checkout: Path) -> Iterator[Program]:
    """NVIDIA/cuda-samples: each says in its CMakeLists.txt what it is built of."""
    for cmake in sorted(checkout.glob("Samples/*/*/CMakeLists.txt")):
        text = cmake.read_text(errors="replace")
        found = _EXECUTABLE.search(text)
        if found is None or not SAMPLES.match(cmake.parent.parent.name):
            continue
        sources = tuple(w for w in found[2].split() if w.endswith(_SOURCES))
        flags = [f"-I{checkout / 'Common'}", "-std=c++17"]
        if "SEPARABLE_COMPILATION" in text:
            flags.append("-rdc=true")
        if "extended-lambda" in text:
            flags.append("--extended-lambda")
        yield Program("cuda-samples", cmake.parent.name, cmake.parent, sources, tuple(flags))


def _polybench(checkout: Path) -> Iterator[Program]:
    """sgrauerg/polybenchGpu: a folder and a .cu for each, sizes in headers or in the source."""
    for source in sorted(checkout.glob("CUDA/*/*.cu")):
        yield Program("polybenchGpu", source.stem, source.parent, (source.name,), ())


def _rodinia(checkout: Path, settings: dict[str, dict[str, object]]) -> Iterator[Program]:
    """yuhc/gpu-rodinia: the settings say what each is built of."""
    if not (checkout / "cuda" / "backprop").is_dir():
        return
    for name in sorted(settings.get("gpu-rodinia", {})):
        yield Program("gpu-rodinia", name, checkout / "cuda" / name.partition(":")[0], (), ())


def try_program(program: Program, seconds: float) -> Outcome:
    """Build a program and record it."""
    outcome = Outcome(program.collection, program.name, program.arguments)
    if program.left_out:
        outcome.why = program.left_out
        return outcome
    with tempfile.TemporaryDirectory(prefix="cutrace-try-") as folder:
        binary, trace = Path(folder, program.name.replace(":", "-")), Path(folder, "t.cutrace")
        build = [*("nvcc", "-O3", "-o", str(binary)), *program.flags, *program.sources]
        status, printed, _ = _run(build, program.folder, 600)
        outcome.built = status == 0
        if not outcome.built:
            outcome.why = _first_error(printed)
            return outcome
        limits = ["--timeout", str(seconds), "-o", str(trace)]
        record = ["record", *limits, "--", str(binary), *shlex.split(program.arguments)]
        status, printed, outcome.seconds = _run(record, program.folder, 3 * seconds)
        _judge(outcome, status, printed, trace)
    return outcome


def _judge(outcome: Outcome, status: int | None, printed: str, trace: Path) -> None:
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
    lines = [
        line for line in printed.splitlines() if "error" in line.lower() or "undefined" in line
    ]
    return (lines or printed.splitlines() or ["nvcc failed"])[0].strip()


HEADS = ("program", "built", "ran", "own check", "launches", "seconds", "why not")


def write_page(page: Path, outcomes: list[Outcome]) -> None:
    """Write the table behind the last heading of a page."""
    text, heading, rest = page.read_text().rpartition("## What was tried\n")
    said = rest.split("\n| ")[0].rstrip("\n")
    rows = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    rows += [_row(outcome) for outcome in outcomes]
    tried = [outcome for outcome in outcomes if outcome.built or outcome.seconds]
    passed = sum(outcome.ran and outcome.passed is not False for outcome in tried)
    sum_up = f"Of {len(tried)} that were tried {passed} ran to their end and found nothing wrong."
    said = re.sub(r"\n\nOf \d+ that were tried .*", "", said, flags=re.S)
    page.write_text(f"{text}{heading}{said}\n\n{sum_up}\n\n" + "\n".join(rows) + "\n")


def _row(outcome: Outcome) -> str:
    name = f"{outcome.name} `{outcome.arguments}`" if outcome.arguments else outcome.name
    check = {True: "passed", False: "failed", None: "has none"}[outcome.passed]
    cells = (
        name,
        "yes" if outcome.built else "-",
        "yes" if outcome.ran else "-",
        check if outcome.built else "-",
        str(outcome.launches or "-"),
        f"{outcome.seconds:.0f}" if outcome.seconds else "-",
        outcome.why.removeprefix("cutrace: ").replace("|", "/"),
    )
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Try the programs of the checkouts, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args()
    if asked.page:
        write_page(asked.page, [Outcome(**each) for each in json.loads(asked.json.read_text())])
        return
    outcomes = []
    for checkout in asked.checkouts:
        for program in find_programs(checkout.resolve()):
            if asked.only and program.name not in asked.only:
                continue
            outcome = try_program(program, asked.seconds)
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
