"""How fast the kernels of public programs run: lane instructions a second, the slowest first.

python scripts/slow_kernels.py CHECKOUT... [--keep FOLDER] [--sources FILE...] [--only NAME...]
                               [--seconds N] [--least N] [--json FILE]

Checkouts and programs are those of try_programs.py, with the same arguments, as far as it has built
them in the folder of its own `--keep`. Sources are .cu files that say their launches. Each kernel
counts by its largest launch of at least `--least` lane instructions. Seconds are those of the
processor while the compiled engine runs the launch in one thread and hands over its rows;
compiling, of the kernel and of cutrace's own routines, is not among them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from try_collections import find_programs
from try_inputs import write_inputs
from try_programs import Places, call_of, file_name, folder_of

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.tracer.session import function
from cutrace.tracer.simt import run, tier
from cutrace.tracer.simt.tier import LaunchTier
from cutrace.traces.reader import LaunchTrace, read_trace

GOAL = 20e6
LEAST = 1_000_000
ONE = "CUTRACE_SLOW_KERNELS"
"""The variable of the environment that has the path for the seconds of one program's launches."""


def lane_instructions(launch: LaunchTrace) -> int:
    """How many instructions the lanes of a launch executed, all together."""
    starts = launch.instructions()["block"].to_numpy()
    lengths = np.bincount(starts)
    paths = launch.paths()
    sums = []
    for blocks, active, repeat in zip(
        *(paths[name].to_pylist() for name in ("blocks", "active", "repeat")), strict=True
    ):
        lanes = np.bitwise_count(np.array(active, np.uint32)).astype(np.int64)
        sums.append(int((lanes * lengths[blocks] * np.array(repeat, np.int64)).sum()))
    counted = np.array([*sums, 0], np.int64)
    return sum(int(counted[b["path"].to_numpy()].sum()) for b in launch.control_batches())


WARM = """extern "C" __global__ void warm(float *x, int *sums)
{
    __shared__ float kept[256];
    kept[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int k = 0; k < (threadIdx.x & 7); k++)
        x[threadIdx.x] += kept[threadIdx.x ^ k];
    atomicAdd(sums + (threadIdx.x & 3), 1);
}"""


def warm_up() -> None:
    """Have cutrace's own routines compiled."""
    with cutrace.Session(engine="compiled") as gpu:
        x, sums = gpu.device_array(256, np.float32), gpu.device_array(4, np.int32)
        gpu.compile(WARM).get_function("warm")[1, 256](x, sums)


def time_launches(words: list[str], path: str) -> None:
    """Record as `cutrace record` does, and write the seconds of each launch, and its engine."""
    from cutrace.commands._main import run as command

    warm_up()
    times: list[tuple[float, bool]] = []

    def timed(code: Any, sink: Any) -> None:
        is_compiled = LaunchTier(code, run.blocks_a_wave(code)).is_compiled  # compiles it
        start = time.process_time()
        run.run(code, sink)
        times.append((time.process_time() - start, is_compiled))
        Path(f"{path}.new").write_text(json.dumps(times))
        os.replace(f"{path}.new", path)  # whole also if the program is ended now

    with (
        patch.object(tier, "_is_worth_compiling", lambda code: True),
        patch.object(function, "run", timed),
    ):
        sys.exit(command(words))


def calls(asked: argparse.Namespace, places: Places) -> Iterator[tuple[str, Path, list[str]]]:
    """Yield what is to be recorded: a name, the folder in which it runs, and words for `record`."""
    for source in (path.resolve() for path in asked.sources):
        yield source.stem, source.parent, [str(source)]
    for program in find_programs([checkout.resolve() for checkout in asked.checkouts]):
        binary = places.built / file_name(program)
        if binary.is_file() and not program.left_out:
            words = ["--timeout", str(asked.seconds), "--", str(binary)]
            yield program.name, folder_of(program, places), [*words, *call_of(program, places)]


def measure(name: str, inside: Path, words: list[str]) -> Iterator[dict[str, Any]]:
    """Yield name, lane instructions and seconds of each launch of a program."""
    with tempfile.TemporaryDirectory(prefix="cutrace-slow-") as folder:
        trace, times = Path(folder, "t.cutrace"), Path(folder, "times.json")
        subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), "record", "-o", str(trace), *words],
            cwd=inside, env={**os.environ, ONE: str(times)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            launches = read_trace(trace).launches if times.is_file() else ()
        except CutraceError:
            return
        told = json.loads(times.read_text()) if launches else []
        for launch, (spent, compiled) in zip(launches, told, strict=False):
            yield {
                "program": name,
                "kernel": launch.launch.name,
                "lanes": lane_instructions(launch),
                "seconds": spent,
                "compiled": compiled,
            }


def largest(rows: Iterator[dict[str, Any]], least: int) -> list[dict[str, Any]]:
    """The largest launch of each kernel, if it is large enough."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        old = found.get(row["kernel"])
        if row["lanes"] >= least and (old is None or row["lanes"] > old["lanes"]):
            found[row["kernel"]] = row
    return list(found.values())


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the kernels, the slowest first, and how many miss the goal."""
    rated = sorted(rows, key=lambda row: row["lanes"] / row["seconds"])
    for row in rated:
        rate = row["lanes"] / row["seconds"] / 1e6
        engine_name = "compiled" if row["compiled"] else "array"
        print(
            f"{rate:9.1f} M/s {row['lanes']:13,} lane instructions  {engine_name:8} "
            f"{row['program']}: {row['kernel'][:60]}"
        )
    slow = sum(row["lanes"] < GOAL * row["seconds"] for row in rated)
    print(f"{len(rated)} kernels, {slow} below {GOAL / 1e6:.0f} M lane instructions a second")


def main() -> None:
    """Measure the programs of the checkouts, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--sources", nargs="*", type=Path, default=())
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--least", type=int, default=LEAST)
    parser.add_argument("--keep", type=Path, default=Path(), help="a folder of what is built")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="cutrace-slow-") as folder:
        places = Places(asked.keep.resolve(), Path(folder, "inputs"))
        places.inputs.mkdir()
        write_inputs(places.inputs)
        for name, inside, words in calls(asked, places):
            if asked.only and name not in asked.only:
                continue
            rows += largest(measure(name, inside, words), asked.least)
            print(f"{name}: {len(rows)} kernels so far", file=sys.stderr, flush=True)
            if asked.json:
                asked.json.write_text(json.dumps(rows, indent=1))
    show(rows)


if __name__ == "__main__":
    if ONE in os.environ:
        time_launches(sys.argv[1:], os.environ[ONE])
    main()
