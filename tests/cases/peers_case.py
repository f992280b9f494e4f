"""Traces that other tools have counted, and the counters of ours that are the same quantities."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import foreign_samples as samples
from foreign_samples import random_warps

import cutrace
from cutrace.commands._main import run
from cutrace.tracer.session.source.record import record

GALLERY = Path(str(files("cutrace.traces") / "gallery"))
BLOCKS, THREADS = 3, 64
EXPORTED = (
    *("by_thread", "histogram_static", "product_plain", "product_tiled", "reduce1_divergent"),
    *("reduce2_strided", "stride_copy", "stride_read", "transpose_naive", "transpose_shared"),
)
"""Kernels of the gallery, of which the first launch goes out by `cutrace export --to accel-sim`."""
WRITTEN = {
    f"random {seed}, mode {mode}, tracer {version}": (seed, mode, version)
    for seed, mode, version in ((1, 0, 5), (2, 1, 5), (3, 2, 5), (4, 2, 3))
}
"""Traces written from the format's grammar: seed, mode of addresses, tracer version."""
WHOLE = (*EXPORTED, *WRITTEN)
ACCESSES = {"random 1": (1, 3, 2, 12), "random 2": (2, 4, 1, 9), "random 3": (3, 2, 4, 17)}
"""Traces as CUTracer writes them: seed, blocks, warps of a block, accesses of a warp."""

L1 = "Total_core_cache_stats_breakdown[GLOBAL_ACC_{}][TOTAL_ACCESS]"
PASSES = {"shared_passes": 1} | dict.fromkeys(
    (f"shared_{kind}_requests" for kind in ("load", "store", "atomic")), -1
)
OURS = {
    "gpgpu_n_tot_w_icount": {"instructions": 1},
    "gpu_sim_insn": {"smsp__thread_inst_executed_pred_on.sum": 1},
    L1.format("R"): {"global_load_transactions": 1},
    L1.format("W"): {"global_store_transactions": 1},
    "gpgpu_n_shmem_bkconflict": PASSES,
}
"""Statistics of the simulator, and what of ours sums up to them: instructions of warps; those of
lanes whose predicate held; sectors asked of L1; passes over the banks beyond one an instruction."""
AT_ZERO = {case: {L1.format("W"): 1} for case in ("reduce1_divergent", "reduce2_strided")}
"""What the simulator misses: the block 0 of these stores a word at address 0, from one lane, and
address 0 is no access to it (`warp_inst_t::memory_coalescing_arch`)."""
STATISTICS = tuple(OURS)


def words(steps: Sequence[samples.Step]) -> list[samples.Step]:
    """Accesses to shared memory as words: of a wider one the simulator looks at the first alone."""
    return [replace(step, opcode=step.opcode.replace("STS.64", "STS")) for step in steps]


def write_case(case: str, folder: Path) -> Path:
    """Write the trace of a case into a folder; return the file of its first kernel."""
    if case in ACCESSES:
        path = folder / "trace.ndjson"
        seed, blocks, warps, steps = ACCESSES[case]
        text = samples.cutracer(random_warps(seed, blocks, warps, steps), blocks, 32 * warps)
        path.write_text(text)
        return path
    path = folder / "kernel-1.traceg"
    if case in WRITTEN:
        number, mode, version = WRITTEN[case]
        end = samples.Step(16 * 12, "EXIT")
        whole = [(block, warp, [*words(steps), end]) for block, warp, steps in random_warps(number)]
        path.write_text(samples.traceg(whole, BLOCKS, THREADS, mode, version))
        return path
    trace = record(next(GALLERY.glob(f"*/{case}.ptx")), (), folder / "a.cutrace")
    assert run(["export", str(trace), "--to", "accel-sim", "-o", str(folder / "out")]) == 0
    (folder / "out" / "kernel-1.traceg").rename(path)
    return path


def counted(path: Path, trace: Path) -> dict[str, int]:
    """What is counted of a foreign file, for a device of the capability in Accel-Sim's options."""
    cutrace.import_trace([path], trace)
    counters = cutrace.analyze(trace, device="rtx3070", caches=False).launches[0].counters
    return {
        name: sum(sign * int(counters[key] or 0) for key, sign in terms.items())
        for name, terms in OURS.items()
    }
