"""The fixture `cutrace_program`: a recorded program with its counters and budget checks."""

import os
from collections.abc import Sequence
from pathlib import Path

from ..options.recording import Recording
from .checked_trace import CheckedTrace
from .program import build, choose_device, run_program


class CheckedProgram(CheckedTrace):
    """A program that has ended with `status`, minus a signal's number if one ended it.

    `launches` are those in its trace, `refused` those that failed.
    """

    def __init__(
        self, words: Sequence[str | os.PathLike[str]], trace: Path, device: str, seconds: float
    ) -> None:
        from ...tracer.program.run import Order

        texts, path = tuple(os.fspath(word) for word in words), None
        shown, nothing = choose_device(device or None), Recording()
        if texts[0].endswith(".cu"):
            path = build([Path(texts[0])], nothing, "", shown)
            texts = (f"./{path.name}", *texts[1:])
        self.trace = trace
        ended = run_program(Order(texts, path, seconds=seconds or None), trace, shown, nothing)
        self.status, self.launches, self.refused = ended.status, ended.launches, ended.refused
