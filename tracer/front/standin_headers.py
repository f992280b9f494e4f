"""Supply headers that a program includes and NVRTC cannot read.

Host headers (C, C++, POSIX, thrust, any missing one) are empty at first. If device code turns out
to need them, the `full` set supplies what NVIDIA ships for NVRTC: libcu++ under the names of the
C++ standard library, and cub's block and warp primitives under `cub/cub.cuh`. It costs half a
second, so it is only the second attempt. The file also lists the standard headers, and generates
the vector operators of NVIDIA's `helper_math.h`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from .source import decode_source
from .texture_reference import declares_references
from .toolkit import in_cuda, include_folders

FOLDER = Path(__file__).parent / "headers"


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
"""Headers of NVIDIA's samples that serve their host code."""
_LIBRARIES = re.compile(
    r"thrust/|cub/|boost/|opencv|GL/|mpi\.h|omp\.h|windows\.h|cudnn|nccl|nvml\.h|nvToolsExt|nvtx3/|npp"
    r"|cu(?:rand|fft|blas|sparse|solver)\w*\.h|cuda\w*(?:GL|_interop|_profiler_api|Profiler)\.h"
)
_SYSTEM = ("/usr/include", "/usr/local/include", "/usr/include/x86_64-linux-gnu")
_NEVER_FULL = frozenset({"atomic", "barrier", "latch", "memory", "semaphore", "thread", "version"})


def included(text: str) -> tuple[str, ...]:
    """Return the headers that a text includes, as spelled, in order."""
    return tuple(angle or quoted for angle, quoted in _INCLUDE.findall(text))


def quoted(text: str) -> tuple[str, ...]:
    """Return the headers that a text includes in quotes, as spelled, in order."""
    return tuple(quoted for _, quoted in _INCLUDE.findall(text) if quoted)


def may_be_missing(name: str) -> bool:
    """Return True if a quoted header is not the program's own, so an empty one may replace it.

    It belongs to NVIDIA's samples, which are often shared without it, to a library or to the
    system.
    """
    if os.path.basename(name) in _SAMPLES or _LIBRARIES.match(name) or _device_header(name):
        return True
    return any(os.path.isfile(os.path.join(folder, name)) for folder in _SYSTEM)


def find_local(includer: str, header: str, is_quoted: bool, folders: Iterable[str]) -> str:
    """Return the normal path of the user's header in an include line, `""` if it is none.

    A quoted header is searched in the includer's folder first, then, like one in angle brackets, in
    `folders`; the first match wins.
    """
    for place in (*([os.path.dirname(includer)] if is_quoted else []), *folders):
        path = os.path.normpath(os.path.join(place, header))
        if os.path.isfile(path):
            return path
    return ""


def local_files(name: str, text: str, folders: Iterable[str]) -> dict[str, str]:
    """Return the user's headers that a source includes, directly or not: texts by normal path."""
    places, texts, waiting = tuple(folders), dict[str, str](), [(name, text)]
    while waiting:
        includer, text = waiting.pop()
        for angle, quoted in _INCLUDE.findall(text):
            path = find_local(includer, angle or quoted, bool(quoted), places)
            if path and path not in texts:
                texts[path] = decode_source(Path(path).read_bytes())
                waiting.append((path, texts[path]))
    return texts


def resolve_includes(name: str, text: str, folders: Sequence[str]) -> str:
    """Return the text of the file `name` with its local headers included by their normal paths.

    These paths name headers in memory, where headers of the same name must not replace one another.
    """

    def resolve(line: re.Match[str]) -> str:
        path = find_local(name, line[1] or line[2], bool(line[2]), folders)
        return f'#include "{_slashed(path)}"' if path else line[0]

    return _INCLUDE.sub(resolve, text)


def _slashed(path: str) -> str:
    return path.replace("\\", "/")


def stand_ins(texts: Sequence[str], folders: Iterable[str], full: bool) -> dict[str, str]:
    """Return header texts by include name: the prelude, and replacements of unusable headers.

    `folders` are the user's include folders; a header that exists there is not replaced.
    """
    classes = REFERENCE_CLASSES if any(map(declares_references, texts)) else ""
    headers = {NAME: PRELUDE + classes, **_with_our_integers()}
    headers |= {name: _standard(name) if full else "" for name in STANDARD}
    places = tuple(folders)
    for name in dict.fromkeys(header for text in texts for header in included(text)):
        if any(os.path.isfile(os.path.join(place, name)) for place in places):
            headers.pop(name, None)
        elif name == MMA_HEADER:
            headers[name] = TENSOR_CORE
        elif name.startswith(HOST_LIBRARIES):
            if full and name in ("cub/cub.cuh", "thrust/complex.h"):
                headers[name] = _cub() if name.startswith("cub") else _COMPLEX
            elif not full or name.startswith(_HOST_ONLY):
                headers[name] = ""
            elif name.startswith("thrust/") and name not in _FOR_DEVICE:
                headers[name] = "".join(f"#include <{each}>\n" for each in _FOR_DEVICE)
        elif not in_cuda(name):
            headers.setdefault(name, _device_header(name))
    return headers


@cache
def _with_our_integers() -> dict[str, str]:
    """Return CUDA's headers adapted to the prelude's 8-byte integer types."""
    headers: dict[str, str] = {}
    for folder in map(Path, include_folders()):
        for name in _OWN_INTEGERS:
            if (folder / name).is_file():
                headers[name] = _LONG_LONG.sub("", (folder / name).read_text(encoding="utf-8"))
    return headers


_OWN_INTEGERS = (
    *("cuda/std/__cuda/cstdint_prelude.h", "cuda_awbarrier_helpers.h"),
    "cuda_pipeline_helpers.h",
)
_LONG_LONG = re.compile(r"^typedef +(?:un)?signed +long +long +u?int64_t;", re.MULTILINE)


def _device_header(name: str) -> str:
    """Return the known device declarations of a missing header."""
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
"""CUDA headers that a library's headers include, by the prefix of the library's headers.

Programs use their types without an include: cublas_api.h, cusolver_common.h, c10/util/Half.h etc.
"""


def _standard(name: str) -> str:
    """Return the libcu++ version of a C++ standard header, if there is one."""
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
    """Return `cub/cub.cuh` without its device-wide algorithms, which are host code."""
    return "".join(f"#include <{name}>\n" for name in _cub_headers())


def _cub_headers() -> Iterator[str]:
    for folder in include_folders():
        for part in ("block/block_*.cuh", "warp/warp_*.cuh"):
            for path in sorted(Path(folder, "cub").glob(part)):
                yield path.relative_to(folder).as_posix()


NAME = "cutrace_prelude.h"

_C = (
    "assert.h complex.h ctype.h errno.h fcntl.h float.h inttypes.h limits.h locale.h malloc.h "
    "math.h memory.h omp.h pthread.h signal.h stdarg.h stdbool.h stddef.h stdint.h stdio.h "
    "stdlib.h string.h strings.h sys/stat.h sys/time.h sys/types.h time.h unistd.h wchar.h "
    "windows.h "
)
_CPP = (
    "algorithm any array atomic bitset cassert ccomplex cctype cerrno cfloat chrono cinttypes "
    "climits cmath complex concepts condition_variable csignal cstdarg cstdbool cstddef "
    "cstdint cstdio cstdlib cstring ctime deque exception expected filesystem forward_list "
    "fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator "
    "limits list locale map memory mutex new numeric optional ostream queue random ranges "
    "ratio regex set span sstream stack stdexcept streambuf string string_view system_error "
    "thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray "
    "variant vector version "
)
STANDARD = frozenset((_C + _CPP).split())
"""Headers of C, C++ and POSIX: NVRTC ships none, and each is empty in the program."""

PRELUDE = (FOLDER / "prelude.cuh").read_text("utf-8")


REFERENCE_CLASSES = (FOLDER / "reference_class.cuh").read_text("utf-8")


MMA_HEADER = "mma.h"
TENSOR_CORE = (FOLDER / "mma.cuh").read_text("utf-8")


HEADERS = frozenset({"helper_math.h", "cutil_math.h"})

_BASES = ("float", "int", "uint")
_FUNCTION = "static __forceinline__ __host__ __device__"


@cache
def vector_math() -> str:
    """Return the text of NVIDIA's `helper_math.h`: operators and functions of vector types."""
    lines = ["#pragma once", *_scalars()]
    for base in _BASES:
        for size in (2, 3, 4):
            lines += _operators(base, size)
            lines += _constructors(base, size)
            lines += _bounds(base, size)
    for size in (2, 3, 4):
        lines += _geometry(size)
    return "\n".join((*lines, _CROSS, ""))


def _scalars() -> Iterator[str]:
    yield f"{_FUNCTION} float lerp(float a, float b, float t) {{ return a + t * (b - a); }}"
    yield f"{_FUNCTION} float fracf(float v) {{ return v - floorf(v); }}"
    for base in _BASES:
        kind = base.replace("uint", "unsigned int")
        bound = "fmaxf(a, fminf(v, b))" if base == "float" else "max(a, min(v, b))"
        yield f"{_FUNCTION} {kind} clamp({kind} v, {kind} a, {kind} b) {{ return {bound}; }}"


def _operators(base: str, size: int) -> Iterator[str]:
    vector, each = f"{base}{size}", "xyzw"[:size]
    kind = base.replace("uint", "unsigned int")
    for sign in "+-*/" if base == "float" else "+-*":
        for lhs, right in ((vector, vector), (vector, kind), (kind, vector)):
            parts = (
                f"a{'.' + c if lhs == vector else ''} {sign} b{'.' + c if right == vector else ''}"
                for c in each
            )
            body = f"return make_{vector}({', '.join(parts)});"
            yield f"{_FUNCTION} {vector} operator{sign}({lhs} a, {right} b) {{ {body} }}"
        for right in (vector, kind):
            yield (
                f"{_FUNCTION} void operator{sign}=({vector} &a, {right} b) {{ a = a {sign} b; }}"
            )
    if base != "uint":
        parts = (f"-a.{c}" for c in each)
        body = f"return make_{vector}({', '.join(parts)});"
        yield f"{_FUNCTION} {vector} operator-({vector} a) {{ {body} }}"


def _constructors(base: str, size: int) -> Iterator[str]:
    """Yield constructors from a scalar, from smaller or larger vectors, from other number types."""
    vector, each = f"{base}{size}", "xyzw"[:size]
    kind = base.replace("uint", "unsigned int")

    def make(parameters: str, values: list[str]) -> str:
        body = f"return make_{vector}({', '.join(values)});"
        return f"{_FUNCTION} {vector} make_{vector}({parameters}) {{ {body} }}"

    yield make(f"{kind} s", ["s"] * size)
    if size > 2:
        shorter = [f"a.{c}" for c in each[:-1]]
        yield make(f"{base}{size - 1} a", [*shorter, "0"])
        yield make(f"{base}{size - 1} a, {kind} s", [*shorter, "s"])
    if size < 4:
        yield make(f"{base}{size + 1} a", [f"a.{c}" for c in each])
    for other in _BASES:
        if other != base:
            yield make(f"{other}{size} a", [f"({kind})a.{c}" for c in each])


def _bounds(base: str, size: int) -> Iterator[str]:
    vector, each = f"{base}{size}", "xyzw"[:size]
    kind = base.replace("uint", "unsigned int")
    for name in ("fminf", "fmaxf") if base == "float" else ("min", "max"):
        parts = ", ".join(f"{name}(a.{c}, b.{c})" for c in each)
        body = f"return make_{vector}({parts});"
        yield f"{_FUNCTION} {vector} {name}({vector} a, {vector} b) {{ {body} }}"
    for low in (vector, kind):
        ends = ("a.{0}, b.{0}" if low == vector else "a, b").format
        parts = ", ".join(f"clamp(v.{c}, {ends(c)})" for c in each)
        body = f"return make_{vector}({parts});"
        yield f"{_FUNCTION} {vector} clamp({vector} v, {low} a, {low} b) {{ {body} }}"
    total = " + ".join(f"a.{c} * b.{c}" for c in each)
    yield f"{_FUNCTION} {kind} dot({vector} a, {vector} b) {{ return {total}; }}"


def _geometry(size: int) -> Iterator[str]:
    v = f"float{size}"
    yield f"{_FUNCTION} float length({v} a) {{ return sqrtf(dot(a, a)); }}"
    yield f"{_FUNCTION} {v} normalize({v} a) {{ return a * rsqrtf(dot(a, a)); }}"
    yield f"{_FUNCTION} {v} lerp({v} a, {v} b, float t) {{ return a + t * (b - a); }}"
    yield f"{_FUNCTION} {v} reflect({v} i, {v} n) {{ return i - 2.0f * n * dot(n, i); }}"
    for name in ("floorf", "fabs", "fracf"):
        parts = ", ".join(f"{name}(a.{c})" for c in "xyzw"[:size])
        yield f"{_FUNCTION} {v} {name}({v} a) {{ return make_{v}({parts}); }}"


_CROSS = f"""{_FUNCTION} float3 cross(float3 a, float3 b)
{{ return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }}"""
