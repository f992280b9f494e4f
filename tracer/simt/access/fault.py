"""Memory faults: lane-by-lane checks of accesses, and messages for out-of-bounds and
misaligned ones.
"""

from math import prod
from typing import NoReturn

import numpy as np

from ....base.errors import KernelFault
from ....traces.out_of_bounds import coordinates, distance, gap_text, verb_of
from ....traces.schema import Space
from ...ptx.lines import source_line
from ..kernel.layout import shared_layout
from ..memory.address_facts import AddressRange
from ..ops.lanes import LANES, Array, Mask
from ..warp.program import Group, Wave
from . import cluster


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
        f"{source_line(program.kernel, pc)}: kernel `{program.name}` {verb} {width} bytes "
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
