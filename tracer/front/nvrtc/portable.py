"""Takes this machine's folders out of what NVRTC wrote: the working directory and CUDA's folders.

NVRTC makes every path in `.file` absolute. A path keeps what the user gave: the source's name, a
header beside it or under a `-I`; a header of CUDA's keeps the name by which it is included.

Code that comes from the compiler's own built-in header, or from cutrace's own, is nobody's to read:
its `.loc` lines give way to the line that it was inlined into.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..headers import tensor_core
from ..headers.prelude import NAME
from ..source import Source, decode_source
from ..toolkit import include_folders

_FILE = re.compile(r'^(\s*\.file\s+(\d+)\s+)"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_LOC = re.compile(r"^\s*\.loc\s+(\d+ \d+ \d+)(?:,.*inlined_at (\d+ \d+ \d+))?.*\n", re.MULTILINE)
OWN = frozenset({NAME, tensor_core.NAME})
"""Headers that cutrace writes itself, whatever lies in a folder of that name."""
BUILT_IN = OWN | {"__nv_nvrtc_builtin_header.h"}
"""Headers whose code nobody reads."""


def portable_ptx(ptx: str, source: Source) -> str:
    """The same PTX with portable paths, forward slashes in them, and locations in files alone."""

    def shorten(found: re.Match[str]) -> str:
        given = _cuda_header(found[3]) or _as_given(found[3], source)
        return f'{found[1]}"{_slashes(given)}"'

    return _hide_built_in(_FILE.sub(shorten, ptx))


def _hide_built_in(ptx: str) -> str:
    """Put what was inlined from the built-in header and cutrace's own at the line that calls it."""
    hidden = {number for _, number, path in _FILE.findall(ptx) if path in BUILT_IN}
    if not hidden:
        return ptx
    seen: dict[str, str] = {}
    callers: dict[str, str] = {}

    def visible(found: re.Match[str]) -> str:
        place, caller = found[1], found[2]
        if place.split()[0] not in hidden:
            seen[place] = found[0]
            return found[0]
        callers[place] = caller = callers.get(caller, caller) if caller else ""
        if not caller or caller.split()[0] in hidden:
            return ""
        return seen.get(caller, f"\t.loc\t{caller}\n")

    return _LOC.sub(visible, ptx)


def portable_log(log: str) -> str:
    """The compiler's messages with CUDA's headers named as they are included."""
    for folder in include_folders():
        log = log.replace(folder + os.sep, "").replace(folder + "/", "")
    return log.strip()


def user_sources(ptx: str, source: Source, known: Mapping[str, str]) -> dict[str, str]:
    """The texts of the user's files that NVRTC's `ptx` names, the source first, by given path.

    Headers are read unless they are `known`, by normal path, as they were compiled.
    """
    texts = {_slashes(source.name): source.text}
    for _, _, path in _FILE.findall(ptx):
        given = _as_given(path, source)
        given = _slashes(given)
        if given in texts or _cuda_header(path):
            continue
        if (text := known.get(os.path.normpath(given))) is not None:
            texts[given] = text
        elif Path(given).is_file():
            texts[given] = decode_source(Path(given).read_bytes())
    return texts


def _cuda_header(path: str) -> str:
    """How a header of CUDA's is included, `""` for any other file."""
    return next(filter(None, (_below(path, folder) for folder in include_folders())), "")


def _as_given(path: str, source: Source) -> str:
    if any(_below(path, folder) for folder in _given_absolute(source)):
        return _slashes(path)
    return _below(path, os.getcwd()) or _slashes(path)


def _given_absolute(source: Source) -> Iterator[str]:
    """The folders that the user gave as absolute paths."""
    for folder in (os.path.dirname(source.name), *source.options.includes):
        if os.path.isabs(folder):
            yield folder


def _below(path: str, folder: str) -> str:
    """What follows `folder` in `path`, or `""` where it does not lie in it."""
    head = _slashes(folder).rstrip("/") + "/"
    whole = _slashes(path)
    return whole[len(head) :] if whole.startswith(head) else ""


def _slashes(path: str) -> str:
    r"""`C:\\a\\b.cu` as PTX escapes it, or `C:\a\b.cu`, as `C:/a/b.cu`."""
    return path.replace("\\\\", "/").replace("\\", "/")
