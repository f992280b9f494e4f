"""Headers that stand in for those that a program includes and NVRTC cannot read.

Host headers (C, C++, POSIX, thrust, whatever is not there) are empty at first. When device code
turns out to need them, the `full` set gives what NVIDIA ships for NVRTC: libcu++ under the names
of the C++ standard library, and cub's block and warp primitives under `cub/cub.cuh`; it costs half
a second, which is why it comes second.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from ..source import decode_source
from ..texture_reference import declares_references
from ..toolkit import in_cuda, include_folders
from . import tensor_core
from .prelude import NAME, PRELUDE, STANDARD
from .reference_class import REFERENCE_CLASSES
from .vector_math import HEADERS, vector_math

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")', re.MULTILINE)
HOST_LIBRARIES = ("thrust/", "cub/", "boost/", "crt/")
_HOST_ONLY = ("cub/device/", "boost/", "crt/")
_FOR_DEVICE = ("thrust/functional.h", "thrust/pair.h", "thrust/tuple.h")
_SAMPLES = frozenset(
    (
        *("cutil.h", "cutil_gl_error.h", "cutil_gl_inline.h", "cutil_inline.h", "cutil_math.h"),
        *("cutil_inline_bankchecker.h", "cutil_inline_drvapi.h", "cutil_inline_runtime.h"),
        *("drvapi_error_string.h", "exception.h", "helper_cuda.h", "helper_cuda_drvapi.h"),
        *("helper_cuda_gl.h", "helper_cusolver.h", "helper_functions.h", "helper_gl.h"),
        *("helper_image.h", "helper_math.h", "helper_multiprocess.h", "helper_string.h"),
        *("helper_timer.h", "multithreading.h", "nvrtc_helper.h", "rendercheck_gl.h"),
        *("sdkHelper.h", "shrQATest.h", "shrUtils.h"),
    )
)
"""Headers beside NVIDIA's samples, which help their host code."""
_LIBRARIES = re.compile(
    r"thrust/|cub/|boost/|opencv|GL/|mpi\.h|omp\.h|windows\.h|cudnn|nccl|nvml\.h|nvToolsExt|nvtx3/|npp"
    r"|cu(?:rand|fft|blas|sparse|solver)\w*\.h|cuda\w*(?:GL|_interop|_profiler_api|Profiler)\.h"
)
_SYSTEM = ("/usr/include", "/usr/local/include", "/usr/include/x86_64-linux-gnu")
_NEVER_FULL = frozenset({"atomic", "barrier", "latch", "memory", "semaphore", "thread", "version"})


def included(text: str) -> tuple[str, ...]:
    """The headers that a text includes, as spelled, in order."""
    return tuple(angle or quoted for angle, quoted in _INCLUDE.findall(text))


def quoted(text: str) -> tuple[str, ...]:
    """The headers that a text includes in quotes, as spelled, in order."""
    return tuple(quoted for _, quoted in _INCLUDE.findall(text) if quoted)


def may_be_missing(name: str) -> bool:
    """Whether a header in quotes is none of the program's own, so that an empty one may stand in.

    It is one of NVIDIA's samples, which are passed on without, of a library, or of the system.
    """
    if os.path.basename(name) in _SAMPLES or _LIBRARIES.match(name) or _device_header(name):
        return True
    return any(os.path.isfile(os.path.join(folder, name)) for folder in _SYSTEM)


def find_local(includer: str, header: str, is_quoted: bool, folders: Iterable[str]) -> str:
    """The normal path of the user's header that a line includes, `""` if it is none.

    In quotes it lies in the folder of the file that includes it, else, as between angles, in one of
    `folders`: the first has it.
    """
    for place in (*([os.path.dirname(includer)] if is_quoted else []), *folders):
        path = os.path.normpath(os.path.join(place, header))
        if os.path.isfile(path):
            return path
    return ""


def local_files(name: str, text: str, folders: Iterable[str]) -> dict[str, str]:
    """The user's own headers that a source reaches, and theirs: texts by normal path."""
    places, found, waiting = tuple(folders), dict[str, str](), [(name, text)]
    while waiting:
        includer, text = waiting.pop()
        for angle, quoted in _INCLUDE.findall(text):
            path = find_local(includer, angle or quoted, bool(quoted), places)
            if path and path not in found:
                found[path] = decode_source(Path(path).read_bytes())
                waiting.append((path, found[path]))
    return found


def resolve_includes(name: str, text: str, folders: Sequence[str]) -> str:
    """The text of the file `name` with its local headers included by their normal paths.

    By these they are given from memory, where two of one name do not stand for one another.
    """

    def resolve(line: re.Match[str]) -> str:
        path = find_local(name, line[1] or line[2], bool(line[2]), folders)
        return f'#include "{_slashed(path)}"' if path else line[0]

    return _INCLUDE.sub(resolve, text)


def _slashed(path: str) -> str:
    return path.replace("\\", "/")


def stand_ins(texts: Sequence[str], folders: Iterable[str], full: bool) -> dict[str, str]:
    """Texts of headers by the name included: the prelude, and all that must not or cannot be read.

    `folders` are where the user's headers lie; a header found there is left alone.
    """
    classes = REFERENCE_CLASSES if any(map(declares_references, texts)) else ""
    found = {NAME: PRELUDE + classes, **_with_our_integers()}
    found |= {name: _standard(name) if full else "" for name in STANDARD}
    places = tuple(folders)
    for name in dict.fromkeys(header for text in texts for header in included(text)):
        if any(os.path.isfile(os.path.join(place, name)) for place in places):
            found.pop(name, None)
        elif name == tensor_core.NAME:
            found[name] = tensor_core.TENSOR_CORE
        elif name.startswith(HOST_LIBRARIES):
            if full and name in ("cub/cub.cuh", "thrust/complex.h"):
                found[name] = _cub() if name.startswith("cub") else _COMPLEX
            elif not full or name.startswith(_HOST_ONLY):
                found[name] = ""
            elif name.startswith("thrust/") and name not in _FOR_DEVICE:
                found[name] = "".join(f"#include <{each}>\n" for each in _FOR_DEVICE)
        elif not in_cuda(name):
            found.setdefault(name, _device_header(name))
    return found


@cache
def _with_our_integers() -> dict[str, str]:
    """CUDA's own headers that make 8-byte integers of another type than the prelude's for NVRTC."""
    found: dict[str, str] = {}
    for folder in map(Path, include_folders()):
        for name in _OWN_INTEGERS:
            if (folder / name).is_file():
                found[name] = _LONG_LONG.sub("", (folder / name).read_text(encoding="utf-8"))
    return found


_OWN_INTEGERS = (
    *("cuda/std/__cuda/cstdint_prelude.h", "cuda_awbarrier_helpers.h"),
    "cuda_pipeline_helpers.h",
)
_LONG_LONG = re.compile(r"^typedef +(?:un)?signed +long +long +u?int64_t;", re.MULTILINE)


def _device_header(name: str) -> str:
    """What device code needs of a header that is not there, as far as that is known."""
    if os.path.basename(name) in HEADERS:
        return vector_math()
    return next((text for start, text in _OF_LIBRARIES.items() if name.startswith(start)), "")


_COMPLEX_NUMBERS = "#include <cuComplex.h>\n"
_HALVES = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
_CUFFT = """
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef float2 cufftComplex;
typedef double2 cufftDoubleComplex;
"""
_OF_LIBRARIES = {
    "cublas": _COMPLEX_NUMBERS + _HALVES,
    "cusolver": _COMPLEX_NUMBERS + _HALVES,
    "cusparse": _COMPLEX_NUMBERS,
    "cufft": _COMPLEX_NUMBERS + _CUFFT,
    "nccl": _HALVES,
    **dict.fromkeys(("torch/", "ATen/", "c10/"), _HALVES),
}
"""The headers of CUDA that those of a library include, whose types programs then take for granted,
by how the library's headers begin: cublas_api.h, cusolver_common.h, c10/util/Half.h and so on."""


def _standard(name: str) -> str:
    """A header of the C++ library by libcu++, where that has it."""
    if name in _NEVER_FULL or not in_cuda(f"cuda/std/{name}"):
        return _ALGORITHM if name == "algorithm" else ""
    return f"#include <cuda/std/{name}>\nnamespace std {{ using namespace cuda::std; }}\n"


_ALGORITHM = """#include <cuda/std/functional>
#include <cuda/std/__algorithm_>
namespace std { using namespace cuda::std; }
"""


_COMPLEX = """#include <cuda/std/complex>
namespace thrust { template <class T> using complex = cuda::std::complex<T>; }
"""


@cache
def _cub() -> str:
    """`cub/cub.cuh` without its device-wide algorithms, which are host code."""
    return "".join(f"#include <{name}>\n" for name in _cub_headers())


def _cub_headers() -> Iterator[str]:
    for folder in include_folders():
        for part in ("block/block_*.cuh", "warp/warp_*.cuh"):
            for path in sorted(Path(folder, "cub").glob(part)):
                yield path.relative_to(folder).as_posix()
