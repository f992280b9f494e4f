"""Running a sweep: each job in a process of its own or by an executor, done ones kept."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CutraceError
from ...models.replay.options import ReplayOptions
from ...option import changed
from ...processes import Processes
from ...spread import Errand, Executor, run, spread
from ...version import __version__
from ..options.replay import with_devices
from .progress import Share, progress
from .sweep_job import Task, do_task, files_beside, list_settings

if TYPE_CHECKING:
    import polars as pl

    from ...analyzer.sweep.destination import Destination
    from ...analyzer.sweep.suite import Job, Suite


def sweep(
    suite: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    processes: int | None = None,
    **arguments: Any,
) -> "pl.DataFrame":
    """Record every variant of a suite in every size, and write and return one tidy table.

    `executor` does the jobs instead of `processes` of this machine: anything with `submit`, such as
    those of `concurrent.futures`, or Dask's client. Sources travel with the jobs; workers need the
    same cutrace. `arguments` are those of `analyze`, devices among them. `out` is a file, .parquet
    or .csv, or an address, at which a name without an ending is a folder: a Parquet dataset. Jobs
    that are done are kept beside it until all are: after an interruption the next call goes on.

    Raises `CutraceError` for a suite that is wrong, and for jobs that failed, after all others.
    """
    from ...analyzer.counting.devices_counters import with_counters_of
    from ...analyzer.sweep.destination import find_destination
    from ...analyzer.sweep.suite import read_suite
    from ...analyzer.sweep.sweep_table import join_tables

    asked, table = read_suite(Path(suite)), find_destination(Path(out))
    options = ReplayOptions(**arguments)
    if asked.devices and not options.device:
        options = replace(options, device=asked.devices)
    options = with_devices(options)
    with with_counters_of(options.devices):
        return join_tables(asked, run_suite(asked, table, options, processes, executor))


def run_suite(
    suite: "Suite",
    out: "Destination",
    options: ReplayOptions,
    processes: int | None = None,
    executor: Executor | None = None,
) -> "list[pl.DataFrame]":
    """Run what has not been run, write the table, and return every job's in order.

    What is done is kept at `out`, where the next sweep finds it.
    `CutraceError` names the jobs that failed, after the others have ended.
    """
    from ...analyzer.sweep.suite import list_jobs
    from ...analyzer.sweep.sweep_table import join_tables

    jobs, settings = list_jobs(suite), list_settings(suite, options)
    asked = {**changed(options), "sweep": suite.settings()}
    names, kept = [_key(job, asked) for job in jobs], out.begin()
    waiting = [n for n, name in enumerate(names) if name not in kept]
    count = min(processes or os.cpu_count() or 1, len(waiting))
    if executor or count > 1:  # other jobs have the other cores
        options = replace(options, jobs=options.jobs or 1)
    tasks = [
        Task(
            jobs[n],
            options,
            settings,
            files_beside(jobs[n].source) if executor else {},
        )
        for n in waiting
    ]
    failed: dict[int, CutraceError] = {}
    share = Share()

    def how_far() -> str:
        done = f"{sum(name in kept for name in names)} of {len(jobs)} recordings"
        return ", ".join(filter(None, (done, share.text())))

    with progress("sweep", how_far):
        for ended, (number, answer) in enumerate(_work(tasks, count, executor), 1):
            if isinstance(answer, CutraceError):
                failed[waiting[number]] = answer
            else:
                out.keep(names[waiting[number]], answer)
                kept.add(names[waiting[number]])
            share.tell(ended / len(waiting))
    if failed:
        told = "\n".join(f"{jobs[n]}: {problem}" for n, problem in sorted(failed.items()))
        raise CutraceError(f"{len(failed)} of {len(jobs)} recordings failed\n{told}")
    tables = out.read(names)
    out.write(join_tables(suite, tables))
    return tables


def _work(
    tasks: Sequence[Task], count: int, executor: Executor | None
) -> Iterator[tuple[int, Any]]:
    """Do the tasks; yield the number of each as it ends, with its table or what went wrong."""
    if executor is not None:
        yield from spread(executor, do_task, tasks)
    elif count <= 1:
        yield from ((number, run(Errand(do_task, task))) for number, task in enumerate(tasks))
    else:
        with closing(Processes(count)) as pool:
            yield from spread(pool, do_task, tasks)


def _key(job: "Job", arguments: Mapping[str, Any]) -> str:
    """A name for all that a job's numbers depend on."""
    texts = {name: sha256(data).hexdigest() for name, data in files_beside(job.source).items()}
    asked = [__version__, str(job), job.launches, job.options, job.arch, job.take, job.source.name]
    whole = dumps([asked, texts, dict(arguments)], sort_keys=True, default=str)
    return sha256(whole.encode()).hexdigest()[:24]
