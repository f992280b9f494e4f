"""Running a sweep: each job in a process of its own, done ones kept, a line of progress."""

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, redirect_stdout
from hashlib import sha256
from json import dumps
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CutraceError
from ...traces.folder.leftover import scratch_folder

if TYPE_CHECKING:
    import polars as pl

    from ...analyzer.sweep.suite import Job

BESIDE = (".cu", ".cuh", ".h", ".hpp", ".ptx", ".py", ".npy")
"""Files beside a source that may change what it does."""


def run_jobs(
    jobs: "Sequence[Job]", arguments: Mapping[str, Any], parts: Path, processes: int | None
) -> "list[pl.DataFrame]":
    """Run what has not been run, and return every job's table in order.

    A job that is done is a file in `parts`, where the next sweep finds it. `CutraceError` names the
    jobs that failed, after the others have ended.
    """
    import polars as pl

    parts.mkdir(exist_ok=True)
    files = [parts / f"{_key(job, arguments)}.parquet" for job in jobs]
    waiting = [n for n, file in enumerate(files) if not file.exists()]
    failed: dict[int, str] = {}
    _tell(len(jobs) - len(waiting), len(jobs), "")
    for number, problem in _work(
        [(jobs[n], dict(arguments), files[n]) for n in waiting], processes
    ):
        if problem:
            failed[waiting[number]] = problem
        done = sum(file.exists() for file in files)
        _tell(done, len(jobs), str(jobs[waiting[number]]))
    _tell_nothing()
    if failed:
        told = "\n".join(f"{jobs[n]}: {problem}" for n, problem in sorted(failed.items()))
        raise CutraceError(f"{len(failed)} of {len(jobs)} recordings failed\n{told}")
    return [pl.read_parquet(file) for file in files]


_Work = tuple["Job", dict[str, Any], Path]


def _work(tasks: Sequence[_Work], processes: int | None) -> Iterator[tuple[int, str]]:
    """Do the tasks; yield the number of each as it ends, and what went wrong."""
    count = min(processes or os.cpu_count() or 1, len(tasks))
    if count <= 1:
        yield from ((number, _run(*task)) for number, task in enumerate(tasks))
        return
    with ProcessPoolExecutor(count, get_context("spawn"), _leave_interrupts) as pool:
        futures: dict[Future[str], int] = {
            pool.submit(_run, *task): number for number, task in enumerate(tasks)
        }
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _leave_interrupts() -> None:
    """Let the first process alone hear Ctrl-C: jobs that have begun end, and are kept."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(job: "Job", arguments: dict[str, Any], out: Path) -> str:
    """Record a job, count it, and leave its table at `out`; the message if it cannot be."""
    from ...analyzer.profile import analyze
    from ...analyzer.sweep.sweep_table import tabulate
    from ...tracer.front.source import DEFAULT_TARGET
    from ...tracer.host.source.record import record

    try:
        with scratch_folder() as folder, _environment(job), _quiet():
            trace = record(
                job.source,
                job.launches,
                Path(folder) / "job.cutrace",
                arch=job.arch or DEFAULT_TARGET,
                options=job.options,
            )
            table = tabulate(job, analyze(trace, **arguments))
        unfinished = out.with_suffix(".unfinished")
        table.write_parquet(unfinished)
        unfinished.replace(out)
    except CutraceError as error:
        return str(error)
    return ""


@contextmanager
def _environment(job: "Job") -> Iterator[None]:
    """The settings of a script's job as environment variables, for as long as it runs."""
    before = dict(os.environ)
    if job.source.suffix == ".py":
        os.environ.update({name: str(value) for name, value in job.settings.items()})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _quiet() -> redirect_stdout[Any]:
    """What kernels print goes to stderr: stdout belongs to the report."""
    return redirect_stdout(sys.stderr)


def _key(job: "Job", arguments: Mapping[str, Any]) -> str:
    """A name for all that a job's numbers depend on."""
    from ... import __version__

    beside = sorted(p for p in job.source.parent.iterdir() if p.suffix in BESIDE)
    texts = {path.name: sha256(path.read_bytes()).hexdigest() for path in beside}
    asked = [__version__, str(job), job.launches, job.options, job.arch, job.take, job.source.name]
    whole = dumps([asked, texts, dict(arguments)], sort_keys=True, default=str)
    return sha256(whole.encode()).hexdigest()[:24]


def _tell(done: int, total: int, last: str) -> None:
    if sys.stderr.isatty():
        told = f"\r\x1b[Ksweep: {done} of {total} recordings{f', {last}' if last else ''}"
        print(told, end="", file=sys.stderr, flush=True)


def _tell_nothing() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
