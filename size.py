"""Sizes as people write them: `"32M"`, `"64 KiB"`, `"1.5GB"`.

Units are powers of 1024, also `MB` and `MiB`: caches come in no others.
"""

import re

from .errors import CutraceError

_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,20})?) ?([KMGT]?)((?:i?B)?)", re.IGNORECASE)


def read_size(value: object) -> object:
    """Return the bytes of a text that is a size with a unit; anything else as it is.

    >>> read_size("1.5M"), read_size("64 KiB"), read_size("sector"), read_size("9.0"), read_size(7)
    (1572864, 65536, 'sector', '9.0', 7)
    """
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None or not found[2] + found[3]:
        return value
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, of at most 40 digits: Python reads no more than 4300.

    >>> is_whole("10"), is_whole("-1"), is_whole("9" * 5000)
    (True, False, False)
    """
    return text.isdecimal() and len(text) <= 40


def bytes_of(value: int | str, what: str, least: int = 1) -> int:
    """Return the bytes that a user gives as a number or a size; `CutraceError` for anything else.

    >>> bytes_of("64k", "size"), bytes_of(" 10", "size"), bytes_of(10, "size")
    (65536, 10, 10)
    """
    size = read_size(value.strip()) if isinstance(value, str) else value
    if isinstance(size, str) and is_whole(size):
        size = int(size)
    if not isinstance(size, int) or size < least:
        raise CutraceError(f"{what} is {value!r}: expected bytes, as in 64K, 10M, 2G")
    return size
