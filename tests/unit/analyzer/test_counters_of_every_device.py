"""Loads and stores of global memory on every device since 7.0: no counter of them is empty."""

from pathlib import Path

import pytest

import cutrace
from cutrace.analyzer.counting.evaluate import columns
from cutrace.analyzer.counting.vocabulary import heading, vocabularies
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.models.replay.device.catalog import device_names
from cutrace.models.replay.device.device import load_device
from cutrace.tracer.session.source.record import record

SOURCE = """
// cutrace: copy<<<{blocks}, 128>>>(out:f32[{size}], in:f32[{size}])
extern "C" __global__ void copy(float *out, const float *in)
{{
    int i = 128 * blockIdx.x + threadIdx.x;
    out[i] = 2 * in[i];
}}
"""
SINCE = (7, 0)
UNASKED = ("touched_", "pipe_", "limit_carveout")
"""Columns that are counted only where they are asked for, of machine code, or of shared memory."""
EXERCISED = ("global_load_", "global_store_")
"""Columns that are above zero here: a ratio of others divides by zero."""


def missing(launch: LaunchProfile) -> list[str]:
    """The counters of a launch's device without a value."""
    exercised = {name for name in launch.raw.counts.columns if name.startswith(EXERCISED)}
    return [
        counter.qualified
        for vocabulary in vocabularies()
        for counter in vocabulary.of(launch.capability)
        if launch.counters[heading(counter)] is None
        and not any(name.startswith(UNASKED) for name in columns(counter.formula))
        and ("/" not in counter.formula or columns(counter.formula) <= exercised)
    ]


@pytest.mark.parametrize("blocks", [4, 20])
def test_every_counter_has_a_value_on_every_device(tmp_path: Path, blocks: int) -> None:
    source = tmp_path / "copy.cu"
    source.write_text(SOURCE.format(blocks=blocks, size=128 * blocks))
    trace = cutrace.read_trace(record(source, [], tmp_path / "copy.cutrace"))
    names = [name for name in device_names() if load_device(name).capability >= SINCE]
    launches = cutrace.analyze(trace, names).launches
    assert len(launches) == len(names) > 40
    assert {launch.device: missing(launch) for launch in launches if missing(launch)} == {}
    sectors = 128 * blocks * 4 // 32
    expected = {
        "lts__t_sectors_srcunit_tex_op_read.sum": sectors,
        "lts__t_sectors_srcunit_tex_op_write.sum": sectors,
        "lts__t_sectors_srcunit_tex.sum": 2 * sectors,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": sectors,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": sectors,
        "l1tex__t_sector_hit_rate.pct": 0,
    }
    for launch in launches:
        assert {name: launch.counters[name] for name in expected} == expected, launch.device
