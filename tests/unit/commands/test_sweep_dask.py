"""A sweep on Dask, where that is installed: a worker that is killed takes no part of the table."""

import os
import signal
from pathlib import Path
from threading import Timer

import pytest

import cutrace

SUITE = """\
devices = ["h200"]
counters = ["global_load_transactions"]
[sizes]
N = [64, 128, 256, 512, 1024, 2048, 4096, 8192]
[set]
l2.bytes = ["24M", "48M"]
[[variant]]
name = "copy"
source = "copy.cu"
launch = "copy<<<{N / 32}, 32>>>(out:i32[{N}], in:i32[{N}])"
"""
KERNEL = """\
__global__ void copy(int *out, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}
"""


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason='needs pip install "cutrace[dask]"')
    (tmp_path / "copy.cu").write_text(KERNEL)
    (tmp_path / "suite.toml").write_text(SUITE)
    here = cutrace.sweep(tmp_path / "suite.toml", tmp_path / "here.parquet", processes=1)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        first, *_ = client.run(os.getpid).values()
        Timer(1.5, os.kill, (first, signal.SIGKILL)).start()
        there = cutrace.sweep(tmp_path / "suite.toml", tmp_path / "t.parquet", executor=client)
        assert first not in client.run(os.getpid).values()
    assert there.equals(here)
