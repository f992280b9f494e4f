"""The recorder's end of the line: reads what the program says, has it answered, until it ends."""

import socket
import sys
from collections.abc import Iterable
from typing import Any

from ...errors import CutraceError
from .answers import NOT_SUPPORTED, Answer, Verbs
from .wire import HEAD, TOLD, kinds, pack, unpack


class Server:
    """Answers messages by the verbs of several parts."""

    def __init__(self, line: socket.socket, parts: Iterable[Verbs]) -> None:
        self._line = line
        self._verbs = {name: verb for part in parts for name, verb in part.items()}

    def take(self, part: Verbs) -> None:
        """Have a part answer from now on what it has verbs for."""
        self._verbs.update(part)

    def answer_one(self) -> bool:
        """Read a message and answer it; False where there is none, and never will be."""
        head = self._read(HEAD.size)
        if head is None:
            return False
        number, size = HEAD.unpack(head)
        data = self._read(size)
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
            self._send(kind.answer, self._answer(kind.name, values))
        return True

    def _answer(self, name: str, values: list[Any]) -> Answer:
        """Answer a question; what cannot be done is said, and is the program's error."""
        try:
            return self._verbs[name](*values)
        except CutraceError as problem:
            print(f"cutrace: {problem}", file=sys.stderr)
            return NOT_SUPPORTED

    def _send(self, fields: str, answer: Answer) -> None:
        status = answer if isinstance(answer, int) else 0
        data = b"" if isinstance(answer, int) else pack(fields, answer)
        try:
            self._line.sendall(HEAD.pack(status, len(data)) + data)
        except OSError:  # it has ended in the meantime
            return

    def _read(self, size: int) -> bytes | None:
        """Read so many bytes; None if the program has gone before."""
        data = bytearray()
        while len(data) < size:
            try:
                part = self._line.recv(min(size - len(data), 1 << 20))
            except OSError:
                return None
            if not part:
                return None
            data += part
        return bytes(data)
