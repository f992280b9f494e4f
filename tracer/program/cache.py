"""What is built once and kept: in `~/.cache/cutrace` (or below `$XDG_CACHE_HOME`), by content."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from ...errors import CutraceError


def key_of(parts: Iterable[str | bytes]) -> str:
    """A name for what is made of these."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def kept(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """The folder of this kind and key; `make` fills an empty one where it is not there yet.

    It appears whole or not at all, also where several processes make it at once.
    """
    folder = folder_of(kind) / key
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    except OSError as error:
        raise CutraceError(f"{folder.parent}: cannot build a program here: {error}") from None
    try:
        make(draft)
        draft.chmod(0o755)
        os.rename(draft, folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def made_folder(kind: str) -> Path:
    """Where all of one kind are; it is made if it is not there and can be."""
    folder = folder_of(kind)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def folder_of(kind: str) -> Path:
    """Where all of one kind are."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cutrace" / kind
