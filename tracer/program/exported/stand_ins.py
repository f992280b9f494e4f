"""Libraries of machine code: ours in their place, by the names that NVIDIA's have.

A program that was built elsewhere asks for `cublasSgemm_v2` of `libcublas.so.12`, in that version;
so our library has each function once more, for each file that has it. A program that names none of
these files gets none: Python's packages bring their own. What theirs have and ours do not is
refused by name (`names.txt`): a handle of ours is nothing to NVIDIA's functions.
"""

import mmap
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ....lazy_dataclass import dataclass
from .runtime import JUMPS, jump


@dataclass(frozen=True, slots=True)
class StandIn:
    """A library: what the linker calls it, how its functions begin, its files in CUDA 12 and 13.

    The version of a file's symbols is called as the file is, where they have one. `refusal` is the
    status of what is not supported.
    """

    linked: str
    names: str
    files: tuple[str, ...]
    refusal: int
    has_versions: bool = True


STAND_INS = (
    StandIn("cublasLt", "cublasLt", ("libcublasLt.so.12", "libcublasLt.so.13"), 15),
    StandIn("cublas", "cublas", ("libcublas.so.12", "libcublas.so.13"), 15),
    StandIn("cufft", "cufft", ("libcufft.so.11", "libcufft.so.12"), 16),
    StandIn("curand", "curand", ("libcurand.so.10",), 999),  # CURAND_STATUS_INTERNAL_ERROR
    StandIn("cusparse", "cusparse", ("libcusparse.so.12",), 10),
    StandIn("cusolver", "cusolver", ("libcusolver.so.11", "libcusolver.so.12"), 9),
    StandIn("nvidia-ml", "nvml", ("libnvidia-ml.so.1",), 3, has_versions=False),
)
_NAMES = Path(__file__).with_name("names.txt")

_SECOND = re.compile(
    r"cublas(Create|Destroy|GetVersion|SetWorkspace|[SG]et(Stream|PointerMode)|"
    r"(I?[sdcz]|[SDCZ]|Sc|Dz|Cs|Zd)(a?xpy|scal|copy|swap|dot[uc]?|nrm2|a(sum|max|min)|rotm?g?|"
    r"(ge|gb|sy|he|sb|hb|sp|hp|tr|tb|tp)mv|t[rbp]sv|ger[uc]?|(sy|he|sp|hp)r2?|"
    r"(ge|sy|he|tr)mm|(sy|he)r2?k|trsm))"
)
"""Functions of cuBLAS that are `NAME_v2` in its file: NAME is the interface of CUDA 3 there.
Source: cuBLAS documentation, 1.1 "New and Legacy cuBLAS API", and cublas_v2.h of CUDA 12."""

_DEFINED = re.compile(r"^\w+ T (\w+)$", re.MULTILINE)


def files() -> Iterator[str]:
    """The names of all files that we stand in for."""
    for library in STAND_INS:
        yield from library.files


def version_nodes() -> str:
    """The versions of our symbols besides our own, for the linker."""
    versioned = (file for each in STAND_INS if each.has_versions for file in each.files)
    return "".join(f"{file} {{ }};\n" for file in versioned)


def read_names() -> Mapping[str, Sequence[str]]:
    """What NVIDIA's libraries export, by what the linker calls them; `cudart` among them.

    Of NVIDIA's packages for CUDA 13.5 and 12.9 on PyPI by `nm -D`; of NVML what nvidia-ml-py 13.615
    asks for.
    """
    _, *parts = re.split(r"^\[(\S+)\]$", _NAMES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.split() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def write_names() -> str:
    """C: STAND_IN lines, how a library's functions begin and the version of its symbols."""
    versions = (f'"{each.files[-1]}"' if each.has_versions else "NULL" for each in STAND_INS)
    pairs = zip(STAND_INS, versions, strict=True)
    return "".join(f'STAND_IN("{each.names}", {version})\n' for each, version in pairs)


def write_refusals(objects: Sequence[str]) -> str:
    """C: a function for each that NVIDIA's libraries have and these object files do not."""
    defined = set(_defined(objects))
    return "\n".join((JUMPS, "int refuse_call(const char *name, int status);", *_refusals(defined)))


def _refusals(defined: set[str]) -> Iterator[str]:
    names = read_names()
    for library in STAND_INS:
        listed = names[library.linked]
        second = {n: n[:-3] for n in listed if n[-3:] == "_v2" and _SECOND.fullmatch(n[:-3])}
        for name in dict.fromkeys(second.get(name, name) for name in listed):
            body = f'(void) {{ return refuse_call("{name}", {library.refusal}); }}'
            if name not in defined:
                yield f"API int {name}{body}"
            if f"{name}_v2" in second and name in listed:  # what CUDA 3 meant by it
                yield f"int first_{name}{body}"
                for number, file in enumerate(library.files):
                    label = f"first_{number}_{name}"
                    yield jump(label, f"first_{name}", f"\\n.symver {label}, {name}@{file}, remove")


def write_versions(objects: Sequence[str]) -> str:
    """C: a function for each that these object files define, in the version of each file."""
    return "\n".join((JUMPS, *_jumps(_defined(objects)), ""))


def _defined(objects: Sequence[str]) -> Sequence[str]:
    said = subprocess.run(
        ["nm", "-g", "--defined-only", *objects], capture_output=True, text=True, check=True
    ).stdout
    return _DEFINED.findall(said)


def _jumps(functions: Iterable[str]) -> Iterator[str]:
    for name in sorted(set(functions)):
        library = next((each for each in STAND_INS if name.startswith(each.names)), None)
        asked = f"{name}_v2" if _SECOND.fullmatch(name) else name
        if library is None or not library.has_versions:
            continue
        for number, file in enumerate(library.files):
            label = f"stand_in_{number}_{name}"
            yield jump(label, name, f"\\n.symver {label}, {asked}@{file}, remove")


def is_named_in(program: Path) -> bool:
    """Whether a program's file names one of the libraries."""
    try:
        with program.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as text:
            return any(text.find(f"{name}\0".encode()) >= 0 for name in files())
    except (OSError, ValueError):  # not there, or empty: what starts it says so
        return False
