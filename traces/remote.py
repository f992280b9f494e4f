"""Remote traces: `s3://bucket/a.cutrace`, `https://...` and other protocols of fsspec.

A trace is downloaded file by file into a scratch folder of the process, and the size of each file
is compared with the store's. Then it is read like a local one. `send` uploads a trace.
"""

import filecmp
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
"""Environment variable with the maximum size of a remote trace, as in `10G`."""
UNSTATED_BYTES = 1 << 30
"""Default maximum of the bytes in files whose sizes the store does not report."""
RESPONSE_BYTES = 1 << 26
"""Maximum of an HTTP response that is held in memory: a folder's listing, a part of a file."""
SILENCE = 30.0
"""Seconds without a byte after which an HTTP server is given up."""
_DEPTH = 2
"""Folders between a trace and its files: `NUMBER/accesses.arrow`."""
_PIECE = 1 << 22
_TABLE = re.compile(rf"\d+/(?:{'|'.join(TABLES)})\.arrow")


_CLAIMS: list[Claim] = []
"""Folders of downloaded copies, which are removed at the end of the process."""


@cache
def fetch(url: str) -> Path:
    """Download a trace, once per process; return the folder of the copy.

    A local trace (`file://...`) is read in place. Raises CutraceError if it does not exist, cannot
    be reached, arrives incomplete, or is larger than LIMIT permits.
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
    """Return the URL from which a folder was downloaded; empty if it is not a copy."""
    return _ORIGINS.get(str(folder), "")


def bring(url: str, folder: Path) -> None:
    """Download a trace to the path that the copy has on another machine, unless it is there.

    Raises CutraceError as `fetch` does.
    """
    claim = claim_scratch()
    draft = place_in(claim, url)
    _fetch(url, draft)
    with suppress(FileExistsError):  # created by another process
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
        names = [root] if is_packed else _find(store, root)
        if not is_packed and not _has_manifest(names):
            where = f"no {MANIFEST} in it" if names else "nothing is there, or nobody answers"
            raise CutraceError(f"{url}: not a trace: {where}")
        # A trace that is recorded anew is replaced as a whole, so its manifest shows it: that is
        # the first file to be copied, and copied again after the others.
        names.sort(key=lambda name: PurePosixPath(name).name != MANIFEST)
        state = _state(store, names[0])
        sizes = {name: store.size(name) for name in names}
        unstated = _check_sizes(sizes.values(), url, folder.parent)
        for name, size in sizes.items():
            arrived = _copy(store, name, _inside(folder, root, name), url, size, unstated)
            unstated -= arrived if size is None else 0
        store.invalidate_cache()
        is_same = state == _state(store, names[0])
        if not is_same or not (is_packed or _is_same_file(store, names[0], folder / MANIFEST, url)):
            raise CutraceError(f"{url}: replaced while it was fetched; try again")


def _state(store: Any, name: str) -> object:
    """Return what the store says of a file: its size, and often a time and a checksum."""
    with suppress(FileNotFoundError):
        return store.info(name)
    return None


def _is_same_file(store: Any, name: str, copy: Path, url: str) -> bool:
    again = copy.with_name(f"{copy.name}.again")
    try:
        _copy(store, name, again, url, copy.stat().st_size, 0)
        return filecmp.cmp(again, copy, shallow=False)
    except CutraceError:  # of another size
        return False
    finally:
        again.unlink(missing_ok=True)


def _find(store: Any, root: str) -> list[str]:
    """Return the files of a remote folder; a web server may list folders without end."""
    depth = {"maxdepth": _DEPTH} if root.startswith(("http:", "https:")) else {}
    return sorted(store.find(root, **depth))


def _check_sizes(sizes: Iterable[int | None], url: str, place: Path) -> int:
    """Return the permitted bytes of files without a reported size; CutraceError if the reported
    sizes exceed the limit.
    """
    stated = sum(size or 0 for size in sizes)
    text = os.environ.get(LIMIT, "")
    limit = bytes_of(text, f"${LIMIT}") if text else None
    if limit is not None and stated > limit:
        raise CutraceError(f"{url}: {stated} bytes; ${LIMIT} is {text}")
    if stated > (free := shutil.disk_usage(place).free):
        raise CutraceError(f"{url}: {stated} bytes, and {place.parent} has room for {free}")
    return UNSTATED_BYTES if limit is None else limit - stated


def place_in(claim: Claim, url: str) -> Path:
    """Return the path in a folder for the local copy of a URL."""
    name = PurePosixPath(url).name
    return claim.folder / ("trace" if name in ("", "..") else name)


def send(folder: Path, url: str) -> None:
    """Upload a local trace to a URL, replacing an earlier trace.

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
    """Convert the errors of a store into CutraceErrors."""
    try:
        yield
    except CutraceError:
        raise
    except Exception as error:
        # For a server that does not answer, fsspec raises FileNotFoundError with the address alone.
        why = str(error.__cause__ or error) or type(error).__name__
        raise CutraceError(f"{url}: cannot {verb} it: {why}") from error


def open_store(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the path in it."""
    try:
        import fsspec
    except ImportError:
        raise CutraceError(f"{url}: it needs fsspec: pip install 'cutrace[remote]'") from None
    options = {"get_client": _http_client} if url.startswith(("http:", "https:")) else {}
    store, root = fsspec.core.url_to_fs(url, **options)
    return store, root


async def _http_client(**options: Any) -> Any:
    """Return aiohttp's session, in which neither a silent nor a talkative server is waited for."""
    from aiohttp import ClientResponse, ClientSession, ClientTimeout

    class Response(ClientResponse):  # type: ignore[misc]
        _body: bytes | None = None

        async def read(self) -> bytes:
            """Read a listing or a range of a file, which fsspec holds in memory."""
            if self._body is None:
                body = bytearray()
                async for piece in self.content.iter_any():
                    body += piece
                    if len(body) > RESPONSE_BYTES:
                        self.close()
                        raise CutraceError(
                            f"{self.url}: an answer of more than {RESPONSE_BYTES} bytes"
                        )
                self._body = bytes(body)
            whole: bytes = await super().read()
            return whole

    silence = ClientTimeout(total=None, connect=SILENCE, sock_read=SILENCE)
    return ClientSession(**{"timeout": silence, "response_class": Response, **options})


def _is_trace(store: Any, root: str, names: Sequence[str]) -> bool:
    """Return whether the remote files are those of a trace, and nothing else."""
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
    """Return the local path of a file of the store in the copy."""
    parts = PurePosixPath(name).relative_to(PurePosixPath(root)).parts
    if ".." in parts:
        raise ValueError(f"{name} is outside of it")
    return folder.joinpath(*parts)


def _copy(store: Any, name: str, path: Path, url: str, size: int | None, unstated: int) -> int:
    """Download a file and return its bytes; never more than the store states, or `unstated`
    allows."""
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
