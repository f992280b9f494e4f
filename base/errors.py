"""The error classes of cutrace, and errors as text and as JSON."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class CutraceError(Exception):
    """cutrace could not carry out a request: one clear message, exit status 2.

    `kind` tells programs what failed: `request`, `build` (a source does not compile), `launch` (it
    launches nothing), `program` (its exit status is not 0), `fault` or `check`. `report` is a
    report that a verb has made nevertheless, for stdout.
    """

    exit_status = 2
    kind = "request"
    cause = ""
    report = ""

    def __init__(self, message: str = "", kind: str = "") -> None:
        super().__init__(message)
        if kind:
            self.kind = kind


class KernelFault(CutraceError):
    """The kernel did something that no device permits, an access outside its arrays for example.

    Exit status 1. `cause` is `outside`, `misaligned`, `endless`, `waiting`, `uninitialized`,
    `assertion` or `illegal`, if one of these applies.
    """

    exit_status = 1
    kind = "fault"

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.cause = reason


class CheckFailed(CutraceError):
    """A check that the user requested failed: exit status 1."""

    exit_status = 1
    kind = "check"


@contextmanager
def of_kind(kind: str) -> Iterator[None]:
    """Mark the errors of the body that have no kind of their own."""
    try:
        yield
    except CutraceError as error:
        if error.kind == CutraceError.kind:
            error.kind = kind
        raise


ERROR_FORMAT = "cutrace-error-1"
_PLACE = re.compile(
    r"^[ ]*(?P<file>[^\s:()][^:()\n]*\.\w+)(?:\((?P<in_parentheses>\d+)\)|:(?P<line>\d+))",
    re.MULTILINE,
)
_AT = re.compile(r" at (?P<file>[^\s:()]+\.\w+):(?P<line>\d+)")
_LANE = re.compile(r"in thread \((\d+), (\d+), (\d+)\) of block \((\d+), (\d+), (\d+)\)")
_KERNEL = re.compile(r"kernel `([^`]*)`")


def place_of(message: str) -> tuple[str, int] | None:
    """Return the first file and line that a message names.

    >>> place_of("a.cu does not compile\\na.cu(7): error: ..."), place_of("k.cu:3: `k` reads")
    (('a.cu', 7), ('k.cu', 3))
    """
    if match := _PLACE.search(message):
        return match["file"], int(match["line"] or match["in_parentheses"])
    at = _AT.search(message)
    return (at["file"], int(at["line"])) if at else None


def describe_error(error: BaseException) -> dict[str, object]:
    """Return an error for programs: what failed, where, and the message; unknown parts are null."""
    message = message_of(error)
    place, lane, kernel = place_of(message), _LANE.search(message), _KERNEL.search(message)
    indices = [int(index) for index in lane.groups()] if lane else []
    return {
        "kind": _kind(error),
        "cause": getattr(error, "cause", "") or None,
        "message": message,
        "file": place[0] if place else None,
        "line": place[1] if place else None,
        "kernel": kernel[1] if kernel else None,
        "thread": indices[:3] or None,
        "block": indices[3:] or None,
    }


def _kind(error: BaseException) -> str:
    if isinstance(error, CutraceError):
        return error.kind
    if hasattr(error, "format_message"):  # typer's errors of usage
        return "request"
    return "system" if isinstance(error, OSError | MemoryError) else "internal"


def message_of(error: BaseException) -> str:
    """Return a one-line message for any exception."""
    if isinstance(error, CutraceError):
        return str(error)
    if usage := getattr(error, "format_message", None):
        is_option = hasattr(error, "option_name")  # one that the verb does not have
        own = "; those of a script or program go behind `--`" if is_option else ""
        return f"{usage()} (`cutrace --help` and `cutrace VERB --help` explain{own})"
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
