"""Run NVIDIA's libraries from PyPI (`--libraries run`) and compare with what they did on an H100.

python scripts/try_libraries.py: some 3 GB of packages go into a temporary folder. The program is
scripts/capture/libraries.cu; tests/validate/libraries.csv has its kernels and counters on an H100
(CUDA 13.1, by Nsight Compute). For each call: the kernels that the library chooses, recorded or
refused by name, and the counters of the recorded ones.
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from cutrace.tracer.front.toolkit import find_host_compiler, find_toolkit
from cutrace.traces.reader import read_trace

HERE = Path(__file__).parent
MEASURED = HERE.parent / "tests" / "validate" / "libraries.csv"
PACKAGES = (
    *("nvidia-cublas==13.1.0.3", "nvidia-cusolver==12.0.4.66", "nvidia-cusparse==12.6.3.3"),
    "nvidia-nvjitlink>=13,<14",
)
FILES = ("libcublas.so.13", "libcublasLt.so.13", "libcusolver.so.12")
COUNTERS = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
)
REFUSED = re.compile(r"kernel (.+?) has machine code alone")


def install(folder: Path) -> Path:
    """Install the packages; return the folder of their libraries."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*command, *PACKAGES], check=True)
    return folder / "nvidia" / "cu13" / "lib"


def build(folder: Path, libraries: Path) -> None:
    """Build the program by NVIDIA's nvcc."""
    toolkit = find_toolkit()
    names = ",".join(f"-l:{name}" for name in FILES)
    paths = f"-rpath={libraries},-rpath-link={libraries}"
    command = [str(toolkit.nvcc), "-arch=sm_90", str(HERE / "capture" / "libraries.cu"), "-ccbin"]
    command += [find_host_compiler(), f"-I{libraries.parent / 'include'}", f"-L{libraries}"]
    command += [f"-L{toolkit.root / 'lib'}", "-Xlinker", names, "-Xlinker", paths, "-o", "app"]
    subprocess.run(command, check=True, cwd=folder)


def compare(folder: Path, number: int, rows: list[dict[str, str]], libraries: Path) -> str:
    """Record a call; return how its kernels and counters agree."""
    command = [sys.executable, "-m", "cutrace", "record", "--libraries", "run", "-d", "h100"]
    command += ["-o", "app.cutrace", "--", "./app", str(number)]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    said = next(line for line in done.stdout.splitlines() if line.startswith(f"{number} "))
    if refused := REFUSED.search(done.stderr):
        same = all(word in rows[0]["Kernel Name"] for word in re.findall(r"\w{12,}", refused[1]))
        return (
            f"{said}\n  {'the same' if same else 'ANOTHER'} kernel, of machine code: {refused[1]}"
        )
    return "\n".join((said, *_counters(folder / "app.cutrace", rows)))


def _counters(path: Path, rows: list[dict[str, str]]) -> Iterator[str]:
    launches = read_trace(path).launches
    command = [sys.executable, "-m", "cutrace", "analyze", str(path), "-d", "h100"]
    command += ["--counters", ",".join(COUNTERS), "--format", "csv"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values = {
        (int(row["launch"]), row["counter"]): int(row["value"])
        for row in csv.DictReader(text.splitlines())
    }
    yield f"  {len(launches)} kernels recorded, {len(rows)} on the chip"
    for number, (launch, row) in enumerate(zip(launches, rows, strict=False)):
        name = launch.launch.kernel
        pairs = [(each, values.get((number, each), 0), int(row[each])) for each in COUNTERS]
        differ = [f"{counter} {a} for {b}" for counter, a, b in pairs if a != b]
        same = "the same" if name == row["Kernel Name"] else "ANOTHER"
        yield f"  {same} kernel {name[:40]}, {len(pairs) - len(differ)} of {len(pairs)} counters"
        yield from (f"    {line}" for line in differ)


def main() -> None:
    """Install, build, and compare call by call."""
    with MEASURED.open() as file, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        libraries = install(folder)
        build(folder, libraries)
        for number, rows in groupby(csv.DictReader(file), lambda row: int(row["call"])):
            print(compare(folder, number, list(rows), libraries), flush=True)


if __name__ == "__main__":
    main()
