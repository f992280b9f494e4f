"""The recorder's end of the RPC: read messages of the program's processes and dispatch them.

`Server` decodes a message by `wire` and calls the handler that is registered for its name.
`Listener` owns the socket's name, `Connections` the connected processes.
"""

import select
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...base.claim import Claim, claim_scratch, sweep
from ...base.errors import CutraceError
from .storage import Storage
from .wire import (
    HEAD,
    NO_REPLY,
    NOT_SUPPORTED,
    Answer,
    OtherVersionError,
    Verbs,
    kinds,
    pack,
    unpack,
)


class Server:
    """Dispatches messages to the handlers; an array belongs to the requesting process."""

    def __init__(self, storage: Storage, parts: Iterable[Verbs]) -> None:
        self._storage = storage
        self._verbs = {name: verb for part in parts for name, verb in part.items()}

    def take(self, part: Verbs) -> None:
        """Register the handlers of a part; they replace earlier ones of the same name."""
        self._verbs.update(part)

    def answer_one(self, line: socket.socket) -> bool:
        """Read and answer one message; if the process has exited, free its arrays, return False."""
        self._storage.owner = line.fileno()
        if self._answer_next(line):
            return True
        self._storage.free_all()
        return False

    def _answer_next(self, line: socket.socket) -> bool:
        head = _read(line, HEAD.size)
        if head is None:
            return False
        number, size = HEAD.unpack(head)
        data = _read(line, size)
        kind = kinds().get(number)
        if data is None or kind is None:
            return False
        try:
            values = unpack(kind.question, data)
        except ValueError:
            raise OtherVersionError from None
        # Notes of copies, limits and library calls have no reply: the program does not wait. A
        # connection keeps the order of messages, so later calls see their effect.
        if kind.answer == NO_REPLY:
            self._verbs[kind.name](*values)
        else:
            _send(line, kind.answer, self._answer(kind.name, values))
        return True

    def _answer(self, name: str, values: list[Any]) -> Answer:
        """Answer a request; a failure is printed and becomes the program's error."""
        try:
            return self._verbs[name](*values)
        except OtherVersionError:
            raise
        except CutraceError as problem:
            print(f"cutrace: {problem}", file=sys.stderr)
            return NOT_SUPPORTED


def _send(line: socket.socket, fields: str, answer: Answer) -> None:
    status = answer if isinstance(answer, int) else 0
    data = b"" if isinstance(answer, int) else pack(fields, answer)
    with suppress(OSError):  # the process has ended meanwhile
        line.sendall(HEAD.pack(status, len(data)) + data)


def _read(line: socket.socket, size: int) -> bytes | None:
    """Read exactly `size` bytes; return None if the connection closes first."""
    data = bytearray()
    while len(data) < size:
        try:
            part = line.recv(min(size - len(data), 1 << 20))
        except OSError:
            return None
        if not part:
            return None
        data += part
    return bytes(data)


LONGEST = 100
"""Most characters of a socket's name; Linux allows 107."""


class Listener:
    """A socket in a folder that only this user can enter; `name` is for `$CUTRACE_RECORDER`."""

    def __init__(self) -> None:
        self._claim = claim_scratch()
        if len(str(self._claim.folder)) > LONGEST - len("/line"):
            self._claim.release()
            sweep(Path("/tmp"))
            self._claim = Claim(Path("/tmp"))
        self.name = str(self._claim.folder / "line")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.name)
        self.socket.listen()

    def close(self) -> None:
        """Remove the socket's name; established connections stay open."""
        self.socket.close()
        self._claim.release()


class Connections:
    """The connections of a listening socket; each new process receives the descriptor `memory`."""

    def __init__(self, listening: socket.socket, memory: int) -> None:
        self._listening = listening
        self._memory = memory
        self._lines: dict[int, socket.socket] = {}
        self._watched = select.poll()
        self._watched.register(listening, select.POLLIN)

    def wait(self, other: int) -> socket.socket | None:
        """Wait for data or hang-up of a process; return its connection, or None if only `other` is
        ready.
        """
        self._watched.register(other, select.POLLIN)
        while True:
            ready = {place for place, _ in self._watched.poll()}
            for place, line in self._lines.items():
                if place in ready:
                    # Round robin: a served connection moves to the end, so that a process that
                    # sends without pause cannot starve the others.
                    self._lines[place] = self._lines.pop(place)
                    return line
            if self._listening.fileno() in ready:
                self._accept()
            elif other in ready:
                return None

    def _accept(self) -> None:
        line, _ = self._listening.accept()
        with suppress(OSError):  # the process has exited already; its connection reports that next
            socket.send_fds(line, [b"c"], [self._memory])
        self._lines[line.fileno()] = line
        self._watched.register(line, select.POLLIN)

    def drop(self, line: socket.socket) -> None:
        """Drop the connection of an exited process."""
        self._watched.unregister(line)
        del self._lines[line.fileno()]
        line.close()

    def close(self) -> None:
        """Close all connections."""
        for line in list(self._lines.values()):
            self.drop(line)
