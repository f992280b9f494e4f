"""A trace of format version 1, as it was written once, is read for good (traces/FORMAT.md)."""

from pathlib import Path

import cutrace
from cutrace.traces.verify import verify

TRACE = Path(__file__).parents[2] / "golden" / "version1.cutrace.zip"


def test_it_is_sound_and_has_its_launches() -> None:
    trace = cutrace.read_trace(TRACE)
    assert verify(trace) == []
    assert trace.manifest.format_version == 1
    assert [launch.launch.kernel for launch in trace.launches] == 3 * ["_Z8version1PfPKfi"]
    assert trace.launches[1].place.name == "0"  # a link in the archive


def test_its_counters_are_what_the_kernel_does() -> None:
    first, _, last = cutrace.analyze(TRACE, device="h100").launches
    # 4 blocks of 2 warps: each loads 32 floats 8 bytes apart, that is 256 bytes or 8 sectors
    assert first.counters["global_load_requests"] == 8
    assert first.counters["global_load_transactions"] == 64
    # 256 threads store 4 bytes side by side; of the first launch 200: 6 warps and 8 lanes
    assert first.counters["global_store_transactions"] == 6 * 4 + 1
    assert last.counters["global_store_transactions"] == 8 * 4
    # stores and loads of shared memory, a pass each: 7 warps of the first launch read
    assert (first.counters["shared_wavefronts"], last.counters["shared_wavefronts"]) == (
        8 + 7,
        8 + 8,
    )
    assert first.counters["shared_conflicts"] == 0
