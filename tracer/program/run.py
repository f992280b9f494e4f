"""Record a program: start it, answer what it asks of its device, keep its launches."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .answers import Answer
from .arena import BASE, CONSTANTS, TEXELS, SharedMemory
from .binary import not_recorded
from .child import Child, find_program
from .code import Code
from .device import Device
from .launches import EnoughError, Launches
from .library import build_library
from .server import Server
from .session import ProgramSession
from .storage import Storage
from .texels import Texels
from .toolkit import find_host_compiler, find_toolkit
from .wire import fact_names


@dataclass(frozen=True, slots=True)
class Ended:
    """How it went: the program's exit status (minus a signal), launches recorded and refused.

    `why` says why it was ended by us, empty if it ended by itself.
    """

    status: int
    launches: int
    refused: int
    why: str = ""


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


def record_program(
    command: Sequence[str], trace: Path, device: Device, limit: int | None = None
) -> Ended:
    """Run a command and write the trace of its launches.

    CutraceError if it cannot be started, or never uses CUDA. With a `limit` it is ended after so
    many launches.
    """
    library = build_library(find_toolkit(), find_host_compiler())
    shared = SharedMemory()
    try:
        with ProgramSession(trace, shared) as session:
            child = Child(command, library, shared.file)
            try:
                return _serve(command, child, session, shared, device, limit)
            finally:
                child.close()
    finally:
        shared.close()


def _serve(
    command: Sequence[str], child: Child, session: ProgramSession, shared: SharedMemory,
    device: Device, limit: int | None,
) -> Ended:  # fmt: skip
    greeter = Greeter(device, shared.size)
    code = Code(session, device)
    storage = Storage(session, device.facts["memory_bytes"])
    launches = Launches(session, code, storage, limit)
    texels = Texels(session, storage)
    parts = ({"HELLO": greeter.greet}, code.verbs, storage.verbs, texels.verbs, launches.verbs)
    server = Server(child.line, parts)
    why = ""
    try:
        for _ in child.messages():
            if not server.answer_one():
                break
        status = child.wait()
    except EnoughError:
        why = f"it was ended after {limit} launches, as asked"
        child.stop()
        status = 0
    if not greeter.asked:
        raise not_recorded(command[0], find_program(command[0]))
    return Ended(status, launches.done, launches.refused, why)
