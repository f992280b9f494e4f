"""Try programs of collections that nothing here was written for: a sample of each, as it is.

python scripts/try_strangers.py CHECKOUT... --json FILE [--each N] [--seconds N]
python scripts/try_strangers.py --json FILE --table tests/validate/tried/strangers.csv

A checkout is a folder with a public collection in it; nothing of it is kept here. A program is what
its own `build_command` names, a folder `src` with a main.cu, or else a .cu file with a main. Which
are drawn depends on their names alone. The table has a row for each collection.
"""

import argparse
import csv
import hashlib
import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from try_collections import Program
from try_programs import Outcome, Places, try_program

LIBRARIES = {
    "cublas": "-lcublas",
    "cufft": "-lcufft",
    "curand.h": "-lcurand",
    "cusparse": "-lcusparse",
    "nvml.h": "-lnvidia-ml",
    "cuda.h": "-lcuda",
}
_MAIN = re.compile(r"\bmain\s*\(")
_SAMPLES = (".txt", ".csv", ".fa", ".fasta", ".bin", ".dat")
COUNTS = {
    "asked for arguments": re.compile("made no CUDA calls"),
    "cut off by time": re.compile(r"^over \d+ s"),
}
"""Why a program that was built did not run to its end."""


def find_strangers(checkout: Path) -> Iterator[Program]:
    """The programs of a checkout, by what its folders hold."""
    described = sorted(checkout.rglob("input.json"))
    folders = sorted(checkout.glob("projects/**/src/main.cu"))
    if described:
        for place in described:
            yield from _by_command(checkout, place)
    elif folders:
        for main in folders:
            yield _by_folder(checkout, main.parent.parent)
    else:
        for source in sorted(checkout.rglob("*.cu")):
            text = source.read_text(errors="replace")
            if _MAIN.search(text):
                name = str(source.relative_to(checkout).with_suffix(""))
                yield _program(checkout, name, source.parent, [source.name], _flags(text))


def _by_command(checkout: Path, place: Path) -> Iterator[Program]:
    """A task that says how it is built, with the solution that comes with it."""
    said = json.loads(place.read_text())
    words = shlex.split(said.get("build_command", ""))
    folder, solution = place.parent / "testbench", place.parent / "reference.cu"
    if words[:1] != ["nvcc"] or "&&" in words or not folder.is_dir() or not solution.is_file():
        return
    shutil.copy(solution, folder / said["solution_file"])
    rest = shlex.split(re.sub(r"\s-o\s+\S+", "", said["build_command"]))[1:]
    patterns = [word for word in rest if word.endswith((".cu", ".cpp", ".c"))]
    found = [str(p.relative_to(folder)) for each in patterns for p in sorted(folder.glob(each))]
    flags = [word for word in rest if word not in patterns]
    yield _program(checkout, said["task_id_base"], folder, found, flags)


def _by_folder(checkout: Path, folder: Path) -> Program:
    found = sorted(p for p in (folder / "src").iterdir() if p.suffix in (".cu", ".cpp"))
    text = "".join(path.read_text(errors="replace") for path in found)
    samples = sorted((folder / "data" / "sample").glob("*"))
    given = [str(p.relative_to(folder)) for p in samples if p.suffix in _SAMPLES][:1]
    sources = [str(path.relative_to(folder)) for path in found]
    flags = ["-Isrc", "-std=c++17", *_flags(text)]
    return _program(checkout, folder.name, folder, sources, flags, shlex.join(given))


def _program(
    checkout: Path,
    name: str,
    folder: Path,
    sources: Sequence[str],
    flags: Sequence[str],
    arguments: str = "",
) -> Program:
    return Program(
        checkout.name.replace("+", "/"), name, checkout, folder, tuple(sources), tuple(flags),
        arguments=arguments,
    )  # fmt: skip


def _flags(text: str) -> list[str]:
    """Libraries that a source includes, and OpenMP."""
    included = " ".join(re.findall(r"#\s*include\s*[<\"]([^>\"]+)", text))
    flags = [flag for name, flag in LIBRARIES.items() if name in included]
    return [*flags, "-Xcompiler", "-fopenmp"] if "#pragma omp" in text else flags


def draw(programs: Iterable[Program], count: int) -> list[Program]:
    """Some of them, by a hash of their names; each name once."""
    named = {program.name: program for program in programs}
    order = sorted(named, key=lambda name: hashlib.sha256(name.encode()).digest())
    return [named[name] for name in order[:count]]


def write_table(table: Path, outcomes: Sequence[Outcome]) -> None:
    """Write a row for each collection; scripts/write/tried.py writes their sums."""
    names = sorted({each.collection for each in outcomes}, key=str.lower)
    with table.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("collection", "tried", "built", "ran", "check", "arguments", "time"))
        rows.writerows(_row([o for o in outcomes if o.collection == name]) for name in names)


def _counted(outcome: Outcome) -> str:
    return next((name for name, why in COUNTS.items() if why.search(outcome.why)), "")


def _row(outcomes: Sequence[Outcome]) -> tuple[object, ...]:
    return (
        outcomes[0].collection,
        len(outcomes),
        sum(each.built for each in outcomes),
        sum(each.ran for each in outcomes),
        sum(each.passed is True for each in outcomes),
        *(sum(_counted(each) == reason for each in outcomes) for reason in COUNTS),
    )


def main() -> None:
    """Try a sample of each checkout, one program of each in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--table", type=Path)
    asked = parser.parse_args()
    if asked.table:
        write_table(asked.table, [Outcome(**each) for each in json.loads(asked.json.read_text())])
        return
    drawn = [draw(find_strangers(each.resolve()), asked.each) for each in asked.checkouts]
    turns = [each[rank] for rank in range(asked.each) for each in drawn if rank < len(each)]
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="cutrace-try-") as folder:
        places = Places(Path(folder, "built"), Path(folder, "inputs"))
        for place in (places.built, places.inputs):
            place.mkdir()
        for program in turns:
            outcomes.append(try_program(program, places, asked.seconds))
            asked.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1))
            print(outcomes[-1], flush=True)


if __name__ == "__main__":
    main()
