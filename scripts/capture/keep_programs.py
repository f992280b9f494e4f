"""Keep what scripts/capture/programs.py brought back as two small tables.

    python scripts/capture/keep_programs.py FOLDER DEVICE PROGRAMS.jsonl.gz SASS.tar.gz

`DEVICE_launches.parquet` has a row for each launch and a column for each metric;
`DEVICE_code.parquet` a row for each opcode of the first launch of each kernel: how many warp
instructions ran, and the sums of what the profiler says of each of them. The machine code itself is
not kept. README.md there has the columns.
"""

import csv
import gzip
import io
import json
import re
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

UNWANTED = re.compile(
    r"launch__(block_dim|grid_dim|cluster|context|device|function|occupancy_(cluster|per)|persisting"
    r"|sm_count|stack|stream|tpc|uses)|launch__shared_mem_per_block_driver"
)
SUMS = {
    "instructions": "Instructions Executed",
    "threads": "Thread Instructions Executed",
    "threads_on": "Predicated-On Thread Instructions Executed",
    "tag_requests": "L1 Tag Requests Global",
    "sectors": "L2 Theoretical Sectors Global",
    "sectors_ideal": "L2 Theoretical Sectors Global Ideal",
    "sectors_local": "L2 Theoretical Sectors Local",
    "wavefronts": "L1 Wavefronts Shared",
    "wavefronts_ideal": "L1 Wavefronts Shared Ideal",
}
ACCESS = ("Address Space", "Access Operation", "Access Size")
OPCODE = re.compile(r"\s*(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


def launches(file: Path) -> pl.DataFrame:
    """A row for each launch."""
    rows = []
    for line in gzip.decompress(file.read_bytes()).decode().splitlines():
        run = json.loads(line)
        counted_ones = [each for each in run["launches"] if each["counters"]]
        for number, launch in enumerate(counted_ones):
            counted = launch["counters"]
            rows.append({
                "size": run["size"],
                "collection": run["collection"],
                "program": run["name"],
                "arguments": run["arguments"],
                "constants": ", ".join(run["changes"]),
                "number": number,
                "kernel": launch["Kernel Name"],
                "grid": [int(counted[f"launch__grid_dim_{axis}"]) for axis in "xyz"],
                "block": [int(counted[f"launch__block_dim_{axis}"]) for axis in "xyz"],
                **{name: v for name, v in sorted(counted.items()) if not UNWANTED.match(name)},
            })  # fmt: skip
    table = _narrow(pl.DataFrame(rows, infer_schema_length=None))
    return table.sort("collection", "program", "size", "number")


def _narrow(table: pl.DataFrame) -> pl.DataFrame:
    """Whole numbers as such."""
    floats = [c for c in table.columns if table[c].dtype == pl.Float64]
    whole = [c for c in floats if (table[c] == table[c].round()).all()]
    return table.with_columns(pl.col(whole).cast(pl.Int64))


def code(file: Path) -> pl.DataFrame:
    """A row for each opcode of each kernel, by what it accesses."""
    with tarfile.open(file) as archive:
        rows = [row for member in archive for row in _page(archive, member)]
    table = _narrow(pl.DataFrame(rows, infer_schema_length=None))
    return table.sort("collection", "program", "size", "launch", "kernel", maintain_order=True)


def _page(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[dict[str, Any]]:
    run, _, kernel = member.name.removesuffix(".csv").rpartition("/")
    named = re.fullmatch(r"(small|large)-(polybenchGpu|gpu-rodinia|cuda-samples)-(.*)", run)
    opened = archive.extractfile(member)
    if named is None or opened is None:
        raise SystemExit(f"{member.name} is not the machine code of a program")
    size, collection, program = named.groups()
    first, _, text = opened.read().decode().partition("\n")
    if not re.search(r"\bEXIT\b", text):
        return  # a function that a kernel calls: the profiler has a page of its own for it
    sums: dict[tuple[str, ...], dict[str, float]] = defaultdict(lambda: dict.fromkeys(SUMS, 0.0))
    warps = 0
    for line in csv.DictReader(io.StringIO(text)):
        warps = warps or int(_number(line, "Instructions Executed"))
        match = OPCODE.match(line["Source"])
        if match:
            accessed = [(line.get(name) or "").replace("-", "") for name in ACCESS]
            mine = sums[match[1], *accessed]
            for name, column in SUMS.items():
                mine[name] += _number(line, column)
    for (opcode, space, operation, bits), counted in sums.items():
        if counted["instructions"]:
            yield {
                "size": size, "collection": collection, "program": program, "kernel": kernel,
                "launch": int(first.split()[-1]), "warps": warps, "opcode": opcode,
                "space": space.lower(), "operation": operation.lower(),
                "bits": int(bits or 0), **counted,
            }  # fmt: skip


def _number(line: Mapping[str, str | None], column: str) -> float:
    text = (line.get(column) or "0").replace(",", "")
    return float(text) if text.replace(".", "").isdigit() else 0.0


def main(folder: Path, device: str, counted: Path, machine: Path) -> None:
    """Write the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (("launches", launches(counted)), ("code", code(machine))):
        path = folder / f"{device}_{name}.parquet"
        table.write_parquet(path, compression="zstd", compression_level=19)
        print(f"{path}: {table.shape}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
