"""The recorder process for `cutrace.recording()`; it ends with the process that started it.

Run with `-m` and the words LISTENING CONTROL DEVICE: two inherited socket descriptors, and a device
name.
"""

import signal
import socket
import sys
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.errors import CutraceError
from .program import choose_device

if TYPE_CHECKING:
    from ...tracer.program.inprocess.persistent_session import PersistentRecorder
    from ...tracer.program.inprocess.recorder_process import Control
    from ...tracer.program.server import Connections


def main(words: list[str]) -> None:
    """Serve until the process exits; then end an open trace."""
    from ...tracer.program.inprocess.persistent_session import make_persistent
    from ...tracer.program.inprocess.recorder_process import Control
    from ...tracer.program.server import Connections
    from ...tracer.program.session import SharedMemory

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the recorded process
    listening, control = (socket.socket(fileno=int(word)) for word in words[:2])
    shared = SharedMemory()
    lasting = make_persistent(shared, choose_device(words[2] or None))
    _serve(lasting, Connections(listening, shared.file), Control(control))
    if lasting.is_recording:
        lasting.end()


def _serve(lasting: "PersistentRecorder", connections: "Connections", control: "Control") -> None:
    """Serve the process: device calls before control requests, so that a trace ends complete."""
    stderr = StringIO()
    while True:
        line = connections.wait(control.line.fileno())
        with redirect_stderr(stderr):
            if line is not None:
                if not lasting.server.answer_one(line):
                    connections.drop(line)
                continue
            question = control.receive()
            if question is None:
                return
            answer = _answer(lasting, question)
        control.send(**answer, said=stderr.getvalue())
        stderr.seek(0)
        stderr.truncate()


def _answer(lasting: "PersistentRecorder", question: dict[str, Any]) -> dict[str, Any]:
    """Begin or end a trace, or store a source."""
    try:
        if "begin" in question:
            _begin(lasting, **question)
            return {}
        if "source" in question:
            lasting.code.typed[question["source"]] = question["text"]
            return {}
        ended = lasting.end()
    except CutraceError as problem:
        return {"error": str(problem)}
    return {"launches": ended.launches, "refused": ended.refused, "left_out": ended.left_out}


def _begin(
    lasting: "PersistentRecorder", begin: str, kernels: str | None, skip: int, only: dict[str, Any],
    options: dict[str, Any],
) -> None:  # fmt: skip
    from ...tracer.program.launches import read_choice
    from ...tracer.session.record_options import choose_options

    choice = read_choice(kernels, skip)
    lasting.begin(Path(begin), choice, choose_options(only, **{"bounds": "report", **options}))


if __name__ == "__main__":
    main(sys.argv[1:])
