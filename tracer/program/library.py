"""Build our library, the shim for CUDA's runtime and driver; it is compiled on first use.

`runtime/` and `driver/` form one library under two sonames, so that a program that uses both has
one device; `libraries/` adds cuBLAS and others, computed on the host. The library exports the
functions that it implements. All other CUDA functions, by the toolkit's headers and by the export
lists of NVIDIA's libraries, are stubs that fail with their name, so that a program that calls one
learns which it is. This file generates the C tables, stubs and version scripts for that.
"""

import mmap
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

from ...base.cache import kept_folder, key_of
from ...base.cores import cores
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..front.toolkit import Toolkit
from .wire import RUNTIME, checksum

DRIVER = Path(__file__).with_name("driver")
LIBRARIES = Path(__file__).with_name("libraries")
HEADERS = LIBRARIES / "include"
"""cublas_v2.h and others, for programs compiled on machines without NVIDIA's libraries."""

HEADERS_NOW = ("nvToolsExt", "cutil", "cutil_x86_64", "cutil_i386")
"""Libraries that older programs link and that today consist of headers only."""

RUN = "run"
"""Folder of the library without stand-ins, for programs in which NVIDIA's libraries run."""

NVML = "libnvidia-ml.so.1"
"""NVML is part of the driver, so a program that finds the driver expects NVML as well."""

FLAGS = (
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-fno-omit-frame-pointer",
)  # error.c finds the caller by them

_DEFINED = re.compile(r"^API [^\n(]*?(\w+)\(", re.MULTILINE)
_ERROR = re.compile(r"^\s+(cuda(?:Error\w+|Success))\s*=", re.MULTILINE)


def build_library(toolkit: Toolkit, compiler: str) -> Path:
    """Return the folder with `libcudart.so.13` and `libcuda.so.1`, to be searched first.

    Its folder `stubs` has a `libcuda.so` for the linker, as NVIDIA's toolkit has. `within` has the
    library that a running process opens (`inprocess/recorder_process.py`): it no longer
    reads $LD_LIBRARY_PATH but finds a loaded library by the soname of NVIDIA's driver. `libraries`
    has the file names of the libraries that it replaces.
    """
    major = toolkit.version.partition(".")[0]
    folders = (RUNTIME, DRIVER, LIBRARIES, HEADERS)
    sources = sorted(path for folder in folders for path in folder.glob("*.[ch]"))
    writers = [Path(__file__), _NAMES, _FORWARDS, _STAND_INS]
    texts = (path.read_bytes() for path in (*sources, *writers))
    has_curand = str((toolkit.include / _CURAND).is_file())
    made_of: list[str | bytes] = [compiler, toolkit.version, has_curand, *FLAGS, *texts]
    key = key_of(*made_of)
    return kept_folder("runtime", key, lambda into: _make(into, toolkit, compiler, major))


def _make(folder: Path, toolkit: Toolkit, compiler: str, major: str) -> None:
    work = folder / "made"
    work.mkdir()
    ours = (path for folder in (RUNTIME, DRIVER, LIBRARIES) for path in sorted(folder.glob("*.c")))
    sources = [*ours, *_written(work, toolkit, compiler)]
    headers = [f"-I{each}" for each in (toolkit.include, RUNTIME, DRIVER, work)]

    def compile_one(path: Path, *flags: str) -> str:
        object_file = str(work / f"{path.parent.name}_{path.stem}.o")
        options = *FLAGS, *flags, *headers
        _run([compiler, "-x", "c", "-c", *options, str(path), "-o", object_file], work)
        return object_file

    # A g++ process per file: given several files, g++ compiles all as C++, whatever -x says.
    with ThreadPoolExecutor(cores()) as pool:
        objects = list(pool.map(compile_one, sources))
    driver_objects = [
        object_file
        for path, object_file in zip(sources, objects, strict=True)
        if path.parent != LIBRARIES or path.name in ("library.c", "nvml.c")
    ]
    for target, parts, stand_ins in (
        (folder, objects, STAND_INS),
        (folder / RUN, driver_objects, OF_DRIVER),
    ):
        target.mkdir(exist_ok=True)
        texts = {"refusals": write_refusals, "versions": write_versions}
        for stem, write in texts.items():
            path = work / f"{stem}_{len(stand_ins)}.c"
            path.write_text(write(parts, stand_ins))
            parts = [*parts, compile_one(path, "-O0")]  # 2,500 stubs: in a third of the time
        _lay_out(target, parts, stand_ins, compiler, major)
        (target / "stubs").mkdir()
        _make_stubs(target / "stubs" / "libcuda.so", work, compiler)
    shutil.rmtree(work)


def _lay_out(
    folder: Path, objects: list[str], stand_ins: Sequence["StandIn"], compiler: str, major: str
) -> None:
    """Link the library of these objects, and link to it by the names of what it replaces."""
    name = f"libcudart.so.{major}"
    ours_begin = ("cuda", "__cuda", *(each.names for each in stand_ins))
    names = "".join(f"{begin}*; " for begin in ours_begin)
    others = f"libcudart.so.12 {{ }};\n{version_nodes(stand_ins)}"
    (folder / "map").write_text(f"{name} {{ global: {names}}};\n{others}")
    _link(compiler, objects, folder / name, folder)
    (folder / "within").mkdir()
    _link(compiler, objects, folder / "within" / "libcuda.so.1", folder)
    (folder / "map").unlink()
    (folder / "libraries").mkdir()
    links = {f"lib{each}.so" for each in ("cudart", *HEADERS_NOW)}
    for each in stand_ins:
        links.add(f"lib{each.linked}.so")
        for file in each.files:
            (folder / "libraries" / file).symlink_to(f"../{name}")
    for link in (*links, "libcudart.so.12", "libcuda.so.1", "libcuda.so", NVML):
        if link != name:
            (folder / link).symlink_to(name)


def _link(compiler: str, objects: list[str], library: Path, work: Path) -> None:
    """Link the library under a soname; the dynamic loader identifies it by that.

    It has no `.symtab`, by which driver/embedded.c finds other copies of the runtime: a library of
    an earlier version, in a program that was built with it, must not redirect this one to itself.
    """
    linking = (
        *("-s", "-Wl,-z,defs", "-Wl,-Bsymbolic", "-Wl,-z,initfirst", f"-Wl,-soname,{library.name}"),
        *(f"-Wl,--version-script,{work / 'map'}", "-pthread", "-ldl", "-lm"),
    )
    _run([compiler, "-shared", *objects, *linking, "-o", str(library)], work)


def _written(work: Path, toolkit: Toolkit, compiler: str) -> list[Path]:
    """Write the sources generated from the toolkit's headers; return their paths."""
    (work / "checksum.h").write_text(f"#define WIRE_CHECKSUM {checksum()}u\n")
    (work / "names.h").write_text("".join(f"NAME({n})\n" for n in _error_names(toolkit)))
    (work / "stand_ins.h").write_text(write_names())
    (work / "errors.h").write_text("".join(f"NAME({n})\n" for n in driver_errors(toolkit)))
    entries, refusals = driver_table(toolkit, functions_of(DRIVER))
    (work / "entries.h").write_text(entries)
    (work / "refused_driver.c").write_text(refusals)
    exports, refusals = runtime_table(toolkit, functions_of(RUNTIME), read_names()["cudart"])
    (work / "exports.h").write_text(exports)
    (work / "refused.c").write_text(refusals)
    declared = prototypes(toolkit, compiler)
    for place, rows in groupby(read_forwards(), key=lambda each: each.place):
        header = work / f"forwards_{place.replace('/', '_')}.h"
        header.write_text(write_forwards(rows, declared))
    included = ("driver.h", "forwards_driver.h", "forwards_runtime.h")
    (work / "forwards.c").write_text("".join(f'#include "{each}"\n' for each in included))
    return [work / "refused.c", work / "refused_driver.c", work / "forwards.c"]


def _make_stubs(library: Path, work: Path, compiler: str) -> None:
    """Make the library that -lcuda links: every name, with the soname of NVIDIA's driver."""
    source = work / "stubs.c"
    source.write_text(stub_library((work / "entries.h").read_text()))
    soname = "-Wl,-soname,libcuda.so.1"
    _run([compiler, "-x", "c", "-shared", "-fPIC", soname, str(source), "-o", str(library)], work)


def _run(command: list[str], work: Path) -> None:
    answer = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=work
    )
    if answer.returncode:
        raise CutraceError(
            f"{command[0]} could not compile cutrace's own runtime library:\n"
            f"{answer.stderr.strip()}"
        )


def _error_names(toolkit: Toolkit) -> list[str]:
    text = (toolkit.include / "driver_types.h").read_text(errors="replace")
    return list(dict.fromkeys(_ERROR.findall(text)))


def functions_of(folder: Path) -> set[str]:
    """Return the functions that a folder exports: those of its sources, and its forwards."""
    texts = (path.read_text(encoding="utf-8") for path in folder.glob("*.c"))
    forwards = (each.name for each in read_forwards() if each.folder == folder.name)
    return {name for text in texts for name in _DEFINED.findall(text)}.union(forwards)


_FORWARDS = Path(__file__).with_name("forwards.txt")
_LIBRARY_HEADERS = (
    *("cublas_v2.h", "cublasLt.h", "cufftXt.h", "cusolverDn.h", "cusparse.h", "nvml.h"),
)
_CURAND = "curand.h"
"""NVIDIA's own: its wheel is small enough to be one of the extra `programs`."""
_PROTOTYPE = re.compile(
    r"\b(\w+(?:result|Result|Error_t|Return_t|Status_t)|size_t|const char \*) ?((?:cu|nvml)\w+)"
    r"\(([^();]*)\)"
)
_PARAMETER = re.compile(r"(\w+)(?:\[\w*\])* ?(?:,|$)")
_STRICT = ('ignored "-Wunused-parameter"', 'error "-Wimplicit-function-declaration"')


@dataclass(frozen=True, slots=True)
class Forward:
    """A line of forwards.txt: a function of a folder or of one of its files, and the expression
    that is all of its body.

    `parameters` are "" for those of the header.
    """

    place: str
    name: str
    parameters: str
    call: str

    @property
    def folder(self) -> str:
        """The folder of the file whose functions it may call."""
        return self.place.partition("/")[0]


def read_forwards(text: str | None = None) -> Iterator[Forward]:
    """Yield the functions of forwards.txt, or of a text like it."""
    place = ""
    for line in re.split(r"\n(?! )", text or _FORWARDS.read_text(encoding="utf-8")):
        if line.startswith("["):
            place = line.strip("[]")
        elif line and not line.startswith("#"):
            head, _, call = " ".join(line.split()).partition(" = ")
            name, _, given = head.partition("(")
            yield Forward(place, name, given.removesuffix(")"), call)


def prototypes(toolkit: Toolkit, compiler: str) -> dict[str, tuple[str, str]]:
    """Return type and parameters of each function of CUDA's headers, older ones too, and of ours
    for NVIDIA's libraries.
    """
    folders = (f"-I{each}" for each in (toolkit.include, DRIVER, RUNTIME))
    headers = ["driver.h", *(HEADERS / name for name in _LIBRARY_HEADERS)]
    if (toolkit.include / _CURAND).is_file():
        headers.append(_CURAND)
    answer = subprocess.run(
        [compiler, *("-x", "c", "-E", "-P"), *folders, "-"],
        input="".join(f'#include "{each}"\n' for each in headers),
        capture_output=True,
        text=True,
    )
    return {
        name: (returned, parameters)
        for returned, name, parameters in _PROTOTYPE.findall(" ".join(answer.stdout.split()))
    }


def write_forwards(forwards: Iterable[Forward], declared: Mapping[str, tuple[str, str]]) -> str:
    """Return C: functions of forwards.txt, of which headers declare these types and parameters.

    A function that passes all parameters on calls the other by a name of its own: both have one
    layout of parameters, but types with different names.
    """
    lines = [f"#pragma GCC diagnostic {each}" for each in _STRICT]
    for each in forwards:
        plain = "CUresult" if each.folder == "driver" else "cudaError_t"
        status, listed = declared.get(each.name, (plain, ""))
        given, call = each.parameters or listed, each.call
        if call.isidentifier() and call[0].islower():
            own = "cudaError_t" if call.startswith("cuda") else "CUresult"
            lines.append(f'extern {own} to_{each.name}({given}) __asm__("{call}");')
            names = () if given == "void" else _PARAMETER.findall(given)
            call = f"to_{each.name}({', '.join(names)})"
            call = call if own == status else f"result({call})"
        lines.append(f"API {status} {each.name}({given}) {{ return {call}; }}")
    return "\n".join((*lines, ""))


_DECLARED = re.compile(r"\b(cuda[A-Z]\w*)\s*\(")
_PER_THREAD = re.compile(r"#\s*define\s+\w+\s+__CUDART_API_PT(?:SZ|DS)\((\w+)\)")
_TWINS = ("_ptsz", "_ptds")
_TWELVE = "twelve_"

JUMPS = """
#define API __attribute__((visibility("default")))
#ifdef __aarch64__
#define JUMP(function) "b " #function
#else
#define JUMP(function) "jmp " #function "@PLT"
#endif
"""
"""C macros that `jump` needs."""

_REFUSE = "int refuse(const char *name);"

_RENAMED = {
    "cudaEventElapsedTime_v2": "cudaEventElapsedTime",
    "cudaGraphAddDependencies_v2": "cudaGraphAddDependencies",
    "cudaGraphAddNode_v2": "cudaGraphAddNode",
    "cudaMemAdvise_v2": "cudaMemAdvise",
    "cudaMemPrefetchAsync_v2": "cudaMemPrefetchAsync",
    "cudaStreamGetCaptureInfo_v3": "cudaStreamGetCaptureInfo",
    "cudaThreadExit": "cudaDeviceReset",
    "cudaThreadGetCacheConfig": "cudaDeviceGetCacheConfig",
    "cudaThreadGetLimit": "cudaDeviceGetLimit",
    "cudaThreadSetCacheConfig": "cudaDeviceSetCacheConfig",
    "cudaThreadSetLimit": "cudaDeviceSetLimit",
    "cudaThreadSynchronize": "cudaDeviceSynchronize",
}
"""CUDA 12's names of functions that CUDA 13 renamed: cuda_runtime_api.h of 12.9 and 13.0."""


@dataclass(frozen=True, slots=True)
class Export:
    """The function that a symbol name means in one version of CUDA (0: in any version)."""

    name: str
    function: str
    version: int = 0


def runtime_table(toolkit: Toolkit, ours: set[str], listed: Sequence[str]) -> tuple[str, str]:
    """Return C: the EXPORT lines of all functions, and the functions that only refuse or jump.

    `listed` are the names that NVIDIA's library exports, including those of other headers.
    """
    text = (toolkit.include / "cuda_runtime_api.h").read_text(errors="replace")
    declared = _DECLARED.findall(text.partition("#if defined(__cplusplus)")[2])
    twelve = {*_RENAMED, *(n.removeprefix(_TWELVE) for n in ours if n.startswith(_TWELVE))}
    names = dict.fromkeys((*declared, *(name for name in listed if name not in twelve)))
    missing = [name for name in names if name not in ours and not name.endswith(_TWINS)]
    per_thread = _PER_THREAD.findall(text) + [name[:-5] for name in listed if name.endswith(_TWINS)]
    exports = _exports(ours, missing, (*per_thread, "cudaLaunchKernel", "__cudaLaunchKernel"))
    lines = [f"EXPORT({each.name}, {each.function}, {each.version})\n" for each in exports]
    refusals = [f'API int {name}(void) {{ return refuse("{name}"); }}' for name in missing]
    return "".join(lines), "\n".join((JUMPS, _REFUSE, *refusals, *_jumps(exports), ""))


def _exports(ours: set[str], missing: list[str], per_thread: Iterable[str]) -> list[Export]:
    """Return all exports, sorted by name. Per-thread streams (_TWINS) act like all others."""
    streams = set(per_thread)
    plain = {Export(name, name) for name in (*ours, *missing) if not name.startswith(_TWELVE)}
    special = {name.removeprefix(_TWELVE): name for name in ours if name.startswith(_TWELVE)}
    twelve = {Export(name, function, 12) for name, function in {**special, **_RENAMED}.items()}
    twins = {
        Export(each.name + twin, each.function, each.version)
        for each in plain | twelve
        for twin in _TWINS
        if re.sub(r"_v\d$", "", each.name) in streams
    }
    return sorted(plain | twelve | twins, key=lambda export: (export.name, export.version))


def _jumps(exports: Sequence[Export]) -> Iterator[str]:
    """Yield the names without a C function: per-thread twins, and all names of CUDA 12."""
    of_12 = {each.name for each in exports if each.version == 12}
    for each in exports:
        if each.version == 0 and each.name != each.function:
            yield jump(each.name, each.function)
        if each.function.startswith(_TWELVE) and not each.name.endswith(_TWINS):
            continue  # runtime/twelve.c sets the symbol's version itself
        if each.version == 12 or each.name not in of_12:
            label = f"jump_{each.name}"
            versioned = f"\\n.symver {label}, {each.name}@libcudart.so.12, remove"
            yield jump(label, each.function, versioned)


def jump(label: str, function: str, more: str = "") -> str:
    """Return C for a function that jumps to another; `more` is added to the assembly."""
    begin = f".globl {label}\\n.type {label}, %function\\n{label}: "
    begin = f".globl {label}\\n.type {label}, %function\\n{label}: "
    return f'__asm__("{begin}" JUMP({function}) "{more}");'


_TYPE = re.compile(r"^typedef \w+ \(CUDAAPI \*PFN_(cu\w+)_v(\d+)\)", re.MULTILINE)
_NEWEST = re.compile(r"^#define (cu[A-Z]\w+)\s+(?:__CUDA_API_PT[DS]\w\()?(cu\w+)", re.MULTILINE)
_DRIVER_FUNCTION = re.compile(r"^CUresult CUDAAPI (cu\w+)\(", re.MULTILINE)
_DRIVER_DECLARED = re.compile(r"\b(cu[A-Z]\w+)_v(\d+)\(")
_DRIVER_PER_THREAD = re.compile(r"__CUDA_API_(PT[DS][SZ])\((cu\w+)\)")
_FIRST = (
    *("cuCtxDestroy", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuStreamDestroy", "cuEventDestroy"),
    *("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxSetFlags"),
    "cuIpcOpenMemHandle",
)
"""First versions that have the signature of the second; all other first ones use 32-bit sizes."""

_ERROR_LINE = re.compile(r"^\s+(CUDA_(?:SUCCESS|ERROR_\w+))\s*=", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """A function, its public name, and the CUDA version since which the name means it."""

    name: str
    asked: str
    since: int


def driver_errors(toolkit: Toolkit) -> list[str]:
    """Return the names of the driver's errors."""
    return list(dict.fromkeys(_ERROR_LINE.findall(_read(toolkit, "cuda.h"))))


def driver_table(toolkit: Toolkit, ours: set[str]) -> tuple[str, str]:
    """Return C: the ENTRY lines of all functions, and stubs for the unimplemented ones."""
    entries = [
        *_entries(_read(toolkit, "cudaTypedefs.h"), _read(toolkit, "cuda.h"), ours),
        *(Entry(name, name, 0) for name in _FIRST),
    ]
    names = dict.fromkeys(entry.name for entry in entries)
    lines = [f"ENTRY({entry.name}, {entry.asked}, {entry.since})\n" for entry in entries]
    per_thread = dict(_per_thread_twins(_read(toolkit, "cuda.h"), names))
    plain = {name.removesuffix("_v2") for name in names if name.endswith("_v2")}
    first = [jump(name, f"{name}_v2") for name in _FIRST]
    declared = set(_DRIVER_FUNCTION.findall(_read(toolkit, "cuda.h")))
    missing = sorted((plain | names.keys() | declared) - ours - set(_FIRST) - set(per_thread))
    refusals = [f'API int {name}(void) {{ return refuse_driver("{name}"); }}' for name in missing]
    head = f"{JUMPS}int refuse_driver(const char *name);\n"
    return "".join(lines), "\n".join((head, *refusals, *per_thread.values(), *first, ""))


def stub_library(entries: str) -> str:
    """Return C: an empty function for each name, to link against."""
    names = dict.fromkeys(re.findall(r"^ENTRY\((\w+)", entries, re.MULTILINE))
    return "".join(f"void {name}(void) {{}}\n" for name in names)


def _read(toolkit: Toolkit, name: str) -> str:
    return (toolkit.include / name).read_text(errors="replace")


def _entries(types: str, header: str, ours: set[str]) -> Iterator[Entry]:
    """Yield the versions of each name.

    The newest is the last one that cuda.h declares, even if the plain name does not map to it yet.
    Each older one has the preceding suffix.
    """
    newest = dict(_NEWEST.findall(header))
    last: dict[str, int] = {}
    for name, number in _DRIVER_DECLARED.findall(header):
        last[name] = max(int(number), last.get(name, 1))
    since: dict[str, set[int]] = {}
    for name, version in _TYPE.findall(types):
        since.setdefault(name, set()).add(int(version))
    for symbol, versions in since.items():
        # Example: cuda.h defines cuMemAlloc as cuMemAlloc_v2, and there are typedefs of cuMemAlloc
        # for CUDA 2.0 and 3.2. Newest first, 3.2 is cuMemAlloc_v2 and 2.0 is cuMemAlloc.
        name, _, suffix = newest.get(symbol, symbol).partition("_v")
        steps = sorted(versions, reverse=True)
        suffix = max(int(suffix or 1), min(last.get(name, 1), len(steps)))
        for step, version in enumerate(steps):
            number = suffix - step
            yield Entry(f"{name}_v{number}" if number > 1 else name, symbol, version)
    for symbol, name in newest.items():  # cuGraphInstantiate means WithFlags since CUDA 12
        if symbol not in since and name in since:
            yield Entry(name, symbol, 12000)
    listed = {newest.get(symbol, symbol) for symbol in since}
    for name in sorted(ours - listed - set(since)):
        symbol = re.sub(r"_v\d$", "", name)
        if name.startswith("cu") and symbol not in since:
            yield Entry(name, symbol, 0)


def _per_thread_twins(header: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the per-thread-stream variants by name; here they act as their plain versions."""
    name_set = set(names)
    for kind, name in dict.fromkeys(_DRIVER_PER_THREAD.findall(header)):
        if name in name_set:
            twin = f"{name}_{kind.lower()}"
            yield twin, jump(twin, name)


@dataclass(frozen=True, slots=True)
class StandIn:
    """A replaced library: its linker name, function prefix, and file names in CUDA 12 and 13.

    A file's symbols have the file's name as their version, if they are versioned. `refusal` is the
    status for an unsupported call. `wheels` are the packages that have the files.
    """

    linked: str
    names: str
    files: tuple[str, ...]
    refusal: int
    has_versions: bool = True
    wheels: tuple[str, ...] = ()


def _read_stand_ins() -> Iterator[StandIn]:
    for row in tomllib.loads(_STAND_INS.read_text(encoding="utf-8"))["library"]:
        lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
        yield StandIn(**{**row, **lists})


_STAND_INS = LIBRARIES / "libraries.toml"
STAND_INS = tuple(_read_stand_ins())
OF_DRIVER = tuple(each for each in STAND_INS if each.linked == "nvidia-ml")
"""The stand-ins that remain where NVIDIA's libraries run themselves."""

_NAMES = Path(__file__).with_name("names.txt")

_SECOND = re.compile(
    r"cublas(Create|Destroy|GetVersion|SetWorkspace|[SG]et(Stream|PointerMode)|"
    r"(I?[sdcz]|[SDCZ]|Sc|Dz|Cs|Zd)(a?xpy|scal|copy|swap|dot[uc]?|nrm2|a(sum|max|min)|rotm?g?|"
    r"(ge|gb|sy|he|sb|hb|sp|hp|tr|tb|tp)mv|t[rbp]sv|ger[uc]?|(sy|he|sp|hp)r2?|"
    r"(ge|sy|he|tr)mm|(sy|he)r2?k|trsm))"
)
"""cuBLAS functions exported as `NAME_v2`; the plain NAME is the interface of CUDA 3.

Source: cuBLAS documentation, 1.1 "New and Legacy cuBLAS API", and cublas_v2.h of CUDA 12.
"""

_SHIM_DEFINED = re.compile(r"^\w+ T (\w+)$", re.MULTILINE)


def files() -> Iterator[str]:
    """Yield the names of all files that the library replaces."""
    for library in STAND_INS:
        yield from library.files


def version_nodes(stand_ins: Sequence[StandIn]) -> str:
    """Return the linker's version nodes besides the library's own."""
    versioned = (file for each in stand_ins if each.has_versions for file in each.files)
    return "".join(f"{file} {{ }};\n" for file in versioned)


def read_names() -> Mapping[str, Sequence[str]]:
    """Return the exports of NVIDIA's libraries by linker name, `cudart` included.

    From NVIDIA's packages for CUDA 13.5 and 12.9 on PyPI by `nm -D`; for NVML the functions that
    nvidia-ml-py 13.615 looks up.
    """
    _, *parts = re.split(r"^\[(\S+)\]$", _NAMES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.split() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def write_names() -> str:
    """Return C: STAND_IN lines with each library's function prefix and symbol version."""
    versions = (f'"{each.files[-1]}"' if each.has_versions else "NULL" for each in STAND_INS)
    pairs = zip(STAND_INS, versions, strict=True)
    return "".join(f'STAND_IN("{each.names}", {version})\n' for each, version in pairs)


def write_refusals(objects: Sequence[str], stand_ins: Sequence[StandIn] = STAND_INS) -> str:
    """Return C: a stub for each export of these libraries that the objects do not define."""
    refusals = _refusals(set(_defined(objects)), stand_ins)
    return "\n".join((JUMPS, "int refuse_call(const char *name, int status);", *refusals))


def _refusals(defined: set[str], stand_ins: Sequence[StandIn]) -> Iterator[str]:
    names = read_names()
    for library in stand_ins:
        listed = names[library.linked]
        second = {n: n[:-3] for n in listed if n[-3:] == "_v2" and _SECOND.fullmatch(n[:-3])}
        for name in dict.fromkeys(second.get(name, name) for name in listed):
            body = f'(void) {{ return refuse_call("{name}", {library.refusal}); }}'
            if name not in defined:
                yield f"API int {name}{body}"
            if f"{name}_v2" in second and name in listed:  # the name's meaning in CUDA 3
                yield f"int first_{name}{body}"
                for number, file in enumerate(library.files):
                    label = f"first_{number}_{name}"
                    yield jump(label, f"first_{name}", f"\\n.symver {label}, {name}@{file}, remove")


def write_versions(objects: Sequence[str], stand_ins: Sequence[StandIn] = STAND_INS) -> str:
    """Return C: a function for each symbol that these objects define, in each file's version."""
    return "\n".join((JUMPS, *_shim_jumps(_defined(objects), stand_ins), ""))


def _defined(objects: Sequence[str]) -> Sequence[str]:
    listing = subprocess.run(
        ["nm", "-g", "--defined-only", *objects], capture_output=True, text=True, check=True
    ).stdout
    return _SHIM_DEFINED.findall(listing)


def _shim_jumps(functions: Iterable[str], stand_ins: Sequence[StandIn]) -> Iterator[str]:
    for name in sorted(set(functions)):
        library = next((each for each in stand_ins if name.startswith(each.names)), None)
        symbol = f"{name}_v2" if _SECOND.fullmatch(name) else name
        if library is None or not library.has_versions:
            continue
        for number, file in enumerate(library.files):
            label = f"stand_in_{number}_{name}"
            yield jump(label, name, f"\\n.symver {label}, {symbol}@{file}, remove")


def named_in(program: Path) -> list[str]:
    """Return the libraries' files whose names a program's file contains."""
    try:
        with program.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as text:
            return [name for name in files() if text.find(f"{name}\0".encode()) >= 0]
    except (OSError, ValueError):  # missing or empty: whatever starts it reports that
        return []


def find_installed(file: str) -> Path | None:
    """Return the folder of NVIDIA's library among the packages of this Python."""
    spec = find_spec("nvidia")
    for root in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(root).glob(f"*/lib/{file}")):
            return path.parent
    return None


def wheel_of(file: str) -> str:
    """Return the package that has a library's file; empty for the driver's.

    >>> wheel_of("libcublas.so.12"), wheel_of("libcusolver.so.12"), wheel_of("libcudnn.so.9")
    ('nvidia-cublas-cu12', 'nvidia-cusolver', 'nvidia-cudnn-cu13')
    """
    library = next(each for each in STAND_INS if file in each.files)
    return library.wheels[library.files.index(file)] if library.wheels else ""
