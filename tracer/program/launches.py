"""A program's launches: the bytes of their arguments in, what their kernels print out."""

import struct
import sys
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import NamedTuple

from ...base.errors import CutraceError, KernelFault
from ...traces.schema import Argument
from ..session.configuration import ClusterError
from ..session.function import ConfiguredFunction, Function
from ..session.signature import (
    ARRAY,
    FLOAT,
    INTEGER,
    POINTER,
    WORD,
    Parameter,
    count_words,
    data_address,
)
from ..simt.kernel.layout import parameter_offsets
from ..simt.memory.device_runtime import DeviceLaunch
from ..simt.memory.memory import Memory
from .choice import Choice, Chooser, Tally
from .code import Code
from .device import Stopwatch
from .session import ProgramSession
from .sites import Sites
from .storage import Storage
from .wire import (
    ASSERT,
    ILLEGAL_ADDRESS,
    INVALID_CLUSTER_SIZE,
    LAUNCH_FAILURE,
    LAUNCH_TIMEOUT,
    MISALIGNED_ADDRESS,
    NOT_READY,
    NOT_SUPPORTED,
    Answer,
    Verbs,
)

_FAULTS = {
    "outside": ILLEGAL_ADDRESS,
    "misaligned": MISALIGNED_ADDRESS,
    "endless": LAUNCH_TIMEOUT,
    "waiting": LAUNCH_TIMEOUT,
    "assertion": ASSERT,
}
NO_CLUSTER = (0, 0, 0)
"""What the runtime says where the program asks for no clusters."""
_MUST_END = 2
"""Of the flags of a launch: the program waits for it."""

_PREFERENCE = 8
"""The bit of the flags from which on they say what the kernel prefers of L1."""
_CONFIGS = ("prefer_shared", "prefer_l1", "equal")
"""What 102 and more stand for there; else it is a percentage, and one more."""

_WRITES = frozenset(
    {"st", "atom", "red", "sust", "sured", "stmatrix", "cp", "multimem", "mbarrier", "call"}
)
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


class Caller(NamedTuple):
    """Where the program calls for a launch: the line, and the NVTX ranges, where known.

    `prefers` is what it said of the kernel's L1 (`traces/FORMAT.md`).
    """

    called_at: str = ""
    ranges: tuple[str, ...] = ()
    prefers: str = ""


NOBODY = Caller()


class EnoughError(Exception):
    """What was asked for is recorded: the program need not go on."""


class Launches:
    """Runs what the program launches, and records what is chosen and has room in the trace.

    `refused` counts what failed. With a `limit`, EnoughError is raised at the next launch after so
    many were recorded.
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
        self.refused = 0

    @property
    def verbs(self) -> Verbs:
        """What it answers."""
        return {"LAUNCH": self.launch, "COUNT": self.count}

    def count(self, begins: int) -> Answer:
        """Count launches from now on, and record none; or say how long those need at least."""
        stopwatch, self._stopwatch = self._stopwatch, None
        if begins:
            self._stopwatch = self._code.device.time()
        return (round(1000 * stopwatch.nanoseconds()) if stopwatch else 0,)

    def launch(
        self, number: int, grid_x: int, grid_y: int, grid_z: int, block_x: int, block_y: int,
        block_z: int, cluster_x: int, cluster_y: int, cluster_z: int, shared: int, flags: int,
        data: bytes, stack: bytes, base: int, file: bytes, ranges: bytes,
    ) -> Answer:  # fmt: skip
        """Run a kernel; what it printed, or its fault."""
        function = self._code.functions[number]
        packed = tuple(_split(data, [p.size for p in function.facts.kernel.parameters]))
        try:
            sizes: tuple[object, ...] = (grid_x, grid_y, grid_z), (block_x, block_y, block_z)
            cluster = (cluster_x, cluster_y, cluster_z)
            cluster_part = () if cluster == NO_CLUSTER else (cluster,)
            configured = function[(*sizes, 0, shared, *cluster_part)]
            site = self._sites.name(stack, base, file)
            caller = Caller(site, _names_of(ranges), _preference(flags >> _PREFERENCE))
            self._run(function, configured, packed, caller)
            self._run_launched(number)
        except CutraceError as problem:
            if not flags & _MUST_END and _waits_for_program(function, problem):
                return NOT_READY
            self._recording.memory.device_launches.clear()
            return self._fail(function, problem)
        return (self._take_printed(),)

    def _run_launched(self, number: int) -> None:
        """Do what a kernel asked for; each launch with what it launches in turn."""
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
        """Run one launch to its end; record it if it is chosen and there is room."""
        tally = self._tally
        if self._stopwatch is not None:
            self._count(function, configured, packed, self._stopwatch)
            return
        if tally.recorded == self._limit:
            raise EnoughError(f"{tally.recorded} launches")
        is_chosen = self._chooser.takes(function)
        tally.running = function.signature.name
        if is_chosen and self._writer.has_room:
            configured.run(packed, tuple(self._describe(function, packed)), *caller)
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
        """Run one launch for its time alone."""
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
        """Say what is wrong; the error that the program gets."""
        print(f"cutrace: launch {self._tally.run}: {problem}", file=sys.stderr)
        self.refused += 1
        self._tally.running = ""
        if printed := self._take_printed():
            sys.stdout.buffer.write(printed)
            sys.stdout.flush()
        if isinstance(problem, KernelFault):
            return _FAULTS.get(problem.cause, LAUNCH_FAILURE)
        if isinstance(problem, ClusterError):
            return INVALID_CLUSTER_SIZE
        return NOT_SUPPORTED

    def _take_printed(self) -> bytes:
        text = "".join(self._printed).encode("utf-8", "surrogateescape")
        self._printed.clear()
        return text

    def _describe(self, function: Function, packed: tuple[bytes, ...]) -> Iterator[Argument]:
        """What the trace says of the arguments; pointers name their arrays."""
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
    """What a kernel prefers, as the trace has it."""
    return _CONFIGS[number - 102] if number > 101 else str(number - 1) if number else ""


def _names_of(ranges: bytes) -> tuple[str, ...]:
    """Names of ranges, the outermost first, of those that the wire has the other way round."""
    return tuple(name.decode(errors="replace") for name in ranges.split(b"\0")[-2::-1])


def _waits_for_program(function: Function, problem: CutraceError) -> bool:
    """Whether a kernel may be run again later: it waits for ever, and writes nothing."""
    if not isinstance(problem, KernelFault) or problem.cause != "waiting":
        return False
    return _WRITES.isdisjoint(each.opcode for each in function.facts.kernel.instructions)


def _read_parameters(memory: Memory, function: Function, buffer: int) -> Iterator[bytes]:
    """Take a launch's parameters out of the buffer that a kernel has filled, and give it back."""
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
