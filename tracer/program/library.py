"""Our library, in place of CUDA's runtime and driver: compiled when it is first needed.

`runtime/` and `driver/` are one library under two names, so that a program that uses both has one
device. It exports what it implements. Of CUDA's other functions, by the lists in the toolkit's own
headers, it has stubs that refuse by name, so that a program that calls one finds that out there.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ...errors import CutraceError
from .cache import kept, key_of
from .entries import driver_errors, driver_table, stub_library
from .toolkit import Toolkit
from .wire import RUNTIME

DRIVER = Path(__file__).with_name("driver")
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra")

_DECLARED = re.compile(r"\b(cuda[A-Z]\w*)\s*\(")
_DEFINED = re.compile(r"^API [^\n(]*?(\w+)\(", re.MULTILINE)
_PER_THREAD = re.compile(r"#\s*define\s+\w+\s+__CUDART_API_PTSZ\((\w+)\)")
_ERROR = re.compile(r"^\s+(cuda(?:Error\w+|Success))\s*=", re.MULTILINE)


def build_library(toolkit: Toolkit, compiler: str) -> Path:
    """The folder with `libcudart.so.13` and `libcuda.so.1`, to be put before all others.

    In its folder `stubs` is a `libcuda.so` for the linker, as in NVIDIA's toolkit.
    """
    major = toolkit.version.partition(".")[0]
    sources = sorted((*RUNTIME.glob("*.[ch]"), *DRIVER.glob("*.[ch]")))
    texts = (path.read_bytes() for path in sources)
    made_of: list[str | bytes] = [compiler, toolkit.version, *FLAGS, *texts]
    return kept("runtime", key_of(made_of), lambda folder: _make(folder, toolkit, compiler, major))


def _make(folder: Path, toolkit: Toolkit, compiler: str, major: str) -> None:
    name = f"libcudart.so.{major}"
    work = folder / "made"
    work.mkdir()
    sources = [*sorted(RUNTIME.glob("*.c")), *sorted(DRIVER.glob("*.c")), *_written(work, toolkit)]
    (work / "map").write_text(f"{name} {{ global: cuda*; __cuda*; }};\n")
    headers = [f"-I{each}" for each in (toolkit.include, RUNTIME, DRIVER, work)]
    objects = []
    for path in sources:  # one by one: g++ takes several for C++, whatever -x says
        objects.append(str(work / f"{path.parent.name}_{path.stem}.o"))
        _run([compiler, "-x", "c", "-c", *FLAGS, *headers, str(path), "-o", objects[-1]], work)
    linking = (
        *("-Wl,-z,defs", "-Wl,-Bsymbolic", f"-Wl,-soname,{name}"),
        *(f"-Wl,--version-script,{work / 'map'}", "-pthread"),
    )
    _run([compiler, "-shared", *objects, *linking, "-o", str(folder / name)], work)
    (folder / "libcudart.so").symlink_to(name)
    (folder / "libcuda.so.1").symlink_to(name)
    (folder / "libcuda.so").symlink_to(name)
    _make_stubs(folder / "stubs", work, compiler)
    shutil.rmtree(work)


def _written(work: Path, toolkit: Toolkit) -> list[Path]:
    """Write what follows from the toolkit's headers; return the sources among it."""
    (work / "names.h").write_text("".join(f"NAME({n})\n" for n in _error_names(toolkit)))
    (work / "errors.h").write_text("".join(f"NAME({n})\n" for n in driver_errors(toolkit)))
    entries, refusals = driver_table(toolkit, functions_of(DRIVER))
    (work / "entries.h").write_text(entries)
    (work / "refused.c").write_text(_refusals(toolkit))
    (work / "refused_driver.c").write_text(refusals)
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


def _refusals(toolkit: Toolkit) -> str:
    """C: a function for each that CUDA has and we have not; twins for streams per thread."""
    text = (toolkit.include / "cuda_runtime_api.h").read_text(errors="replace")
    ours = functions_of(RUNTIME)
    names = dict.fromkeys(_DECLARED.findall(text.partition("#if defined(__cplusplus)")[2]))
    missing = [name for name in names if name not in ours and not name.endswith("_ptsz")]
    twins = [name for name in dict.fromkeys(_PER_THREAD.findall(text)) if name in ours]
    return "\n".join(
        (
            "int refuse(const char *name);",
            *(f'__attribute__((visibility("default"))) int {n}(void) {{ return refuse("{n}"); }}'
              for n in missing),
            *_twins(twins),
            "",
        )
    )  # fmt: skip


def functions_of(folder: Path) -> set[str]:
    """The functions that the sources in a folder export."""
    texts = (path.read_text(encoding="utf-8") for path in folder.glob("*.c"))
    return {name for text in texts for name in _DEFINED.findall(text)}


def _twins(names: list[str]) -> Iterator[str]:
    """What nvcc calls with `--default-stream per-thread`: here all streams are alike."""
    for name in dict.fromkeys((*names, "cudaLaunchKernel", "__cudaLaunchKernel")):
        yield (
            f'__asm__(".globl {name}_ptsz\\n.type {name}_ptsz, @function\\n'
            f'{name}_ptsz: jmp {name}@PLT");'
        )
