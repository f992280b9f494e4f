"""The recorder's end of the lines: reads what processes say, and has it answered."""

import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from ...errors import CutraceError
from .answers import NOT_SUPPORTED, Answer, Verbs
from .storage import Storage
from .wire import HEAD, TOLD, kinds, pack, unpack


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
        if kind.answer == TOLD:
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
