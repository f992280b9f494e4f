"""What to do about a library that a program needs and that is not there."""

import re

_ASKED = re.compile(r"fatal error: (\S+\.h\w*): No such file|cannot find -l(\w+)")
_MACHINE_CODE = {
    "cudnn": "cuDNN",
    "cusolver": "cuSOLVER",
    "nccl": "NCCL",
    "npp": "NPP",
    "nvjpeg": "nvJPEG",
}
"""Libraries whose kernels are machine code alone, by what their files begin with."""

_HEADERS_ALONE = {"curand_kernel": "nvidia-curand"}
"""Headers that need no library, by how their names begin, and the packages that bring them."""

_OF_SAMPLES = ("helper_", "exception.h", "nvrtc_helper.h", "rendercheck_gl.h")
"""Headers that CUDA's samples share, by how their names begin."""

_OF_SDK = ("cutil_", "shrUtils", "shrQATest", "sdkHelper", "oclUtils", "cudpp")
"""Headers of the SDK of CUDA 1 to 4 for which there is nothing here: `cutil.h` is there."""

NOT_STARTED = 127
"""The exit status of a program that the system's loader could not start."""


def advise(said: str) -> str:
    """A line behind what a compiler said, where it misses what cutrace knows of; else empty."""
    found = _ASKED.search(said)
    if found is None:
        return ""
    name = (found[1] or found[2]).rpartition("/")[2]
    for start, package in _HEADERS_ALONE.items():
        if name.startswith(start):
            return f"\n{name} comes with a package: python -m pip install {package}"
    if name.startswith(_OF_SAMPLES):
        return (
            f"\n{name} comes with CUDA's samples: git clone "
            "https://github.com/NVIDIA/cuda-samples, and -I cuda-samples/Common"
        )
    if name.startswith(_OF_SDK):
        return (
            f"\n{name} came with the SDK of CUDA 4 and older; of that cutrace has cutil.h and "
            "cutil_inline.h: name the SDK's folder with -I, or write the program without it"
        )
    for start, library in _MACHINE_CODE.items():
        if name.startswith(start):
            return (
                f"\n{library} is a library of machine code, which cutrace cannot record: build the "
                "program without it"
            )
    return ""


def why_nothing_came(word: str, status: int) -> str:
    """Why a program ended without a word to its recorder."""
    if status == NOT_STARTED:
        return (
            f"{word}: the system could not start it, most likely for a library that is missing "
            f"(see above): install that, or name its folder in $LD_LIBRARY_PATH; ldd {word} lists "
            "what it needs"
        )
    return f"{word}: it called nothing of CUDA's runtime or driver"
