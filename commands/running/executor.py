"""Executors by name: `--on dask`, `--on dask:tcp://host:8786`, `--on ray`, `--on slurm`.

Each needs an extra of cutrace's to be installed. An executor that exists already can be passed to
`cutrace.sweep(executor=...)` and `cutrace.analyze(executor=...)`.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from importlib import import_module
from math import inf
from typing import Any

from ...base.errors import CutraceError, nearest
from ...base.executor import Executor
from ...models.replay.interface.options import ReplayOptions


@contextmanager
def replayed_on(name: str | None, options: ReplayOptions) -> Iterator[ReplayOptions]:
    """The options with an executor, if one is named, of `jobs` workers where any are started."""
    with named_executor(name, options.jobs) if name else nullcontext() as executor:
        yield replace(options, executor=executor)


@contextmanager
def named_executor(name: str, processes: int | None = None) -> Iterator[Executor]:
    """Open an executor for as long as the body runs. CutraceError if there is no such one.

    `processes` is how many workers are started, where any are.
    """
    kind, _, address = name.partition(":")
    if kind not in _KINDS:
        raise CutraceError(f"--on {name}: expected {', '.join(_KINDS)}{nearest(kind, _KINDS)}")
    with _KINDS[kind](address, processes) as executor:
        yield executor


def _package(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise CutraceError(
            f'--on {extra} needs {name}: pip install "cutrace[{extra}]" ({error})'
        ) from None


class _Dask:
    """Dask's client: a call is done again where its worker is lost, and never taken for another."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Any:
        """Have a call done by a worker."""
        return self._client.submit(call, *arguments, pure=False, retries=2)


@contextmanager
def _dask(address: str, processes: int | None) -> Iterator[Executor]:
    """The scheduler at an address; without one, workers of this machine, one for each core.

    They have no thread that looks ten times a second where they are: a job is Python all through,
    and a tenth slower then.
    """
    dask, distributed = _package("dask", "dask"), _package("distributed", "dask")
    workers = {"n_workers": processes or os.cpu_count(), "threads_per_worker": 1}
    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        nullcontext(address)
        if address
        else distributed.LocalCluster(**workers, dashboard_address=":0") as where,
        distributed.Client(where) as client,
    ):
        yield _Dask(client)


@contextmanager
def _slurm(partition: str, processes: int | None) -> Iterator[Executor]:
    """Workers that Slurm starts as there is work, in a partition if one is named.

    A worker has a core and 4 GB, unless Dask's own configuration (`jobqueue.slurm`) says more.
    """
    jobqueue, distributed = _package("dask_jobqueue", "slurm"), _package("distributed", "slurm")
    config = _package("dask", "slurm").config.get("jobqueue.slurm")
    least = {key: config[key] or value for key, value in (("cores", 1), ("memory", "4GB"))}
    with jobqueue.SLURMCluster(queue=partition or None, **least) as cluster:
        cluster.adapt(minimum=1, maximum=processes or inf)
        with distributed.Client(cluster) as client:
            yield _Dask(client)


class _Ray:
    """Ray: its references make futures."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Any:
        """Have a call done by a worker."""
        return self._ray.remote(call).remote(*arguments).future()


@contextmanager
def _ray(address: str, processes: int | None) -> Iterator[Executor]:
    """The cluster at an address; without one, workers of this machine.

    Meanwhile what is printed goes to stderr: of workers that die Ray tells on stdout.
    """
    ray = _package("ray", "ray")
    where = {"address": address} if address else {"num_cpus": processes}
    with redirect_stdout(sys.stderr):
        ray.init(**where, log_to_driver=False)
        try:
            yield _Ray(ray)
        finally:
            ray.shutdown()


_KINDS = {"dask": _dask, "ray": _ray, "slurm": _slurm}
