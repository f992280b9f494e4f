"""What a chip counted beside what cutrace counts, launch by launch and metric by metric.

The files are those of scripts/capture_counters.py. ptxas stands between PTX and the chip: it
merges, unrolls, predicates and removes accesses. So a pair of counts is *comparable* only if the
warp instructions of its class (say, loads from global memory) agree in number and width between the
PTX that cutrace ran and the SASS that the chip ran.
"""

import json
import re
import runpy
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from program import Program

import cutrace
from cutrace.analyzer.profile import LaunchProfile
from cutrace.tracer.host.record import record

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "validate" / "counters"
PROGRAMS = ROOT / "tests" / "programs"
DEVICE = "h200"

Widths = Mapping[int, int]
"""How many warp instructions of a class access so many bytes a lane."""

SASS = re.compile(r"(LDG|STG|ATOMG|REDG?|LDS|LDSM|STS|STSM|ATOMS|LDL|STL|LD|ST|ATOM|TEX|TLD4?)\b")
CLASSES = {
    **{"LDG": "global load", "STG": "global store", "ATOMG": "global atomic"},
    **{"RED": "global reduction", "REDG": "global reduction", "LDL": "local load"},
    **{"LDS": "shared load", "STS": "shared store", "ATOMS": "shared atomic", "STL": "local store"},
    **{"TEX": "texture load", "TLD": "texture load", "TLD4": "texture load"},
}
WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
ANY_WIDTH = frozenset({"texture load"})
"""Classes whose SASS does not say how wide a lane's access is."""


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch: what the chip counted and ran, and the profile that cutrace makes of it."""

    source: str
    number: int
    kernel: str
    counted: Mapping[str, float | None]
    sass: Mapping[str, int]
    ours: LaunchProfile
    ptx: Mapping[str, Widths]

    @property
    def machine(self) -> Mapping[str, Widths]:
        """The warp instructions that the chip ran, by class and width."""
        found: dict[str, Counter[int]] = {}
        for opcode, times in self.sass.items():
            if match := SASS.match(opcode):
                words = opcode.split(".")
                width = next((WIDTHS[w] for w in words if w in WIDTHS), 4)
                name = CLASSES.get(match[1], "generic")
                found.setdefault(name, Counter())[0 if name in ANY_WIDTH else width] += times
        return found

    def agrees(self, name: str) -> bool:
        """Whether PTX and SASS access memory of a class equally often and wide."""
        if "generic" in self.machine:
            return False
        return dict(self.ptx.get(name, {})) == dict(self.machine.get(name, {}))


@cache
def launched(file: str) -> tuple[Launched, ...]:
    """Record and analyze everything that a capture has; sources are those of this tree."""
    told = json.loads((FOLDER / file).read_text())
    by_source: dict[str, list[dict[str, Any]]] = {}
    for launch in told["launches"]:
        by_source.setdefault(launch["source"], []).append(launch)
    found: list[Launched] = []
    for source, launches in by_source.items():
        found += _launches(source, launches, told["metrics"])
    return tuple(found)


def _launches(
    source: str, launches: list[dict[str, Any]], metrics: list[str]
) -> Iterator[Launched]:
    with tempfile.TemporaryDirectory() as folder:
        trace = cutrace.read_trace(_record(source, Path(folder) / "t.cutrace"))
        profile = cutrace.analyze(trace, DEVICE)
        for launch, traced, ours in zip(launches, trace.launches, profile.launches, strict=True):
            counted = dict(zip(metrics, launch["counters"], strict=True))
            ptx = _accesses(ours, traced.instructions().to_pylist())
            ours.counters  # noqa: B018 - while the trace is there
            yield Launched(
                source, launch["launch"], launch["kernel"], counted, launch["sass"], ours, ptx
            )


def _record(source: str, path: Path) -> Path:
    """Record a source with launch comments, or a program of tests/programs."""
    if source.endswith(".py"):
        script = PROGRAMS / source
        said = runpy.run_path(str(script))
        with cutrace.Session(path) as gpu:
            module = gpu.compile(
                script.with_suffix(".cu"),
                said.get("ARCH", "compute_75"),
                said.get("OPTIONS", ()),
                said.get("TEMPLATES", ()),
            )
            said["run"](Program(gpu, module))
        return path
    known = [FOLDER / source, *(ROOT / "traces" / "gallery").glob(f"*/{source}")]
    return record(next(p for p in known if p.exists()), [], path)


def _accesses(ours: LaunchProfile, instructions: list[dict[str, Any]]) -> Mapping[str, Widths]:
    """The warp instructions of the PTX, by class and width."""
    found: dict[str, Counter[int]] = {}
    merged = {"shared reduction": "shared atomic"}
    requests = [n for n in ours.raw.counts.columns if n.endswith("_requests") and "split" not in n]
    sums = ours.raw.counts.select("pc", *requests).group_by("pc").sum()
    for row in sums.iter_rows(named=True):
        for column in requests:
            if row[column] and column.count("_") == 2:
                name = column.removesuffix("_requests").replace("_", " ")
                name = merged.get(name, name)
                width = 0 if name in ANY_WIDTH else instructions[row["pc"]]["bytes"]
                found.setdefault(name, Counter())[width] += row[column]
    return found
