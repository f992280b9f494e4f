"""Sweeps and replays on Dask, Ray and Slurm, where these are installed: the same table as here."""

import os
import shutil
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from time import sleep

import pytest
from executors import Losing

import cutrace
from cutrace.base.executor import run as run_errand
from cutrace.base.executor import run_tasks
from cutrace.commands._main import run

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


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a sweep, beside it the table that one process makes of it."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "copy.cu").write_text(KERNEL)
    (folder / "suite.toml").write_text(SUITE)
    asked = ["sweep", str(folder / "suite.toml"), "-o", str(folder / "here.parquet")]
    assert run([*asked, "--processes", "1"]) == 0
    return folder / "suite.toml"


@pytest.fixture
def here(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The table of this process; its sweep is in the working directory, too."""
    monkeypatch.chdir(tmp_path)
    for name in ("copy.cu", "suite.toml"):
        shutil.copy(suite.with_name(name), name)
    return suite.with_name("here.parquet").read_bytes()


def kill_when_one_is_done(parts: Path, process: int) -> None:
    while not [*parts.glob("*.parquet")]:
        sleep(0.01)
    os.kill(process, signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(here: bytes, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason='needs pip install "cutrace[dask]"')
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        first, *_ = client.run(os.getpid).values()
        Thread(target=kill_when_one_is_done, args=(tmp_path / "t.parquet.parts", first)).start()
        cutrace.sweep("suite.toml", "t.parquet", executor=client)
        assert first not in client.run(os.getpid).values()
    assert Path("t.parquet").read_bytes() == here


def test_an_error_that_a_client_keeps_is_not_taken_for_the_next_attempts() -> None:
    """A client answers calls of one key with one result, also that of a worker that was killed."""
    dask = pytest.importorskip("dask", reason='needs pip install "cutrace[dask]"')
    executor = Losing(2)
    assert [*run_tasks(executor, len, ["four"])] == [(0, 4)]
    assert len({dask.base.tokenize(run_errand, given) for given in executor.given}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("on", ["dask", "ray", "slurm"])
def test_a_cluster_by_its_name_finds_the_same(on: str, here: bytes) -> None:
    package = {"dask": "distributed", "ray": "ray", "slurm": "dask_jobqueue"}[on]
    pytest.importorskip(package, reason=f'needs pip install "cutrace[{on}]"')
    if on == "slurm" and not shutil.which("sbatch"):
        pytest.skip("needs Slurm")
    assert run(["sweep", "suite.toml", "-o", "there.parquet", "--on", on, "--processes", "2"]) == 0
    assert Path("there.parquet").read_bytes() == here


@pytest.mark.slow
def test_a_worker_of_several_threads_finds_the_same(here: bytes) -> None:
    """Two jobs at once in a process take turns where Python can do but one."""
    distributed = pytest.importorskip("distributed", reason='needs pip install "cutrace[dask]"')
    options = {"n_workers": 1, "threads_per_worker": 4, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, processes=False) as cluster,
        distributed.Client(cluster).get_executor() as executor,
    ):
        cutrace.sweep("suite.toml", "there.parquet", executor=executor)
    assert Path("there.parquet").read_bytes() == here


TWICE = """\
// cutrace: copy<<<64, 32>>>(out:i32[2048], in:i32[2048])
// cutrace: copy<<<32, 32>>>(out, in)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "copy.cu").write_text(TWICE + KERNEL)
    return cutrace.record(tmp_path / "copy.cu", out=tmp_path / "copy.cutrace")


@pytest.mark.slow
def test_a_cluster_replays_as_one_process_does(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason='needs pip install "cutrace[dask]"')
    asked = ["analyze", str(trace), "-d", "h200,k20,8800gtx", "--format", "json"]
    assert run(asked) == 0
    here = capsys.readouterr().out
    assert run([*asked, "--on", "dask", "--jobs", "2"]) == 0
    assert capsys.readouterr().out == here


@pytest.mark.slow
def test_processes_of_ones_own_replay_as_one_process_does(trace: Path) -> None:
    here = cutrace.analyze(trace, device=("h200", "k20"))
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        there = cutrace.analyze(trace, device=("h200", "k20"), executor=executor)
        compared = cutrace.compare(trace, ("h200", "k20"), executor=executor)
    assert there.frame().equals(here.frame())
    assert compared.equals(cutrace.compare(trace, ("h200", "k20")))
