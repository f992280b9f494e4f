"""The launches of shared_reads.cu, a line for each: which SMs read what, and when."""

CHIP = 132
LATE = 5000
ALONE = -1


def line(
    *, ids: tuple[int, int, int] = (0, CHIP, 1), other: int = ALONE, by_sm: int = 1, div: int = 1,
    mod: int = 1, delay: int = 0, how: int = 2, size: int = 8192, pieces: int = 1, depth: int = 1,
    rounds: int = 1,
) -> str:  # fmt: skip
    """One launch, in the order of `struct Launch`."""
    launch = (CHIP, by_sm, *ids, other, div, mod, delay, how, size, pieces, depth, rounds)
    return " ".join(map(str, launch))


def launches() -> list[str]:
    """All launches."""
    all_of_it, found = (0, CHIP, 1), []
    # The first n SMs read one piece; and n of every sixteenth, which share a GPC
    for how, size in ((2, 8192), (0, 8192), (1, 8192), (2, 128), (2, 32768)):
        found += [line(ids=(0, n, 1), div=CHIP, how=how, size=size)
                  for n in (1, 2, 4, 8, 16, 18, 32, 48, 64, 96, 132)]  # fmt: skip
        found += [line(ids=(0, 16 * n, 16), div=CHIP, how=how, size=size) for n in range(2, 10)]
    # Two SMs read one piece at once
    found += [line(ids=(0, 1, 1), div=CHIP, other=sm) for sm in (1, *range(16, CHIP, 16), 130)]
    # All of them, each some cycles after the one before it
    for how in (2, 0):
        for delay in (5, 20, 80, 320, LATE):
            found += [line(div=CHIP, how=how, delay=delay)]
        for delay in (50, 100, 200, 300, 400, 600, 800, 1000, 1500, 2000, LATE):
            found += [line(ids=(0, 1, 1), div=CHIP, other=sm, how=how, delay=delay)
                      for sm in (1, 16)]  # fmt: skip
    # Streams that some blocks share, as the tiles of a product
    for how in (2, 0):
        for div, mod in ((2, 66), (4, 33), (8, 17), (12, 11), (33, 4), (66, 2), (132, 1)):
            for depth in (1, 4):
                found += [line(by_sm=0, div=div, mod=mod, how=how, pieces=16, depth=depth)]
        for mod in (66, 33, 16, 8, 4, 2):
            for depth in (1, 4):
                found += [line(by_sm=0, mod=mod, how=how, pieces=16, depth=depth)]
    # One SM reads again what it read
    for how in (2, 1, 0):
        for depth in (1, 4):
            for rounds in (2, 8):
                found += [line(ids=(0, 1, 1), how=how, depth=depth, rounds=rounds)]
                found += [line(ids=all_of_it, how=how, depth=depth, rounds=rounds, mod=CHIP)]
    return found


if __name__ == "__main__":
    print("\n".join(launches()))
