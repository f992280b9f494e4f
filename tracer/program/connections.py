"""Where the processes of a program connect to their recorder: a socket by name.

A name lasts where inherited files do not: Python's subprocess closes them. Each process has a
connection of its own, so that two may use the device at a time.
"""

import select
import socket
from contextlib import suppress
from pathlib import Path

from ...claim import Claim, claim_scratch, sweep

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
