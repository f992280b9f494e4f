"""The error classes of cutrace, and the words that all their messages share."""

from collections.abc import Iterable
from difflib import get_close_matches


class CutraceError(Exception):
    """cutrace could not do what was asked: one clear message, exit status 2."""

    exit_status = 2


class KernelFault(CutraceError):
    """The kernel did what no device allows (say, wrote outside its arrays): exit status 1.

    `cause` is `outside`, `misaligned`, `endless`, `waiting` or `assertion` where one of these.
    """

    exit_status = 1

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause


class CheckFailed(CutraceError):
    """A check that was asked for did not hold: exit status 1."""

    exit_status = 1


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; nearest: a, b, c` for a name that is not among `known`, or `""`.

    >>> nearest("8800gtz", ["8800gtx", "k20", "h100"])
    '; nearest: 8800gtx'
    """
    close = get_close_matches(name, list(known), n=3, cutoff=0.4)
    return f"; nearest: {', '.join(close)}" if close else ""
