"""A session for a program: the program maps its memory and sends it launches."""

from pathlib import Path

from ...traces.writer import BoundedWriter
from ..front.source import Compiled
from ..session.module import Module
from ..session.recording import Recording
from ..session.session import Session
from ..simt.memory.memory import Memory
from .arena import SharedMemory


class ProgramSession(Session):
    """A Session that loads compiled PTX and exposes its recording."""

    def __init__(self, path: Path, shared: SharedMemory) -> None:
        super().__init__(path)
        self._shared = shared
        self._writer: BoundedWriter | None = None

    def _make_writer(self, path: Path) -> BoundedWriter:
        self._writer = BoundedWriter(path, self._filter.max_bytes)
        return self._writer

    @property
    def writer(self) -> BoundedWriter:
        """The writer of the trace, once it is open."""
        assert self._writer is not None
        return self._writer

    def _make_memory(self) -> Memory:
        return Memory(self._options.check_uninitialized, self._shared.arenas())

    @property
    def recording(self) -> Recording:
        """The state that all objects of the session share."""
        return self._recording

    def load(self, compiled: Compiled) -> Module:
        """Load a module of the program."""
        return self._load("program.ptx", compiled)
