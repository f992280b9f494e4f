"""The faults of memory accesses: which lane, what is wrong with its address, and what is near."""

from math import prod

from ....base.errors import KernelFault
from ....traces.out_of_bounds import bytes_text, coordinates, distance, gap_text, verb_of
from ....traces.schema import Space
from ..memory.memory import WINDOWS
from ..ops.lanes import LANES
from ..warp.program import Group, Wave
from .cluster import locate
from .reach import ENDED, OUTSIDE, space_of

_REASONS = {
    Space.SHARED: "a block's shared memory holds nothing until it is stored to",
    Space.LOCAL: "a thread's local memory holds nothing until it is stored to",
}


def uninitialized(
    group: Group, pc: int, width: int, where: tuple[Space | None, int], lane: int
) -> KernelFault:
    """Return the fault of a lane that loads bytes that nobody wrote at `where`: a state space and
    an address there, a generic one if the space is None.
    """
    program = group.wave.program
    space, address = where
    if space is None:
        space = Space(space_of(address))
        address -= WINDOWS[space][0] if space != Space.GLOBAL else 0
    allocation = program.memory.global_.find(address) if space == Space.GLOBAL else None
    reason = _REASONS.get(space) or (
        f"`{allocation.name}`, from {allocation.address:#x} on, was not copied to there,"
        " filled or stored to"
        if allocation
        else "nobody stored to it"
    )
    return program.fault(
        pc,
        f"reads {width} bytes that nobody wrote at {space.name.lower()} address {address:#x} in "
        f"{name_lane(group, lane)}: {reason}",
        "uninitialized",
    )


def fault_of(wave: Wave) -> KernelFault:
    """Return the fault that `reach` or machine code has recorded."""
    m, program = wave.machine, wave.program
    pc, space, width, address = m.fault_pc, Space(m.fault_space), m.fault_width, m.fault_address
    warp, lane = m.fault_warp, m.fault_lane
    verb = verb_of(program.text(pc), space.name.lower())
    text = f"{program.source_line(pc)}: kernel `{program.name}` {verb}"
    thread = name_thread(wave, warp, lane)
    if m.fault_problem == ENDED:
        owner, offset = locate(wave, int(wave.block_of_warp[warp]), address)
        there = coordinates(int(wave.numbers[owner]), program.launch.grid)
        return KernelFault(
            f"{text} shared address {offset:#x} of block {there}, which has ended, in {thread} "
            f"(shared::cluster address {address:#x}): let the block wait with cluster.sync() "
            "before it ends",
            "outside",
        )
    is_outside = m.fault_problem == OUTSIDE
    problem = "outside" if is_outside else "misaligned"
    where = nearest(wave, address, space, width) if is_outside else f"not a multiple of {width}"
    if is_outside and space == Space.GLOBAL:
        where += _what_fits(wave, address, warp, lane, width)
    return KernelFault(
        f"{text} {bytes_text(width)} {problem} at {space.name.lower()} address {address:#x} "
        f"in {thread}: {where}",
        problem,
    )


def name_lane(group: Group, lane: int) -> str:
    """Return `thread (x, y, z) of block (x, y, z)` for a lane of the group's shape."""
    return name_thread(group.wave, int(group.warps[lane // LANES]), lane % LANES)


def name_thread(wave: Wave, warp: int, lane: int) -> str:
    """Return `thread (x, y, z) of block (x, y, z)` for a lane of a warp of the wave."""
    launch = wave.program.launch
    thread = (warp % wave.warps_a_block) * LANES + lane
    block = int(wave.numbers[wave.block_of_warp[warp]])
    return f"thread {coordinates(thread, launch.block)} of block {coordinates(block, launch.grid)}"


def nearest(wave: Wave, address: int, space: Space, width: int) -> str:
    """Return what is near an address outside of all allocations, as text."""
    if space in (Space.SHARED, Space.LOCAL):
        size = (wave.shared if space == Space.SHARED else wave.local).shape[1]
        if space == Space.LOCAL:
            return f"the thread has {size} bytes of local memory"
        return f"the block has {size} bytes of shared memory{_open_arrays(wave)}"
    allocations = wave.program.memory.arena(space).allocations
    if space == Space.GLOBAL and address < _NEAR_NULL:
        return f"{address} bytes from a null pointer" if address else "a null pointer"
    if space == Space.GLOBAL and address >= _OF_HOST:
        return (
            "no array is near; the host has its own memory there, which the device cannot reach:"
            " copy it to the device, or pin it (cudaMallocHost; CuPy: cupyx.empty_pinned)"
        )
    if not allocations:
        return "nothing is allocated"
    near = min(allocations, key=lambda a: distance(a.address, a.size, address))
    gap = gap_text(near.address, near.size, address, width)
    return f"{gap} `{near.name}` ({near.size} bytes at {near.address:#x})"


def _what_fits(wave: Wave, address: int, warp: int, lane: int, width: int) -> str:
    """Return the array size that would fit the warp's accesses past its end, as text, or nothing.

    If each thread of the grid accesses the element of its own index, the size covers all threads.
    """
    allocations = wave.program.memory.arena(Space.GLOBAL).allocations
    before = [a for a in allocations if a.address + a.size - width < address]
    if not before or address - before[-1].address > _FAR * max(before[-1].size, LANES):
        return ""
    start, launch = before[-1].address, wave.program.launch
    thread = (warp % wave.warps_a_block) * LANES + lane
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
    names = [f"`{name}`" for name in program.open_arrays]
    if not names:
        return ""
    dynamic_bytes = program.launch.shared_dynamic
    return (
        f", of which {', '.join(names)} has the {dynamic_bytes} that the launch asks for: "
        "its third number, <<<grid, block, bytes>>>"
    )
