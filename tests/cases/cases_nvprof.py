"""nvprof's events and metrics in closed form."""

from pathlib import Path

import numpy as np
from cases.cache_kernel import record_lines
from cases.closed_form import (
    FIRST,
    SECOND,
    SHARED,
    asked,
    atomics,
    branches,
    control,
    each,
    instructions,
    integers,
    lanes,
    lanes_on,
    lines,
    passes,
    predicated,
    requests,
    sectors,
    single,
    warps,
)
from cases.counter_cases import SAMPLE, Case, Constants, Formula, record_samples
from cases.counter_kernel import record_everything
from hand_trace import Access, hand_trace, instruction, launch
from warps import warp

import cutrace
from cutrace.traces.schema import Space

LOADS, STORES = ("shared_loads",), ("shared_stores",)


def k20_passes(c: Constants, *names: str) -> int:
    """Banks of 8 bytes: two words of a row are served together."""
    return passes(c, *names, ways=c["ways"] // 2)


def transactions_of_2x(g: str, access: str) -> dict[str, Formula]:
    """A line is a transaction, of as many of its sectors as are touched."""
    return {
        f"{g}_transactions": lambda c: lines(c, access),
        f"{g}_transactions_per_request": lambda c: lines(c, access) / requests(c, access),
    }


def transactions_of_5x(g: str, access: str) -> dict[str, Formula]:
    """A sector is a transaction."""
    return {
        f"{g}_transactions": lambda c: sectors(c, access),
        f"{g}_transactions_per_request": lambda c: sectors(c, access) / requests(c, access),
    }


def by_width(g: str, access: str) -> dict[str, Formula]:
    named = {8: f"{access}_1", 16: f"{access}_2", 32: access, 64: f"{access}_8"}
    named |= {128: f"{access}_16"}
    return {
        f"{g}_inst_{bits}bit": lambda c, name=name: 32 * each(c, name)  # type: ignore[misc]
        for bits, name in named.items()
    }


def flops(letters: str, precision: str) -> dict[str, Formula]:
    """Additions with a predicate count for the lanes that it lets."""

    def added(c: Constants) -> int:
        own = predicated(c) if precision == "single" else 0
        return 32 * each(c, f"{precision}_add") + own

    def total(c: Constants) -> int:
        return added(c) + 32 * each(c, f"{precision}_mul") + 64 * each(c, f"{precision}_fma")

    return {
        f"flop_count_{letters}": total,
        f"flop_count_{letters}_add": added,
        f"flop_count_{letters}_mul": lambda c: 32 * each(c, f"{precision}_mul"),
        f"flop_count_{letters}_fma": lambda c: 32 * each(c, f"{precision}_fma"),
    }


def in_precision(c: Constants, precision: str) -> int:
    return 32 * each(c, *(f"{precision}_{operation}" for operation in ("add", "mul", "fma")))


def shared_efficiency(c: Constants, ways: int, row: int) -> float:
    asked_for = 128 * each(c, "shared_loads", "shared_stores")
    return 100 * asked_for / (row * passes(c, "shared_loads", "shared_stores", ways=ways))


def accesses(c: Constants) -> int:
    """Warp instructions that load from or store to global, local or shared memory."""
    own = each(c, "shared_loads", "shared_stores", "local_loads", "local_stores")
    return requests(c, "loads") + requests(c, "stores") + own


EVERYWHERE: dict[str, Formula] = {
    "nvprof.branch": branches,
    "nvprof.divergent_branch": lambda c: each(c, "divergent"),
    "nvprof.local_load": lambda c: each(c, "local_loads"),
    "nvprof.local_store": lambda c: each(c, "local_stores"),
    "shared_load": lambda c: each(c, "shared_loads"),
    "shared_store": lambda c: each(c, "shared_stores"),
    "gred_count": lambda c: each(c, "reductions"),
    "nvprof.warps_launched": warps,
    "nvprof.sm_cta_launched": lambda c: c["blocks"],
    "inst_executed": instructions,
    "inst_per_warp": lambda c: instructions(c) / warps(c),
    "branch_efficiency": lambda c: 100 * each(c, "uniform") / branches(c),
    "warp_execution_efficiency": lambda c: 100 * lanes(c) / (32 * instructions(c)),
    "warp_nonpred_execution_efficiency": lambda c: 100 * lanes_on(c) / (32 * instructions(c)),
    "thread_inst_executed": lanes,
    "not_predicated_off_thread_inst_executed": lanes_on,
    "gld_efficiency": lambda c: 100 * asked(c, "loads") / (32 * sectors(c, "loads")),
    "gst_efficiency": lambda c: 100 * asked(c, "stores") / (32 * sectors(c, "stores")),
    "atomic_transactions": lambda c: 4 * c["stride"] * atomics(c),
    "atomic_transactions_per_request": lambda c: 4 * c["stride"],
    "ldst_executed": accesses,
    "cf_executed": lambda c: branches(c) + warps(c),
    "inst_fp_32": single,
    "inst_fp_64": lambda c: in_precision(c, "double"),
    "inst_integer": integers,
    "inst_bit_convert": lambda c: 32 * each(c, "conversions"),
    "inst_control": control,
    "inst_inter_thread_communication": lambda c: 32 * each(c, "exchanges"),
    "inst_misc": lambda c: 32 * each(c, "fences", "barriers", "other_barriers"),
    "inst_compute_ld_st": lambda c: 32 * (accesses(c) + atomics(c) + each(c, *SHARED[2:])),
    **flops("sp", "single"),
    **flops("dp", "double"),
    "flop_count_sp_special": lambda c: 32 * each(c, "specials"),
}
ON_K20: dict[str, Formula] = {
    **EVERYWHERE,
    "nvprof.gld_request": lambda c: requests(c, "loads"),
    "nvprof.gst_request": lambda c: requests(c, "stores"),
    "nvprof.threads_launched": lambda c: 32 * warps(c),
    **by_width("gld", "loads"),
    **by_width("gst", "stores"),
    "atom_count": lambda c: each(c, "atomics"),
    "atom_cas_count": lambda c: each(c, "swaps"),
    "shared_load_replay": lambda c: k20_passes(c, *LOADS) - each(c, *LOADS),
    "shared_store_replay": lambda c: k20_passes(c, *STORES) - each(c, *STORES),
    "l1_shared_load_transactions": lambda c: k20_passes(c, *LOADS),
    "l1_shared_store_transactions": lambda c: k20_passes(c, *STORES),
    "shared_replay_overhead": lambda c: (
        (k20_passes(c, *LOADS, *STORES) - each(c, *LOADS, *STORES)) / instructions(c)
    ),
    "shared_efficiency": lambda c: shared_efficiency(c, c["ways"] // 2, 256),
    **transactions_of_2x("gld", "loads"),
    **transactions_of_2x("gst", "stores"),
    "__l1_global_load_transactions": lambda c: lines(c, "loads"),
    "__l1_global_store_transactions": lambda c: lines(c, "stores"),
    "uncached_global_load_transaction": lambda c: lines(c, "loads"),
    "global_store_transaction": lambda c: lines(c, "stores"),
    "global_ld_mem_divergence_replays": lambda c: lines(c, "loads") - requests(c, "loads"),
    "global_st_mem_divergence_replays": lambda c: lines(c, "stores") - requests(c, "stores"),
    # neighbours' words lie side by side: a line
    "nvprof.local_load_transactions": lambda c: each(c, "local_loads"),
    "nvprof.local_store_transactions": lambda c: each(c, "local_stores"),
}
ON_GTX580: dict[str, Formula] = {
    "atom_count": lambda c: each(c, "atomics", "swaps"),
    "l1_shared_bank_conflict": lambda c: (c["ways"] - 1) * each(c, *LOADS, *STORES),
    "shared_efficiency": lambda c: shared_efficiency(c, c["ways"], 128),
}
ON_P100: dict[str, Formula] = {
    "global_load": lambda c: requests(c, "loads"),
    "global_store": lambda c: requests(c, "stores"),
    "atom_count": lambda c: each(c, "atomics"),
    "global_atom_cas": lambda c: each(c, "swaps"),
    "shared_atom": lambda c: each(c, "shared_atomics", "shared_reductions"),
    "shared_atom_cas": lambda c: each(c, "shared_swaps"),
    "shared_ld_bank_conflict": lambda c: (c["ways"] - 1) * each(c, *LOADS),
    "shared_st_bank_conflict": lambda c: (c["ways"] - 1) * each(c, *STORES),
    "shared_ld_transactions": lambda c: passes(c, *LOADS, ways=c["ways"]),
    "shared_st_transactions": lambda c: passes(c, *STORES, ways=c["ways"]),
    "shared_load_transactions": lambda c: passes(c, *LOADS, ways=c["ways"]),
    "shared_store_transactions": lambda c: passes(c, *STORES, ways=c["ways"]),
    "shared_load_transactions_per_request": lambda c: c["ways"],
    "shared_store_transactions_per_request": lambda c: c["ways"],
    "shared_efficiency": lambda c: shared_efficiency(c, c["ways"], 128),
    **transactions_of_5x("gld", "loads"),
    **transactions_of_5x("gst", "stores"),
    "nvprof.local_load_transactions": lambda c: 4 * each(c, "local_loads"),
    "nvprof.local_store_transactions": lambda c: 4 * each(c, "local_stores"),
    "nvprof.global_load_requests": lambda c: requests(c, "loads"),
    "nvprof.global_store_requests": lambda c: requests(c, "stores"),
    "nvprof.global_atomic_requests": lambda c: each(c, "atomics", "swaps"),
    "global_reduction_requests": lambda c: each(c, "reductions"),
    "nvprof.local_load_requests": lambda c: each(c, "local_loads"),
    "nvprof.local_store_requests": lambda c: each(c, "local_stores"),
    "inst_executed_global_loads": lambda c: requests(c, "loads"),
    "inst_executed_global_stores": lambda c: requests(c, "stores"),
    "inst_executed_global_atomics": lambda c: each(c, "atomics", "swaps"),
    "inst_executed_global_reductions": lambda c: each(c, "reductions"),
    "inst_executed_local_loads": lambda c: each(c, "local_loads"),
    "inst_executed_local_stores": lambda c: each(c, "local_stores"),
    "inst_executed_shared_loads": lambda c: each(c, "shared_loads"),
    "inst_executed_shared_stores": lambda c: each(c, "shared_stores"),
    "inst_executed_shared_atomics": lambda c: each(c, *SHARED[2:]),
    "inst_fp_16": lambda c: in_precision(c, "half"),
    **flops("hp", "half"),
}
ON_GTX1080: dict[str, Formula] = {
    "gld_transactions": lambda c: asked(c, "loads") / 8,
    "gld_transactions_per_request": lambda c: asked(c, "loads") / 8 / requests(c, "loads"),
    "nvprof.global_load_requests": lambda c: 4 * requests(c, "loads"),
}
ON_V100: dict[str, Formula] = {
    **transactions_of_5x("gld", "loads"),
    **transactions_of_5x("gst", "stores"),
    "gld_efficiency": EVERYWHERE["gld_efficiency"],
    "gst_efficiency": EVERYWHERE["gst_efficiency"],
    "nvprof.global_load_requests": lambda c: requests(c, "loads"),
    "nvprof.global_store_requests": lambda c: requests(c, "stores"),
}


def record_texels(path: Path, constants: Constants) -> Path:
    """Blocks of a warp sample a row of an image at points that are `stride` texels apart."""
    spread = f"mul.lo.u32 %r2, %r1, {constants['stride']};\n    cvt.rn.f32.u32 %f1, %r2;"
    with cutrace.Session(path) as gpu:
        image = gpu.texture(np.zeros((8, 128), np.float32), name="image")
        result = gpu.device_array(32, np.float32, name="out")
        ptx = SAMPLE.replace("cvt.rn.f32.u32 %f1, %r1;", spread)
        gpu.load_ptx(ptx).get_function("sample")[constants["blocks"], 32](result, image)
    return path


def record_words(path: Path, constants: Constants) -> Path:
    """Some lanes load from and store to local memory, so many words each; accesses of surfaces."""
    wide = 4 * constants["words"]
    kinds = [("ld.local.b32", Space.LOCAL), ("st.local.b32", Space.LOCAL)]
    kinds += [("suld.b.1d.b32", Space.SURFACE)] * constants["surface_loads"]
    kinds += [("sust.b.1d.b32", Space.SURFACE)] * constants["surface_stores"]
    kinds += [("sured.b.add.1d.u32", Space.SURFACE)] * constants["surface_reductions"]
    rows = [
        instruction(pc, name, bytes=wide if space is Space.LOCAL else 4)
        for pc, (name, space) in enumerate(kinds)
    ]
    own = warp(stride=0, base=0, lanes=range(constants["lanes"]))
    accesses = [
        Access(own if space is Space.LOCAL else warp(), pc=pc, space=space)
        for pc, (_, space) in enumerate(kinds)
    ]
    hand_trace(path, accesses, launch=launch(local_bytes=16), instructions=rows)
    return path


WORDS = {"words": 2, "lanes": 32, "surface_loads": 1, "surface_stores": 3, "surface_reductions": 2}
MORE_WORDS = {
    "words": 4,
    "lanes": 32,
    "surface_loads": 3,
    "surface_stores": 4,
    "surface_reductions": 1,
}
SURFACES: dict[str, Formula] = {
    "inst_executed_surface_loads": lambda c: c["surface_loads"],
    "inst_executed_surface_stores": lambda c: c["surface_stores"],
    "inst_executed_surface_reductions": lambda c: c["surface_reductions"],
}
QUADS = 8
LINES = {"loads": 3, "stores": 4, "local_loads": 0, "local_stores": 0, "rounds": 2, "blocks": 2}
MORE_LINES = LINES | {"loads": 5, "stores": 6, "rounds": 3, "blocks": 4}
OWN = LINES | {"loads": 0, "stores": 0, "local_loads": 2, "local_stores": 3}
MORE_OWN = OWN | {"local_loads": 4, "local_stores": 5, "rounds": 3, "blocks": 5}
TWO_WAIT = {"set": {"l2.sets": 1, "l2.bytes": 64 * 128, "l2.dirty_bytes": 2 * 128}}
"""An L2 in which two lines may wait to be written."""


def found_again(c: Constants) -> float:
    """The part of a block's loads that come after the first round."""
    return 100 * (c["rounds"] - 1) / c["rounds"]


def found_by_others(c: Constants) -> float:
    """Each block has an SM of its own: all but the first to ask find lines in L2."""
    return 100 * (c["blocks"] - 1) / c["blocks"]


OF_LINES: dict[str, Formula] = {
    # a line is 4 sectors; stores go on to L2 each time, and all but two lines are written
    "l2_read_transactions": lambda c: 4 * c["blocks"] * c["loads"],
    "l2_write_transactions": lambda c: 4 * c["blocks"] * c["stores"] * c["rounds"],
    "dram_read_transactions": lambda c: 4 * c["loads"],
    "dram_write_transactions": lambda c: 4 * (c["stores"] * c["rounds"] - 2),
}
LINES_OF_2X: dict[str, Formula] = {
    **OF_LINES,
    "l1_global_load_hit": lambda c: c["blocks"] * c["loads"] * (c["rounds"] - 1),
    "l1_global_load_miss": lambda c: c["blocks"] * c["loads"],
    "l1_cache_global_hit_rate": found_again,
    "l2_l1_read_transactions": OF_LINES["l2_read_transactions"],
    "l2_l1_write_transactions": OF_LINES["l2_write_transactions"],
    "l2_l1_read_hit_rate": found_by_others,
}
LINES_OF_6X: dict[str, Formula] = {
    "global_hit_rate": found_again,
    "tex_cache_hit_rate": found_again,
    "l2_tex_read_transactions": OF_LINES["l2_read_transactions"],
    "l2_tex_write_transactions": OF_LINES["l2_write_transactions"],
    "l2_tex_read_hit_rate": found_by_others,
    "dram_read_bytes": lambda c: 128 * c["loads"],
    "dram_write_bytes": lambda c: 128 * (c["stores"] * c["rounds"] - 2),
}
NVPROF = [
    Case(record_lines, "gtx580", LINES, MORE_LINES, LINES_OF_2X, TWO_WAIT),
    Case(record_lines, "p100", LINES, MORE_LINES, LINES_OF_6X, TWO_WAIT),
    Case(
        record_lines,
        "gtx580",
        OWN,
        MORE_OWN,
        {
            "l1_local_load_hit": lambda c: c["blocks"] * c["local_loads"] * (c["rounds"] - 1),
            "l1_local_load_miss": lambda c: c["blocks"] * c["local_loads"],
            "l1_local_store_hit": lambda c: c["blocks"] * c["local_stores"] * (c["rounds"] - 1),
            "l1_local_store_miss": lambda c: c["blocks"] * c["local_stores"],
            "l1_cache_local_hit_rate": found_again,
        },
    ),
    Case(
        record_lines,
        "p100",
        OWN,
        MORE_OWN,
        {
            # stores find nothing there
            "local_hit_rate": lambda c: (
                100
                * (c["local_loads"] * (c["rounds"] - 1))
                / ((c["local_loads"] + c["local_stores"]) * c["rounds"])
            ),
        },
    ),
    Case(
        record_samples,
        "gtx580",
        {"blocks": 3, "samples": 2},
        {"blocks": 5, "samples": 4},
        {
            "tex0_cache_sector_queries": lambda c: c["blocks"] * QUADS * c["samples"],
            "tex0_cache_sector_misses": lambda c: c["blocks"] * QUADS,
            "tex_cache_hit_rate": lambda c: 100 * (c["samples"] - 1) / c["samples"],
            "l2_tex_read_transactions": lambda c: c["blocks"] * QUADS,
            "l2_tex_read_hit_rate": found_by_others,
        },
    ),
    Case(record_everything, "k20", FIRST, SECOND, ON_K20),
    Case(record_everything, "gtx580", FIRST, SECOND, ON_GTX580),
    Case(record_everything, "p100", FIRST, SECOND, ON_P100),
    Case(record_everything, "gtx1080", FIRST, SECOND, ON_GTX1080),
    Case(record_everything, "v100", FIRST, SECOND, ON_V100),
    Case(
        record_words,
        "k20",
        WORDS,
        MORE_WORDS,
        {
            # a word of each lane in a line: as many lines as words
            "local_load_transactions_per_request": lambda c: c["words"],
            "local_store_transactions_per_request": lambda c: c["words"],
        },
    ),
    Case(
        record_words,
        "p100",
        WORDS,
        MORE_WORDS,
        {
            "local_load_transactions_per_request": lambda c: 4 * c["words"],
            "local_store_transactions_per_request": lambda c: 4 * c["words"],
            **SURFACES,
        },
    ),
    Case(
        record_texels,
        "p100",
        {"blocks": 3, "stride": 1},
        {"blocks": 5, "stride": 1},
        {
            # a quad is a request; 4 floats in a row of tiles are a sector
            "texture_load_requests": lambda c: c["blocks"] * QUADS,
            "tex_cache_transactions": lambda c: c["blocks"] * QUADS,
            "inst_executed_tex_ops": lambda c: c["blocks"],
        },
    ),
]
