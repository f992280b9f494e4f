"""Pin traces and outputs by SHA-256: `scripts/pin write FILE`, then `scripts/pin compare FILE`.

Traces: the gallery, tests/programs and random kernels of tests/fuzz, each under both engines.
Outputs: status, stdout, stderr and written files of every verb on these traces, in every format.
Dates and paths of the machine are cut before hashing. `--outputs FOLDER` keeps all texts, so that
`compare --old FOLDER` prints a diff of those that changed.
"""

import argparse
import difflib
import gzip
import hashlib
import io
import os
import re
import runpy
import shutil
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
os.environ |= {"POLARS_MAX_THREADS": "1", "COLUMNS": "100"}
for variable in ("CUTRACE_DEVICE", "NO_COLOR", "FORCE_COLOR", "GITHUB_ACTIONS"):
    os.environ.pop(variable, None)

GALLERY = ROOT / "traces" / "gallery"
PROGRAMS = ROOT / "tests" / "programs"
ENGINES = ("array", "auto")
"""`auto` compiles every kernel that the compiled engine supports, however small."""

DEVICES = "8800gtx,gtx280,gtx580,k40,p100,v100,a100,h100"
FEW = "gtx580,h100"
ALL_DEVICES = ("hello/hello", "constant_table/constant_table")
"""Traces that are replayed on every device: a few, for it takes 8 s a trace."""

KERNELS = 200
SEED = 20250
PER_JOB = 10
"""Random kernels that one job records."""

EXPORTS = (
    *("cuda-profile", "cuda-profile-csv", "nvprof-metrics", "nvprof-gpu-trace", "ncu-raw"),
    *("ncu-details", "folded", "speedscope", "callgrind", "accel-sim", "perfetto", "requests"),
    "zip",
)
TABULAR = ("table", "csv", "json", "md")
ROWS = ("line", "array", "instruction", "reuse", "set")
CHECKS = ("text", "github", "json", "junit", "sarif", "gitlab", "markdown")
VERBS = (
    *("import", "nvcc", "record", "advise", "analyze", "export", "report", "serve", "why", "check"),
    *("compare", "sweep", "counters", "devices", "gallery", "info", "new", "occupancy", "quiz"),
)
HTML_DATE = re.compile(rb"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.\d]*Z?)?)?")
SECONDS = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|seconds)\b")

Outputs = dict[str, bytes]
Job = Callable[[Path], Outputs]


def main() -> int:
    """Write pins, or compare with written ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--outputs", type=Path, help="keep the outputs in this folder")
    parser.add_argument("--old", type=Path, help="the outputs of the pinned version, for a diff")
    parser.add_argument("--only", default="", help="a regular expression: only jobs that match")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    start = time.monotonic()
    outputs, missing = run_all(re.compile(options.only), options.jobs)
    pins = {name: hashlib.sha256(data).hexdigest() for name, data in outputs.items()}
    if options.outputs:
        keep(outputs, options.outputs)
    seconds = time.monotonic() - start
    print(f"{len(pins)} outputs in {seconds:.0f} s", file=sys.stderr)
    if options.action == "write":
        lines = [f"{pin}  {name}\n" for name, pin in sorted(pins.items())]
        options.file.write_text("".join(lines), encoding="utf-8")
        return int(bool(missing))
    words = [line.split("  ", 1) for line in options.file.read_text("utf-8").splitlines()]
    old = {name: pin for pin, name in words if re.search(options.only, name.split("/")[0])}
    return int(compare(old, pins, outputs, options.old) or bool(missing))


def run_all(only: re.Pattern[str], processes: int) -> tuple[Outputs, list[str]]:
    """Run all jobs; return their outputs, and the names of jobs that raised."""
    outputs: Outputs = {}
    failed = []
    context = get_context("spawn")  # polars has threads
    with TemporaryDirectory() as folder, ProcessPoolExecutor(processes, context) as pool:
        named = [(name, job) for name, job in all_jobs() if only.search(name)]
        running = {pool.submit(run_job, Path(folder), name, job): name for name, job in named}
        for done in as_completed(running):
            name = running[done]
            try:
                outputs |= {f"{name}/{part}": data for part, data in done.result().items()}
            except Exception as error:
                failed.append(name)
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    return outputs, failed


def run_job(folder: Path, name: str, job: Job) -> Outputs:
    """Run one job in a folder of its own; return its outputs without paths of this machine."""
    here = folder / name
    here.mkdir(parents=True)
    os.chdir(here)
    outputs = job(here)
    os.chdir(ROOT)
    shutil.rmtree(here)
    places = {str(here): b"<folder>", str(ROOT): b"<root>", sys.executable: b"<python>"}
    for path, word in places.items():
        outputs = {part: data.replace(path.encode(), word) for part, data in outputs.items()}
    return outputs


def all_jobs() -> Iterator[tuple[str, Job]]:
    """Every job with its name, the longest first."""
    for source in sorted(PROGRAMS.glob("*.cu"), key=lambda path: -path.stat().st_size):
        yield f"programs-{source.stem}", partial(program_outputs, source)
    for source in sorted(gallery_sources(), key=lambda path: path.parent.name != "shared_banks"):
        yield f"gallery-{source.parent.name}-{source.name}", partial(gallery_outputs, source)
    yield "reports", report_outputs
    for number in range(0, KERNELS, PER_JOB):
        yield f"kernels-{number:03}", partial(kernel_outputs, number)
    yield "lists", list_outputs
    yield "errors", error_outputs


def gallery_sources() -> Iterator[Path]:
    """Sources of the gallery that say how they are launched, and scripts that launch one."""
    for path in (*GALLERY.glob("*/*.cu"), *GALLERY.glob("*/*.ptx")):
        if "// cutrace:" in path.read_text("utf-8"):
            yield path
    for table in GALLERY.glob("*/expected.toml"):
        sources = [row["source"] for row in tomllib.loads(table.read_text("utf-8"))["expected"]]
        yield from {table.parent / name for name in sources if name.endswith(".py")}


def gallery_outputs(source: Path, here: Path) -> Outputs:
    """The traces of a gallery source under both engines, and what verbs make of one."""
    shutil.copytree(source.parent, here / "family", ignore=shutil.ignore_patterns("__pycache__"))
    outputs: Outputs = {}
    for engine in ENGINES:
        with patch_engine(engine):
            outputs |= verb_outputs(
                here, f"record/{engine}", "record", f"family/{source.name}", "-o", "t.cutrace",
                *(() if source.suffix == ".py" else ("--engine", engine)), keep=("t.cutrace",),
            )  # fmt: skip
    trace = "t.cutrace"
    run = partial(verb_outputs, here)
    outputs |= run("analyze/devices", "analyze", trace, "-d", DEVICES, "--format", "json")
    outputs |= run("info/verify", "info", trace, "--verify")
    outputs |= run("check/races", "check", trace, "--races", "--memory")
    outputs |= run("why/table", "why", trace)
    outputs |= run("advise/table", "advise", trace)
    if source.suffix == ".ptx":
        return outputs
    for form in TABULAR:
        outputs |= run(f"analyze/{form}", "analyze", trace, "--format", form)
        outputs |= run(f"advise/{form}", "advise", trace, "-d", FEW, "--format", form)
    for form in ("table", "json", "csv"):
        outputs |= run(f"info/{form}", "info", trace, "--format", form)
        outputs |= run(f"why/{form}", "why", trace, "-d", FEW, "--format", form)
        outputs |= run(f"occupancy/{form}", "occupancy", trace, "-d", DEVICES, "--format", form)
    for rows in ROWS:
        outputs |= run(f"analyze/by-{rows}", "analyze", trace, "--by", rows)
    outputs |= run("analyze/all", "analyze", trace, "--all", "-d", DEVICES)
    for form in EXPORTS:
        out = "out.cutrace.zip" if form == "zip" else f"out-{form}"
        outputs |= run(f"export/{form}", "export", trace, "--to", form, "-o", out, keep=(out,))
    outputs |= run("figure", "why", trace, "--figure", "why.svg", keep=("why.svg",))
    outputs |= run("report", "report", trace, "-d", FEW, "-o", "r.html", keep=("r.html",))
    if f"{source.parent.name}/{source.stem}" in ALL_DEVICES:
        every = ("-d", "all", "--jobs", "1", "--format", "json")
        outputs |= run("analyze/every-device", "analyze", trace, *every)
    return outputs


def program_outputs(source: Path, here: Path) -> Outputs:
    """The traces of a program of tests/programs under both engines, and its counters."""
    from program import Program

    import cutrace

    settings = runpy.run_path(str(source.with_suffix(".py")))
    outputs: Outputs = {}
    for engine in ENGINES:
        shutil.rmtree(here / "t.cutrace", ignore_errors=True)
        with patch_engine(engine), cutrace.Session(here / "t.cutrace", engine=engine) as gpu:
            module = gpu.compile(
                source,
                settings.get("ARCH", "compute_75"),
                settings.get("OPTIONS", ()),
                settings.get("TEMPLATES", ()),
            )
            program = Program(gpu, module)
            settings["run"](program)
        outputs |= {f"{engine}/{name}": data for name, data in files_in(here / "t.cutrace")}
        outputs[f"{engine}/results"] = b"".join(array.tobytes() for array in program.results)
    command = ("analyze", "t.cutrace", "-d", FEW, "--no-caches", "--format", "json")
    outputs |= verb_outputs(here, "analyze", *command)
    return outputs | verb_outputs(here, "info", "info", "t.cutrace", "--verify")


def kernel_outputs(first: int, here: Path) -> Outputs:
    """The traces and counters of random kernels; the text of each is pinned beside its trace."""
    import numpy as np
    from fuzz.run import first_rows, without_assembler
    from fuzz.syntax import WORDS
    from fuzz.writer import write

    import cutrace

    outputs: Outputs = {}
    for number, program in enumerate(random_programs(first), first):
        text = write(program)
        outputs[f"{number:03}/kernel.ptx"] = text.encode()
        rows = first_rows(program)
        for engine in ENGINES:
            path = here / f"{number}-{engine}.cutrace"
            session = cutrace.Session(path, engine=engine)
            with patch_engine(engine), without_assembler(), session as gpu:
                source, result = gpu.to_device(rows), gpu.to_device(np.zeros_like(rows))
                cells = gpu.device_array(WORDS, np.uint32)
                kernel = gpu.load_ptx(text).get_function("k")
                kernel[program.blocks, program.threads](source, result, cells)
                values = result.copy_to_host().tobytes() + cells.copy_to_host().tobytes()
            outputs |= {f"{number:03}/{engine}/{name}": data for name, data in files_in(path)}
            outputs[f"{number:03}/{engine}/results"] = values
        command = ("analyze", path.name, "-d", FEW, "--format", "json")
        outputs |= verb_outputs(here, f"{number:03}/analyze", *command)
    return outputs


def random_programs(first: int) -> list[Any]:
    """Random kernels of tests/fuzz: the same for the same number.

    Hypothesis likes to draw constants of whichever modules are loaded; here it must not.
    """
    from fuzz.strategy import programs
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis.internal.conjecture import providers

    drawn: list[Any] = []

    @seed(SEED + first)
    @settings(
        max_examples=PER_JOB, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs())
    def draw(program: Any) -> None:
        drawn.append(program)

    with patch.object(providers, "_get_local_constants", providers.Constants):  # type: ignore[attr-defined]
        draw()
    return drawn


def report_outputs(here: Path) -> Outputs:
    """What verbs make of several traces, and of sources that they record themselves."""
    for family in ("transpose", "reduction", "matrix_product"):
        shutil.copytree(GALLERY / family, here / family)
    run = partial(verb_outputs, here)
    outputs: Outputs = {}
    sources = {
        "naive": "transpose_naive",
        "padded": "transpose_padded",
        "shared": "transpose_shared",
    }
    for name, stem in sources.items():
        outputs |= run(f"record/{name}", "record", f"transpose/{stem}.cu", "-o", f"{name}.cutrace")
    traces = [f"{name}.cutrace" for name in sources]
    for form in TABULAR:
        outputs |= run(f"compare/{form}", "compare", *traces, "-d", FEW, "--format", form)
    outputs |= run("compare/by-line", "compare", *traces, "--by", "line")
    outputs |= run("compare/sources", "compare", "a=transpose/transpose_naive.cu", traces[1])
    outputs |= run("report", "report", *traces, "-d", FEW, "-o", "r.html", keep=("r.html",))
    for form in TABULAR:
        outputs |= run(
            f"sweep/{form}", "sweep", "transpose", "-d", FEW, "--processes", "1", "-o", "t.csv",
            "--format", form, keep=("t.csv",),
        )  # fmt: skip
    (here / "budget.toml").write_text(BUDGET, encoding="utf-8")
    for form in CHECKS:
        budget = ("--budget", "budget.toml", "--format", form)
        outputs |= run(f"check/{form}", "check", "naive.cutrace", *budget)
    outputs |= run(
        "check/update", "check", "naive.cutrace", "--budget", "budget.toml", "--update",
        keep=("budget.toml",),
    )  # fmt: skip
    for index, option in enumerate(WHAT_IF):
        outputs |= run(f"what-if/{index}", "analyze", "shared.cutrace", "-d", FEW, *option)
    shutil.copy(ROOT / "tests" / "golden" / "version1.cutrace.zip", here)
    return outputs | run("version1", "analyze", "version1.cutrace.zip", "--format", "json")


BUDGET = """
[[budget]]
kernel = "transposeNaive"
device = "h100"
global_transactions = 1
"""
WHAT_IF = (
    ("--dlcm", "cg"), ("--scope", "cluster"), ("--schedule", "greedy-oldest"), ("--no-caches",),
    ("--registers", "64"), ("--code", "ptx"), ("--align", "in=128+4"), ("--pad", "in=1"),
    ("--cache-config", "prefer_l1"), ("--set", "coalescer.load=sector"), ("--as-if",),
)  # fmt: skip


def list_outputs(here: Path) -> Outputs:
    """What needs no trace: help, devices, counters, the gallery, a quiz, occupancy from numbers."""
    import cutrace

    run = partial(verb_outputs, here)
    outputs = run("help", "--help")
    for verb in VERBS:
        if verb != "nvcc":  # which prints nvcc's own
            outputs |= run(f"help/{verb}", verb, "--help")
    for form in ("table", "json", "csv"):
        outputs |= run(f"counters/{form}", "counters", "--format", form)
        outputs |= run(f"devices/{form}", "devices", "--format", form)
        outputs |= run(f"device/{form}", "devices", "h100", "--format", form)
        numbers = ("--threads", "256", "--registers", "64", "--shared", "48K", "-d", DEVICES)
        outputs |= run(f"occupancy/{form}", "occupancy", *numbers, "--format", form)
    outputs |= run("occupancy/curves", "occupancy", "--threads", "256", "--registers", "40")
    for counter in sorted(set(cutrace.counters()["counter"])):
        outputs |= run(f"counters/{counter}", "counters", counter)
    for device in cutrace.devices()["device"]:
        outputs |= run(f"devices/{device}", "devices", device)
        outputs |= run(f"devices/{device}.toml", "devices", device, "--toml")
    outputs |= run("gallery", "gallery")
    for family in sorted(path.parent.name for path in GALLERY.glob("*/expected.toml")):
        outputs |= run(f"gallery/{family}", "gallery", family)
        outputs |= run(f"quiz/{family}", "quiz", family, "--seed", "3", "--solutions")
    return outputs | run("new", "new", "model", "tlb", keep=("tlb",))


def error_outputs(here: Path) -> Outputs:
    """Messages for command lines and files that cutrace refuses."""
    (here / "empty.cu").write_text("", encoding="utf-8")
    (here / "broken.cu").write_text("__global__ void k( { }\n", encoding="utf-8")
    (here / "kernel.cu").write_text(
        "__global__ void k(float *out) { out[threadIdx.x + 40] = 1; }\n", encoding="utf-8"
    )
    (here / "broken.ptx").write_text(".version 8.0\nmov.u33 %r1, 2;\n", encoding="utf-8")
    (here / "no.cutrace").mkdir()
    (here / "device.toml").write_text("[device]\nnam = 3\n", encoding="utf-8")
    outputs: Outputs = {}
    for index, words in enumerate(ERRORS):
        outputs |= verb_outputs(here, f"{index:02}", *words.split("|"))
    return outputs


ERRORS = (
    "analyse", "analyze", "analyze|none.cutrace", "analyze|no.cutrace", "analyze|empty.cu",
    "record|empty.cu", "record|broken.cu", "record|broken.ptx", "record|kernel.cu", 
    "record|none.cu",
    "record|kernel.cu|--launch|k<<<1,32>>>(out:f32[32])",
    "record|kernel.cu|--launch|k<<<1,32>>>(out:f32[32])|--bounds|report",
    "record|kernel.cu|--launch|k<<<1,32>>>()", "record|kernel.cu|--launch|k<<<1>>>(",
    "record|kernel.cu|--launch|q<<<1,32>>>(out:f32[32])",
    "record|kernel.cu|--launch|k<<<1,2048>>>(out:f32[32])", "record|kernel.cu|--engine|fast",
    "record|kernel.cu|--only-blocks|x", "record|kernel.cu|--max-trace-size|big",
    "devices|h10", "devices|device.toml", "counters|global_transaction", "gallery|transpos",
    "quiz|transpos", "occupancy", "occupancy|--threads|0", "occupancy|--threads|256|-d|h10",
    "occupancy|--threads|256|--shared|1T", "why|kernel.cu|kernel.cu:x", "export|none|--to|folded",
    "export|no.cutrace|--to|fold", "compare|none.cutrace", "check", "check|kernel.cu",
    "check|--model|none.toml", "sweep|none.toml", "import|empty.cu", "info|empty.cu", "new|rule|a",
    "new|model|A-b", "report|none.cutrace", "advise|none.cutrace", "serve|none.cutrace",
)  # fmt: skip


def patch_engine(engine: str) -> Any:
    """Let `auto` compile all that the compiled engine supports; `array` is as it is."""
    from engines import compiled_where_known

    return compiled_where_known() if engine == "auto" else patch.dict(os.environ)


def verb_outputs(here: Path, name: str, *words: str, keep: tuple[str, ...] = ()) -> Outputs:
    """What a command line prints, its exit status, and the files named in `keep`."""
    from cutrace.commands._main import run

    for old in keep:
        shutil.rmtree(here / old, ignore_errors=True)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status: object = run(words)
        except SystemExit as leaving:
            status = leaving.code
    notes = SECONDS.sub("<time>", err.getvalue())
    text = f"$ cutrace {' '.join(words)}\n{out.getvalue()}--- stderr\n{notes}--- status {status}\n"
    outputs = {f"{name}.txt": text.encode()}
    for kept in keep:
        outputs |= {f"{name}/{file}": data for file, data in files_in(here / kept)}
    return outputs


def files_in(path: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a folder with their paths in it, or one file, without dates."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in files:
        if file.is_file():
            yield str(file.relative_to(path.parent if file == path else path)), without_dates(file)


def without_dates(file: Path) -> bytes:
    data = file.read_bytes()
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            return b"".join(name.encode() + archive.read(name) for name in archive.namelist())
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    return HTML_DATE.sub(b"<date>", data) if file.suffix == ".html" else data


def keep(outputs: Outputs, folder: Path) -> None:
    """Write outputs to files of their names."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in outputs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def compare(
    old: dict[str, str], new: dict[str, str], outputs: Outputs, folder: Path | None
) -> bool:
    """Print which outputs differ, with a diff where the old ones are kept; return whether any."""
    lost, added = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    changed = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    for word, names in (("missing", lost), ("new", added), ("differs", changed)):
        for name in names:
            print(f"{word}: {name}")
    for name in changed if folder else []:
        assert folder is not None
        path = folder / name
        try:
            before, after = path.read_text("utf-8"), outputs[name].decode()
        except (FileNotFoundError, UnicodeDecodeError):
            continue
        sys.stdout.writelines(
            difflib.unified_diff(
                before.splitlines(keepends=True), after.splitlines(keepends=True),
                f"old/{name}", f"new/{name}", n=1,
            )
        )  # fmt: skip
    print(f"{len(changed)} of {len(new)} differ, {len(lost)} missing, {len(added)} new")
    return bool(lost or added or changed)


if __name__ == "__main__":
    sys.exit(main())
