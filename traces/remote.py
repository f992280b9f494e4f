"""Remote traces: `s3://bucket/a.cutrace`, `https://...` and other protocols of fsspec.

A trace is downloaded file by file into a scratch folder of the process, and the size of each file
is compared with the store's. Then it is read like a local one.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import CutraceError
from .folder.archive import is_archive
from .folder.folder import MANIFEST

_PIECE = 1 << 22


@cache
def fetch(url: str) -> Path:
    """Copy the trace at an address, once in a process; return the folder of the copy.

    A trace of this machine (`file://...`) is read where it is. Raises CutraceError if it is not
    there, cannot be reached, or does not arrive as a whole.
    """
    if url.startswith("file:"):
        return Path(open_store(url)[1])
    folder = folder_for(url)
    _fetch(url, folder)
    _ORIGINS[str(folder)] = url
    return folder


_ORIGINS: dict[str, str] = {}


def origin(folder: Path) -> str:
    """Return the address of which a folder is the copy; nothing if it is none."""
    return _ORIGINS.get(str(folder), "")


def bring(url: str, folder: Path) -> None:
    """Copy the trace at an address to where another machine has its copy, if it is not there yet.

    Raises CutraceError as `fetch` does.
    """
    draft = folder_for(url)
    _fetch(url, draft)
    folder.parent.mkdir(0o700, exist_ok=True)
    atexit.register(shutil.rmtree, folder.parent, ignore_errors=True)
    try:
        draft.rename(folder)
    except OSError:  # another process was first
        if not folder.exists():
            raise


def _fetch(url: str, folder: Path) -> None:
    with telling(url, "read"):
        store, root = open_store(url)
        names = sorted(store.find(root))
        is_packed = is_archive(folder) and names == [root]
        if not is_packed and not _has_manifest(names):
            where = f"no {MANIFEST} in it" if names else "nothing is there, or nobody answers"
            raise CutraceError(f"{url}: not a trace: {where}")
        for name in names:
            _copy(store, name, _inside(folder, root, name), url)


def folder_for(url: str) -> Path:
    """Return where the trace of an address lies on this machine until the process ends."""
    room = Path(tempfile.mkdtemp(prefix="cutrace-"))
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    return room / PurePosixPath(url).name


def send(folder: Path, url: str) -> None:
    """Copy a trace of this machine to an address; one that was there is replaced.

    Raises CutraceError if something else is there, or it cannot be written.
    """
    with telling(url, "write"):
        store, root = open_store(url)
        if names := store.find(root):
            if names != [root] and not _has_manifest(names):
                raise CutraceError(f"{url}: something other than a trace has this name")
            store.rm(root, recursive=True)
        for parent, _, files in os.walk(folder, followlinks=True):
            place = PurePosixPath(root, Path(parent).relative_to(folder))
            store.makedirs(str(place), exist_ok=True)
            for name in files:
                store.put_file(os.path.join(parent, name), str(place / name))
        if folder.is_file():
            store.put_file(str(folder), root)
    fetch.cache_clear()


@contextmanager
def telling(url: str, verb: str) -> Iterator[None]:
    """Make a CutraceError of what a store raises, each its own."""
    try:
        yield
    except CutraceError:
        raise
    except Exception as error:
        why = str(error) or type(error).__name__
        raise CutraceError(f"{url}: cannot {verb} it: {why}") from error


def open_store(url: str) -> tuple[Any, str]:
    """Return the store of an address, as fsspec has it, and the path in it."""
    try:
        import fsspec
    except ImportError:
        raise CutraceError(f"{url}: it needs fsspec: pip install 'cutrace[remote]'") from None
    store, root = fsspec.core.url_to_fs(url)
    return store, root


def _has_manifest(names: Sequence[str]) -> bool:
    return any(PurePosixPath(name).name == MANIFEST for name in names)


def _inside(folder: Path, root: str, name: str) -> Path:
    """Return where a file of the store lies in the copy."""
    parts = PurePosixPath(name).relative_to(PurePosixPath(root)).parts
    if ".." in parts:
        raise ValueError(f"{name} is outside of it")
    return folder.joinpath(*parts)


def _copy(store: Any, name: str, path: Path, url: str) -> None:
    size, arrived = store.size(name), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with store.open(name, "rb") as source, path.open("wb") as copy:
        while piece := source.read(_PIECE):
            copy.write(piece)
            arrived += len(piece)
    if size is not None and arrived != size:
        raise CutraceError(
            f"{url}: cut off in the middle: {arrived} of {size} bytes of {path.name} arrived; "
            "try again"
        )
