"""What a process and the recorder beside it say of traces: an object of JSON a line, each way.

The process asks `begin` or `end`, or tells a `source` that is in no file; the answer has `error`,
or what was asked for. What the recorder has to say meanwhile comes as `said` with the next answer.
"""

import json
import socket
from contextlib import suppress
from typing import Any


class Control:
    """One end of the line."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self._file = line.makefile("rwb")

    def send(self, **message: Any) -> None:
        """Say something; nobody hears it who has gone."""
        with suppress(OSError):
            self._file.write(json.dumps(message).encode() + b"\n")
            self._file.flush()

    def receive(self) -> dict[str, Any] | None:
        """Wait for what the other says; None if it has gone."""
        try:
            text = self._file.readline()
        except OSError:
            return None
        message: dict[str, Any] | None = json.loads(text) if text else None
        return message
