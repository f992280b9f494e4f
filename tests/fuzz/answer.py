"""What cutrace says of a trace that may be damaged, and whether that is an answer."""

import io
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from cutrace.commands._main import run

SECONDS = 10
"""Of the processor, of which others have their part."""
HANGS = 60
MEMORY = 1 << 30

VERBS: tuple[tuple[str, ...], ...] = (
    ("info", "--verify"),
    ("analyze", "-d", "h100,8800gtx", "--by", "line"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command line ended with."""

    status: int
    said: str
    seconds: float

    @property
    def problem(self) -> str:
        """Why it is none, or empty."""
        if self.status not in (0, 1, 2):
            return f"exit status {self.status}"
        if "internal error" in self.said or "Traceback" in self.said:
            return self.said[-2000:]
        if self.status and not self.said.strip():
            return "no message"
        if self.seconds > SECONDS:
            return f"{self.seconds:.1f} s"
        if len(self.said) > 1 << 22:
            return f"{len(self.said)} characters"
        return ""


def ask(words: Sequence[str]) -> Answer:
    """Run a command line in this process, for no longer than it may take."""
    out, err = io.StringIO(), io.StringIO()
    begin = time.process_time()
    with redirect_stdout(out), redirect_stderr(err), _no_longer():
        try:
            status = run(list(words))
        except SystemExit as end:
            status = int(end.code or 0)
    return Answer(
        status, err.getvalue() + out.getvalue() * (status == 0), time.process_time() - begin
    )


def ask_all(trace: Path) -> Iterator[tuple[str, Answer]]:
    """Ask everything of a trace."""
    for verb, *options in VERBS:
        yield verb, ask((verb, str(trace), *options))


def forget_peak() -> None:
    """From here on `peak` says what is needed now, not what an earlier test needed (proc(5))."""
    forget = Path("/proc/self/clear_refs")
    if forget.is_file():
        forget.write_text("5")


def peak() -> int:
    """Bytes that this process has had at most, 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


@contextmanager
def _no_longer() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"hangs: more than {HANGS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANGS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
