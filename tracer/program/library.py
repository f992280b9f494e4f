"""Our library, in place of CUDA's runtime and driver: compiled when it is first needed.

`runtime/` and `driver/` are one library under two names, so that a program that uses both has one
device; `libraries/` adds cuBLAS and the like, computed on the host. It exports what it implements.
Of CUDA's other functions, by the lists in the toolkit's own headers and of what NVIDIA's libraries
export, it has stubs that refuse by name, so that a program that calls one finds that out there.
"""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ...cache import kept_folder, key_of
from ...errors import CutraceError
from .exported.driver import driver_errors, driver_table, stub_library
from .exported.runtime import runtime_table
from .exported.stand_ins import (
    STAND_INS,
    files,
    read_names,
    version_nodes,
    write_names,
    write_refusals,
    write_versions,
)
from .toolkit import Toolkit
from .wire import RUNTIME

DRIVER = Path(__file__).with_name("driver")
LIBRARIES = Path(__file__).with_name("libraries")
HEADERS = LIBRARIES / "include"
"""cublas_v2.h and the like, for programs that are compiled where NVIDIA's are not."""

HEADERS_NOW = ("nvToolsExt", "cutil", "cutil_x86_64", "cutil_i386")
"""Libraries that older programs are linked with, and that are headers alone today."""

NVML = "libnvidia-ml.so.1"
"""It comes with the driver, so that whoever finds the one expects the other."""

FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra")

_DEFINED = re.compile(r"^API [^\n(]*?(\w+)\(", re.MULTILINE)
_ERROR = re.compile(r"^\s+(cuda(?:Error\w+|Success))\s*=", re.MULTILINE)


def build_library(toolkit: Toolkit, compiler: str) -> Path:
    """The folder with `libcudart.so.13` and `libcuda.so.1`, to be put before all others.

    In its folder `stubs` is a `libcuda.so` for the linker, as in NVIDIA's toolkit; in `within` is
    what a process opens that runs already (`within/beside.py`): it reads no $LD_LIBRARY_PATH any
    more, but takes what it has under the name of NVIDIA's driver. In `libraries` are the names of
    the files that it stands in for.
    """
    major = toolkit.version.partition(".")[0]
    folders = (RUNTIME, DRIVER, LIBRARIES, HEADERS)
    sources = sorted(path for folder in folders for path in folder.glob("*.[ch]"))
    writers = [Path(__file__), *sorted(Path(__file__).with_name("exported").glob("*.*"))]
    texts = (path.read_bytes() for path in (*sources, *writers))
    made_of: list[str | bytes] = [compiler, toolkit.version, *FLAGS, *texts]
    key = key_of(*made_of)
    return kept_folder("runtime", key, lambda into: _make(into, toolkit, compiler, major))


def _make(folder: Path, toolkit: Toolkit, compiler: str, major: str) -> None:
    name = f"libcudart.so.{major}"
    work = folder / "made"
    work.mkdir()
    ours = (path for folder in (RUNTIME, DRIVER, LIBRARIES) for path in sorted(folder.glob("*.c")))
    sources = [*ours, *_written(work, toolkit)]
    ours_begin = ("cuda", "__cuda", *(library.names for library in STAND_INS))
    names = "".join(f"{begin}*; " for begin in ours_begin)
    others = f"libcudart.so.12 {{ }};\n{version_nodes()}"
    (work / "map").write_text(f"{name} {{ global: {names}}};\n{others}")
    headers = [f"-I{each}" for each in (toolkit.include, RUNTIME, DRIVER, work)]
    objects = [str(work / f"{path.parent.name}_{path.stem}.o") for path in sources]

    def compile_one(path: Path, made: str) -> None:
        _run([compiler, "-x", "c", "-c", *FLAGS, *headers, str(path), "-o", made], work)

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # g++ takes several for C++, whatever -x says
        list(pool.map(compile_one, sources, objects))
    for name, write in (("refused_libraries", write_refusals), ("versions", write_versions)):
        (work / f"{name}.c").write_text(write(objects))
        compile_one(work / f"{name}.c", str(work / f"{name}.o"))
        objects.append(str(work / f"{name}.o"))
    _link(compiler, objects, folder / name, work)
    (folder / "within").mkdir()
    _link(compiler, objects, folder / "within" / "libcuda.so.1", work)
    for library in ("cudart", *(each.linked for each in STAND_INS), *HEADERS_NOW):
        (folder / f"lib{library}.so").symlink_to(name)
    (folder / "libraries").mkdir()
    for file in files():
        (folder / "libraries" / file).symlink_to(f"../{name}")
    (folder / "libcudart.so.12").symlink_to(name)
    (folder / "libcuda.so.1").symlink_to(name)
    (folder / "libcuda.so").symlink_to(name)
    (folder / NVML).symlink_to(name)
    _make_stubs(folder / "stubs", work, compiler)
    shutil.rmtree(work)


def _link(compiler: str, objects: list[str], library: Path, work: Path) -> None:
    """Link the library under a name, which is also how the system's loader knows it."""
    linking = (
        *("-Wl,-z,defs", "-Wl,-Bsymbolic", "-Wl,-z,initfirst", f"-Wl,-soname,{library.name}"),
        *(f"-Wl,--version-script,{work / 'map'}", "-pthread", "-ldl", "-lm"),
    )
    _run([compiler, "-shared", *objects, *linking, "-o", str(library)], work)


def _written(work: Path, toolkit: Toolkit) -> list[Path]:
    """Write what follows from the toolkit's headers; return the sources among it."""
    (work / "names.h").write_text("".join(f"NAME({n})\n" for n in _error_names(toolkit)))
    (work / "stand_ins.h").write_text(write_names())
    (work / "errors.h").write_text("".join(f"NAME({n})\n" for n in driver_errors(toolkit)))
    entries, refusals = driver_table(toolkit, functions_of(DRIVER))
    (work / "entries.h").write_text(entries)
    (work / "refused_driver.c").write_text(refusals)
    exports, refusals = runtime_table(toolkit, functions_of(RUNTIME), read_names()["cudart"])
    (work / "exports.h").write_text(exports)
    (work / "refused.c").write_text(refusals)
    return [work / "refused.c", work / "refused_driver.c"]


def _make_stubs(folder: Path, work: Path, compiler: str) -> None:
    """What a program is linked with by -lcuda: all names, under the soname of NVIDIA's driver."""
    folder.mkdir()
    source = work / "stubs.c"
    source.write_text(stub_library((work / "entries.h").read_text()))
    soname = "-Wl,-soname,libcuda.so.1"
    library = str(folder / "libcuda.so")
    _run([compiler, "-x", "c", "-shared", "-fPIC", soname, str(source), "-o", library], work)


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
    """The functions that the sources in a folder export."""
    texts = (path.read_text(encoding="utf-8") for path in folder.glob("*.c"))
    return {name for text in texts for name in _DEFINED.findall(text)}
