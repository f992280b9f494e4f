"""Make a folder that builds take for NVIDIA's CUDA toolkit.

CMake, Meson, plain Makefiles and torch's extensions look for `bin/nvcc`, `include`, `lib64` and
`version.json` below one folder. Here `nvcc` is `cutrace nvcc`, `lib64` has cutrace's library under
the names of CUDA's, and the headers have the names of CUDA 12 and older, so that files which g++
compiles find them too.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from ...base.cache import folder_of, kept_folder, key_of
from ...base.errors import CutraceError
from ..front.toolkit import Toolkit
from .build import LEAST_CAPABILITY, Builder, make_builder
from .library import HEADERS, STAND_INS
from .wire import RUNTIME

REAL = "nvcc.nvidia"
"""Name of NVIDIA's compiler beside `bin/nvcc`; it finds `nvcc.profile` in its own folder."""

_STATIC = ("_static", "_static_nocallback")
_EMPTY = ("libcudadevrt.a", "libculibos.a")
"""Archives that programs link and that our library makes needless."""

OLDER = (
    *("clockRate", "memoryClockRate", "deviceOverlap", "computeMode", "kernelExecTimeoutEnabled"),
    *("singleToDoublePrecisionPerfRatio", "cooperativeMultiDeviceLaunch", "maxTexture1DLinear"),
)
"""Members of cudaDeviceProp up to CUDA 12, in the order in which runtime/device.c stores them."""

_RESERVED = re.compile(r"(struct [^;{]*\bcudaDeviceProp\b[^}]*?\breserved\[)(\d+)(\];[^}]*)(\})")


def make_toolkit(builder: Builder | None = None) -> Path:
    """Return the folder; it is kept, and made when a part of it is new."""
    builder = builder or make_builder()
    version = _compiler_version(builder.toolkit)
    sources = (Path(__file__), *sorted((*RUNTIME.glob("*.h"), *HEADERS.glob("*.h"))))
    paths = str(builder.toolkit.root), str(builder.library), str(builder.headers)
    parts = *paths, str(builder.toolkit.version), version, sys.executable
    key = key_of(*parts, *(path.read_bytes() for path in sources))
    place = folder_of("toolkit") / key  # the links below name it
    return kept_folder("toolkit", key, lambda into: _fill(into, place, builder))


def toolkit_builder() -> Builder:
    """Return a builder whose nvcc takes the made toolkit for its own."""
    builder = make_builder()
    root = make_toolkit(builder)
    return Builder(Toolkit(root, REAL), builder.host, root / "lib64", builder.headers)


def _compiler_version(toolkit: Toolkit) -> str:
    """Return the size and time of nvcc: a new one makes a new folder."""
    status = os.stat(toolkit.nvcc)
    return f"{status.st_size} {status.st_mtime_ns}"


def _fill(folder: Path, place: Path, builder: Builder) -> None:
    toolkit = builder.toolkit
    for name, words in _SCRIPTS.items():
        script = folder / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -P {words}\n")
        script.chmod(0o755)
    _link_all(folder / "bin", (toolkit.root / "bin").iterdir(), {"nvcc": REAL})
    _write_headers(folder / "include", builder)
    _write_libraries(folder / "lib64", place / "lib64", builder)
    (folder / "lib").symlink_to("lib64")  # where nvcc.profile looks
    (folder / "nvvm").symlink_to(toolkit.root / "nvvm")
    target = folder / "targets" / f"{os.uname().machine}-linux"
    target.mkdir(parents=True)
    (target / "include").symlink_to("../../include")
    (target / "lib").symlink_to("../../lib64")
    versions = {name: {"name": name, "version": f"{toolkit.version}.0"} for name in _PARTS}
    (folder / "version.json").write_text(json.dumps(versions, indent=1))


_SCRIPTS = {
    "nvcc": '-m cutrace nvcc "$@"',
    # what nvcc and CMake ask for `native`: capabilities, as in 80
    "__nvcc_device_query": "-c 'from cutrace.commands.running.program import choose_device; "
    f"print(max({LEAST_CAPABILITY}, choose_device(None).capability))'",
}
_PARTS = ("cuda", "cuda_cudart", "cuda_nvcc", "cuda_nvrtc")


def _link_all(folder: Path, paths: Iterable[Path], names: dict[str, str]) -> None:
    """Link to files and folders, by their own names or by others."""
    folder.mkdir(exist_ok=True)
    for path in paths:
        link = folder / names.get(path.name, path.name)
        if not link.is_symlink() and not link.exists():
            link.symlink_to(path)


def _write_headers(folder: Path, builder: Builder) -> None:
    """Copy NVIDIA's headers, and ours where it has none; add to two what CUDA 13 removed.

    Copies, not links: gcc replaces the path of a system header by what it links to where that is
    shorter (-fcanonical-system-headers), and would include the unchanged neighbours there.
    """
    folder.mkdir()
    include = builder.toolkit.include
    types = (include / "driver_types.h").read_text(errors="replace")
    (folder / "driver_types.h").write_text(with_older_members(types))
    names = (include / "cuda_runtime_api.h").read_text(errors="replace")
    added = (f'#include "{name}"\n' for name in ("legacy.h", "older_host.h"))
    (folder / "cuda_runtime_api.h").write_text("\n".join((names, *added)))
    listed = ("legacy.h", "older_host.h")
    theirs = {path.name for path in include.iterdir()}
    for path in (*builder.headers.glob("*.h"), *(RUNTIME / name for name in listed)):
        shutil.copyfile(path, folder / path.name)  # a copy stays while cutrace is updated
    for path in (*HEADERS.glob("cu[bfs]*.h"), HEADERS / "nvToolsExt.h", HEADERS / "nvml.h"):
        if path.name not in theirs:
            shutil.copyfile(path, folder / path.name)
    for path in include.iterdir():
        if path.is_file() and not (folder / path.name).exists():
            shutil.copyfile(path, folder / path.name)
    shutil.copytree(include / "crt", folder / "crt")
    _link_all(folder, include.iterdir(), {})


def with_older_members(types: str) -> str:
    """Return driver_types.h with the members that cudaDeviceProp had up to CUDA 12.

    They take the place of the last of what is reserved: size and layout stay.
    """
    match = _RESERVED.search(types)
    if match is None:
        raise CutraceError("driver_types.h: expected a struct cudaDeviceProp with a reserved part")
    count = int(match[2]) - len(OLDER)
    members = f"{match[1]}{count}{match[3]}    int {', '.join(OLDER)};\n{match[4]}"
    return f"#define CUTRACE_PROPERTIES\n{types[: match.start()]}{members}{types[match.end() :]}"


def _write_libraries(folder: Path, place: Path, builder: Builder) -> None:
    """Link our library by the names of NVIDIA's, static ones too, and NVIDIA's compilers."""
    _link_all(folder, (path for path in builder.library.iterdir() if path.name != "within"), {})
    _link_all(folder, (builder.library / "libraries").iterdir(), {})
    theirs = [path for path in (builder.toolkit.root / "lib").iterdir() if ".so." in path.name]
    _link_all(folder, theirs, {})
    _link_all(
        folder, theirs, {path.name: path.name.partition(".so.")[0] + ".so" for path in theirs}
    )
    for name in ("cudart", *(each.linked for each in STAND_INS if each.has_versions)):
        for static in _STATIC:  # the linker reads a text as a script
            (folder / f"lib{name}{static}.a").write_text(f"INPUT ( {place / f'lib{name}.so'} )\n")
    for name in _EMPTY:
        empty = ("-x", "c", "-c", os.devnull, "-o", str(folder / "empty.o"))
        subprocess.run([builder.host, *empty], check=True)
        subprocess.run(["ar", "rcsD", str(folder / name), str(folder / "empty.o")], check=True)
        (folder / "empty.o").unlink()
