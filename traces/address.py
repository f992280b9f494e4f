"""Addresses of traces and tables elsewhere: `s3://bucket/a.cutrace` and the like."""

import re
from pathlib import PurePath

_URL = re.compile(r"([a-z][a-z0-9+.-]+):/(/?)(.*)", re.DOTALL)
"""A protocol of two letters at least and a path; where a path was made of it, one slash is left."""


def url_of(path: str) -> str:
    """Return the address that a path says, or nothing if it is a path of this machine."""
    match = _URL.fullmatch(path)
    if match is None or match[2]:
        return path if match else ""
    return f"{match[1]}://{'/' * (match[1] == 'file')}{match[3]}"


def as_given(path: str | PurePath) -> str:
    """Return a path as text, with both slashes if it is an address.

    >>> as_given(PurePath("s3://bucket/a.cutrace")), as_given("s3:/bucket"), as_given(PurePath("a"))
    ('s3://bucket/a.cutrace', 's3:/bucket', 'a')
    """
    return (url_of(str(path)) if isinstance(path, PurePath) else "") or str(path)
