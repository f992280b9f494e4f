"""Executors by name: `--on dask`, `--on dask:tcp://host:8786`, `--on ray`, `--on slurm`.

Each needs an extra of cutrace's to be installed. An executor that exists already can be passed to
`cutrace.sweep(executor=...)`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ...errors import CutraceError, nearest
from .spread import Executor


@contextmanager
def named_executor(name: str) -> Iterator[Executor]:
    """Open an executor for as long as the body runs. CutraceError if there is no such one."""
    kind, _, address = name.partition(":")
    if kind not in _KINDS:
        raise CutraceError(f"--on {name}: expected {', '.join(_KINDS)}{nearest(kind, _KINDS)}")
    with _KINDS[kind](address) as executor:
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
def _dask(address: str) -> Iterator[Executor]:
    """The scheduler at an address; without one, workers of this machine."""
    distributed = _package("distributed", "dask")
    with distributed.Client(address or None) as client:
        yield _Dask(client)


@contextmanager
def _slurm(partition: str) -> Iterator[Executor]:
    """Workers that Slurm starts as there is work, in a partition if one is named.

    Cores and memory of a worker come from Dask's own configuration (`jobqueue.slurm`).
    """
    jobqueue, distributed = _package("dask_jobqueue", "slurm"), _package("distributed", "slurm")
    with jobqueue.SLURMCluster(queue=partition or None) as cluster:
        cluster.adapt(minimum=1)
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
def _ray(address: str) -> Iterator[Executor]:
    """The cluster at an address; without one, workers of this machine."""
    ray = _package("ray", "ray")
    ray.init(address=address or None, log_to_driver=False)
    try:
        yield _Ray(ray)
    finally:
        ray.shutdown()


_KINDS = {"dask": _dask, "ray": _ray, "slurm": _slurm}
