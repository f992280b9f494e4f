"""cutrace's own counters, and those of the first profiler, in closed form."""

from collections.abc import Callable

from cases.cases_nvprof import record_texels
from cases.closed_form import (
    FIRST,
    SECOND,
    SHARED,
    asked,
    atomics,
    branches,
    each,
    ideal,
    instructions,
    passes,
    ptx,
    requests,
    sectors,
    warps,
)
from cases.counter_cases import Case, Constants, Formula, record_bulk_copies, record_samples
from cases.counter_kernel import PLAIN as NOTHING
from cases.counter_kernel import record_everything


def _global(word: str, access: str) -> dict[str, Formula]:
    return {
        f"global_{word}_requests": lambda c: requests(c, access),
        f"global_{word}_transactions": lambda c: sectors(c, access),
        f"global_{word}_bytes_transferred": lambda c: 32 * sectors(c, access),
        f"global_{word}_bytes_requested": lambda c: asked(c, access),
        f"global_{word}_sector_efficiency": lambda c: asked(c, access) / (32 * sectors(c, access)),
    }


def _local(word: str, access: str) -> dict[str, Formula]:
    """Neighbours' words lie side by side: 4 sectors, all of which is asked for."""
    return {
        f"local_{word}_requests": lambda c: each(c, access),
        f"local_{word}_transactions": lambda c: 4 * each(c, access),
        f"local_{word}_bytes_transferred": lambda c: 128 * each(c, access),
        f"local_{word}_bytes_requested": lambda c: 128 * each(c, access),
    }


def _both(of: Callable[[Constants, str], int], c: Constants) -> int:
    """Loads and stores."""
    return of(c, "loads") + of(c, "stores")


def _moved(c: Constants) -> int:
    """Bytes that global loads, stores and atomics move."""
    return 32 * (_both(sectors, c) + 4 * c["stride"] * atomics(c))


def _memory_requests(c: Constants) -> int:
    """Everything that is a request to any memory."""
    return (
        _both(requests, c)
        + atomics(c)
        + each(c, *SHARED, "local_loads", "local_stores", "const_loads")
    )


ON_H200: dict[str, Formula] = {
    **_global("load", "loads"),
    **_global("store", "stores"),
    "global_atomic_requests": atomics,
    "global_atomic_transactions": lambda c: 4 * c["stride"] * atomics(c),
    "global_atomic_bytes_transferred": lambda c: 32 * 4 * c["stride"] * atomics(c),
    "global_atomic_bytes_requested": lambda c: 128 * atomics(c),
    "global_ideal_transactions": lambda c: _both(ideal, c) + 4 * atomics(c),
    **_local("load", "local_loads"),
    **_local("store", "local_stores"),
    "shared_load_requests": lambda c: each(c, "shared_loads"),
    "shared_store_requests": lambda c: each(c, "shared_stores"),
    "shared_atomic_requests": lambda c: each(c, *SHARED[2:]),
    "shared_wavefronts": lambda c: passes(c, *SHARED, ways=c["ways"]),
    "shared_conflicts": lambda c: (c["ways"] - 1) * each(c, *SHARED),
    "constant_requests": lambda c: each(c, "const_loads"),
    "constant_wavefronts": lambda c: c["addresses"] * each(c, "const_loads"),
    "sector_efficiency": lambda c: _both(asked, c) / (32 * _both(sectors, c)),
    "memory_requests": _memory_requests,
    "branches": branches,
    "divergent_branches": lambda c: each(c, "divergent"),
    "barriers": lambda c: each(c, "barriers", "other_barriers"),
    "instructions": instructions,
    "ptx_instructions": ptx,
    "thread_instructions": lambda c: 32 * ptx(c) - 16 * each(c, "divergent"),
    "global_bytes_transferred": _moved,
    "blocks_launched": lambda c: c["blocks"],
    "warps_launched": warps,
    "threads_launched": lambda c: 32 * warps(c),
}
SHARED_OF_G80 = 4096 + 16 + 8
"""Bytes that a block takes: its array, the launch's own, the kernel's parameter."""


def _resident_of_g80(c: Constants) -> float:
    """Warps of an SM with 24, 8 blocks, and 16384 bytes of shared memory in units of 512."""
    taken = -(-(SHARED_OF_G80 + c["dynamic"]) // 512) * 512
    return c["warps"] * min(8, 24 // c["warps"], 16384 // taken) / 24


IN_ORDER = NOTHING | {"blocks": 16, "loads": 2, "stores": 3, "ways": 2, "addresses": 2}
SPREAD = IN_ORDER | {"stride": 2}
BUSY = IN_ORDER | {
    **{"uniform": 2, "divergent": 1, "barriers": 1, "shared_loads": 2, "shared_stores": 1},
    **{"const_loads": 3, "local_loads": 2, "local_stores": 4, "registers": 10, "integers": 2},
}
BUSIER = BUSY | {
    **{"blocks": 32, "loads": 5, "uniform": 1, "divergent": 3, "const_loads": 1, "warps": 2},
    **{"dynamic": 3000},
}
"""Blocks in multiples of an 8800 GTX's 16 SMs, in clusters of two."""
TESLA_FIRST = IN_ORDER | {"blocks": 30, "local_loads": 1, "local_stores": 2}
TESLA_SECOND = TESLA_FIRST | {"blocks": 60, "loads": 5, "stores": 4}
"""Blocks in multiples of a GTX 280's 30 SMs, in clusters of three."""


def _cluster(c: Constants) -> int:
    """Half-warps of a cluster of the GTX 280."""
    return 2 * warps(c) // 10


FLOATS_OF_SECTOR = 8
PLAIN = [
    Case(
        record_texels,
        "8800gtx",
        {"blocks": 16, "stride": 1},
        {"blocks": 32, "stride": 2},
        {
            # a quad's 4 or 8 floats lie in a sector; the cluster's blocks want the same
            "tex_cache_miss": lambda c: 32 * c["stride"] // FLOATS_OF_SECTOR,
            "tex_cache_hit": lambda c: c["blocks"] // 8 * 8 - 32 * c["stride"] // FLOATS_OF_SECTOR,
        },
    ),
    Case(
        record_samples,
        "gtx580",
        {"blocks": 3, "samples": 2},
        {"blocks": 5, "samples": 4},
        {
            # 8 quads, each a sector; each block on an SM of its own
            "texture_cache_misses": lambda c: c["blocks"] * 8,
            "texture_cache_hits": lambda c: c["blocks"] * 8 * (c["samples"] - 1),
        },
    ),
    Case(record_everything, "h200", FIRST, SECOND, ON_H200),
    Case(
        record_bulk_copies,
        "h200",
        {"blocks": 3, "bytes": 2048, "loads": 1, "stores": 3, "reductions": 2, "offset": 0},
        {"blocks": 5, "bytes": 4096, "loads": 2, "stores": 4, "reductions": 1, "offset": 16},
        {
            "bulk_load_bytes": lambda c: c["blocks"] * c["loads"] * c["bytes"],
            "bulk_store_bytes": lambda c: (
                c["blocks"] * (c["stores"] + c["reductions"]) * c["bytes"]
            ),
            # each 128 bytes that begin within a sector touch one more
            "bulk_transactions": lambda c: (
                c["blocks"]
                * (c["loads"] + c["stores"] + c["reductions"])
                * (c["bytes"] // 32 + c["offset"] // 16 * c["bytes"] // 128)
            ),
        },
    ),
    Case(
        record_everything,
        "8800gtx",
        BUSY,
        BUSIER,
        {
            # two half-warps, each one transaction of 64 bytes; a store of 64 bytes adds 4
            "gld_coherent": lambda c: each(c, "loads") // 8 * 2,
            "gst_coherent": lambda c: each(c, "stores") // 8 * 2 * 4,
            "local_load": lambda c: each(c, "local_loads") // 8,
            "local_store": lambda c: each(c, "local_stores") // 8,
            "branch": lambda c: each(c, "uniform", "divergent", "barriers") // 16,
            "divergent_branch": lambda c: each(c, "divergent") // 16,
            "cuda-profiler.instructions": lambda c: instructions(c) // 16,
            "warp_serialize": lambda c: (
                each(c, "shared_loads", "shared_stores", "const_loads") // 16
            ),
            "cta_launched": lambda c: c["blocks"] // 8,
            "sm_cta_launched": lambda c: c["blocks"] // 16,
            "occupancy": _resident_of_g80,
        },
        replayed=("registers",),
    ),
    Case(
        record_everything,
        "8800gtx",
        SPREAD,
        SPREAD | {"loads": 4, "blocks": 32},
        {
            # each lane by itself; a store of 32 bytes adds 2
            "gld_incoherent": lambda c: each(c, "loads") // 8 * 32,
            "gst_incoherent": lambda c: each(c, "stores") // 8 * 32 * 2,
            # 32 transactions of 32 bytes, at 86.4 bytes a nanosecond, in picoseconds
            "bound_time": lambda c: round(each(c, "loads", "stores") * 32 * 32 / 0.0864) / 1000,
        },
    ),
    Case(
        record_everything,
        "gtx280",
        TESLA_FIRST,
        TESLA_SECOND,
        {
            "gld_64b": lambda c: _cluster(c) * c["loads"],
            "gst_64b": lambda c: _cluster(c) * c["stores"] * 4,
            "gld_request": lambda c: each(c, "loads", "local_loads") // 10,
            "gst_request": lambda c: each(c, "stores", "local_stores") // 10,
        },
    ),
    Case(
        record_everything,
        "gtx280",
        TESLA_FIRST | {"stride": 2},
        TESLA_SECOND | {"stride": 2},
        {
            "gld_128b": lambda c: _cluster(c) * c["loads"],
            "gst_128b": lambda c: _cluster(c) * c["stores"] * 8,
        },
    ),
    Case(
        record_everything,
        "gtx280",
        TESLA_FIRST | {"stride": 32},
        TESLA_SECOND | {"stride": 32},
        {
            # 128 bytes apart: each lane has a segment for itself, halved twice
            "gld_32b": lambda c: _cluster(c) * 16 * c["loads"],
            "gst_32b": lambda c: _cluster(c) * 16 * c["stores"] * 2,
        },
    ),
]
