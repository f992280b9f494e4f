"""Recording of a process that continues: traces begin and end, memory and modules persist."""

from dataclasses import field
from pathlib import Path
from typing import Any

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ....traces.schema import Event
from ....traces.writer import BoundedWriter, ManifestBuilder
from ...session.filter import read_filter
from ...session.record_options import RecordOptions
from ..code import Code
from ..launches import Choice, Launches, Tally
from ..run import Ended, Greeter
from ..server import Server
from ..session import Device, ProgramSession, SharedMemory
from ..storage import Storage
from ..texels import Texels


class Interlude(ManifestBuilder):
    """Takes the trace's place between two recordings; keeps the compile records for later launches.

    It has no room for launches, so they are executed and not recorded.
    """

    has_room = False
    bytes = count = not_chosen = without_room = 0
    left_out = ""

    def event(self, event: Event) -> None:
        """Discard the event."""

    def __enter__(self) -> "Interlude":
        return self

    def __exit__(self, *problem: object) -> None:
        pass


class PersistentSession(ProgramSession):
    """A session that can switch traces while its memory and modules persist."""

    def __init__(self, shared: SharedMemory) -> None:
        super().__init__(Path("between traces"), shared)
        self._interlude = Interlude()

    def _make_writer(self, path: Path) -> Any:
        self._writer = self._interlude  # type: ignore[assignment]
        return self._interlude

    def begin(self, path: Path, options: RecordOptions) -> None:
        """Record launches to a new trace."""
        row_filter = read_filter(options)
        writer = BoundedWriter(path, row_filter.max_bytes, options.threads)
        self._interlude.hand_on(writer)
        recording = self.recording
        recording.trace = self._writer = writer
        recording.filter, recording.options = row_filter, options
        recording.resources.clear()
        recording.launched.clear()
        recording.lines_met.clear()
        recording.reached.clear()

    def end(self) -> BoundedWriter:
        """Close the trace; later launches are executed and not recorded."""
        writer, recording = self.writer, self.recording
        writer.hand_on(self._interlude)
        recording.trace = self._writer = self._interlude  # type: ignore[assignment]
        try:
            for number, answer in enumerate(recording.resources):
                writer.resources(number, answer.result())
            writer.close()
        finally:
            writer.discard()
        return writer


@dataclass(slots=True)
class PersistentRecorder:
    """Serves one process and begins and ends its traces; `parts` are the handlers that persist."""

    session: PersistentSession
    greeter: Greeter
    code: Code
    storage: Storage
    texels: Texels
    server: Server
    is_recording: bool = False
    tally: Tally = field(default_factory=Tally)
    launches: Launches | None = None

    def begin(self, path: Path, choice: Choice, options: RecordOptions) -> None:
        """Begin recording; raise CutraceError if the trace cannot be written."""
        if self.is_recording:
            raise CutraceError("a recording is open in this process: end it before the next")
        self.session.begin(path, options)
        self.is_recording = True
        self._take_launches(choice)

    def end(self) -> Ended:
        """End the trace; return its launches, the failed and the omitted ones."""
        assert self.launches is not None
        refused = self.launches.refused
        self.is_recording = False
        writer = self.session.end()
        self._take_launches(Choice())
        return Ended(0, writer.count, refused, left_out=writer.left_out)

    def _take_launches(self, choice: Choice) -> None:
        self.tally = Tally()
        session = self.session
        self.launches = Launches(session, self.code, self.storage, None, choice, self.tally)
        self.server.take(self.launches.verbs)


def make_persistent(shared: SharedMemory, device: Device) -> PersistentRecorder:
    """Make the recorder that serves one process."""
    session = PersistentSession(shared)
    session.__enter__()
    greeter, code = Greeter(device, shared.size), Code(session, device)
    storage = Storage(session, device.facts["memory_bytes"])
    texels = Texels(session, storage)
    parts = ({"HELLO": greeter.greet}, code.verbs, storage.verbs, texels.verbs)
    lasting = PersistentRecorder(session, greeter, code, storage, texels, Server(storage, parts))
    lasting._take_launches(Choice())
    return lasting
