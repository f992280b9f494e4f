"""Compiled loops kept between runs, in `~/.cache/cutrace` (or below `$XDG_CACHE_HOME`).

Compiling one takes ten milliseconds, reading it a fraction of one. A file is found by a hash of
everything that it depends on, and believed only if it is whole; where nothing can be written,
loops are compiled anew.
"""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

_HASH = hashlib.sha256
_SIZE = _HASH().digest_size


def cache_key(*parts: str) -> str:
    """Return the name of the file for what was made of these texts."""
    return _HASH("\0".join(parts).encode()).hexdigest()


def load_object(key: str) -> bytes | None:
    """Return the machine code that was kept under a key, None if there is none or it is broken."""
    try:
        data = (_folder() / key).read_bytes()
    except (OSError, RuntimeError):
        return None
    code = data[_SIZE:]
    return code if _HASH(code).digest() == data[:_SIZE] else None


def keep_object(key: str, code: bytes) -> None:
    """Keep machine code under a key, whole or not at all."""
    with suppress(OSError, RuntimeError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_HASH(code).digest() + code)
            os.replace(name, folder / key)
        except OSError:
            os.unlink(name)
            raise


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cutrace" / "native"
