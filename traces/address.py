"""URLs of remote traces and tables: `s3://bucket/a.cutrace` and others."""

import re
from pathlib import PurePath

_URL = re.compile(r"([a-z][a-z0-9+.-]+):/(/?)(.*)", re.DOTALL)
"""A protocol of at least two letters and a path; `Path` collapses the two slashes to one."""


def url_of(path: str) -> str:
    """Return the URL that a path denotes, or an empty text for a local path."""
    match = _URL.fullmatch(path)
    if match is None or match[2]:
        return path if match else ""
    return f"{match[1]}://{'/' * (match[1] == 'file')}{match[3]}"


def as_given(path: str | PurePath) -> str:
    """Return a path as text, with both slashes if it is a URL.

    >>> as_given(PurePath("s3://bucket/a.cutrace")), as_given("s3:/bucket"), as_given(PurePath("a"))
    ('s3://bucket/a.cutrace', 's3:/bucket', 'a')
    """
    return (url_of(str(path)) if isinstance(path, PurePath) else "") or str(path)
