"""Load PTX directly: a .ptx file needs no compiler."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path, PurePath

from ...base.errors import CutraceError
from ...traces.schema import Compiler
from .signature import list_kernels
from .source import Compiled, Source
from .texture_reference import list_references

_TARGET = re.compile(r"^\s*\.target\s+([\w, ]+)", re.MULTILINE)
_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"]+)"', re.MULTILINE)
_FILE_LINE = re.compile(r"^\s*\.file\s.*$", re.MULTILINE)
_ESCAPED = re.compile(r"\\\\|((?:\\[0-3][0-7]{2})+)")
"""A backslash, or bytes as octal escapes."""
_SOURCES = frozenset({".cu", ".cuh", ".h", ".hpp", ".inl", ".py", ".cl", ".c", ".cpp"})
_TOOLKIT = re.compile(
    r"[/\\](?:cuda[^/\\]*|nvidia[/\\]cu\d+)[/\\](?:.*[/\\])?include[/\\]"  # NVIDIA's packages, too
    r"|[/\\](?:headers|toolkit)[/\\][0-9a-f]{32}[/\\]"  # and cutrace's copies of their headers
)


def to_ptx(source: Source, target: str = "") -> Compiled:
    """Return `source.text` as PTX; its `.target` gives the architecture."""
    match = _TARGET.search(source.text)
    if not match:
        raise CutraceError(
            f"{source.name}: not PTX, which has a .target line such as .target sm_75; "
            f"CUDA C++ belongs into a file that ends in .cu"
        )
    text = with_plain_paths(source.text)
    return Compiled(
        ptx=text,
        names={},
        compiler=Compiler("ptx", target=match[1].split(",")[0].strip()),
        log="",
        sources={source.name: source.text, **compiled_from(text)},
        kernels=list_kernels(text),
        textures=list_references(text, {}),
    )


def with_plain_paths(ptx: str) -> str:
    r"""Decode the paths in `.file` lines: compilers escape non-ASCII bytes.

    >>> with_plain_paths('.file 1 "gr\\303\\266\\303\\237e.cu"')
    '.file 1 "größe.cu"'
    """
    return _FILE_LINE.sub(lambda line: _ESCAPED.sub(_unescape, line[0]), ptx)


def without_folders(ptx: str, taken: Collection[str]) -> str:
    """Name files at absolute paths, whose text is unknown, by their last part, or by their last two
    if the name is `taken`: a trace contains no folders of a machine.

    >>> without_folders('.file 1 "/a/b/util.h"', []), without_folders('.file 1 "/a/b/u.h"', ["u.h"])
    ('.file 1 "util.h"', '.file 1 "b/u.h"')
    """

    def rename(match: re.Match[str]) -> str:
        path = PurePath(match[1])
        if not path.is_absolute():
            return match[0]
        return match[0].replace(match[1], "/".join(path.parts[-1 - (path.name in taken) :]))

    return _FILE.sub(rename, ptx)


def _unescape(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    return bytes(int(digits, 8) for digits in match[1].split("\\")[1:]).decode(errors="replace")


def compiled_from(ptx: str, typed: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the texts of sources that the compiler named by absolute paths, if those files exist.

    A relative path is skipped, since it depends on the folder; so are a toolkit's headers. Sources
    in `typed` exist in no file: they have their text under the path that the compiler gave them.
    """
    paths = dict.fromkeys(_FILE.findall(ptx))
    memory_texts = {path: typed[path] for path in paths if path in typed} if typed else {}
    disk_texts = {
        path: Path(path).read_text(errors="replace") for path in paths if _is_source(path)
    }
    return memory_texts | disk_texts


def _is_source(path: str) -> bool:
    is_own = PurePath(path).suffix in _SOURCES and not _TOOLKIT.search(path)
    return is_own and os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.R_OK)
