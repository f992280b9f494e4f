"""The driver's functions by the lists in CUDA's own headers: which names mean what, since when.

A program that is linked has the full name of what it means; `cuGetProcAddress` is asked for a short
one, with the version of CUDA that is meant: cuMemAlloc is cuMemAlloc_v2 since CUDA 3.2.
"""

import re
from collections.abc import Iterable, Iterator

from ....lazy_dataclass import dataclass
from ..toolkit import Toolkit
from .runtime import JUMPS, jump

_TYPE = re.compile(r"^typedef \w+ \(CUDAAPI \*PFN_(cu\w+)_v(\d+)\)", re.MULTILINE)
_NEWEST = re.compile(r"^#define (cu[A-Z]\w+)\s+(?:__CUDA_API_PT[DS]\w\()?(cu\w+)", re.MULTILINE)
_DECLARED = re.compile(r"\b(cu[A-Z]\w+)_v(\d+)\(")
_PER_THREAD = re.compile(r"__CUDA_API_(PT[DS][SZ])\((cu\w+)\)")
_FIRST = (
    *("cuCtxDestroy", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuStreamDestroy", "cuEventDestroy"),
    *("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxSetFlags"),
    "cuIpcOpenMemHandle",
)
"""First versions that take what the second ones take; those of others had 32 bits for sizes."""

_ERROR = re.compile(r"^\s+(CUDA_(?:SUCCESS|ERROR_\w+))\s*=", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """A function, the name by which it is asked for, and the version since which that means it."""

    name: str
    asked: str
    since: int


def driver_errors(toolkit: Toolkit) -> list[str]:
    """The names of the driver's errors."""
    return list(dict.fromkeys(_ERROR.findall(_read(toolkit, "cuda.h"))))


def driver_table(toolkit: Toolkit, ours: set[str]) -> tuple[str, str]:
    """C: the ENTRY lines of all functions, and those functions of which there is only a refusal."""
    entries = list(_entries(_read(toolkit, "cudaTypedefs.h"), _read(toolkit, "cuda.h"), ours))
    names = dict.fromkeys(entry.name for entry in entries)
    lines = [f"ENTRY({entry.name}, {entry.asked}, {entry.since})\n" for entry in entries]
    per_thread = _per_thread_twins(_read(toolkit, "cuda.h"), names)
    plain = {name.removesuffix("_v2") for name in names if name.endswith("_v2")}
    first = [jump(name, f"{name}_v2") for name in _FIRST]
    missing = sorted((plain | names.keys()) - ours - set(_FIRST))
    refusals = [f'API int {name}(void) {{ return refuse_driver("{name}"); }}' for name in missing]
    head = f"{JUMPS}int refuse_driver(const char *name);\n"
    return "".join(lines), "\n".join((head, *refusals, *per_thread, *first, ""))


def stub_library(entries: str) -> str:
    """C: a function of each name that does nothing, to link with."""
    names = dict.fromkeys(re.findall(r"^ENTRY\((\w+)", entries, re.MULTILINE))
    return "".join(f"void {name}(void) {{}}\n" for name in names)


def _read(toolkit: Toolkit, name: str) -> str:
    return (toolkit.include / name).read_text(errors="replace")


def _entries(types: str, header: str, ours: set[str]) -> Iterator[Entry]:
    """The newest of a name is the last that cuda.h declares, which it may not yet make of the name
    itself; each older one has the suffix before."""
    newest = dict(_NEWEST.findall(header))
    last: dict[str, int] = {}
    for name, number in _DECLARED.findall(header):
        last[name] = max(int(number), last.get(name, 1))
    since: dict[str, set[int]] = {}
    for name, version in _TYPE.findall(types):
        since.setdefault(name, set()).add(int(version))
    for asked, versions in since.items():
        name, _, suffix = newest.get(asked, asked).partition("_v")
        steps = sorted(versions, reverse=True)
        suffix = max(int(suffix or 1), min(last.get(name, 1), len(steps)))
        for step, version in enumerate(steps):
            number = suffix - step
            yield Entry(f"{name}_v{number}" if number > 1 else name, asked, version)
    for asked, name in newest.items():  # cuGraphInstantiate: WithFlags since CUDA 12
        if asked not in since and name in since:
            yield Entry(name, asked, 12000)
    listed = {newest.get(asked, asked) for asked in since}
    for name in sorted(ours - listed - set(since)):
        asked = re.sub(r"_v\d$", "", name)
        if name.startswith("cu") and asked not in since:
            yield Entry(name, asked, 0)


def _per_thread_twins(header: str, names: Iterable[str]) -> Iterator[str]:
    """What is called for streams of a thread's own: here all streams are alike."""
    known = set(names)
    for kind, name in dict.fromkeys(_PER_THREAD.findall(header)):
        if name in known:
            twin = f"{name}_{kind.lower()}"
            yield jump(twin, name)
