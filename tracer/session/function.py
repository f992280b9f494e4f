"""Launchable kernels: `kernel[grid, block, stream, shared_bytes](*arguments)`.

Indexing a Function checks the configuration. Calling the ConfiguredFunction packs the arguments,
runs the kernel in the engine and writes its rows to the trace, filtered if the session asks so.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from math import prod
from time import perf_counter
from typing import Any

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, KernelFault
from ...base.interrupt import deferred_interrupts
from ...traces import schema
from ..simt.decode.load_module import LoadedModule, add_bank
from ..simt.kernel.launch import Launch, NullSink, Sink
from ..simt.memory.memory import Memory
from ..simt.ptx_code import PtxCode
from ..simt.run import run
from .arguments import ArgumentError, Signature, pack_arguments
from .array import DeviceArray
from .configuration import (
    Dim3,
    check_configuration,
    check_cost,
    choose_cluster,
    read_dimensions,
)
from .filter import Filter, Fraction
from .kernel_facts import LinkedKernel
from .recording import Recording
from .row_filter import MachineRows, RowFilter, choose_kept, count_executed, draw, drops_nothing
from .surface import Surface
from .symbol import describe_shared, describe_symbols
from .texture import Texture

TRIAL = 24
"""Blocks of which the time is taken if the size of a sample follows from its time."""


@dataclass(frozen=True)
class Linked:
    """A kernel in a session; `source` is its key among the trace's sources.

    `shared_names` are the names in its source of shared arrays, where the PTX has others. A kernel
    of a cubin has `lift`: its code is read when it is first launched, and `facts` are until then
    what the cubin declares.
    """

    facts: LinkedKernel
    loaded: LoadedModule
    memory: Memory
    signature: Signature
    source: str
    resources: "Future[tuple[schema.Resources, ...]]"
    shared_names: Mapping[str, str]
    lift: "Callable[[], LinkedKernel] | None" = None

    @cached_property
    def executable(self) -> LinkedKernel:
        """The kernel that runs."""
        return self.lift() if self.lift else self.facts

    @cached_property
    def module(self) -> LoadedModule:
        """The module; with memory for the arguments if machine code takes their address."""
        machine = self.executable.machine
        start = machine.parameters if machine else 0
        return add_bank(self.memory, self.loaded, self.executable.kernel, start)

    @cached_property
    def executed(self) -> "Future[tuple[schema.Resources, ...]]":
        """The resources of what ran: machine code has its own schedule."""
        if self.executable.machine is None:
            return self.resources
        schedule = self.executable.machine.schedule
        answer: Future[tuple[schema.Resources, ...]] = Future()
        answer.set_result(
            tuple(replace(each, schedule=schedule) for each in self.resources.result())
        )
        return answer

    def registers(self, capability: int) -> int:
        """Return its register count; see `Function.registers`."""
        registers_by_arch = {int(each.arch[3:]): each.registers for each in self.resources.result()}
        fitting = [arch for arch in registers_by_arch if arch <= capability]
        return registers_by_arch[max(fitting)] if fitting else 32


class Function:
    """A kernel of a module; index it with a configuration to launch it."""

    def __init__(self, recording: Recording, linked: Linked) -> None:
        self._recording = recording
        self._linked = linked

    @property
    def signature(self) -> Signature:
        """Return its name and parameters; `str` gives the C signature."""
        return self._linked.signature

    @property
    def name(self) -> str:
        """Return its name in the source."""
        return self.signature.name

    @property
    def facts(self) -> LinkedKernel:
        """Return the static facts of its text."""
        return self._linked.facts

    @property
    def executable(self) -> LinkedKernel:
        """Return the kernel that runs; of a cubin its code is read now."""
        return self._linked.executable

    def resources(self) -> tuple[schema.Resources, ...]:
        """Wait for the assembler and return the kernel's resources."""
        return self._linked.resources.result()

    def registers(self, capability: int) -> int:
        """Wait for the assembler and return a thread's registers.

        The newest architecture up to `capability` counts; 32 if there is none.
        """
        return self._linked.registers(capability)

    def __repr__(self) -> str:
        return f"<kernel {self.signature}>"

    def __getitem__(self, configuration: tuple[Any, ...]) -> "ConfiguredFunction":
        """Take `[grid, block, stream, shared_bytes, cluster]` as ints or tuples; ignore the stream.

        `cluster` is in blocks; by default the kernel's own. CutraceError for what no device can
        launch.
        """
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 5:
            raise CutraceError(
                f"{self.name}[...]: expected [grid, block], then perhaps stream, shared_bytes and "
                "cluster"
            )
        grid = read_dimensions(configuration[0], "grid")
        block = read_dimensions(configuration[1], "block")
        dynamic = configuration[3] if len(configuration) > 3 else 0
        cluster_request = (
            read_dimensions(configuration[4], "cluster") if len(configuration) > 4 else ()
        )
        shared = read_dimensions(dynamic, "shared_bytes")[0]
        check_configuration(self.name, grid, block, shared, self._linked.facts.limits)
        check_cost(self.name, grid, block, self._recording.options.max_threads, self._count(grid))
        cluster = choose_cluster(self.name, grid, cluster_request, self._linked.facts.limits)
        return ConfiguredFunction(self._recording, self._linked, grid, block, shared, cluster)

    def _count(self, grid: Dim3) -> int:
        """Return how many blocks of a grid would run; 0 means all."""
        return count_executed(self._recording.filter, grid, self._linked.facts)

    def __call__(self, *arguments: object) -> None:
        """Refuse a launch without a configuration."""
        raise CutraceError(f"{self.name}(...): a launch is written {self.name}[grid, block](...)")


@dataclass(frozen=True, slots=True)
class ConfiguredFunction:
    """A kernel with its execution configuration; call it with the arguments."""

    recording: Recording
    linked: Linked
    grid: Dim3
    block: Dim3
    shared_dynamic: int
    cluster: Dim3 | tuple[()] = ()

    def __call__(self, *arguments: object) -> None:
        """Run the kernel to its end and record it.

        Raises ArgumentError for arguments that do not fit and KernelFault for an illegal operation
        of the kernel; after a fault the session launches nothing more.
        """
        self.recording.check_open()
        self.recording.check_sound()
        self._refuse_strangers(arguments)
        self.run(*pack_arguments(self.linked.signature, arguments))

    @deferred_interrupts()
    def run(
        self,
        packed: tuple[bytes, ...],
        described: tuple[schema.Argument, ...],
        called_at: str = "",
        ranges: tuple[str, ...] = (),
        prefers: str = "",
    ) -> None:
        """Run the kernel with the bytes of each PTX parameter; `described` is their description.

        `called_at` is the host's source line of the call if known, `ranges` are the NVTX ranges
        around it, `prefers` is the host's L1 preference for the kernel.
        """
        row_selection, kernel_facts = self._keep(packed), self.linked.executable
        request = self._request(
            packed, () if row_selection.sample.all_ran else row_selection.sample.blocks
        )
        launch = self._describe(described, row_selection)
        launch = replace(launch, called_at=called_at, ranges=ranges, prefers=prefers)
        with self._ending_well(), self.recording.trace.launch(launch) as rows:
            rows.instructions(kernel_facts.instructions)
            sink: Sink = (
                rows
                if drops_nothing(row_selection)
                else RowFilter(rows, row_selection, kernel_facts.instructions)
            )
            if kernel_facts.kernel.rows:
                sink = MachineRows(sink, kernel_facts.kernel)
            run(self._code(request), sink)
        if outside := rows.outside_totals.totals:
            self.recording.tell_outside(replace(launch, outside=outside), kernel_facts.instructions)
        self.recording.resources.append(self.linked.executed)
        if request.sampled_blocks:
            self.recording.partly_written.update(self._arrays(described))

    @deferred_interrupts()
    def execute(self, packed: tuple[bytes, ...]) -> None:
        """Run all blocks without recording; an illegal operation is a fault as in any launch."""
        try:
            run(self._code(self._request(packed, ())), NullSink())
        except KernelFault as fault:
            self.recording.note_fault(str(fault))
            raise

    def _code(self, request: Launch) -> PtxCode:
        """Return the kernel's code for a launch."""
        linked = self.linked
        return PtxCode(linked.executable.kernel, request, self.recording.memory, linked.module)

    def _request(self, packed: tuple[bytes, ...], blocks: tuple[int, ...]) -> Launch:
        """Return the engine's launch request; without chosen blocks it covers all."""
        self.recording.grids += 1
        return Launch(
            self.grid,
            self.block,
            self.shared_dynamic,
            packed,
            self.recording.output,
            self.recording.options,
            self.linked.signature.name,
            blocks,
            self.cluster,
            self.recording.grids,
            self.recording.chip,
            self._resident() if self.linked.executable.reads_place else 1,
        )

    def _resident(self) -> int:
        """Return how many blocks are resident on an SM at once."""
        chip, shared = self.recording.chip, self.linked.executable.shared.size + self.shared_dynamic
        registers = self.linked.registers(chip.capability)
        return max(1, chip.fits(registers, shared, prod(self.block)))

    @contextmanager
    def _ending_well(self) -> Iterator[None]:
        """Drop the launch from the trace on a fault, or on a refusal that the session forgives."""
        try:
            yield
        except KernelFault as fault:
            self.recording.end_by_fault(str(fault))
            raise
        except BaseException:
            if self.recording.forgives:
                self.recording.trace.withdraw()
            raise

    def _arrays(self, arguments: tuple[schema.Argument, ...]) -> set[str]:
        """Return the names of the device arrays among the arguments."""
        names = {array.name for array in self.recording.arrays}
        return names & {str(argument.value) for argument in arguments}

    def _refuse_strangers(self, arguments: tuple[object, ...]) -> None:
        for number, argument in enumerate(arguments, 1):
            if not isinstance(argument, DeviceArray | Texture | Surface):
                continue
            if not argument.belongs_to(self.recording):
                kind = _KINDS[type(argument)]
                raise ArgumentError(
                    f"{self.linked.signature}: argument {number}, `{argument.name}`, "
                    f"is {kind} of another session",
                    number,
                )

    def _filter(self, packed: tuple[bytes, ...]) -> Filter:
        """Return the filter of the next launch; the size of a sample follows from a limit of
        time."""
        own, facts, blocks = self.recording.filter, self.linked.executable, prod(self.grid)
        trial = draw(self.grid, min(TRIAL, blocks), own.seed, 0).blocks if own.seconds else ()
        if not trial or facts.dependence:
            return own
        most = int(own.seconds / self.time_blocks(packed, trial))
        return replace(own, sample=Fraction(count=min(max(most, len(trial)), blocks)))

    def time_blocks(self, packed: tuple[bytes, ...], blocks: tuple[int, ...]) -> float:
        """Return the seconds per block of a few, which leave memory as it is."""
        memory, grids, seconds = self.recording.memory, self.recording.grids, 1.0
        used = [arena.used for arena in (memory.global_, memory.surface)]
        before = [each.copy() for each in used]
        try:
            for _ in range(2):  # the first run compiles
                request = replace(self._request(packed, blocks), output=lambda text: None)
                begin = perf_counter()
                run(self._code(request), NullSink())
                seconds = perf_counter() - begin
                for now, then in zip(used, before, strict=True):
                    now[:] = then
        except KernelFault:  # which the launch meets again
            for now, then in zip(used, before, strict=True):
                now[:] = then
        self.recording.grids = grids
        return seconds / len(blocks)

    def _keep(self, packed: tuple[bytes, ...]) -> schema.Kept:
        """Choose the recorded part of the next launch."""
        linked, number = self.linked, len(self.recording.resources)
        name = linked.signature.name
        names = (name, name.partition("<")[0], linked.signature.mangled)
        self.recording.note_launch(names, linked.executable.instructions)
        return choose_kept(self._filter(packed), names, number, self.grid, linked.executable)

    def _describe(
        self, arguments: tuple[schema.Argument, ...], row_selection: schema.Kept
    ) -> schema.Launch:
        linked, facts = self.linked, self.linked.executable
        shared = describe_shared(facts.shared, self.shared_dynamic, linked.shared_names)
        arrays = _distinct((*self.recording.arrays, *describe_symbols(linked.module), *shared))
        return schema.Launch(
            kernel=linked.signature.mangled,
            signature=str(linked.signature),
            grid=self.grid,
            block=self.block,
            shared_static=facts.shared.size,
            shared_dynamic=self.shared_dynamic,
            local_bytes=facts.local_bytes,
            arguments=arguments,
            arrays=self.recording.share_arrays(linked.signature.mangled, arrays),
            textures=tuple(texture.description for texture in self.recording.memory.textures),
            max_threads=prod(facts.limits.max_block) if facts.limits.max_block else 0,
            min_blocks=facts.min_blocks,
            source=linked.source,
            parameter_bytes=facts.parameter_bytes,
            kept=row_selection,
            cluster=self.cluster,
            waiting=facts.waiting,
            code=facts.arch,
            partly_written=tuple(sorted(self._arrays(arguments) & self.recording.partly_written)),
        )


_KINDS: Mapping[type, str] = {
    DeviceArray: "an array",
    Texture: "a texture",
    Surface: "a surface",
}


def _distinct(arrays: tuple[schema.Array, ...]) -> tuple[schema.Array, ...]:
    """Rename a variable to `a (shared)` if a device array already has the name `a`."""
    used: set[str] = set()
    unique_arrays = []
    for array in arrays:
        if array.name in used:
            array = replace(array, name=f"{array.name} ({array.space.name.lower()})")
        used.add(array.name)
        unique_arrays.append(array)
    return tuple(unique_arrays)
