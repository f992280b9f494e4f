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

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.cause = reason


class CheckFailed(CutraceError):
    """A check that was asked for did not hold: exit status 1."""

    exit_status = 1


def message_of(error: BaseException) -> str:
    """Return one message for whatever went wrong."""
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
    """Return `; nearest: a, b, c` for a name that is not among `names`, or `""`.

    >>> nearest("8800gtz", ["8800gtx", "k20", "h100"])
    '; nearest: 8800gtx'
    """
    close = get_close_matches(name, list(names), n=3, cutoff=0.4)
    return f"; nearest: {', '.join(close)}" if close else ""
