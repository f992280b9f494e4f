"""The words for a thread, and for an address beside an array: one for every message."""

Triple = tuple[int, int, int]

_VERBS = {"ld": "reads", "ldu": "reads", "st": "writes"}


def verb_of(opcode: str) -> str:
    """Return what a PTX opcode does to memory: `reads`, `writes` or `updates`."""
    return _VERBS.get(opcode, "updates")


def coordinates(index: int, extent: Triple) -> Triple:
    """Return (x, y, z) of a thread in its block, or of a block in its grid, x fastest."""
    rest, x = divmod(index, extent[0])
    return x, rest % extent[1], rest // extent[1]


def distance(start: int, size: int, address: int) -> int:
    """Return how many bytes an address is away from an array's nearest byte; 0 inside."""
    return max(start - address, address - start - size, 0)


def gap_text(start: int, size: int, address: int, width: int) -> str:
    """Return where an access of `width` bytes is that is not all in an array of `size` bytes."""
    end = start + size
    if address < start:
        return f"{start - address} bytes before"
    if address >= end:
        return f"{address - end} bytes past the end of"
    return f"{address + width - end} bytes beyond the end of"
