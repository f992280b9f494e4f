"""A kernel that can be launched: `kernel[grid, block, stream, shared_bytes](*arguments)`."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, KernelFault
from ...traces import schema
from ..simt.kernel import launch as engine
from ..simt.memory.memory import LoadedModule
from ..simt.run import run
from .arguments import ArgumentError, pack_arguments
from .array import DeviceArray
from .block_sample import choose_kept, count_executed
from .configuration import (
    Dim3,
    check_configuration,
    check_cost,
    choose_cluster,
    read_dimensions,
)
from .kernel_facts import LinkedKernel
from .recording import Recording
from .row_filter import RowFilter, drops_nothing
from .signature import Signature
from .surface import Surface
from .symbol import describe_shared, describe_symbols
from .texture import Texture


@dataclass(frozen=True)
class Linked:
    """A kernel in a session; `source` is its key among the trace's sources."""

    facts: LinkedKernel
    loaded: LoadedModule
    signature: Signature
    source: str
    resources: "Future[tuple[schema.Resources, ...]]"

    def registers(self, capability: int) -> int:
        """Wait for the assembler, see `Function.registers`."""
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
        """Its name and parameters; printed, the C signature."""
        return self._linked.signature

    @property
    def name(self) -> str:
        """Its name in the source."""
        return self.signature.name

    @property
    def facts(self) -> LinkedKernel:
        """What follows from its text."""
        return self._linked.facts

    def resources(self) -> tuple[schema.Resources, ...]:
        """Wait for what the assembler makes of it."""
        return self._linked.resources.result()

    def registers(self, capability: int) -> int:
        """Wait for the registers that a thread has on the newest architecture up to this one, 32
        if there is none."""
        return self._linked.registers(capability)

    def __repr__(self) -> str:
        return f"<kernel {self.signature}>"

    def __getitem__(self, configuration: tuple[Any, ...]) -> "ConfiguredFunction":
        """Take `[grid, block, stream, shared_bytes, cluster]`: ints or tuples, the stream is not
        used; without a `cluster`, in blocks, it is as the kernel demands.

        CutraceError for what no device can launch.
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
        """Return how many blocks of a grid would be run, 0: all."""
        return count_executed(self._recording.filter, grid, self._linked.facts)

    def __call__(self, *arguments: object) -> None:
        """Refuse: a launch needs a configuration."""
        raise CutraceError(f"{self.name}(...): a launch is written {self.name}[grid, block](...)")


@dataclass(frozen=True, slots=True)
class ConfiguredFunction:
    """A kernel with its execution configuration: call it with the arguments."""

    recording: Recording
    linked: Linked
    grid: Dim3
    block: Dim3
    shared_dynamic: int
    cluster: Dim3 | tuple[()] = ()

    def __call__(self, *arguments: object) -> None:
        """Run the kernel to its end and record what it did.

        ArgumentError for arguments that do not fit, KernelFault for what the kernel may not do:
        after one nothing more is launched in the session.
        """
        self.recording.check_open()
        self.recording.check_sound()
        self._refuse_strangers(arguments)
        self.run(*pack_arguments(self.linked.signature, arguments))

    def run(
        self,
        packed: tuple[bytes, ...],
        described: tuple[schema.Argument, ...],
        called_at: str = "",
        ranges: tuple[str, ...] = (),
        prefers: str = "",
    ) -> None:
        """Run it with the bytes of each of PTX's parameters, which the trace describes so.

        `called_at` is the line of the host that calls for it, where that is known, `ranges` are
        those of NVTX in which it does, `prefers` what it said of the kernel's L1.
        """
        row_selection, kernel_facts = self._keep(), self.linked.facts
        request = self._request(
            packed, () if row_selection.sample.all_ran else row_selection.sample.blocks
        )
        launch = self._describe(described, row_selection)
        launch = replace(launch, called_at=called_at, ranges=ranges, prefers=prefers)
        with self._ending_well(), self.recording.trace.launch(launch) as rows:
            rows.instructions(kernel_facts.instructions)
            sink = (
                rows
                if drops_nothing(row_selection)
                else RowFilter(rows, row_selection, kernel_facts.instructions)
            )
            run(kernel_facts.kernel, request, self.recording.memory, self.linked.loaded, sink)
        if outside := rows.outside_totals.totals:
            self.recording.tell_outside(replace(launch, outside=outside), kernel_facts.instructions)
        self.recording.resources.append(self.linked.resources)
        if request.sampled_blocks:
            self.recording.partly_written.update(self._arrays(described))

    def execute(self, packed: tuple[bytes, ...]) -> None:
        """Run all of it, and record nothing; what it may not do is a fault as of any other."""
        kernel_facts = self.linked.facts
        try:
            run(
                kernel_facts.kernel,
                self._request(packed, ()),
                self.recording.memory,
                self.linked.loaded,
                engine.NullSink(),
            )
        except KernelFault as fault:
            self.recording.note_fault(str(fault))
            raise

    def _request(self, packed: tuple[bytes, ...], blocks: tuple[int, ...]) -> engine.Launch:
        """What the engine is asked to run: all blocks if none are chosen."""
        self.recording.grids += 1
        return engine.Launch(
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
            self._resident() if self.linked.facts.reads_place else 1,
        )

    def _resident(self) -> int:
        """How many blocks an SM runs at once."""
        chip, shared = self.recording.chip, self.linked.facts.shared.size + self.shared_dynamic
        registers = self.linked.registers(chip.capability)
        return max(1, chip.fits(registers, shared, prod(self.block)))

    @contextmanager
    def _ending_well(self) -> Iterator[None]:
        """Leave out a launch that faults, or that is refused where that is forgiven."""
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

    def _keep(self) -> schema.Kept:
        """Choose what is kept of the launch that comes now."""
        linked, number = self.linked, len(self.recording.resources)
        name = linked.signature.name
        names = (name, name.partition("<")[0], linked.signature.mangled)
        self.recording.note_launch(names, linked.facts.instructions)
        return choose_kept(self.recording.filter, names, number, self.grid, linked.facts)

    def _describe(
        self, arguments: tuple[schema.Argument, ...], row_selection: schema.Kept
    ) -> schema.Launch:
        linked = self.linked
        shared = describe_shared(linked.facts.shared, self.shared_dynamic)
        arrays = _distinct((*self.recording.arrays, *describe_symbols(linked.loaded), *shared))
        return schema.Launch(
            kernel=linked.signature.mangled,
            signature=str(linked.signature),
            grid=self.grid,
            block=self.block,
            shared_static=linked.facts.shared.size,
            shared_dynamic=self.shared_dynamic,
            local_bytes=linked.facts.local_bytes,
            arguments=arguments,
            arrays=self.recording.share_arrays(linked.signature.mangled, arrays),
            textures=tuple(texture.description for texture in self.recording.memory.textures),
            max_threads=prod(linked.facts.limits.max_block) if linked.facts.limits.max_block else 0,
            min_blocks=linked.facts.min_blocks,
            source=linked.source,
            parameter_bytes=linked.facts.parameter_bytes,
            kept=row_selection,
            cluster=self.cluster,
            waiting=linked.facts.waiting,
            partly_written=tuple(sorted(self._arrays(arguments) & self.recording.partly_written)),
        )


_KINDS: Mapping[type, str] = {
    DeviceArray: "an array",
    Texture: "a texture",
    Surface: "a surface",
}


def _distinct(arrays: tuple[schema.Array, ...]) -> tuple[schema.Array, ...]:
    """Call a variable `a (shared)` where a device array is called `a` already."""
    used: set[str] = set()
    unique_arrays = []
    for array in arrays:
        if array.name in used:
            array = replace(array, name=f"{array.name} ({array.space.name.lower()})")
        used.add(array.name)
        unique_arrays.append(array)
    return tuple(unique_arrays)
