"""PTX as it is: a .ptx file needs no compiler."""

import re

from ...errors import CutraceError
from ...traces.schema import Compiler
from .signature import list_kernels
from .source import Compiled, Source
from .texture import list_references

_TARGET = re.compile(r"^\s*\.target\s+([\w, ]+)", re.MULTILINE)


def to_ptx(source: Source, target: str = "") -> Compiled:
    """Take `source.text` as PTX; the architecture is what its `.target` says."""
    found = _TARGET.search(source.text)
    if not found:
        raise CutraceError(
            f"{source.name}: not PTX, which has a .target line such as .target sm_75; "
            f"CUDA C++ belongs into a file that ends in .cu"
        )
    return Compiled(
        ptx=source.text,
        names={},
        compiler=Compiler("ptx", target=found[1].split(",")[0].strip()),
        log="",
        sources={source.name: source.text},
        kernels=list_kernels(source.text),
        textures=list_references(source.text, {}),
    )
