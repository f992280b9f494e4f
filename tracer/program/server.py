"""The recorder's end of the lines: reads what processes say, and has it answered."""

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
from .wire import HEAD, NO_REPLY, NOT_SUPPORTED, Answer, Verbs, kinds, pack, unpack


class Server:
    """Answers messages by the verbs of several parts; arrays belong to the process that asked."""

    def __init__(self, storage: Storage, parts: Iterable[Verbs]) -> None:
        self._storage = storage
        self._verbs = {name: verb for part in parts for name, verb in part.items()}

    def take(self, part: Verbs) -> None:
        """Have a part answer from now on what it has verbs for."""
        self._verbs.update(part)

    def answer_one(self, line: socket.socket) -> bool:
        """Read a message and answer it; False where the process has gone, and its arrays too."""
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
        except ValueError as problem:
            raise CutraceError(f"the program's runtime library: {problem}") from None
        if kind.answer == NO_REPLY:
            self._verbs[kind.name](*values)
        else:
            _send(line, kind.answer, self._answer(kind.name, values))
        return True

    def _answer(self, name: str, values: list[Any]) -> Answer:
        """Answer a question; what cannot be done is said, and is the program's error."""
        try:
            return self._verbs[name](*values)
        except CutraceError as problem:
            print(f"cutrace: {problem}", file=sys.stderr)
            return NOT_SUPPORTED


def _send(line: socket.socket, fields: str, answer: Answer) -> None:
    status = answer if isinstance(answer, int) else 0
    data = b"" if isinstance(answer, int) else pack(fields, answer)
    with suppress(OSError):  # it has ended in the meantime
        line.sendall(HEAD.pack(status, len(data)) + data)


def _read(line: socket.socket, size: int) -> bytes | None:
    """Read so many bytes; None if the process has gone before."""
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
"""Characters of a socket's name; Linux takes 107."""


class Listener:
    """A socket in a folder that nobody else may enter; `name` is for `$CUTRACE_RECORDER`."""

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
        """Take the name away; who is connected stays so."""
        self.socket.close()
        self._claim.release()


class Connections:
    """The connections of a listening socket; each process is handed the file `memory`."""

    def __init__(self, listening: socket.socket, memory: int) -> None:
        self._listening = listening
        self._memory = memory
        self._lines: dict[int, socket.socket] = {}
        self._watched = select.poll()
        self._watched.register(listening, select.POLLIN)

    def wait(self, other: int) -> socket.socket | None:
        """Wait for a process to say something or to go: its line; None if it is `other` alone."""
        self._watched.register(other, select.POLLIN)
        while True:
            ready = {place for place, _ in self._watched.poll()}
            for place, line in self._lines.items():
                if place in ready:
                    self._lines[place] = self._lines.pop(place)  # others are heard before it
                    return line
            if self._listening.fileno() in ready:
                self._accept()
            elif other in ready:
                return None

    def _accept(self) -> None:
        line, _ = self._listening.accept()
        with suppress(OSError):  # it has gone already, which its line says next
            socket.send_fds(line, [b"c"], [self._memory])
        self._lines[line.fileno()] = line
        self._watched.register(line, select.POLLIN)

    def drop(self, line: socket.socket) -> None:
        """Forget a process that has gone."""
        self._watched.unregister(line)
        del self._lines[line.fileno()]
        line.close()

    def close(self) -> None:
        """Hang up on everybody."""
        for line in list(self._lines.values()):
            self.drop(line)
