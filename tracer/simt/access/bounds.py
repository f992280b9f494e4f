"""Bounds check of an access, the lanes' indices into the bytes of its state space, and faults.

The range of all active lanes is checked first, against one allocation. Only if that fails are the
lanes checked one by one (`check_lanes`), and a fault names the first lane that is out of bounds or
misaligned.
"""

from dataclasses import replace
from math import prod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import KernelFault
from ....traces.out_of_bounds import bytes_text, coordinates, distance, gap_text, verb_of
from ....traces.schema import Space
from ...ptx.lines import source_line
from ..kernel.layout import shared_layout
from ..memory.address_facts import AddressRange, add_offset, as_addresses
from ..memory.memory import WINDOWS
from ..ops.lanes import LANES, Array, Mask
from ..warp.program import Group, Wave
from . import cluster
from .address import Access


@dataclass(frozen=True, slots=True)
class Window:
    """The memory of an access: `words[index + k]` is element k of each lane.

    `index` broadcasts to (rows, columns), with arbitrary values for inactive lanes. With `by_block`
    the words are (blocks, words per block) and `index` is the same for every block. `inside` is
    False if the range of the whole access is not within one allocation. `written` is the same
    window into the map of written bytes, if there is one.
    """

    words: Array
    index: Array
    lanes: Mask | None
    shape: tuple[int, int]
    inside: bool
    by_block: bool = False
    space: Space = Space.GLOBAL
    written: "Window | None" = None

    def load(self, element: int) -> Array:
        """Return element `element` of every lane."""
        loaded: Array
        if self.by_block:
            loaded = self.words.take(self.index[0] + element, axis=1, mode="clip")
        else:
            loaded = self.words[element:].take(self.index, mode="clip")
        return loaded

    def flat(self) -> tuple[Array, Array]:
        """Return the words as one dimension, and the indices of element 0."""
        if not self.by_block:
            return self.words, self.index
        rows = np.arange(self.shape[0])[:, None] * self.words.shape[1]
        return self.words.reshape(-1), rows + self.index

    def store(self, element: int, value: Array) -> None:
        """Write element `element` of every active lane, in order of block, warp and lane."""
        words, index = self.flat()
        index = index + element if element else index
        value = value.view(words.dtype)
        if self.lanes is not None:
            lane_mask = np.broadcast_to(self.lanes, self.shape)
            index = np.broadcast_to(index, self.shape)[lane_mask]
            value = np.broadcast_to(value, self.shape)[lane_mask]
        elif index.shape != value.shape:
            index = np.broadcast_to(index, self.shape)
        words[index] = value


def find_window(
    group: Group, facts: AddressRange, delta: int, space: Space, dtype: np.dtype[Any], count: int
) -> Window:
    """Return the window of an access at `facts` plus `delta` bytes, with only the range checked."""
    wave = group.wave
    match space:
        case Space.SHARED:
            memory = wave.shared
        case Space.LOCAL:
            memory = wave.local
        case _:
            memory = wave.program.memory.arena(space).bytes
    where = _find(group, facts, delta, space, dtype, count, memory)
    written = None if wave.shadow is None else wave.shadow.of(space)
    if written is None:
        return where
    twin = _find(group, facts, delta, space, dtype, count, written)
    return replace(where, written=twin)


def _find(
    group: Group, facts: AddressRange, delta: int, space: Space, dtype: np.dtype[Any], count: int,
    memory: NDArray[np.uint8],
) -> Window:  # fmt: skip
    low, high = facts.low + delta, facts.high + delta + dtype.itemsize * count
    shape = (group.rows, group.columns)
    if space in (Space.GLOBAL, Space.CONST, Space.SURFACE):
        arena = group.wave.program.memory.arena(space)
        allocation = arena.find(low)
        inside = allocation is not None and high <= allocation.address + allocation.size
        start = low - arena.base
        start -= start % dtype.itemsize
        words = _words(memory, max(start, 0), max(high - arena.base, 0), dtype)
        return Window(words, facts.index(dtype.itemsize), facts.lanes, shape, inside)
    if space == Space.SHARED and cluster.is_elsewhere(facts, delta):
        return _find_elsewhere(group, facts, delta, dtype, count, memory)
    inside = low >= 0 and high <= memory.shape[1]
    if not inside:
        return Window(memory, facts.index(dtype.itemsize), facts.lanes, shape, inside, space=space)
    words = memory.view(dtype)
    first = low // dtype.itemsize
    # All blocks use the same addresses: one row of indices serves the 2-D array of all blocks.
    if space == Space.SHARED and len(facts.addresses) == 1 and not group.compacted:
        index = facts.index(dtype.itemsize) + first
        return Window(words, index, facts.lanes, shape, inside, by_block=True, space=space)
    index = _own_index(group, facts, space, dtype.itemsize, words.shape[1])
    return Window(words.reshape(-1)[first:], index, facts.lanes, shape, inside, space=space)


def _find_elsewhere(
    group: Group, facts: AddressRange, delta: int, dtype: np.dtype[Any], count: int,
    memory: NDArray[np.uint8],
) -> Window:  # fmt: skip
    """Return the window of lanes that access the shared memory of several blocks of their
    cluster.
    """
    words = memory.view(dtype)
    index, ended = cluster.find_elsewhere(group, facts, delta, dtype.itemsize, words.shape[1])
    addresses = np.broadcast_to(facts.addresses, ended.shape) + delta
    within = cluster.is_inside(group, addresses, dtype.itemsize * count)
    if facts.lanes is not None:
        within = within | ~facts.lanes
    inside = bool(within.all()) and not ended.any()
    shape = (group.rows, group.columns)
    return Window(words.reshape(-1), index, facts.lanes, shape, inside, space=Space.SHARED)


def _words(memory: NDArray[np.uint8], start: int, end: int, dtype: np.dtype[Any]) -> Array:
    length = max(end - start, 0) // dtype.itemsize * dtype.itemsize
    return memory[start : start + length].view(dtype)


def _own_index(group: Group, facts: AddressRange, space: Space, itemsize: int, pitch: int) -> Array:
    """Return indices into the memory of all blocks or threads, relative to `facts.low`."""
    key = (space.name, itemsize)
    if not group.compacted and key in facts.indices:
        return facts.indices[key]
    if space == Space.SHARED:
        owner = group.row_block[:, None]
    else:
        owner = (group.place * LANES)[:, None] + np.arange(LANES)
        owner = owner.reshape(group.rows, group.columns)
    index = owner * pitch + facts.index(itemsize)
    if not group.compacted:
        facts.indices[key] = index
    return index


_REASONS = {
    Space.SHARED: "a block's shared memory holds nothing until it is stored to",
    Space.LOCAL: "a thread's local memory holds nothing until it is stored to",
}


def mark_written(where: Window, count: int) -> None:
    """Mark the bytes that the active lanes store, `count` elements each, as written."""
    if where.written is not None:
        mark = _mark(where.written.words.dtype)
        for element in range(count):
            where.written.store(element, mark)


def require_written(group: Group, access: Access, value: Array, where: Window) -> None:
    """Raise KernelFault if an active lane loads an uninitialized byte.

    `value` is the base value of the access's addresses.
    """
    if where.written is None:
        return
    mark = _mark(where.written.words.dtype)
    missing = np.zeros(where.shape, np.bool_)
    for element in range(access.count):
        missing |= where.written.load(element) != mark
    if where.lanes is not None:
        missing &= where.lanes
    if missing.any():
        raise _fault(group, access, value, where, int(missing.argmax()))


def _mark(dtype: np.dtype[np.generic]) -> Array:
    """Return an element with all bytes 1, (1, 1)."""
    return np.frombuffer(b"\1" * dtype.itemsize, dtype).reshape(1, 1)


def _fault(group: Group, access: Access, value: Array, where: Window, lane: int) -> KernelFault:
    program, space = group.wave.program, where.space
    addresses = np.broadcast_to(as_addresses(add_offset(value, access.offset)), where.shape)
    address = int(addresses.reshape(-1)[lane])
    if access.space is None and space != Space.GLOBAL:
        address -= WINDOWS[space][0]
    allocation = program.memory.global_.find(address) if space == Space.GLOBAL else None
    reason = _REASONS.get(space) or (
        f"`{allocation.name}`, from {allocation.address:#x} on, was not copied to there,"
        " filled or stored to"
        if allocation
        else "nobody stored to it"
    )
    return KernelFault(
        f"{source_line(program.kernel, access.pc)}: kernel `{program.name}` reads "
        f"{access.width} bytes that nobody wrote at {space.name.lower()} address {address:#x} in "
        f"{name_lane(group, lane)}: {reason}",
        "uninitialized",
    )


def wrapped(number: int) -> int:
    """Return a sum of addresses wrapped to signed 64 bits, as the hardware adds."""
    number &= (1 << 64) - 1
    return number - (number >> 63 << 64)


def check_lanes(
    group: Group, facts: AddressRange, delta: int, space: Space, width: int, pc: int
) -> None:
    """Check every active lane; raise KernelFault for the first one at fault.

    If the launch allows it and memory is mapped there, out-of-bounds lanes are counted instead.
    """
    shape = (group.rows, group.columns)
    addresses = np.broadcast_to(facts.addresses, shape) + wrapped(delta)
    active = np.broadcast_to(True if facts.lanes is None else facts.lanes, shape)
    misaligned = active & (addresses & (width - 1) != 0)
    outside = active & ~_inside(group, addresses, space, width)
    if space == Space.GLOBAL and group.wave.program.launch.options.bounds == "report":
        mapped = outside & _mapped(group, addresses, width)
        group.wave.rows.outside.add(pc, group, mapped & ~misaligned, addresses)
        outside = outside & ~mapped
    if space == Space.SHARED and cluster.is_elsewhere(facts, delta):
        _, ended = cluster.find_elsewhere(group, facts, delta, 1, 0)
        if ended.any():
            _report_ended(group, addresses, int(np.flatnonzero(ended)[0]), pc)
    bad = outside | misaligned
    if bad.any():
        _report(
            group, addresses, int(np.flatnonzero(bad)[0]), bool(outside.any()), space, width, pc
        )


def _inside(group: Group, addresses: Array, space: Space, width: int) -> Mask:
    if space == Space.SHARED:
        return cluster.is_inside(group, addresses, width)
    if space == Space.LOCAL:
        most = group.wave.local.shape[1] - width
        within: Mask = (addresses >= 0) & (addresses <= most)
        return within
    allocations = group.wave.program.memory.arena(space).allocations
    starts = np.array([a.address for a in allocations], dtype=np.int64)
    ends = np.array([a.address + a.size for a in allocations], dtype=np.int64)
    if not starts.size:
        return np.zeros(addresses.shape, dtype=np.bool_)
    owner = np.searchsorted(starts, addresses, side="right") - 1
    inside: Mask = (owner >= 0) & (addresses <= ends[np.maximum(owner, 0)] - width)
    return inside


def _mapped(group: Group, addresses: Array, width: int) -> Mask:
    starts, ends = (e[:-1] for e in group.wave.program.memory.global_.mapped_ranges())
    if not len(starts):
        return np.zeros(addresses.shape, np.bool_)
    place = np.searchsorted(starts, addresses, side="right") - 1
    mapped: Mask = (place >= 0) & (addresses <= ends[np.maximum(place, 0)] - width)
    return mapped


def _report(
    group: Group, addresses: Array, lane: int, outside: bool,
    space: Space, width: int, pc: int,
) -> NoReturn:  # fmt: skip
    wave = group.wave
    program = wave.program
    address = int(addresses.reshape(-1)[lane])
    instruction = program.kernel.instructions[pc]
    verb = verb_of(instruction.text, space.name.lower())
    problem = "outside" if outside else "misaligned"
    where = _nearest(group, address, space, width) if outside else f"not a multiple of {width}"
    if outside and space == Space.GLOBAL:
        where += _what_fits(group, addresses, lane, width)
    raise KernelFault(
        f"{source_line(program.kernel, pc)}: kernel `{program.name}` {verb} {bytes_text(width)} "
        f"{problem} at {space.name.lower()} address {address:#x} "
        f"in {name_lane(group, lane)}: {where}",
        problem,
    )


def _report_ended(group: Group, addresses: Array, lane: int, pc: int) -> NoReturn:
    wave = group.wave
    address = int(addresses.reshape(-1)[lane])
    verb = verb_of(wave.program.kernel.instructions[pc].text, "shared")
    owner, offset = cluster.owner_and_offset(group, addresses)
    block = int(wave.numbers[int(owner.reshape(-1)[lane])])
    there = coordinates(block, wave.program.launch.grid)
    raise KernelFault(
        f"{source_line(wave.program.kernel, pc)}: kernel `{wave.program.name}` {verb} shared "
        f"address {int(offset.reshape(-1)[lane]):#x} of block {there}, which has ended, in "
        f"{name_lane(group, lane)} (shared::cluster address {address:#x}): let the block wait "
        "with cluster.sync() before it ends",
        "outside",
    )


def name_lane(group: Group, lane: int) -> str:
    """Return `thread (x, y, z) of block (x, y, z)` for a lane of the group's shape."""
    wave = group.wave
    launch = wave.program.launch
    warp = int(group.place[lane // LANES])
    thread = (warp % wave.warps_a_block) * LANES + lane % LANES
    block = int(wave.numbers[wave.block_of_warp[warp]])
    return f"thread {coordinates(thread, launch.block)} of block {coordinates(block, launch.grid)}"


def _nearest(group: Group, address: int, space: Space, width: int) -> str:
    wave = group.wave
    if space in (Space.SHARED, Space.LOCAL):
        size = (wave.shared if space == Space.SHARED else wave.local).shape[1]
        if space == Space.LOCAL:
            return f"the thread has {size} bytes of local memory"
        return f"the block has {size} bytes of shared memory{_open_arrays(wave)}"
    allocations = wave.program.memory.arena(space).allocations
    if space == Space.GLOBAL and address < _NEAR_NULL:
        return f"{address} bytes from a null pointer" if address else "a null pointer"
    if space == Space.GLOBAL and address >= _OF_HOST:
        return "no array is near; the host has its own memory there, which the device cannot reach"
    if not allocations:
        return "nothing is allocated"
    near = min(allocations, key=lambda a: distance(a.address, a.size, address))
    gap = gap_text(near.address, near.size, address, width)
    return f"{gap} `{near.name}` ({near.size} bytes at {near.address:#x})"


def _what_fits(group: Group, addresses: Array, lane: int, width: int) -> str:
    """Return the array size that would fit the warp's accesses past its end, as text, or nothing.

    If each thread of the grid accesses the element of its own index, the size covers all threads.
    """
    wave = group.wave
    address = int(addresses.reshape(-1)[lane])
    allocations = wave.program.memory.arena(Space.GLOBAL).allocations
    before = [a for a in allocations if a.address + a.size - width < address]
    if not before or address - before[-1].address > _FAR * max(before[-1].size, LANES):
        return ""
    start, launch = before[-1].address, wave.program.launch
    warp = int(group.place[lane // LANES])
    thread = (warp % wave.warps_a_block) * LANES + lane % LANES
    number = int(wave.numbers[wave.block_of_warp[warp]]) * prod(launch.block) + thread
    if (address - start) == number * width:
        threads = prod(launch.block) * prod(launch.grid)
        return f"; {threads} elements of {width} bytes would fit all {threads} threads"
    return f"; it needs {(address - start) // width + 1} elements of {width} bytes at least"


_NEAR_NULL = 1 << 30
"""Addresses below this are taken as an index from a null pointer: no array is there."""

_OF_HOST = 1 << 44
"""Addresses from here on are host addresses on Linux: code, heap and stacks."""

_FAR = 1024
"""An address up to this many array sizes past an array is still attributed to it."""


def _open_arrays(wave: Wave) -> str:
    """Return text about the shared arrays sized by the launch, and the size that it gave."""
    program = wave.program
    layout = shared_layout(program.kernel)
    names = [f"`{name}`" for (_, name), v in layout.variables.items() if v.is_extern]
    if not names:
        return ""
    dynamic_bytes = program.launch.shared_dynamic
    return (
        f", of which {', '.join(names)} has the {dynamic_bytes} that the launch asks for: "
        "its third number, <<<grid, block, bytes>>>"
    )
