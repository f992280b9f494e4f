"""Record what Nsight Compute counts for the kernels of tests/validate/counters on this GPU.

    python scripts/capture/counters.py OUT.json [SOURCE.cu ...]
    python scripts/capture/counters.py OUT.json tests/programs/NAME.py ...
    python scripts/capture/counters.py --results OUT.npz SOURCE.cu

Needs an NVIDIA GPU whose counters may be read, `ncu` and CuPy. Every kernel is launched as the
launch comments of its source say, or as a program of tests/programs does, alone, with caches
flushed before it. The result keeps, for each launch, the counters (in the order of `metrics`; those
that the device does not have are left out) and the SASS memory instructions that ran: opcode and
how often. A source that fails is named on stderr and left out. `--results` keeps what a source's
arrays hold after its last launch instead, and needs no profiler.
"""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "validate" / "counters"
LEVELS = ("global_op_ld", "global_op_st", "global_op_atom", "global_op_red")
LOCAL = ("local_op_ld", "local_op_st")
SHARED = ("ld", "st", "atom")
ARITHMETIC = tuple(f"{p}{op}" for p in "fdh" for op in ("add", "mul", "fma"))
KINDS = ("fp16", "fp32", "fp64", "integer", "conversion", "control", "inter_thread_communication")
METRICS = (
    *(f"l1tex__t_{what}_pipe_lsu_mem_{where}.sum" for what in ("requests", "sectors")
      for where in (*LEVELS, *LOCAL)),
    *(f"l1tex__t_sectors_pipe_lsu_mem_{where}_lookup_hit.sum" for where in (*LEVELS, *LOCAL)),
    *(f"l1tex__data_{what}_mem_shared_op_{op}.sum"
      for what in ("pipe_lsu_wavefronts", "bank_conflicts_pipe_lsu") for op in SHARED),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1tex__t_requests_pipe_tex_mem_texture.sum",
    "l1tex__t_sectors_pipe_tex_mem_texture.sum",
    *(f"smsp__sass_inst_executed_op_{space}_{op}.sum" for space in ("global", "shared", "local")
      for op in ("ld", "st")),
    "smsp__sass_inst_executed_op_global_atom.sum",
    "smsp__sass_inst_executed_op_global_red.sum",
    "smsp__sass_inst_executed_op_shared_atom.sum",
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed.sum",
    "smsp__thread_inst_executed_pred_on.sum",
    "smsp__warps_launched.sum",
    *(f"smsp__sass_average_data_bytes_per_sector_mem_{where}.ratio"
      for where in (*LEVELS[:2], *LOCAL)),
    "smsp__sass_average_data_bytes_per_wavefront_mem_shared.ratio",
    *(f"smsp__sass_average_data_bytes_per_wavefront_mem_shared_op_{op}.ratio" for op in SHARED[:2]),
    *(f"smsp__sass_data_bytes_mem_{where}.sum"
      for where in (*LEVELS[:2], *LOCAL, "shared_op_ld", "shared_op_st")),
    *(f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum" for name in (*ARITHMETIC, *KINDS)),
    *(f"smsp__sass_branch_targets{what}.sum"
      for what in ("", "_threads_divergent", "_threads_uniform")),
    "memory_l1_tag_requests_global",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "memory_l2_theoretical_sectors_local",
    "launch__registers_per_thread",
    *(f"launch__occupancy_limit_{what}"
      for what in ("registers", "shared_mem", "warps", "blocks", "barriers")),
    "launch__shared_mem_config_size",
    "launch__shared_mem_per_block_allocated",
    "launch__waves_per_multiprocessor",
    "sm__maximum_warps_per_active_cycle_pct",
    "l1tex__t_sector_hit_rate.pct",
    *(f"lts__t_sectors_op_{op}.sum" for op in ("read", "write", "atom", "red")),
    *(f"lts__t_sectors_srcunit_tex_op_{op}.sum" for op in ("read", "write")),
    *(f"lts__t_sectors_srcunit_tex_op_{op}_lookup_hit.sum" for op in ("read", "write")),
    "lts__t_sectors_srcunit_tex.sum",
    "lts__t_sectors_srcunit_tex_lookup_hit.sum",
    "lts__t_requests_srcunit_tex.sum",
    "lts__t_sector_hit_rate.pct",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "idc__requests.sum",
    "idc__requests_lookup_hit.sum",
    "smsp__inst_executed_op_ldc.sum",
    *(f"smsp__inst_executed_op_{op}.sum" for op in ("global_ld", "shared_ld", "shared_st")),
    *(f"smsp__inst_executed_op_{op}.sum" for op in ("ldgsts", "ldsm")),
    *(f"smsp__sass_inst_executed_op_{op}.sum" for op in ("ldgsts", "ldsm")),
)  # fmt: skip


def our(module: str) -> ModuleType:
    """Import a module of this tree under the package's name, installed or not."""
    if "cutrace" not in sys.modules:
        link = Path(tempfile.mkdtemp()) / "cutrace"
        link.symlink_to(ROOT)
        sys.path.insert(0, str(link.parent))
    return import_module(f"cutrace.{module}")


def launches(source: Path) -> Iterator[Any]:
    """Yield the launch lines of a source."""
    text = source.read_text()
    launch_line = our("tracer.session.source.launch_line")
    for comment in launch_line.find_launch_comments(text):
        yield launch_line.parse_launch(comment.text)


def gallery() -> list[Path]:
    """Return the gallery's sources that launch kernels by comments, without textures or printf."""
    sources = sorted((ROOT / "traces" / "gallery").glob("*/*.cu"))
    texts = {source: source.read_text() for source in sources}
    return [
        s for s, text in texts.items() if "// cutrace:" in text and not re.search("tex|stdio", text)
    ]


def headers() -> list[str]:
    """Return NVRTC's options for the toolkit's headers: CuPy's copy lacks those of `mma.h`."""
    nvcc = shutil.which("nvcc")
    roots = [Path("/usr/local/cuda"), *([Path(nvcc).resolve().parents[1]] if nvcc else [])]
    return [f"-I{r / 'include'}" for r in roots if (r / "include" / "crt" / "mma.h").exists()][:1]


def launch_all(source: Path) -> dict[str, Any]:
    """Launch every kernel of a source as its comments say: what the profiler watches.

    Return the arrays, on the GPU, by name.
    """
    import cupy
    import numpy as np

    initial = our("tracer.session.source.launch_line")
    names = sorted({line.kernel for line in launches(source)})
    module = cupy.RawModule(
        code=source.read_text(),
        options=("-lineinfo", "-std=c++17", *headers()),
        name_expressions=names,
    )
    arrays: dict[str, Any] = {}
    for line in launches(source):
        arguments = []
        for argument in line.arguments:
            if hasattr(argument, "value"):
                arguments.append(np.int32(argument.value))
                continue
            if argument.type:
                dtype = initial.DTYPES[argument.type]
                host = initial.initial_values(
                    argument.initial, argument.shape, dtype, source.parent
                )
                arrays[argument.name] = cupy.asarray(host)
            arguments.append(arrays[argument.name])
        kernel = module.get_function(line.kernel)
        kernel(line.grid, line.block, tuple(arguments), shared_mem=line.shared)
        cupy.cuda.runtime.deviceSynchronize()
    return arrays


def keep_results(target: Path, source: Path) -> None:
    """Keep what the arrays of a source hold at the end."""
    import numpy as np

    held = {name: array.get() for name, array in launch_all(source).items()}
    np.savez_compressed(target, **held)


def run_program(source: Path) -> None:
    """Run a program of tests/programs on the GPU."""
    _programs().run_on_gpu(source)


def _programs() -> ModuleType:
    sys.path += [str(Path(__file__).parent), str(ROOT / "tests")]
    return import_module("program_on_gpu")


def profile(source: Path, names: list[str], metrics: list[str], report: Path) -> None:
    """Run a source under the profiler, every launch of its kernels, into `report`.

    Metrics that the profiler refuses are taken from `metrics`.
    """
    while True:
        command = [
            "ncu", "--force-overwrite", "--export", str(report), "--cache-control", "all",
            "--clock-control", "none", "--section", "SourceCounters", "--metrics",
            ",".join(metrics), "--kernel-name-base", "function", "--kernel-name",
            f"regex:^({'|'.join(names)})$", sys.executable, str(Path(__file__)), "--launch",
            str(source),
        ]  # fmt: skip
        outcome = subprocess.run(command, capture_output=True, text=True)
        said = outcome.stdout + outcome.stderr
        unknown = {m for m in metrics for line in said.splitlines() if _refuses(line, m)}
        if not unknown:
            break
        print(f"this device has no {', '.join(sorted(unknown))}", file=sys.stderr)
        metrics[:] = [m for m in metrics if m not in unknown]
    if outcome.returncode or not report.exists():
        raise SystemExit(f"{source.name}: {said[-3000:]}")


def _refuses(line: str, metric: str) -> bool:
    """Whether a line of the profiler says that it does not know a metric."""
    words = re.findall(r"\w+", line.partition("Failed to find metric")[2].replace("\\.", "."))
    return bool(words) and re.findall(r"\w+", metric)[0] == next(w for w in words if "__" in w)


def page(report: Path, *options: str) -> str:
    """Return a page of a report as CSV text."""
    command = ["ncu", "--import", str(report), "--csv", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def counters(report: Path) -> list[tuple[str, dict[str, float]]]:
    """Return the kernel and the counters of each launch, in order."""
    rows = list(csv.reader(io.StringIO(page(report, "--page", "raw", "--print-units", "base"))))
    start = next(i for i, row in enumerate(rows) if row and row[0] == "ID")
    header = rows[start]
    found = []
    for row in rows[start + 2 :]:
        values = dict(zip(header, row, strict=True))
        known = {m: _number(values[m]) for m in METRICS if values.get(m, "")[:1].isdigit()}
        found.append((values["Kernel Name"].partition("(")[0].removeprefix("void "), known))
    return found


def kernels(source: Path) -> list[str]:
    """Return the names of a source's kernels, without template arguments."""
    if source.suffix == ".py":
        found: list[str] = _programs().kernels_of(source.with_suffix(".cu").read_text())
        return found
    return sorted({line.kernel.partition("<")[0] for line in launches(source)})


def _number(text: str) -> float:
    value = float(text.replace(",", ""))
    return int(value) if value.is_integer() else value


def executed(report: Path) -> list[dict[str, int]]:
    """Return, for each launch, how often each SASS opcode that touches memory ran, by warps.

    Without those that never run (`@!PT LDS RZ, [RZ]`, of which ptxas puts three before a copy).
    """
    found: list[Counter[str]] = []
    header: list[str] = []
    for row in csv.reader(io.StringIO(page(report, "--page", "source", "--print-source", "sass"))):
        if "Source" in row and "Instructions Executed" in row:
            found.append(Counter())
            header = row
        elif found and len(row) == len(header):
            ran = int(row[header.index("Instructions Executed")].replace(",", "") or 0)
            match = re.match(r"\s*(?:@!?U?P\d+\s+)?([A-Z][\w.]*)", row[header.index("Source")])
            if match and ran and re.match(r"(LD|ST|ATOM|RED|TEX|TLD|SU|CCTL)", match[1]):
                found[-1][match[1]] += ran
    return [dict(sorted(each.items())) for each in found]


def capture(sources: list[Path], metrics: list[str]) -> list[dict[str, Any]]:
    """Return a record for every launch of the sources."""
    records = []
    for source in sources:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.ncu-rep"
            try:
                profile(source, kernels(source), metrics, report)
            except SystemExit as refusal:
                print(refusal, file=sys.stderr)
                continue
            told, sass = counters(report), executed(report)
        known = [] if source.suffix == ".py" else [line.kernel for line in launches(source)]
        names = known or [kernel for kernel, _ in told]
        times, rest = divmod(len(sass), max(1, len(told)))  # ncu may print each launch's page twice
        if len(told) != len(names) or rest:
            print(f"{source.name}: {len(names)} launches, {len(told)} counted", file=sys.stderr)
            continue
        for number, (kernel, (_, values)) in enumerate(zip(names, told, strict=True)):
            records.append({
                "source": source.name,
                "launch": number,
                "kernel": kernel,
                "counters": [values.get(metric) for metric in METRICS],
                "sass": sass[number * times],
            })  # fmt: skip
    return records


def device() -> dict[str, str]:
    """Return the names and versions behind the figures."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split(
        ","
    )
    versions = subprocess.run(["ncu", "--version"], capture_output=True, text=True, check=True)
    ncu = re.search(r"Version (\S+)", versions.stdout)
    return {
        "device": name.strip(),
        "driver": driver.strip(),
        "ncu": ncu[1] if ncu else "",
    }


def main(arguments: list[str]) -> None:
    """Launch a source under the profiler's eyes, or capture all of them."""
    if arguments[:1] == ["--launch"]:
        source = Path(arguments[1])
        (run_program if source.suffix == ".py" else launch_all)(source)
        return
    if arguments[:1] == ["--results"]:
        keep_results(Path(arguments[1]), Path(arguments[2]))
        return
    target, *names = arguments
    sources = [Path(name) for name in names] or [*sorted(FOLDER.glob("*.cu")), *gallery()]
    records = capture(sources, [*METRICS])
    rows = ",\n".join(json.dumps(record) for record in records)
    head = json.dumps({**device(), "metrics": METRICS})
    Path(target).write_text(f'{head[:-1]}, "launches": [\n{rows}\n]}}\n')


if __name__ == "__main__":
    main(sys.argv[1:])
