"""What the kernel of counter_kernel.py must count, from its constants alone."""

from cases.counter_cases import Constants
from cases.counter_kernel import ADDRESS, FREE, INTEGER, NONE, PLAIN, WIDTHS

SINGLE = ("single_add", "single_mul", "single_fma", "specials", "predicated")
SHARED = ("shared_loads", "shared_stores", "shared_atomics", "shared_reductions", "shared_swaps")
ANSWERED = ("atomics", "swaps", "shared_atomics", "shared_swaps")
"""Atomics whose answer an integer instruction adds up."""

FIRST = PLAIN | {
    **dict.fromkeys(NONE, 1),
    **{"blocks": 3, "warps": 1, "stride": 2, "ways": 4, "addresses": 2, "on": 8, "dynamic": 256},
    **{"loads": 3, "stores": 2, "reductions": 2, "integers": 4, "divergent": 2, "loads_8": 2},
}
SECOND = PLAIN | {
    **dict.fromkeys(NONE, 2),
    **{"blocks": 5, "warps": 2, "stride": 4, "ways": 8, "addresses": 4, "on": 12, "dynamic": 512},
    **{"loads": 7, "stores": 5, "atomics": 5, "reductions": 1, "integers": 9, "predicated": 5},
    **{"single_fma": 4, "stores_1": 5, "exchanges": 3, "uniform": 7, "barriers": 3},
}
"""Everything at least once; and again, so that every count and every ratio differs."""


def warps(c: Constants) -> int:
    """Warps of the grid: each does the same."""
    return c["blocks"] * c["warps"]


def each(c: Constants, *names: str) -> int:
    """How often all warps together do any of these things."""
    return warps(c) * sum(c[name] for name in names)


def wide(access: str) -> tuple[str, ...]:
    """`loads` and `stores` of all widths."""
    return access, *(f"{access}_{width}" for width in WIDTHS)


def requests(c: Constants, access: str) -> int:
    """Global loads or stores."""
    return each(c, *wide(access))


def asked(c: Constants, access: str) -> int:
    """Bytes that the lanes of global loads or stores ask for."""
    return warps(c) * 32 * (4 * c[access] + sum(w * c[f"{access}_{w}"] for w in WIDTHS))


def sectors(c: Constants, access: str) -> int:
    """Sectors of 32 bytes: 4 for each word of the stride; w for w bytes a lane in order."""
    return warps(c) * (4 * c["stride"] * c[access] + sum(w * c[f"{access}_{w}"] for w in WIDTHS))


def lines(c: Constants, access: str) -> int:
    """Lines of 128 bytes, by warp, half or quarter of a warp: 2 for 8 bytes a lane, 4 for 16."""
    in_order = c[f"{access}_1"] + c[f"{access}_2"] + 2 * c[f"{access}_8"] + 4 * c[f"{access}_16"]
    return warps(c) * (c["stride"] * c[access] + in_order)


def ideal(c: Constants, access: str) -> int:
    """Sectors that the bytes fill."""
    return asked(c, access) // 32


def passes(c: Constants, *names: str, ways: int) -> int:
    """Passes of shared accesses with so many lanes at a bank; compare and swap takes two each."""
    return ways * (each(c, *names) + (each(c, "shared_swaps") if "shared_swaps" in names else 0))


def branches(c: Constants) -> int:
    """Conditional branches."""
    return each(c, "uniform", "divergent")


def instructions(c: Constants) -> int:
    """Warp instructions that an assembler would keep; a divergent branch leads half to an add."""
    own = NONE.keys() - {"dynamic"}
    repeated = sum(c[name] for name in own) + sum(c[name] for name in (*ANSWERED, "divergent"))
    return warps(c) * (INTEGER + ADDRESS * addressed(c) + repeated + 1)


def addressed(c: Constants) -> int:
    """Widths that occur."""
    return sum(bool(c[f"loads_{w}"] or c[f"stores_{w}"]) for w in WIDTHS)


def ptx(c: Constants) -> int:
    """All warp instructions."""
    return instructions(c) + FREE * warps(c)


def lanes(c: Constants) -> int:
    """Lanes that ran the instructions: half a warp ran the add of a divergent branch."""
    return 32 * instructions(c) - 16 * each(c, "divergent")


def lanes_on(c: Constants) -> int:
    """Less those whose predicate was off: half a divergent branch, and some of the adds."""
    return lanes(c) - 16 * each(c, "divergent") - (32 - c["on"]) * each(c, "predicated")


def integers(c: Constants) -> int:
    """Lanes that ran integer instructions."""
    own = 32 * each(c, "integers", *ANSWERED) + 16 * each(c, "divergent")
    return own + 32 * warps(c) * (INTEGER + ADDRESS * addressed(c))


def predicated(c: Constants) -> int:
    """Lanes that ran the adds with a predicate."""
    return c["on"] * each(c, "predicated")


def single(c: Constants) -> int:
    """Lanes that ran instructions in single precision."""
    return 32 * each(c, "single_add", "single_mul", "single_fma", "specials") + predicated(c)


def control(c: Constants) -> int:
    """Lanes that ran control flow: taken branches, and the return."""
    return 32 * each(c, "uniform") + 16 * each(c, "divergent") + 32 * warps(c)


def atomics(c: Constants) -> int:
    """Global atomics and reductions."""
    return each(c, "atomics", "reductions", "swaps")
