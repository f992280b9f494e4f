"""The runtime's functions by the list in CUDA's own header: ours, and refusals of all others.

The library has them for programs of CUDA 13 and of CUDA 12, as two versions of its symbols, and in
a table by name for programs that have NVIDIA's runtime in themselves.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from ....lazy_dataclass import dataclass
from ..toolkit import Toolkit

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


def runtime_table(toolkit: Toolkit, ours: set[str], listed: Sequence[str]) -> tuple[str, str]:
    """C: the EXPORT lines of all functions, and those that only refuse or jump.

    `listed` are names that NVIDIA's library exports, those of other headers among them.
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
    """All, by name. Streams per thread (_TWINS) are as all others here."""
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
    """The names that no C function has: twins for streams per thread, and all names of CUDA 12."""
    of_12 = {each.name for each in exports if each.version == 12}
    for each in exports:
        if each.version == 0 and each.name != each.function:
            yield jump(each.name, each.function)
        if each.function.startswith(_TWELVE) and not each.name.endswith(_TWINS):
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
