"""Record a program: start it, answer what it asks of its device, keep its launches."""

import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path

from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from .answers import Answer
from .arena import BASE, CONSTANTS, TEXELS, SharedMemory
from .child import Child
from .choice import Choice, Tally
from .code import Code
from .device import Device
from .launches import EnoughError, Launches
from .library import build_library
from .missing import why_nothing_came
from .server import Server
from .session import ProgramSession
from .storage import Storage
from .texels import Texels
from .toolkit import find_host_compiler, find_toolkit
from .wire import fact_names


@dataclass(frozen=True, slots=True)
class Ended:
    """How it went: the program's exit status (minus a signal), launches recorded and refused.

    `why` says why it was ended by us, empty if it ended by itself; `left_out` what was run and is
    not in the trace, if anything.
    """

    status: int
    launches: int
    refused: int
    why: str = ""
    left_out: str = ""


@dataclass(slots=True)
class Greeter:
    """Tells the program of its device, and notes that it came."""

    device: Device
    size: int
    asked: bool = False

    def greet(self, process: int) -> Answer:
        """Answer the first message."""
        self.asked = True
        facts = [self.device.facts[name] for name in fact_names()]
        data = struct.pack(f"<{len(facts)}q", *facts)
        return (BASE, self.size, CONSTANTS, TEXELS, data, self.device.name.encode())


@dataclass(frozen=True, slots=True)
class Order:
    """What to run: `words` as the program sees them, `path` where that is another file.

    It is ended when `launches` are recorded, of those that are chosen, or after `seconds`, where
    these are given; what it prints goes to the file `output`, where that is. `tally` says meanwhile
    how far it is.
    """

    words: tuple[str, ...]
    path: Path | None = None
    launches: int | None = None
    seconds: float | None = None
    output: int | None = None
    choice: Choice = field(default_factory=Choice)
    tally: Tally = field(default_factory=Tally)


def record_program(order: Order, trace: Path, device: Device) -> Ended:
    """Run a program and write the trace of its launches.

    CutraceError if it cannot be started, or never uses CUDA.
    """
    library = build_library(find_toolkit(), find_host_compiler())
    shared = SharedMemory()
    try:
        with ProgramSession(trace, shared) as session:
            child = Child(order.words, order.path, library, shared.file, order.output)
            try:
                ended = _serve(order, child, session, shared, device)
            finally:
                child.close()
        return replace(ended, launches=session.writer.count, left_out=session.writer.left_out)
    finally:
        shared.close()


def _serve(
    order: Order, child: Child, session: ProgramSession, shared: SharedMemory, device: Device
) -> Ended:
    greeter = Greeter(device, shared.size)
    code = Code(session, device)
    storage = Storage(session, device.facts["memory_bytes"])
    launches = Launches(session, code, storage, order.launches, order.choice, order.tally)
    texels = Texels(session, storage)
    parts = ({"HELLO": greeter.greet}, code.verbs, storage.verbs, texels.verbs, launches.verbs)
    status, why = _answer(child, Server(storage, parts), order.seconds)
    if not greeter.asked and not why:
        raise CutraceError(why_nothing_came(order.words[0], status))
    if why and order.tally.running:
        why += f", while launch {order.tally.run} ran, kernel `{order.tally.running}`"
    return Ended(status, order.tally.recorded, launches.refused, why)


def _answer(child: Child, server: Server, seconds: float | None) -> tuple[int, str]:
    """Answer until the program ends, or is ended: its exit status, and why."""
    try:
        with _alarm(seconds):
            for line in child.lines():
                if not server.answer_one(line):
                    child.drop(line)
            return child.wait(), ""
    except EnoughError as enough:
        child.stop()
        return 0, f"it was ended after {enough}, as asked"
    except KeyboardInterrupt:
        child.stop()
        return -signal.SIGINT, "it was interrupted"


@contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    """Raise EnoughError when the body has run for so long."""
    if seconds is None:
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise EnoughError(f"{seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
