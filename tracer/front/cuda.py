"""CUDA C++ to PTX by NVRTC, with line information and CUDA's own headers.

Nothing of this machine stays in the PTX: `.file` names the source as the user gave it, the user's
headers relative to it or to their `-I`, and CUDA's headers as they are included (`cuda_fp16.h`).
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...base.errors import CutraceError
from .compile import LIGHT, compile_source, finish
from .nvrtc import Outcome
from .source import Compiled, Source
from .standin_headers import local_files

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRIES = 4
"""How often a source is compiled whose headers change meanwhile."""
_HOST_CODE = re.compile(r"<<<|\bmain\s*\(")


def to_ptx(source: Source, target: str) -> Compiled:
    """Compile for `target` (`compute_75`); the compiler's own errors are a CutraceError.

    Every `__global__` function that is no template is in the PTX, and of templates the instances
    that `source.options.name_expressions` ask for. A file with host code in it is cut down to its
    device code first (whole_file.py); there the instances that it launches, or its headers do, are
    found too.
    """
    source = replace(source, text=source.text.removeprefix("\ufeff"))
    if not _HOST_CODE.search(_COMMENT.sub(" ", source.text)):
        outcome, texts = _compile_plain(source, target)
        if outcome.ptx is not None and ".entry" in outcome.ptx:
            return finish(source, target, outcome, texts=texts)
    from .whole_file import whole_to_ptx

    return whole_to_ptx(source, target)


def _compile_plain(source: Source, target: str) -> tuple[Outcome, dict[str, str]]:
    """Compile a source as it is; return the user's headers, too, as they were compiled.

    NVRTC reads these from their files: it is asked again where they changed meanwhile.
    """
    folders = (*source.options.includes, os.path.dirname(source.name) or ".")
    texts = local_files(source.name, source.text, folders)
    for _ in range(_TRIES):
        outcome = compile_source(source, target, extra=(LIGHT,))
        before, texts = texts, local_files(source.name, source.text, folders)
        if texts == before:
            return outcome, texts
    raise CutraceError(f"{source.name}: its headers change whenever it is compiled; try again")


_NAME = "cutrace_size_"
_SIZE = re.compile(rf"\.b8 {_NAME}(\d+)\[(\d+)\]")


def structure_sizes(source: Source, target: str, names: Sequence[str]) -> Mapping[str, int]:
    """The bytes of each type so named, of those that the source defines; none if it fails."""
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
