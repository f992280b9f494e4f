"""Compile CUDA C++ to PTX with NVRTC, line information and CUDA's own headers.

The PTX contains no path of this machine: `.file` names the source as the user gave it, the user's
headers relative to it or to their `-I`, and CUDA's headers as they are included (`cuda_fp16.h`).
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...base.errors import CutraceError
from .compile import LIGHT, compile_source, finish
from .source import Compiled, Source
from .standin_headers import local_files

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRIES = 4
"""Attempts to compile a source whose headers change during compilation."""
_HOST_CODE = re.compile(r"<<<|\bmain\s*\(")


def to_ptx(source: Source, target: str) -> Compiled:
    """Compile for `target` (`compute_75`); compiler errors raise a CutraceError.

    The PTX contains every `__global__` function that is no template, and the template instances of
    `source.options.name_expressions`. A file with host code is first reduced to its device code
    (whole_file.py); this also finds the instances that it or its headers launch.
    """
    source = replace(source, text=source.text.removeprefix("\ufeff"))
    if not _HOST_CODE.search(_COMMENT.sub(" ", source.text)):
        folders = (*source.options.includes, os.path.dirname(source.name) or ".")
        texts = local_files(source.name, source.text, folders)
        # NVRTC reads the user's headers from their files: compile again if they changed meanwhile.
        for _ in range(_TRIES):
            outcome = compile_source(source, target, extra=(LIGHT,))
            before, texts = texts, local_files(source.name, source.text, folders)
            if texts == before:
                break
        else:
            changes = f"{source.name}: its headers change whenever it is compiled; try again"
            raise CutraceError(changes)
        if outcome.ptx is not None and ".entry" in outcome.ptx:
            return finish(source, target, outcome, texts=texts)
    from .whole_file import whole_to_ptx

    return whole_to_ptx(source, target)


_NAME = "cutrace_size_"
_SIZE = re.compile(rf"\.b8 {_NAME}(\d+)\[(\d+)\]")


def structure_sizes(source: Source, target: str, names: Sequence[str]) -> Mapping[str, int]:
    """Return the bytes of each type of `names` that the source defines; empty if that fails."""
    if not names:
        return {}
    declarations = "".join(
        f"__device__ char {_NAME}{number}[sizeof({name})];" for number, name in enumerate(names)
    )
    text = f'{source.text}\nextern "C" {{ {declarations} }}\n'
    try:
        ptx = to_ptx(replace(source, text=text), target).ptx
    except CutraceError:
        return {}
    return {names[int(number)]: int(size) for number, size in _SIZE.findall(ptx)}
