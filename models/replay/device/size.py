"""Sizes with a unit, as people write them: `"32M"` is 33554432 bytes."""

import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT])(?:i?B)?")
_POWERS = {"K": 10, "M": 20, "G": 30, "T": 40}


def read_size(value: object) -> object:
    """Return the bytes of a text that is a size; anything else as it is.

    Units are powers of 1024, also `MB` and `MiB`: caches come in no others.

    >>> read_size("1.5M"), read_size("64 KiB"), read_size("sector"), read_size(7)
    (1572864, 65536, 'sector', 7)
    """
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    size = float(found[1]) * 2 ** _POWERS[found[2]]
    return int(size) if size.is_integer() else value
