"""What a source's own structures take: the compiler is asked for their sizeof."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...errors import CutraceError
from .cuda import to_ptx
from .source import Source

_NAME = "cutrace_size_"
_FOUND = re.compile(rf"\.b8 {_NAME}(\d+)\[(\d+)\]")


def structure_sizes(source: Source, target: str, names: Sequence[str]) -> Mapping[str, int]:
    """The bytes of each type so named, of those that the source defines; none if it fails."""
    if not names:
        return {}
    asked = "".join(
        f"__device__ char {_NAME}{number}[sizeof({name})];" for number, name in enumerate(names)
    )
    text = f'{source.text}\nextern "C" {{ {asked} }}\n'
    try:
        ptx = to_ptx(replace(source, text=text), target).ptx
    except CutraceError:
        return {}
    return {names[int(number)]: int(size) for number, size in _FOUND.findall(ptx)}
