"""Executors by name: `--on dask`, `--on dask:tcp://host:8786`, `--on ray`, `--on slurm`.

Each requires an extra of cutrace. An existing executor can be passed to
`cutrace.sweep(executor=...)` and `cutrace.analyze(executor=...)`.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from importlib import import_module
from math import inf
from typing import Annotated, Any, TypeAlias

from ...base.cores import cores
from ...base.errors import CutraceError, nearest
from ...base.executor import Executor
from ...base.scope import stay_open
from ...models.replay.interface.options import ReplayOptions
from ..options.verb import Typed, value

On: TypeAlias = Annotated[
    str | None,
    value(
        "Work on a cluster: at the address of a Dask or Ray scheduler, or in a Slurm partition."
        " Without an address N workers start here.",
        "dask|ray|slurm[:WHERE]",
        "--on",
        rich_help_panel="Replay options",
    ),
    Typed(place=9),
]


def with_executor(name: str | None, options: ReplayOptions) -> ReplayOptions:
    """Return the options with the named executor, if any; it starts `jobs` workers where it starts
    any.
    """
    if name is None:
        return options
    return replace(options, executor=stay_open(named_executor(name, options.jobs)))


@contextmanager
def named_executor(name: str, processes: int | None = None) -> Iterator[Executor]:
    """Open an executor while the body runs; raise CutraceError for an unknown name.

    `processes` is the number of workers, if the executor starts any.
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
    """Dask's client: calls are not cached, and are repeated if their worker is lost."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Any:
        """Submit a call to a worker."""
        return self._client.submit(call, *arguments, pure=False, retries=2)


@contextmanager
def _dask(address: str, processes: int | None) -> Iterator[Executor]:
    """Connect to the scheduler at an address; without one, start local workers, one per core.

    Their profiler thread, which samples ten times per second, is off: a job is pure Python and
    becomes a tenth slower by it.
    """
    dask, distributed = _package("dask", "dask"), _package("distributed", "dask")
    workers = {"n_workers": processes or cores(), "threads_per_worker": 1}
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
    """Start workers by Slurm on demand, in a partition if one is named.

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
    """Ray, with futures made from its references."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Any:
        """Submit a call to a worker."""
        return self._ray.remote(call).remote(*arguments).future()


@contextmanager
def _ray(address: str, processes: int | None) -> Iterator[Executor]:
    """Connect to the cluster at an address; without one, start local workers.

    Prints go to stderr meanwhile: Ray reports dead workers on stdout.
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
