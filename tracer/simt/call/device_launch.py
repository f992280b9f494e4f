"""Launches and copies by kernels (CUDA's device runtime): queued during the kernel, run afterwards.

A kernel cannot wait for its child launches, so all of them may run after it has ended: in the order
of the calls, except that tail launches come last (CUDA C++ Programming Guide, "CUDA Dynamic
Parallelism"). nvcc emits calls of `__cudaCDP2...`; parameters, and memory that kernels allocate by
`cudaMalloc`, are in the heap of `malloc`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ....base.errors import KernelFault
from ...ptx.kernel import CallTarget, Symbol
from ..decode.decoder import Decoder
from ..decode.shuffle_vote import by_warp
from ..kernel.function_pointer import function_address
from ..kernel.layout import parameter_bytes
from ..memory.device_runtime import DeviceCopy, DeviceLaunch, DeviceSet, Heap
from ..ops.lanes import Array
from ..warp.program import Group, Step
from .argument_passing import fetch_bytes, place_of, store_bytes
from .printf import bytes_at

_INVALID_VALUE, _OUT_OF_MEMORY, _INVALID_CONFIGURATION, _OUT_OF_RESOURCES = 1, 2, 9, 701
"""cudaError_t."""

PREFIX = "__cudaCDP2"


def make_step(decoder: Decoder, target: CallTarget, name: str) -> Step | None:
    """Return the step of a device runtime call, None if it is not supported."""
    if name == "cudaGraphSetConditional":
        return _set_condition(decoder, target)
    make = _FUNCTIONS.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    return make(decoder, target) if make else None


def _get_buffer(decoder: Decoder, target: CallTarget) -> Step:
    module, heap = decoder.loaded.module, decoder.memory.heap
    kernels = {function_address(module, f.name): f.name
               for f in module.functions.values() if f.is_entry}  # fmt: skip
    take = argument_words(decoder, target, ((8,), (4, 4, 4), (4, 4, 4), (4,)))
    prepared = decoder.memory.device_launches.prepared
    assert heap is not None, "a module that launches has a heap"

    def prepare(heap: Heap, words: list[int]) -> int:
        kernel = kernels.get(words[0])
        buffer = heap.take(parameter_bytes(module.functions[kernel])) if kernel else 0
        if kernel and buffer:
            grid, block = (words[1], words[2], words[3]), (words[4], words[5], words[6])
            prepared[buffer] = DeviceLaunch(kernel, grid, block, words[7], buffer)
        return buffer

    return by_lane(decoder, target, take, lambda words: prepare(heap, words))


def _launch(decoder: Decoder, target: CallTarget) -> Step:
    take = argument_words(decoder, target, ((8,), (8,)))
    launches = decoder.memory.device_launches

    def launch(words: list[int]) -> int:
        grid_launch = launches.prepared.pop(words[0], None)
        if grid_launch is None:
            return _INVALID_VALUE if words[0] else _OUT_OF_RESOURCES
        if 0 in grid_launch.grid or 0 in grid_launch.block:
            return _INVALID_CONFIGURATION
        launches.launched.append(replace(grid_launch, stream=words[1]))
        return 0

    return by_lane(decoder, target, take, launch)


def _make_handle(decoder: Decoder, target: CallTarget) -> Step:
    """Write a handle to the address in the first argument: all streams and events are alike."""
    take = argument_words(decoder, target, ((8,),))
    give = store_result(decoder, target)

    def make(group: Group) -> None:
        values, lanes = lane_words(group, take)
        for (address,), place in zip(values, np.flatnonzero(lanes), strict=True):
            _write_word(group, int(place), address, 16)
        give(group.frame, np.zeros(lanes.shape, np.uint32))

    return make


def _succeed(decoder: Decoder, target: CallTarget) -> Step:
    """Do nothing and return success: work runs in the order of the calls anyway."""
    return by_lane(decoder, target, [], lambda words: 0)


def _malloc(decoder: Decoder, target: CallTarget) -> Step:
    """`cudaMalloc(where, bytes)`: write an address to the address in the first argument."""
    take, give = argument_words(decoder, target, ((8,), (8,))), store_result(decoder, target)
    heap = decoder.memory.heap
    assert heap is not None, "a module that allocates has a heap"

    def allocate(group: Group) -> None:
        values, lanes = lane_words(group, take)
        status = np.zeros(lanes.shape, np.uint32)
        for (where, size), place in zip(values, np.flatnonzero(lanes), strict=True):
            address = heap.take(size)
            _write_word(group, int(place), where, address)
            status.flat[place] = 0 if address else _OUT_OF_MEMORY
        give(group.frame, status)

    return allocate


def _free(decoder: Decoder, target: CallTarget) -> Step:
    """`cudaFree(address)`: free memory of `cudaMalloc`."""
    heap = decoder.memory.heap
    assert heap is not None, "a module that allocates has a heap"

    def release(words: list[int]) -> int:
        return 0 if not words[0] or heap.give(words[0]) else _INVALID_VALUE

    return by_lane(decoder, target, argument_words(decoder, target, ((8,),)), release)


def _copy_later(decoder: Decoder, target: CallTarget) -> Step:
    """`cudaMemcpyAsync(to, source, bytes, kind, stream)`."""
    launched = decoder.memory.device_launches.launched

    def queue_copy(words: list[int]) -> int:
        to, source, size, _, stream = words
        launched.append(DeviceCopy(to, source, size, stream))
        return 0

    return by_lane(
        decoder, target, argument_words(decoder, target, ((8,), (8,), (8,), (4,), (8,))), queue_copy
    )


def _set_later(decoder: Decoder, target: CallTarget) -> Step:
    """`cudaMemsetAsync(to, value, bytes, stream)`."""
    launched = decoder.memory.device_launches.launched

    def queue_set(words: list[int]) -> int:
        to, value, size, stream = words
        launched.append(DeviceSet(to, value & 0xFF, size, stream))
        return 0

    return by_lane(
        decoder, target, argument_words(decoder, target, ((8,), (4,), (8,), (8,))), queue_set
    )


def _set_condition(decoder: Decoder, target: CallTarget) -> Step:
    """`cudaGraphSetConditional(handle, value)`: the handle is the address of the condition."""
    take = argument_words(decoder, target, ((8,), (4,)))
    arena = decoder.memory.global_

    def write(group: Group) -> None:
        for handle, value in lane_words(group, take)[0]:
            place = arena.find(handle)
            if place is None or place.size != 4 or place.address != handle:
                raise KernelFault(f"cudaGraphSetConditional: {handle:#x} is no condition's handle")
            arena.view(place)[:] = np.array([value], "<u4").view(np.uint8)

    return write


_FUNCTIONS: Mapping[str, Callable[[Decoder, CallTarget], Step]] = {
    "GetParameterBufferV2": _get_buffer,
    "LaunchDeviceV2": _launch,
    "Malloc": _malloc,
    "Free": _free,
    "MemcpyAsync": _copy_later,
    "MemsetAsync": _set_later,
    "StreamCreateWithFlags": _make_handle,
    "StreamDestroy": _succeed,
    "StreamWaitEvent": _succeed,
    "EventCreateWithFlags": _make_handle,
    "EventRecord": _succeed,
    "EventDestroy": _succeed,
    "GetLastError": _succeed,
    "PeekAtLastError": _succeed,
    "GetErrorString": _succeed,
    "GetErrorName": _succeed,
}

_Fetches = list[Callable[[Any], Array]]


def argument_words(
    decoder: Decoder, target: CallTarget, sizes: tuple[tuple[int, ...], ...]
) -> _Fetches:
    """Return fetches of the words of the arguments, in order."""
    fetches: _Fetches = []
    for operand, words in zip(target.arguments, sizes, strict=False):
        place = place_of(decoder, operand.name if isinstance(operand, Symbol) else "")
        for number, size in enumerate(words):
            fetches.append(fetch_bytes(decoder, place, (number * size, size), f"u{8 * size}"))
    return fetches


def store_result(decoder: Decoder, target: CallTarget) -> Callable[[Any, Array], None]:
    """Return the function that writes the call's result, an integer per lane."""
    (operand,) = target.returns
    name = operand.name if isinstance(operand, Symbol) else ""
    size = next(v.size for v in decoder.loaded.module.functions[_callee(target)].returns)
    give = store_bytes(decoder, place_of(decoder, name), (0, size), f"u{8 * size}")
    return lambda frame, results: give(frame, results.astype(f"u{size}"))


def _callee(target: CallTarget) -> str:
    assert isinstance(target.callee, Symbol)
    return target.callee.name


def by_lane(
    decoder: Decoder, target: CallTarget, take: _Fetches, answer: Callable[[list[int]], int]
) -> Step:
    """Return the step that calls `answer` with the words of each active lane, in order."""
    give = store_result(decoder, target)

    def step(group: Group) -> None:
        values, lanes = lane_words(group, take)
        results: Array = np.zeros(lanes.shape, dtype=np.uint64)
        results[lanes] = [answer(words) for words in values]
        give(group.frame, results)

    return step


def lane_words(group: Group, take: _Fetches) -> tuple[list[list[int]], Array]:
    """Return the words of each active lane, and the mask of the active lanes."""
    lanes = group.guarded_lanes(None)
    columns = [by_warp(group, fetch(group.frame))[lanes].tolist() for fetch in take]
    return [list(words) for words in zip(*columns, strict=True)] or [
        [] for _ in range(int(lanes.sum()))
    ], lanes


def _write_word(group: Group, place: int, address: int, value: int) -> None:
    """Write 64 bits to a generic address, as the lane at `place` of the group's shape sees it."""
    lane = int(group.place[place // 32]) * 32 + place % 32
    bytes_at(group, lane, address)[:8] = np.array([value], "<u8").view(np.uint8)
