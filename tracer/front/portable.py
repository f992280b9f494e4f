"""Takes this machine's folders out of what NVRTC wrote: the working directory and CUDA's folders.

NVRTC makes every path in `.file` absolute. A path keeps what the user gave: the source's name, a
header beside it or under a `-I`; a header of CUDA's keeps the name by which it is included.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from .source import Source
from .toolkit import include_folders

_FILE = re.compile(r'^(\s*\.file\s+\d+\s+)"((?:[^"\\]|\\.)*)"', re.MULTILINE)


def portable_ptx(ptx: str, source: Source) -> str:
    """The same PTX with portable paths, forward slashes in them, in its `.file` lines."""

    def shorten(found: re.Match[str]) -> str:
        return f'{found[1]}"{_cuda_header(found[2]) or _as_given(found[2], source)}"'

    return _FILE.sub(shorten, ptx)


def portable_log(log: str) -> str:
    """The compiler's messages with CUDA's headers named as they are included."""
    for folder in include_folders():
        log = log.replace(folder + os.sep, "").replace(folder + "/", "")
    return log.strip()


def user_sources(ptx: str, source: Source) -> dict[str, str]:
    """The texts of the user's files that NVRTC's `ptx` names, the source first, by given path."""
    texts = {_slashes(source.name): source.text}
    for found in _FILE.finditer(ptx):
        given = _as_given(found[2], source)
        if given not in texts and not _cuda_header(found[2]) and Path(given).is_file():
            texts[given] = Path(given).read_text(errors="replace")
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
