"""The command line: runs what `commands/` assembles and turns errors into exit codes.

0 done; 1 a check or the kernel failed; 2 cutrace could not; 130 Ctrl-C; 141 the reader of a pipe
went away. A verb returns what it prints. Heavy packages are imported inside functions only: Ctrl-C
is one line from the first moment on.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from ..base.version import __version__

INTERRUPTED = 130
PIPE_CLOSED = 141
COULD_NOT = 2

ENDINGS = ("SIGTERM", "SIGHUP")
"""What ends a process whose batch job, container or terminal ends."""

GARBAGE = (200_000, 20, 20)
"""How seldom Python looks for circles of garbage: at its own pace it goes some hundred times
through all that is being imported, which is fewer objects than these."""


def main() -> None:
    """Run the command line and leave with its exit status."""
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listens:
        signal.signal(signal.SIGINT, _leave)
    for name in ENDINGS:
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_DFL:
            signal.signal(getattr(signal, name), _clear_and_end)
    gc.set_threshold(*GARBAGE)
    sys.meta_path.insert(0, WithoutPandas())
    status = run(sys.argv[1:])
    if listens:
        signal.signal(signal.SIGINT, _leave)
    gc.freeze()  # else Python looks for circles in all that was imported, twice, on its way out
    sys.exit(status)


class WithoutPandas:
    """Keeps pyarrow from importing pandas, where it is installed, to see if an array is of that.

    pyarrow's own code is in no frame of Python: the import looks as if it came from cutrace, which
    knows no pandas. A model of the user's may import it.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse pandas to cutrace itself, and leave all else to those who know."""
        if name == "pandas":
            frame: FrameType | None = sys._getframe(1)
            while frame and frame.f_code.co_filename.startswith("<frozen importlib"):
                frame = frame.f_back
            if frame and frame.f_globals.get("__name__", "").startswith(__package__ or " "):
                raise ModuleNotFoundError("cutrace does without pandas", name=name)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return its exit status. Messages go to stderr, never a traceback."""
    try:
        result = _answer(list(arguments))
        if isinstance(result, str):
            _show(result)
        sys.stdout.flush()
        if result == INTERRUPTED:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        return _pipe_closed()
    except SystemExit as leaving:  # how typer ends for a reader that went away, with status 1
        if isinstance(leaving.__context__, BrokenPipeError):
            return _pipe_closed()
        raise
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:
        if type(error).__name__ == "Abort":  # typer's word for Ctrl-C
            return _interrupted()
        from ..base.errors import message_of
        from ..base.sanitize import sanitize

        print(sanitize(f"cutrace: {message_of(error)}"), file=sys.stderr)
        return getattr(error, "exit_status", COULD_NOT)


def _answer(arguments: list[str]) -> object:
    """What a command line returns; the version without the time that typer takes to load."""
    if arguments == ["--version"]:
        return f"cutrace {__version__}"
    from ._application import call

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return call(arguments)


def _show(text: str) -> None:
    """Print what a verb returns; what a trace brought with it does nothing to the terminal."""
    from ..base.sanitize import Styled, sanitize

    shown = text if isinstance(text, Styled) else sanitize(text)
    sys.stdout.write(shown if shown.endswith("\n") else f"{shown}\n")


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once on Ctrl-C while nothing has begun, or everything is done."""
    os.write(2, b"cutrace: interrupted\n")
    os._exit(INTERRUPTED)


def _clear_and_end(number: int, frame: FrameType | None) -> None:
    """Remove the folders of this process, and end by the signal as if nobody had listened."""
    if claim := sys.modules.get("cutrace.base.claim"):
        claim.release_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _interrupted() -> int:
    print("cutrace: interrupted", file=sys.stderr)
    return INTERRUPTED


def _pipe_closed() -> int:
    """Give Python a place to flush its buffers, so that it does not complain on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED
