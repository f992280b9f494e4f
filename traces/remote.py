"""Remote traces: `s3://bucket/a.cutrace`, `https://...` and other protocols of fsspec.

A trace is downloaded file by file into a scratch folder of the process, and the size of each file
is compared with the store's. Then it is read like a local one.
"""

import os
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from ..base.claim import Claim, claim_scratch
from ..base.config import bytes_of
from ..base.errors import CutraceError
from .archive import is_archive
from .schema import TABLES
from .trace_folder import MANIFEST, is_manifest

LIMIT = "CUTRACE_MAX_FETCH"
"""The environment variable that says how large a trace elsewhere may be, as in `10G`."""
UNSTATED_BYTES = 1 << 30
"""How many bytes may come, where it does not, of files whose sizes the store does not state."""
_PIECE = 1 << 22
_TABLE = re.compile(rf"\d+/(?:{'|'.join(TABLES)})\.arrow")


_CLAIMS: list[Claim] = []
"""Folders of copies, which last as long as the process."""


@cache
def fetch(url: str) -> Path:
    """Copy the trace at an address, once in a process; return the folder of the copy.

    A trace of this machine (`file://...`) is read where it is. Raises CutraceError if it is not
    there, cannot be reached, does not arrive as a whole, or is larger than it may be (LIMIT).
    """
    if url.startswith("file:"):
        return Path(open_store(url)[1])
    claim = claim_scratch()
    folder = place_in(claim, url)
    _fetch(url, folder)
    _CLAIMS.append(claim)
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
    claim = claim_scratch()
    draft = place_in(claim, url)
    _fetch(url, draft)
    with suppress(FileExistsError):  # another process was first
        _CLAIMS.append(Claim(folder.parent.parent, name=folder.parent.name))
    try:
        draft.rename(folder)
    except OSError:
        if not folder.exists():
            raise
    claim.release()


def _fetch(url: str, folder: Path) -> None:
    with telling(url, "read"):
        store, root = open_store(url)
        is_packed = is_archive(folder) and store.isfile(root)
        names = [root] if is_packed else sorted(store.find(root))
        if not is_packed and not _has_manifest(names):
            where = f"no {MANIFEST} in it" if names else "nothing is there, or nobody answers"
            raise CutraceError(f"{url}: not a trace: {where}")
        sizes = {name: store.size(name) for name in names}
        unstated = _check_sizes(sizes.values(), url, folder.parent)
        for name, size in sizes.items():
            arrived = _copy(store, name, _inside(folder, root, name), url, size, unstated)
            unstated -= arrived if size is None else 0


def _check_sizes(sizes: Iterable[int | None], url: str, place: Path) -> int:
    """Return how many bytes may come that the store does not state; CutraceError if those that it
    states are too many."""
    stated = sum(size or 0 for size in sizes)
    text = os.environ.get(LIMIT, "")
    limit = bytes_of(text, f"${LIMIT}") if text else None
    if limit is not None and stated > limit:
        raise CutraceError(f"{url}: {stated} bytes; ${LIMIT} is {text}")
    if stated > (free := shutil.disk_usage(place).free):
        raise CutraceError(f"{url}: {stated} bytes, and {place.parent} has room for {free}")
    return UNSTATED_BYTES if limit is None else limit - stated


def place_in(claim: Claim, url: str) -> Path:
    """Return where in a folder the trace of an address lies on this machine."""
    name = PurePosixPath(url).name
    return claim.folder / ("trace" if name in ("", "..") else name)


def send(folder: Path, url: str) -> None:
    """Copy a trace of this machine to an address; one that was there is replaced.

    Raises CutraceError if something else is there, or it cannot be written.
    """
    with telling(url, "write"):
        store, root = open_store(url)
        if names := store.find(root):
            if not _is_trace(store, root, names):
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


def _is_trace(store: Any, root: str, names: Sequence[str]) -> bool:
    """Whether the files at an address are those of a trace, and nothing else."""
    if names == [root]:
        with store.open(root, "rb") as file, suppress(zipfile.BadZipFile, KeyError):
            return is_manifest(zipfile.ZipFile(file).read(MANIFEST))
        return False
    inside = {str(PurePosixPath(name).relative_to(root)): name for name in names}
    if MANIFEST not in inside or not is_manifest(store.cat_file(inside.pop(MANIFEST))):
        return False
    return all(map(_TABLE.fullmatch, inside))


def _has_manifest(names: Sequence[str]) -> bool:
    return any(PurePosixPath(name).name == MANIFEST for name in names)


def _inside(folder: Path, root: str, name: str) -> Path:
    """Return where a file of the store lies in the copy."""
    parts = PurePosixPath(name).relative_to(PurePosixPath(root)).parts
    if ".." in parts:
        raise ValueError(f"{name} is outside of it")
    return folder.joinpath(*parts)


def _copy(store: Any, name: str, path: Path, url: str, size: int | None, unstated: int) -> int:
    """Copy a file and return its bytes; never more than the store states, or `unstated` allows."""
    most, arrived = unstated if size is None else size, 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with store.open(name, "rb") as source, path.open("wb") as copy:
        while piece := source.read(min(_PIECE, most - arrived + 1)):
            arrived += len(piece)
            if arrived > most:
                raise CutraceError(f"{url}: {_excess(path.name, size, most)}")
            copy.write(piece)
    if size is not None and arrived != size:
        raise CutraceError(
            f"{url}: cut off in the middle: {arrived} of {size} bytes of {path.name} arrived; "
            "try again"
        )
    return arrived


def _excess(name: str, size: int | None, most: int) -> str:
    if size is not None:
        return f"more than the {size} bytes of {name} arrive that the store states"
    return (
        f"more than {most} bytes arrive, and the store does not state how many {name} has; "
        f"if that is right, allow more by ${LIMIT}, say {LIMIT}=10G"
    )
