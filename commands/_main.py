"""Entry point of the command line: run the application and map errors to exit codes.

0 success; 1 a check or the kernel failed; 2 cutrace could not do it; 130 Ctrl-C; 141 the reader of
a pipe closed it. A verb returns its output as text. Heavy packages are imported inside functions
only, so that Ctrl-C prints one line, without a traceback, from the start.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from types import FrameType

from ..base.version import __version__

INTERRUPTED = 130
PIPE_CLOSED = 141
COULD_NOT = 2

ENDINGS = ("SIGTERM", "SIGHUP")
"""Signals that end a process together with its batch job, container or terminal."""

GARBAGE = (200_000, 20, 20)
"""Thresholds of Python's cycle collector.

With Python's defaults it runs some hundred times during the imports, which make fewer objects than
these.
"""


def main() -> None:
    """Run the command line and exit with its status."""
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listens:
        signal.signal(signal.SIGINT, _leave)
    for name in ENDINGS:
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_DFL:
            signal.signal(getattr(signal, name), _clear_and_end)
    gc.set_threshold(*GARBAGE)
    sys.meta_path.insert(0, WithoutPandas())
    # While nothing has begun, Ctrl-C may exit at once. `run` restores Python's own handler for the
    # work itself, which must unwind to remove its folders.
    status = run(sys.argv[1:])
    if listens:
        signal.signal(signal.SIGINT, _leave)
    gc.freeze()  # else Python scans all imported objects for cycles, twice, on exit
    sys.exit(status)


class WithoutPandas:
    """Import hook that keeps pyarrow from importing pandas to test an array's type.

    pyarrow's own code has no Python frame, so its import looks like one by cutrace, which itself
    never imports pandas. A user's model may import it.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse pandas to cutrace itself; leave all other imports to the other finders."""
        if name == "pandas":
            frame: FrameType | None = sys._getframe(1)
            while frame and frame.f_code.co_filename.startswith("<frozen importlib"):
                frame = frame.f_back
            if frame and frame.f_globals.get("__name__", "").startswith(__package__ or " "):
                raise ModuleNotFoundError("cutrace does without pandas", name=name)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return its exit status. Messages go to stderr, never a traceback."""
    try:
        result: object = f"cutrace {__version__}"
        if [*arguments] != ["--version"]:  # which is answered without the import of typer
            from ._application import call

            if signal.getsignal(signal.SIGINT) is _leave:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            result = call([*arguments])
        if isinstance(result, str):
            _show(result)
        sys.stdout.flush()
        if result == INTERRUPTED:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        return _pipe_closed()
    except SystemExit as leaving:  # typer's exit, with status 1, if the reader of a pipe closed it
        if isinstance(leaving.__context__, BrokenPipeError):
            return _pipe_closed()
        raise
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:
        if type(error).__name__ == "Abort":  # typer's exception for Ctrl-C
            return _interrupted()
        from ..base.errors import message_of
        from ..base.sanitize import sanitize

        try:
            report = getattr(error, "report", "") or _failure_report(arguments, error)
            if report:
                _show(report)
            sys.stdout.flush()
        except BrokenPipeError:
            return _pipe_closed()
        print(sanitize(f"cutrace: {message_of(error)}"), file=sys.stderr)
        return getattr(error, "exit_status", COULD_NOT)


def _failure_report(arguments: Sequence[str], error: BaseException) -> str:
    """Return an error in the format that a program reads from stdout; empty for text."""
    own = [*arguments]
    own = own[: own.index("--")] if "--" in own else own
    format = _format_of(own)
    if format == "json":
        import json

        from ..base.errors import ERROR_FORMAT, describe_error

        return json.dumps({"format": ERROR_FORMAT, "error": describe_error(error)}, indent=1)
    if next((word for word in own if not word.startswith("-")), "") == "check":
        from .running.trace_check import report_error

        return report_error(error, own, format)
    return ""


def _format_of(words: Sequence[str]) -> str:
    """Return the value of the last `--format`, or empty text.

    >>> _format_of(["why", "a.cu", "--format=json"]), _format_of(["analyze", "--format", "csv"])
    ('json', 'csv')
    """
    formats = [word.partition("=")[2] for word in words if word.startswith("--format=")]
    formats += [value for option, value in pairwise(words) if option == "--format"]
    return formats[-1] if formats else ""


def _show(text: str) -> None:
    """Print a verb's result; text from a trace cannot control the terminal."""
    from ..base.sanitize import Styled, sanitize

    shown = text if isinstance(text, Styled) else sanitize(text)
    sys.stdout.write(shown if shown.endswith("\n") else f"{shown}\n")


def _leave(number: int, frame: FrameType | None) -> None:
    """Exit immediately on Ctrl-C before the start or after the end of the work."""
    os.write(2, b"cutrace: interrupted\n")
    os._exit(INTERRUPTED)


def _clear_and_end(number: int, frame: FrameType | None) -> None:
    """End the processes of this one, remove its folders, and end by the signal's default action."""
    for child in _children(os.getpid()):
        with suppress(OSError):
            os.kill(child, signal.SIGTERM)
    if claim := sys.modules.get("cutrace.base.claim"):
        claim.release_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _children(process: int) -> list[int]:
    """Return the processes that a process started, with theirs, as Linux lists them."""
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    return [*found, *(later for child in found for later in _children(child))]


def _interrupted() -> int:
    print("cutrace: interrupted", file=sys.stderr)
    return INTERRUPTED


def _pipe_closed() -> int:
    """Redirect stdout to devnull, so that Python's flush on exit reports no error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED
