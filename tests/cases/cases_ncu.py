"""Nsight Compute's metrics in closed form."""

from pathlib import Path

from cases.cache_kernel import record_lines
from cases.cases_nvprof import (
    LINES,
    MORE_LINES,
    MORE_OWN,
    MORE_WORDS,
    OWN,
    WORDS,
    found_again,
    in_precision,
    record_texels,
    record_words,
)
from cases.closed_form import (
    FIRST,
    SECOND,
    SHARED,
    asked,
    atomics,
    branches,
    control,
    each,
    ideal,
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
from cases.counter_cases import Case, Constants, Formula
from cases.counter_kernel import record_everything
from hand_trace import hand_trace, instruction, launch

ATOMICS = {"global_op_atom": ("atomics", "swaps"), "global_op_red": ("reductions",)}
SHARED_OPS = {"ld": SHARED[:1], "st": SHARED[1:2], "atom": SHARED[2:]}
LSU = "pipe_lsu_mem"
TWO_WAIT = {"set": {"l2.ways": 64, "l2.bytes": 64 * 128, "l2.dirty_bytes": 2 * 128}}
"""An L2 in which two lines may wait to be written."""
AT_ONCE = {"set": {"l1.on_the_way": "[0, 0]"}}
"""An L1 that finds what was stored, however long ago: a round of five lines takes the ten cycles in
which it would not.
"""


def of_global(op: str, access: str) -> dict[str, Formula]:
    """Loads or stores."""
    sass = f"smsp__sass_average_data_bytes_per_sector_mem_{op}"
    return {
        f"l1tex__t_requests_{LSU}_{op}.sum": lambda c: requests(c, access),
        f"l1tex__t_sectors_{LSU}_{op}.sum": lambda c: sectors(c, access),
        f"l1tex__t_bytes_{LSU}_{op}.sum": lambda c: 32 * sectors(c, access),
        f"l1tex__average_t_sectors_per_request_{LSU}_{op}.ratio": lambda c: (
            sectors(c, access) / requests(c, access)
        ),
        f"smsp__sass_data_bytes_mem_{op}.sum": lambda c: asked(c, access),
        f"{sass}.ratio": lambda c: asked(c, access) / sectors(c, access),
        f"{sass}.pct": lambda c: 100 * asked(c, access) / (32 * sectors(c, access)),
    }


def of_atomics(op: str) -> dict[str, Formula]:
    """No two lanes share an address: as loads of their stride."""
    names = ATOMICS[op]
    return {
        f"l1tex__t_requests_{LSU}_{op}.sum": lambda c: each(c, *names),
        f"l1tex__t_sectors_{LSU}_{op}.sum": lambda c: 4 * c["stride"] * each(c, *names),
        f"l1tex__t_bytes_{LSU}_{op}.sum": lambda c: 128 * c["stride"] * each(c, *names),
        f"l1tex__average_t_sectors_per_request_{LSU}_{op}.ratio": lambda c: 4 * c["stride"],
    }


def of_local(op: str, access: str) -> dict[str, Formula]:
    """Neighbours' words lie side by side: 4 sectors."""
    return {
        f"l1tex__t_requests_{LSU}_{op}.sum": lambda c: each(c, access),
        f"l1tex__t_sectors_{LSU}_{op}.sum": lambda c: 4 * each(c, access),
        f"l1tex__t_bytes_{LSU}_{op}.sum": lambda c: 128 * each(c, access),
        # the same word of each thread's memory counts once
        f"smsp__sass_data_bytes_mem_{op}.sum": lambda c: 4 * each(c, access),
    }


def of_shared(op: str) -> dict[str, Formula]:
    """So many lanes meet at a bank."""
    names = SHARED_OPS[op]
    return {
        f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum": lambda c: passes(
            c, *names, ways=c["ways"]
        ),
        f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum": lambda c: (
            (c["ways"] - 1) * each(c, *names)
        ),
    }


def executed(prefix: str) -> dict[str, Formula]:
    """Warp instructions by what they do to memory."""
    return {
        f"{prefix}_global_ld.sum": lambda c: requests(c, "loads"),
        f"{prefix}_global_st.sum": lambda c: requests(c, "stores"),
        f"{prefix}_global_atom.sum": lambda c: each(c, "atomics", "swaps"),
        f"{prefix}_global_red.sum": lambda c: each(c, "reductions"),
        f"{prefix}_shared_ld.sum": lambda c: each(c, "shared_loads"),
        f"{prefix}_shared_st.sum": lambda c: each(c, "shared_stores"),
        f"{prefix}_shared_atom.sum": lambda c: each(c, *SHARED[2:]),
        f"{prefix}_local_ld.sum": lambda c: each(c, "local_loads"),
        f"{prefix}_local_st.sum": lambda c: each(c, "local_stores"),
    }


def bytes_a_wavefront(suffix: str, *names: str) -> dict[str, Formula]:
    """4 bytes a lane, through as many wavefronts as lanes meet at a bank; twice to swap."""
    head = f"smsp__sass_average_data_bytes_per_wavefront_mem_shared{suffix}"

    def taken(c: Constants) -> int:
        return passes(c, *names, ways=c["ways"])

    return {
        f"{head}.ratio": lambda c: 128 * each(c, *names) / taken(c),
        f"{head}.pct": lambda c: 100 * 128 * each(c, *names) / (128 * taken(c)),
    }


def sectors_of_all(c: Constants) -> int:
    """Sectors of global loads, stores and atomics."""
    return sectors(c, "loads") + sectors(c, "stores") + 4 * c["stride"] * atomics(c)


def ideal_of_all(c: Constants) -> int:
    """What the same bytes fill."""
    return ideal(c, "loads") + ideal(c, "stores") + 4 * atomics(c)


def arithmetic() -> dict[str, Formula]:
    """Additions in single precision with a predicate count for the lanes that it lets."""
    found: dict[str, Formula] = {}
    for letter, precision in (("f", "single"), ("d", "double"), ("h", "half")):
        for operation in ("add", "mul", "fma"):
            name = f"{precision}_{operation}"
            found[f"smsp__sass_thread_inst_executed_op_{letter}{operation}_pred_on.sum"] = (
                lambda c, name=name: 32 * each(c, name)  # type: ignore[misc]
            )
    found["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"] = lambda c: (
        32 * each(c, "single_add") + predicated(c)
    )
    return found


def kind(name: str) -> str:
    return f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum"


ON_H200: dict[str, Formula] = {
    **of_global("global_op_ld", "loads"),
    **of_global("global_op_st", "stores"),
    **of_atomics("global_op_atom"),
    **of_atomics("global_op_red"),
    **of_local("local_op_ld", "local_loads"),
    **of_local("local_op_st", "local_stores"),
    **of_shared("ld"),
    **of_shared("st"),
    **of_shared("atom"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": lambda c: (
        (c["ways"] - 1) * each(c, *SHARED)
    ),
    **executed("smsp__sass_inst_executed_op"),
    **executed("smsp__inst_executed_op"),
    "smsp__sass_data_bytes_mem_shared_op_ld.sum": lambda c: 128 * each(c, "shared_loads"),
    "smsp__sass_data_bytes_mem_shared_op_st.sum": lambda c: 128 * each(c, "shared_stores"),
    **bytes_a_wavefront("", *SHARED),
    **bytes_a_wavefront("_op_ld", "shared_loads"),
    **bytes_a_wavefront("_op_st", "shared_stores"),
    "memory_l1_tag_requests_global": lambda c: (
        lines(c, "loads") + lines(c, "stores") + c["stride"] * atomics(c)
    ),
    "memory_l2_theoretical_sectors_global": sectors_of_all,
    "memory_l2_theoretical_sectors_global_ideal": ideal_of_all,
    "derived__memory_l2_theoretical_sectors_global_excessive": lambda c: (
        sectors_of_all(c) - ideal_of_all(c)
    ),
    "memory_l2_theoretical_sectors_local": lambda c: 4 * each(c, "local_loads", "local_stores"),
    "memory_l1_wavefronts_shared": lambda c: passes(c, *SHARED, ways=c["ways"]),
    "memory_l1_wavefronts_shared_ideal": lambda c: passes(c, *SHARED, ways=1),
    "derived__memory_l1_wavefronts_shared_excessive": lambda c: passes(
        c, *SHARED, ways=c["ways"] - 1
    ),
    "smsp__inst_executed.sum": instructions,
    "smsp__average_inst_executed_per_warp.ratio": lambda c: instructions(c) / warps(c),
    "smsp__thread_inst_executed.sum": lanes,
    "smsp__thread_inst_executed_pred_on.sum": lanes_on,
    "smsp__thread_inst_executed_per_inst_executed.ratio": lambda c: lanes(c) / instructions(c),
    "smsp__thread_inst_executed_per_inst_executed.pct": lambda c: (
        100 * lanes(c) / (32 * instructions(c))
    ),
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": lambda c: (
        lanes_on(c) / instructions(c)
    ),
    "smsp__thread_inst_executed_pred_on_per_inst_executed.pct": lambda c: (
        100 * lanes_on(c) / (32 * instructions(c))
    ),
    **arithmetic(),
    kind("fp16"): lambda c: in_precision(c, "half"),
    kind("fp32"): single,
    kind("fp64"): lambda c: in_precision(c, "double"),
    kind("integer"): integers,
    kind("conversion"): lambda c: 32 * each(c, "conversions"),
    kind("control"): control,
    kind("inter_thread_communication"): lambda c: 32 * each(c, "exchanges"),
    "smsp__sass_branch_targets.sum": branches,
    "smsp__sass_branch_targets_threads_divergent.sum": lambda c: each(c, "divergent"),
    "smsp__sass_branch_targets_threads_uniform.sum": lambda c: each(c, "uniform"),
    "smsp__sass_average_branch_targets_threads_uniform.pct": lambda c: (
        100 * each(c, "uniform") / branches(c)
    ),
    "smsp__warps_launched.sum": warps,
    "sm__ctas_launched.sum": lambda c: c["blocks"],
    "smsp__threads_launched.sum": lambda c: 32 * warps(c),
    "launch__grid_size": lambda c: c["blocks"],
    "launch__block_size": lambda c: 32 * c["warps"],
    "launch__thread_count": lambda c: 32 * warps(c),
    "launch__grid_dim_x": lambda c: c["blocks"],
    "launch__block_dim_x": lambda c: 32 * c["warps"],
    "launch__shared_mem_per_block_dynamic": lambda c: c["dynamic"],
    "launch__shared_mem_per_block": lambda c: 4096 + c["dynamic"] + 1024,
    "launch__shared_mem_per_block_allocated": lambda c: 4096 + c["dynamic"] + 1024,
}


def record_shape(path: Path, constants: Constants) -> Path:
    """A launch of a shape, whose only instruction returns."""
    names = ("grid", "block", "cluster")
    extents = {name: tuple(constants[f"{name}_{a}"] for a in "xyz") for name in names}
    told = launch(**extents, shared_static=constants["static"])
    hand_trace(path, launch=told, instructions=[instruction(0, "ret", bytes=0)])
    return path


def words_of(op: str) -> dict[str, Formula]:
    """Each word is a request, of 8 lanes a sector; all lanes want the same word of their own."""
    sass = f"smsp__sass_average_data_bytes_per_sector_mem_{op}"

    def sectors_a_word(c: Constants) -> int:
        return -(-c["lanes"] // 8)

    return {
        f"l1tex__average_t_sectors_per_request_{LSU}_{op}.ratio": sectors_a_word,
        f"{sass}.ratio": lambda c: 4 / sectors_a_word(c),
        f"{sass}.pct": lambda c: 100 * 4 / (32 * sectors_a_word(c)),
    }


def warps_of(c: Constants) -> int:
    """Warps of a block."""
    return -(-c["block_x"] * c["block_y"] * c["block_z"] // 32)


def register_blocks(c: Constants) -> int:
    """Each quarter of 65536 registers feeds whole warps, in units of 256."""
    a_warp = -(-32 * c["registers"] // 256) * 256
    return 16384 // a_warp * 4 // warps_of(c)


def set_apart(c: Constants) -> int:
    """Of 0, 8, 16, ... kilobytes the first that holds a block and 1024 bytes of the driver's."""
    return next(s for s in (8192, 16384, 32768) if s >= c["static"] + 1024)


def shared_blocks(c: Constants) -> int:
    """Blocks that it holds."""
    return set_apart(c) // (c["static"] + 1024)


def resident(c: Constants) -> int:
    """Blocks of an SM."""
    return min(32, 64 // warps_of(c), register_blocks(c), shared_blocks(c))


SHAPE = {
    **{"grid_x": 7, "grid_y": 5, "grid_z": 3, "block_x": 8, "block_y": 4, "block_z": 2},
    **{"static": 3072, "registers": 64, "cluster_x": 1, "cluster_y": 5, "cluster_z": 3},
}
OTHER_SHAPE = {
    **{"grid_x": 11, "grid_y": 2, "grid_z": 1, "block_x": 4, "block_y": 6, "block_z": 3},
    **{"static": 11264, "registers": 100, "cluster_x": 11, "cluster_y": 1, "cluster_z": 1},
}
OF_SHAPE: dict[str, Formula] = {
    "launch__grid_dim_y": lambda c: c["grid_y"],
    "launch__grid_dim_z": lambda c: c["grid_z"],
    "launch__block_dim_y": lambda c: c["block_y"],
    "launch__block_dim_z": lambda c: c["block_z"],
    "launch__cluster_dim_x": lambda c: c["cluster_x"],
    "launch__cluster_dim_y": lambda c: c["cluster_y"],
    "launch__cluster_dim_z": lambda c: c["cluster_z"],
    "launch__cluster_size": lambda c: c["cluster_x"] * c["cluster_y"] * c["cluster_z"],
    "launch__registers_per_thread": lambda c: c["registers"],
    "launch__shared_mem_per_block_static": lambda c: c["static"],
    "launch__shared_mem_config_size": set_apart,
    "launch__waves_per_multiprocessor": lambda c: (
        c["grid_x"] * c["grid_y"] * c["grid_z"] / (132 * resident(c))
    ),
    "launch__occupancy_limit_registers": register_blocks,
    "launch__occupancy_limit_shared_mem": shared_blocks,
    "launch__occupancy_limit_warps": lambda c: 64 // warps_of(c),
    "sm__maximum_warps_avg_per_active_cycle": lambda c: resident(c) * warps_of(c),
    "sm__maximum_warps_per_active_cycle_pct": lambda c: 100 * resident(c) * warps_of(c) / 64,
}


def lookups(op: str, access: str) -> dict[str, Formula]:
    """A line is 4 sectors, found again in each round but the first."""
    return {
        f"l1tex__t_sectors_{LSU}_{op}_lookup_hit.sum": lambda c: (
            4 * c["blocks"] * c[access] * (c["rounds"] - 1)
        )
    }


def groups(c: Constants) -> int:
    """Four SMs that read the same in turn read it once."""
    return -(-c["blocks"] // 4)


OF_LINES: dict[str, Formula] = {
    **lookups("global_op_ld", "loads"),
    **lookups("global_op_st", "stores"),
    "l1tex__t_sector_hit_rate.pct": found_again,
    # stores go on to L2 each time, where all but two lines are written
    "lts__t_sectors_srcunit_tex_op_read.sum": lambda c: 4 * groups(c) * c["loads"],
    "lts__t_sectors_srcunit_tex_op_write.sum": lambda c: (
        4 * c["blocks"] * c["stores"] * c["rounds"]
    ),
    "lts__t_sectors_srcunit_tex.sum": lambda c: (
        4 * (groups(c) * c["loads"] + c["blocks"] * c["stores"] * c["rounds"])
    ),
    "dram__bytes_read.sum": lambda c: 128 * c["loads"],
    # a warp's stores come one after another (models/cache.py): no block finds its line waiting
    "dram__bytes_write.sum": lambda c: 128 * (c["blocks"] * c["stores"] * c["rounds"] - 2),
    "dram__sectors_read.sum": lambda c: 4 * c["loads"],
    "dram__sectors_write.sum": lambda c: 4 * (c["blocks"] * c["stores"] * c["rounds"] - 2),
}
OF_OWN = lookups("local_op_ld", "local_loads") | lookups("local_op_st", "local_stores")
QUADS = 8
NCU = [
    Case(record_lines, "h200", LINES, MORE_LINES, OF_LINES, TWO_WAIT),
    Case(record_lines, "h200", OWN, MORE_OWN, OF_OWN, AT_ONCE),
    Case(record_everything, "h200", FIRST, SECOND, ON_H200),
    Case(
        record_words,
        "h200",
        WORDS | {"lanes": 4},
        MORE_WORDS | {"lanes": 12},
        {
            **words_of("local_op_ld"),
            **words_of("local_op_st"),
            "smsp__inst_executed_op_surface_ld.sum": lambda c: c["surface_loads"],
            "smsp__inst_executed_op_surface_st.sum": lambda c: c["surface_stores"],
            "smsp__inst_executed_op_surface_red.sum": lambda c: c["surface_reductions"],
        },
    ),
    Case(
        record_texels,
        "h200",
        {"blocks": 3, "stride": 1},
        {"blocks": 5, "stride": 2},
        {
            # a quad is a request; 4 floats in a row of tiles are a sector
            "l1tex__t_requests_pipe_tex_mem_texture.sum": lambda c: c["blocks"] * QUADS,
            "l1tex__t_sectors_pipe_tex_mem_texture.sum": lambda c: (
                c["blocks"] * QUADS * c["stride"]
            ),
            "l1tex__average_t_sectors_per_request_pipe_tex_mem_texture.ratio": lambda c: c[
                "stride"
            ],
            "smsp__inst_executed_op_texture.sum": lambda c: c["blocks"],
        },
    ),
    Case(
        record_shape,
        "h200",
        SHAPE,
        OTHER_SHAPE,
        OF_SHAPE,
        {"cache_config": "prefer_l1"},
        replayed=("registers",),
    ),
    Case(
        record_shape,
        "h200",
        SHAPE | {"blocks_of_sm": 32, "driver": 1024},
        SHAPE | {"blocks_of_sm": 16, "driver": 0},
        {
            "launch__occupancy_limit_blocks": lambda c: c["blocks_of_sm"],
            "launch__shared_mem_per_block_driver": lambda c: c["driver"],
        },
        other_device="t4",
    ),
]
