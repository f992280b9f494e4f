"""The runtime's functions by the list in CUDA's own header: ours, and refusals of all others.

The library has them for programs of CUDA 13 and of CUDA 12, as two versions of its symbols, and in
a table by name for programs that have NVIDIA's runtime in themselves.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from ....lazy_dataclass import dataclass
from ..toolkit import Toolkit

_DECLARED = re.compile(r"\b(cuda[A-Z]\w*)\s*\(")
_PER_THREAD = re.compile(r"#\s*define\s+\w+\s+__CUDART_API_PTSZ\((\w+)\)")
_TWELVE = "twelve_"

JUMPS = """
#define API __attribute__((visibility("default")))
#ifdef __aarch64__
#define JUMP(function) "b " #function
#else
#define JUMP(function) "jmp " #function "@PLT"
#endif
"""
"""C: what `jump` needs."""

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
"""CUDA 12's names for what CUDA 13 has under another: cuda_runtime_api.h of 12.9 and 13.0."""


@dataclass(frozen=True, slots=True)
class Export:
    """What a program of this version of CUDA (0: of any) means by a name."""

    name: str
    function: str
    version: int = 0


def runtime_table(toolkit: Toolkit, ours: set[str]) -> tuple[str, str]:
    """C: the EXPORT lines of all functions, and those that only refuse or jump."""
    text = (toolkit.include / "cuda_runtime_api.h").read_text(errors="replace")
    names = dict.fromkeys(_DECLARED.findall(text.partition("#if defined(__cplusplus)")[2]))
    missing = [name for name in names if name not in ours and not name.endswith("_ptsz")]
    per_thread = [name for name in dict.fromkeys(_PER_THREAD.findall(text)) if name in ours]
    exports = _exports(ours, missing, (*per_thread, "cudaLaunchKernel", "__cudaLaunchKernel"))
    lines = [f"EXPORT({each.name}, {each.function}, {each.version})\n" for each in exports]
    refusals = [f'API int {name}(void) {{ return refuse("{name}"); }}' for name in missing]
    return "".join(lines), "\n".join((JUMPS, _REFUSE, *refusals, *_jumps(exports), ""))


def _exports(ours: set[str], missing: list[str], per_thread: Iterable[str]) -> list[Export]:
    """All, by name. Streams per thread (`_ptsz`) are as all others here."""
    streams = set(per_thread)
    plain = {Export(name, name) for name in (*ours, *missing) if not name.startswith(_TWELVE)}
    special = {name.removeprefix(_TWELVE): name for name in ours if name.startswith(_TWELVE)}
    twelve = {Export(name, function, 12) for name, function in {**special, **_RENAMED}.items()}
    twins = {
        Export(f"{each.name}_ptsz", each.function, each.version)
        for each in plain | twelve
        if re.sub(r"_v\d$", "", each.name) in streams
    }
    return sorted(plain | twelve | twins, key=lambda export: (export.name, export.version))


def _jumps(exports: Sequence[Export]) -> Iterator[str]:
    """The names that no C function has: twins for streams per thread, and all names of CUDA 12."""
    of_12 = {each.name for each in exports if each.version == 12}
    for each in exports:
        if each.version == 0 and each.name != each.function:
            yield jump(each.name, each.function)
        if each.function.startswith(_TWELVE) and not each.name.endswith("_ptsz"):
            continue  # runtime/twelve.c gives it its version itself
        if each.version == 12 or each.name not in of_12:
            label = f"jump_{each.name}"
            versioned = f"\\n.symver {label}, {each.name}@libcudart.so.12, remove"
            yield jump(label, each.function, versioned)


def jump(label: str, function: str, more: str = "") -> str:
    """C: a function that jumps to another, and what the assembler is to be told besides."""
    begin = f".globl {label}\\n.type {label}, %function\\n{label}: "
    begin = f".globl {label}\\n.type {label}, %function\\n{label}: "
    return f'__asm__("{begin}" JUMP({function}) "{more}");'
