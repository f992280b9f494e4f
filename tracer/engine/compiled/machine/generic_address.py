"""Generic addresses: in which state space the lanes of a group lie, before they go there.

A load or store that names no state space goes where the windows of its addresses say. Nearly always
all lanes of a group lie in one; then the access is that space's own. Otherwise the array engine
makes it, space by space.
"""

from .....native.intrinsic import trailing_zeros
from .....native.structure import I64
from .....traces.schema import Space
from ...memory.memory import GLOBAL_BASE, WINDOWS
from .machine import Machine

REGIONS = (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST)
"""State spaces of generic addresses; a region is a number in this order. Global is what lies in no
other window."""

GLOBAL, SHARED, LOCAL, CONST = range(4)
_SHARED_START, _SHARED_END = WINDOWS[Space.SHARED]
_LOCAL_START, _LOCAL_END = WINDOWS[Space.LOCAL]
_CONST_START, _CONST_END = WINDOWS[Space.CONST]
_SPAN = 1 << 31
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def look(m: Machine, addresses: I64, mask: int) -> None:
    """Take the addresses of lanes `mask` into the range of the group's."""
    rest = mask
    low = m.low
    high = m.high
    while rest:
        lane = trailing_zeros(rest)
        low = min(low, addresses[lane])
        high = max(high, addresses[lane])
        rest = rest & (rest - 1)
    m.low = low
    m.high = high


def decide(m: Machine, access: int, offset: int) -> int:
    """Say of which space access number `access` of the basic block is; 0 if the lanes lie in
    several, or too far from one another."""
    low = m.low
    high = m.high
    m.low = MOST
    m.high = LEAST
    if low > high:
        return 1
    region = region_of(low + offset)
    if region != region_of(high + offset) or high - low < 0 or high - low >= _SPAN:
        return 0
    site = m.first_site[m.number] + access
    m.site_as[site] = m.site_in[site] + region
    m.region = region
    m.window = GLOBAL_BASE if region == GLOBAL else 0
    m.arena = 1 if region == GLOBAL else 0
    m.shift = 0
    if region == SHARED:
        m.shift = _SHARED_START
    elif region == LOCAL:
        m.shift = _LOCAL_START
    elif region == CONST:
        m.shift = _CONST_START
        m.arena = 2
    return 1


def region_of(address: int) -> int:
    """Return the region in whose window an address lies."""
    if address >= _SHARED_START and address < _SHARED_END:
        return SHARED
    if address >= _LOCAL_START and address < _LOCAL_END:
        return LOCAL
    if address >= _CONST_START and address < _CONST_END:
        return CONST
    return GLOBAL
