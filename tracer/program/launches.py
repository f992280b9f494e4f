"""Execute a program's launches from the raw bytes of their arguments; return kernel output.

`Launches` answers the launch message: it unpacks the parameters, runs the kernel, then the launches
and copies that the kernel itself requested, and records those that `Chooser` selects and that have
room in the trace. A fault becomes the program's CUDA error. The rest of the file describes
arguments and callers for the trace.
"""

import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from itertools import accumulate, islice
from re import Pattern
from typing import NamedTuple

from ...base.claim import scratch_folder
from ...base.config import pattern_of
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, KernelFault
from ...traces.kernel_names import names_by
from ...traces.schema import Argument
from ..session.arguments import (
    ARRAY,
    FLOAT,
    INTEGER,
    POINTER,
    WORD,
    Parameter,
    count_words,
    data_address,
)
from ..session.configuration import ClusterError
from ..session.function import ConfiguredFunction, Function
from ..simt.kernel.layout import parameter_offsets
from ..simt.memory.device_runtime import DeviceLaunch
from ..simt.memory.memory import Memory
from .code import Code
from .session import ProgramSession, Stopwatch
from .sites import Sites
from .storage import Storage
from .wire import (
    ASSERT,
    ILLEGAL_ADDRESS,
    ILLEGAL_INSTRUCTION,
    INVALID_CLUSTER_SIZE,
    LAUNCH_FAILURE,
    LAUNCH_TIMEOUT,
    MISALIGNED_ADDRESS,
    NOT_READY,
    NOT_SUPPORTED,
    Answer,
    Verbs,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The launches of kernels with a name that matches `kernels`, after the first `skip`.

    `base` is one of `traces.kernel_names.BASES`, or empty.
    """

    kernels: Pattern[str] | None = None
    skip: int = 0
    base: str = ""


def read_choice(kernels: str | None, skip: int | None, base: str = "") -> Choice:
    """Parse the command line's options; raise CutraceError for an invalid regular expression."""
    if skip is not None and skip < 0:
        raise CutraceError(f"--skip {skip}: expected how many launches, 0 or more")
    names_by(base, "", "")  # reject an unknown one before the program runs
    return Choice(None if kernels is None else pattern_of(kernels, "--kernels"), skip or 0, base)


class Chooser:
    """Decides for each launch, in program order, whether it is recorded."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._left = choice.skip

    def takes(self, function: Function) -> bool:
        """Return whether to record the next launch; advances the count of matches."""
        signature = function.signature
        names = names_by(self._choice.base, signature.name, signature.mangled)
        pattern = self._choice.kernels
        if pattern is not None and not any(map(pattern.search, names)):
            return False
        self._left -= 1
        return self._left < 0


RECORDED, UNRECORDED, LEFT_OUT = range(3)
"""Phases of a program: its launches are recorded, run only, or not even run."""


@dataclass(slots=True)
class Tally:
    """Progress of a recording: launches executed and recorded, trace bytes, running kernel.

    `operators` counts the calls that were computed on the host while launches were recorded.
    """

    run: int = 0
    recorded: int = 0
    bytes: int = 0
    running: str = ""
    operators: Counter[str] = field(default_factory=Counter)
    since: float = field(default_factory=time.monotonic)

    def text(self, part: float = 0.0) -> str:
        """Return `1,234 launches (350 a second), 1,200 recorded, 3.4 MB`.

        `part`, from 0 to 1, is the executed fraction of the running launch: `, 40 % of scale`.
        """
        rate = self.run / max(time.monotonic() - self.since, 1e-3)
        recorded = "" if self.recorded == self.run else f", {self.recorded:,} recorded"
        size = f"{self.bytes / 1e6:,.1f} MB"
        running = f", {100 * part:.0f} % of {self.running}" if part and self.running else ""
        return f"{self.run:,} launches ({rate:,.0f} a second){recorded}, {size}{running}"


_FAULTS = {
    "outside": ILLEGAL_ADDRESS,
    "misaligned": MISALIGNED_ADDRESS,
    "endless": LAUNCH_TIMEOUT,
    "waiting": LAUNCH_TIMEOUT,
    "assertion": ASSERT,
    "illegal": ILLEGAL_INSTRUCTION,
}
NO_CLUSTER = (0, 0, 0)
"""Cluster shape that the runtime sends if the program requests no clusters."""
_MUST_END = 2
"""Launch flag: the program waits for the launch to end."""

_PREFERENCE = 8
"""Lowest bit of the launch flags' field for the kernel's preferred L1 configuration."""
_CONFIGS = ("prefer_shared", "prefer_l1", "equal")
"""Meanings of field values from 102 on; a smaller value is a percentage plus one."""

_WRITES = frozenset(
    {"st", "atom", "red", "sust", "sured", "stmatrix", "cp", "multimem", "mbarrier", "call"}
)
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


class Caller(NamedTuple):
    """The call site of a launch: its line and the NVTX ranges, if known.

    `prefers` is the L1 configuration that the program set for the kernel (`traces/FORMAT.md`).
    """

    called_at: str = ""
    ranges: tuple[str, ...] = ()
    prefers: str = ""


NOBODY = Caller()


class EnoughError(Exception):
    """The requested launches are recorded: the program can be stopped."""


class Launches:
    """Executes a program's launches, and records the chosen ones while the trace has room.

    `refused` counts failed launches. With a `limit`, the next launch after that many recorded ones
    raises EnoughError.
    """

    def __init__(
        self,
        session: ProgramSession,
        code: Code,
        storage: Storage,
        limit: int | None,
        choice: Choice,
        tally: Tally,
    ) -> None:
        self._recording = session.recording
        self._writer = session.writer
        self._chooser = Chooser(choice)
        self._tally = tally
        self._code = code
        self._storage = storage
        self._limit = limit
        self._printed: list[str] = []
        self._sites = Sites()
        self._recording.output = self._printed.append
        self._recording.forgives = True
        self._recording.chip = code.device.chip
        self._stopwatch: Stopwatch | None = None
        self._clock = 0
        self._timed = 0
        self._phase, self._since_phase, self._events = RECORDED, 0, 0
        self.refused = self.faults = 0
        self.fault: KernelFault | None = None

    @property
    def verbs(self) -> Verbs:
        """The handlers of its messages."""
        return {
            "LAUNCH": self.launch,
            "COUNT": self.count,
            "CLOCK": self.clock,
            "PHASE": self.begin_phase,
        }

    def begin_phase(self, phase: int) -> Answer:
        """Begin a phase; return the launches of the one before."""
        events = self._writer.manifest.events
        if self._phase == RECORDED:
            ended = events[self._events :]
            self._tally.operators.update(each.name for each in ended if each.kind == "library")
        launches, self._since_phase = self._since_phase, 0
        self._phase, self._events = phase, len(events)
        return (launches,)

    def count(self, begins: int) -> Answer:
        """Start to time launches instead of recording them; or return the bound, in picoseconds."""
        stopwatch, self._stopwatch = self._stopwatch, None
        if begins:
            self._stopwatch = self._code.device.time()
        return (round(1000 * stopwatch.nanoseconds()) if stopwatch else 0,)

    def clock(self) -> Answer:
        """Return the estimated time of all recorded launches so far, in picoseconds."""
        if self._writer.count > self._timed:
            resources = self._recording.resources[self._timed :]
            with scratch_folder() as folder:
                trace = folder / "timed.cutrace"
                self._writer.snapshot(trace, self._timed, [one.result() for one in resources])
                self._clock += round(1000 * self._code.device.estimate(trace))
            self._timed = self._writer.count
        return (self._clock,)

    def launch(
        self, number: int, grid_x: int, grid_y: int, grid_z: int, block_x: int, block_y: int,
        block_z: int, cluster_x: int, cluster_y: int, cluster_z: int, shared: int, flags: int,
        data: bytes, stack: bytes, base: int, file: bytes, ranges: bytes,
    ) -> Answer:  # fmt: skip
        """Run a kernel; return its output, or its error."""
        self._since_phase += 1
        if self._phase == LEFT_OUT:
            return (b"",)
        function = self._code.functions[number]
        packed = tuple(_split(data, [p.size for p in function.facts.kernel.parameters]))
        try:
            if number in self._code.faults:
                raise KernelFault(self._code.faults[number], "illegal")
            sizes: tuple[object, ...] = (grid_x, grid_y, grid_z), (block_x, block_y, block_z)
            cluster = (cluster_x, cluster_y, cluster_z)
            cluster_part = () if cluster == NO_CLUSTER else (cluster,)
            configured = function[(*sizes, 0, shared, *cluster_part)]
            site = self._sites.name(stack, base, file)
            caller = Caller(site, _names_of(ranges), _preference(flags >> _PREFERENCE))
            self._run(function, configured, packed, caller)
            self._run_launched(number)
        except CutraceError as problem:
            # The kernel polls memory that the program sets only after this call returns. It has
            # written nothing, so it can be run again from its beginning.
            if not flags & _MUST_END and _waits_for_program(function, problem):
                return NOT_READY
            self._recording.memory.device_launches.clear()
            return self._fail(function, problem)
        return (self._take_printed(),)

    def _run_launched(self, number: int) -> None:
        """Process a kernel's device-side requests in order; each launch followed by its own
        children.
        """
        # Depth first: a child and its own children end before the next request of the parent, so
        # that copies and sets that follow in the queue see the results of the child.
        memory = self._recording.memory
        for request in memory.device_launches.take():
            if not isinstance(request, DeviceLaunch):
                self._storage.do_for_kernel(request)
                continue
            function = self._code.sibling_kernel(number, request.kernel)
            packed = tuple(_read_parameters(memory, function, request.buffer))
            configured = function[request.grid, request.block, 0, request.shared]
            self._run(function, configured, packed)
            self._run_launched(number)

    def _run(
        self,
        function: Function,
        configured: ConfiguredFunction,
        packed: tuple[bytes, ...],
        caller: Caller = NOBODY,
    ) -> None:
        """Run one launch to completion; record it if it is chosen and the trace has room."""
        tally = self._tally
        if self._stopwatch is not None:
            self._count(function, configured, packed, self._stopwatch)
            return
        if tally.recorded == self._limit:
            raise EnoughError(f"{tally.recorded} launches")
        is_chosen = self._phase == RECORDED and self._chooser.takes(function)
        tally.running = function.signature.name
        if is_chosen and self._writer.has_room:
            described = tuple(self._describe(function, packed))
            configured.run(packed, described, *caller)
            self._storage.note_use({str(each.value).partition(" + ")[0] for each in described})
            tally.recorded += 1
        else:
            configured.execute(packed)
            self._writer.not_chosen += not is_chosen
            self._writer.without_room += is_chosen
        tally.run += 1
        tally.running = ""
        tally.bytes = self._writer.bytes

    def _count(
        self,
        function: Function,
        configured: ConfiguredFunction,
        packed: tuple[bytes, ...],
        stopwatch: Stopwatch,
    ) -> None:
        """Run one launch for its time only."""
        # The stopwatch takes the place of the trace. The resources that the launch adds belong to
        # its rows, so they are removed again: the next recorded launch must not refer to them.
        described, recording = tuple(self._describe(function, packed)), self._recording
        trace, recording.trace = recording.trace, stopwatch.recorder
        launches = len(recording.resources)
        try:
            configured.run(packed, described)
        finally:
            recording.trace = trace
            del recording.resources[launches:]
        self._tally.run += 1

    def _fail(self, function: Function, problem: CutraceError) -> int:
        """Print the error; return the error code for the program."""
        print(f"cutrace: launch {self._tally.run}: {problem}", file=sys.stderr)
        self.refused += 1
        self._tally.running = ""
        if printed := self._take_printed():
            sys.stdout.buffer.write(printed)
            sys.stdout.flush()
        if isinstance(problem, KernelFault):
            self.faults += 1
            self.fault = self.fault or problem
            return _FAULTS.get(problem.cause, LAUNCH_FAILURE)
        if isinstance(problem, ClusterError):
            return INVALID_CLUSTER_SIZE
        return NOT_SUPPORTED

    def _take_printed(self) -> bytes:
        text = "".join(self._printed).encode("utf-8", "surrogateescape")
        self._printed.clear()
        return text

    def _describe(self, function: Function, packed: tuple[bytes, ...]) -> Iterator[Argument]:
        """Yield the trace's description of each argument; pointers name their arrays."""
        words = iter(packed)
        for parameter in function.signature.parameters:
            data = b"".join(islice(words, count_words(parameter.c_type)))
            yield Argument(parameter.name, parameter.type, self._show(parameter, data))

    def _show(self, parameter: Parameter, data: bytes) -> str | int | float:
        if parameter.kind == ARRAY:
            return self._show_address(parameter, data_address(data))
        if parameter.kind in (POINTER, WORD):
            return self._show_address(parameter, int.from_bytes(data, "little"))
        if parameter.kind == FLOAT and parameter.size in _FLOATS:
            (number,) = struct.unpack(_FLOATS[parameter.size], data)
            return float(number) if number - number == 0 else str(number)
        if parameter.kind == INTEGER and parameter.size <= 8:
            least, _ = parameter.integer_range
            return int.from_bytes(data, "little", signed=least < 0)
        return data.hex()

    def _show_address(self, parameter: Parameter, address: int) -> str | int:
        place = self._storage.find(address)
        if place is None:
            return address
        if place.address == address:
            return self._storage.name(place, parameter.name).name
        return f"{place.name} + {address - place.address}"


def _preference(number: int) -> str:
    """Return a kernel's L1 preference as the trace stores it."""
    return _CONFIGS[number - 102] if number > 101 else str(number - 1) if number else ""


def _names_of(ranges: bytes) -> tuple[str, ...]:
    """Return the names of the NVTX ranges, outermost first; the wire has them innermost first."""
    return tuple(name.decode(errors="replace") for name in ranges.split(b"\0")[-2::-1])


def _waits_for_program(function: Function, problem: CutraceError) -> bool:
    """Return whether a kernel can be retried later: it spins for ever and has written nothing."""
    if not isinstance(problem, KernelFault) or problem.cause != "waiting":
        return False
    return _WRITES.isdisjoint(each.opcode for each in function.executable.kernel.instructions)


def _read_parameters(memory: Memory, function: Function, buffer: int) -> Iterator[bytes]:
    """Read a launch's parameters from the buffer that the kernel filled, and free the buffer."""
    offsets = parameter_offsets(function.facts.kernel)
    start = buffer - memory.global_.base
    for parameter in function.facts.kernel.parameters:
        first = start + offsets[parameter.name]
        yield bytes(memory.global_.bytes[first : first + parameter.size])
    if memory.heap is not None:
        memory.heap.give(buffer)


def _split(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    for end, size in zip(accumulate(sizes), sizes, strict=True):
        yield data[end - size : end]
