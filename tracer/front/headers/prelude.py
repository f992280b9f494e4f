"""What nvcc gives every CUDA program and NVRTC does not, for files that expect nvcc.

`PRELUDE` is read before the source, as the header `NAME`: the C library's types and limits, which
`cuda_runtime.h` brings along under nvcc, those functions of `std` that device code uses, and
the shuffles without a mask of the early books. Integers of 8 bytes are what the host compiler's
are: `unsigned long` on Linux, which decides overloads and the names in PTX.
"""

from pathlib import Path

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
"""Headers of C, C++ and POSIX: none lies beside NVRTC, and each stands in the program as empty."""

PRELUDE = Path(__file__).with_name("prelude.cuh").read_text("utf-8")
