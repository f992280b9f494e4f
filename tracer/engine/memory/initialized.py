"""Uninitialized loads: a map of written bytes beside memory, where such loads are to be faults.

A map has the shape of the memory that it shadows, with 1 for each written byte. What the host
copies or fills is written, and so are a module's variables; constants are not watched, nor what
textures and `printf` read. An atomic reads what it updates, except for an exchange.
"""

import numpy as np

from ....errors import KernelFault
from ....traces.schema import Space
from ..array.program import Group
from ..kernel.source_line import source_line
from ..lanes import Array
from .address import Access
from .address_facts import as_addresses, moved
from .bounds import Reach
from .fault import name_lane
from .memory import WINDOWS

_REASONS = {
    Space.SHARED: "a block's shared memory holds nothing until it is stored to",
    Space.LOCAL: "a thread's local memory holds nothing until it is stored to",
}


def mark_written(where: Reach, count: int) -> None:
    """Mark what the active lanes store: `count` elements each."""
    if where.written is not None:
        mark = _mark(where.written.words.dtype)
        for element in range(count):
            where.written.store(element, mark)


def require_written(group: Group, access: Access, value: Array, where: Reach) -> None:
    """Raise KernelFault if an active lane loads a byte that nobody wrote.

    `value` is what the access' addresses are made from.
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
    """Return one element all of whose bytes are 1, (1, 1)."""
    return np.frombuffer(b"\1" * dtype.itemsize, dtype).reshape(1, 1)


def _fault(group: Group, access: Access, value: Array, where: Reach, lane: int) -> KernelFault:
    program, space = group.wave.program, where.space
    addresses = np.broadcast_to(as_addresses(moved(value, access.offset)), where.shape)
    address = int(addresses.reshape(-1)[lane])
    if access.space is None and space != Space.GLOBAL:
        address -= WINDOWS[space][0]
    found = program.memory.global_.find(address) if space == Space.GLOBAL else None
    reason = _REASONS.get(space) or (
        f"`{found.name}`, from {found.address:#x} on, was not copied to there, filled or stored to"
        if found
        else "nobody stored to it"
    )
    return KernelFault(
        f"{source_line(program.kernel, access.pc)}: kernel `{program.name}` reads "
        f"{access.width} bytes that nobody wrote at {space.name.lower()} address {address:#x} in "
        f"{name_lane(group, lane)}: {reason}"
    )
