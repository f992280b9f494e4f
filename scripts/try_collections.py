"""The programs of public collections: where each lies, what it is built of, how it is called.

The collections are NVIDIA/cuda-samples, yuhc/gpu-rodinia and sgrauerg/polybenchGpu. What their own
files do not say of a program, or say for machines with a GPU alone, is in try_programs.toml:

arguments   what it is called with; {inputs} is the folder that try_inputs.py fills
flags       more options for nvcc; {cuda-samples} is the checkout of that name
changes     constants of its source that no argument reaches: what is written there, and instead
sources     what it is built of, patterns among them, but those of `without`
runs_in     the folder in which it runs, if not its own
left_out    why it is not tried
"""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SETTINGS = Path(__file__).with_name("try_programs.toml")
SAMPLES = re.compile(r"^(0|2|3|4|5|6)_")
_EXECUTABLE = re.compile(r"add_executable\(\s*([\w-]+)\s+([^)]*)\)")
_SOURCES = (".cu", ".cpp", ".c")
_MODULE = re.compile(r'set\(CUDA_(FATBIN|PTX)_FILE "\$\{CMAKE_CURRENT_BINARY_DIR\}/([^"]+)"')
_KERNEL_SOURCE = re.compile(r'set\(CUDA_KERNEL_SOURCE "\$\{CMAKE_CURRENT_SOURCE_DIR\}/([^"]+)"')
_TOOLKIT_HEADER = re.compile(r"\$\{CUDA_INCLUDE_DIR\}/([\w./]+)")
_OPENMP = ("-Xcompiler", "-fopenmp")


@dataclass(frozen=True)
class Program:
    """A program of a collection: `root` is the checkout."""

    collection: str
    name: str
    root: Path
    folder: Path
    sources: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    modules: tuple[tuple[str, str, str], ...] = ()
    headers: tuple[str, ...] = ()
    arguments: str = ""
    runs_in: str = ""
    left_out: str = ""
    changes: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()


def find_programs(checkouts: Sequence[Path], file: Path = SETTINGS) -> Iterator[Program]:
    """List the programs of all collections, with the settings of a file."""
    settings = tomllib.loads(file.read_text())
    samples = next((path for path in checkouts if (path / "Samples").is_dir()), Path("."))
    for checkout in checkouts:
        for program in (*_samples(checkout), *_polybench(checkout), *_rodinia(checkout, settings)):
            own = settings.get(program.collection, {}).get(program.name, {})
            yield _with_settings(program, own, samples)


def _with_settings(program: Program, own: Mapping[str, Any], samples: Path) -> Program:
    flags = str(own.get("flags", "")).replace("{cuda-samples}", str(samples))
    without = own.get("without", ())
    return Program(
        program.collection,
        program.name,
        program.root,
        program.folder,
        tuple(_expand(program.folder, own.get("sources", program.sources), without)),
        (*program.flags, *shlex.split(flags)),
        program.modules,
        program.headers,
        own.get("arguments", ""),
        own.get("runs_in", ""),
        own.get("left_out", ""),
        tuple(own.get("changes", {}).items()),
    )


def _expand(folder: Path, patterns: Sequence[str], without: Sequence[str]) -> Iterator[str]:
    for pattern in patterns:
        found = sorted(folder.glob(pattern)) if "*" in pattern else [folder / pattern]
        for path in found:
            if not any(fnmatch(path.name, each) for each in without):
                yield str(path.relative_to(folder))


def _samples(checkout: Path) -> Iterator[Program]:
    """NVIDIA/cuda-samples: each says in its CMakeLists.txt what it is built of."""
    for cmake in sorted(checkout.glob("Samples/*/*/CMakeLists.txt")):
        text = cmake.read_text(errors="replace")
        found = _EXECUTABLE.search(text)
        if found is None or not SAMPLES.match(cmake.parent.parent.name):
            continue
        sources = tuple(w for w in found[2].split() if w.endswith(_SOURCES))
        own = [f"-I{folder.name}" for folder in cmake.parent.glob("inc*/")]
        modules = tuple(_modules(text))
        flags = (f"-I{checkout / 'Common'}", *own, "-std=c++17", *_flags_of(text))
        headers = tuple(_TOOLKIT_HEADER.findall(text))
        yield Program(
            *("cuda-samples", cmake.parent.name, checkout, cmake.parent),
            *(sources, flags, modules, headers),
        )


def link_nvrtc() -> Iterator[str]:
    """Options with which programs find NVRTC as a package brings it."""
    spec = find_spec("nvidia.cuda_nvrtc")
    for folder in (spec and spec.submodule_search_locations) or ():
        yield f"-I{folder}/include"
        yield f"-L{folder}/lib"
        for library in Path(folder, "lib").glob("libnvrtc.so.*"):
            yield f"-l:{library.name}"
        yield from ("-Xlinker", f"-rpath={folder}/lib")


def _modules(cmake: str) -> Iterator[tuple[str, str, str]]:
    """The files of device code that a sample loads: the option, the file, its source."""
    source = _KERNEL_SOURCE.search(cmake)
    for kind, name in _MODULE.findall(cmake):
        if source:
            yield f"-{kind.lower()}", name, source[1]


def _flags_of(cmake: str) -> Iterator[str]:
    if "SEPARABLE_COMPILATION" in cmake:
        yield "-rdc=true"
    if "extended-lambda" in cmake:
        yield "--extended-lambda"
    if "OpenMP" in cmake:
        yield from _OPENMP
    for library in ("cublas", "cufft", "curand", "cusparse"):
        if f"CUDA::{library}" in cmake:
            yield f"-l{library}"
    if "CUDA::cuda_driver" in cmake:
        yield "-lcuda"
    if "CUDA::nvrtc" in cmake:
        yield from link_nvrtc()


def _polybench(checkout: Path) -> Iterator[Program]:
    """sgrauerg/polybenchGpu: a folder and a .cu for each, sizes in headers or in the source."""
    for source in sorted(checkout.glob("CUDA/*/*.cu")):
        yield Program("polybenchGpu", source.stem, checkout, source.parent, (source.name,))


def _rodinia(checkout: Path, settings: Mapping[str, Mapping[str, object]]) -> Iterator[Program]:
    """yuhc/gpu-rodinia: the settings say what each is built of."""
    if not (checkout / "cuda" / "backprop").is_dir():
        return
    for name in sorted(settings.get("gpu-rodinia", {})):
        yield Program("gpu-rodinia", name, checkout, checkout / "cuda" / name.partition(":")[0])
