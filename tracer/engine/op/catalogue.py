"""What cutrace runs, for people: families of instructions, from the tables and beside them."""

from collections.abc import Mapping

from .family import FAMILIES

BESIDE: Mapping[str, tuple[str, ...]] = {
    "moves and addresses": ("mov", "cvta", "isspacep", "createpolicy"),
    "loads and stores": ("ld", "ldu", "st"),
    "atomic operations": ("atom", "red"),
    "asynchronous copies and their barriers": ("cp.async", "mbarrier"),
    "bulk copies": ("cp.async.bulk", "cp.reduce.async.bulk", "st.async", "red.async", "tensormap"),
    "lanes of a warp": ("shfl", "vote", "activemask", "match", "redux", "elect"),
    "matrices": ("mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix"),
    "clusters of blocks": ("mapa", "getctarank", "barrier.cluster"),
    "stack memory": ("alloca", "stacksave", "stackrestore"),
    "control": ("bra", "brx", "call", "ret", "exit", "trap", "bar", "barrier"),
    "no effect here": (
        *("membar", "fence", "prefetch", "prefetchu", "nanosleep", "pmevent", "discard"),
        *("applypriority", "brkpt", "griddepcontrol", "setmaxnreg"),
    ),
    "textures": ("tex", "tld4", "txq", "istypep"),
    "surfaces": ("suld", "sust", "sured", "suq"),
}
"""Families that are not rows of tables: they touch memory, lanes, or the way of a warp."""


def families() -> dict[str, tuple[str, ...]]:
    """Return every family with its opcodes."""
    tables = {family.name: tuple(sorted(family.table)) for family in FAMILIES}
    return {**tables, **BESIDE}
