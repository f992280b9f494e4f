"""Words of messages for threads, and for addresses near an array."""

Triple = tuple[int, int, int]

_VERBS = {
    **{"ld": "reads", "ldu": "reads", "ldmatrix": "reads"},
    **{"st": "writes", "stmatrix": "writes"},
}


def verb_of(text: str, space: str) -> str:
    """Return what a PTX instruction does to memory of a state space: `reads`, `writes` or
    `updates`. A copy names the space that it writes first."""
    mnemonic = next(word for word in text.split() if word[0] != "@")
    opcode, *modifiers = mnemonic.rstrip(";").split(".")
    spaces = [m.partition("::")[0] for m in modifiers if m.startswith(("global", "shared"))]
    if opcode == "cp" and len(spaces) == 2:
        return "writes" if spaces[0] == space else "reads"
    if opcode == "wmma":
        return "writes" if "store" in modifiers else "reads"
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
