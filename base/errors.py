"""The error classes of cutrace, and helpers for their messages."""

from collections.abc import Iterable
from difflib import get_close_matches


class CutraceError(Exception):
    """cutrace could not carry out a request: one clear message, exit status 2."""

    exit_status = 2


class KernelFault(CutraceError):
    """The kernel did something that no device permits, an access outside its arrays for example.

    Exit status 1. `cause` is `outside`, `misaligned`, `endless`, `waiting` or `assertion`, if one
    of these applies.
    """

    exit_status = 1

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.cause = reason


class CheckFailed(CutraceError):
    """A check that the user requested failed: exit status 1."""

    exit_status = 1


def message_of(error: BaseException) -> str:
    """Return a one-line message for any exception."""
    if isinstance(error, CutraceError):
        return str(error)
    if usage := getattr(error, "format_message", None):
        return f"{usage()} (`cutrace --help` and `cutrace VERB --help` explain)"
    if isinstance(error, OSError):
        return f"{error.filename or 'input or output'}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {error}".removesuffix(": ")
    if isinstance(error, ValueError) and "for integer string conversion" in str(error):
        return "a number has too many digits"
    return f"internal error, please report it: {type(error).__name__}: {error}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return `; nearest: a, b, c` for an unknown name, or `""`.

    >>> nearest("8800gtz", ["8800gtx", "k20", "h100"])
    '; nearest: 8800gtx'
    """
    close = get_close_matches(name, list(names), n=3, cutoff=0.4)
    return f"; nearest: {', '.join(close)}" if close else ""
