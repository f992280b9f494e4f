"""`cutrace.devices`, `cutrace.counters`, and the launches of a trace, as data frames."""

from collections.abc import Iterable

import polars as pl

from ...analyzer.counting.vocabulary import vocabularies
from ...analyzer.text.launch_text import launch_text
from ...models.replay.device.catalog import EVERY
from ...models.replay.device.device import load_devices
from ...traces.reader import LaunchTrace


def devices(pattern: str = EVERY) -> pl.DataFrame:
    """Return one row per device: its name, its board's, and the numbers that identify it."""
    rows = [
        (
            *(d.key, d.name, ".".join(map(str, d.capability))),
            *(d.chip.sms, d.chip.clock_mhz, d.chip.memory_gb_per_s, d.chip.memory_bytes),
        )
        for d in load_devices([pattern])
    ]
    head = ("device", "name", "capability", "sms", "clock_mhz", "memory_gb_per_s", "memory_bytes")
    return pl.DataFrame(rows, head, orient="row")


def counters() -> pl.DataFrame:
    """Return one row per counter of every vocabulary, with its definition and source."""
    rows = [
        (v.name, c.name, c.unit, c.devices, c.doc, c.formula, c.better, c.source)
        for v in vocabularies()
        for c in v.counters
    ]
    head = ("vocabulary", "counter", "unit", "devices", "doc", "formula", "better", "source")
    return pl.DataFrame(rows, head, orient="row")


def launches(traced: Iterable[LaunchTrace]) -> pl.DataFrame:
    """Return one row per launch of a trace: its configuration, and the number of recorded rows."""
    rows = [
        (
            *(one.number, one.launch.name, launch_text(one.launch), one.launch.signature),
            *(list(one.launch.grid), list(one.launch.block), one.launch.blocks),
            *(one.launch.threads, one.launch.shared_static + one.launch.shared_dynamic),
            one.count("accesses"),
        )
        for one in traced
    ]
    head: dict[str, pl.DataType | type[pl.DataType]] = {
        **{"launch": pl.Int64, "kernel": pl.String, "text": pl.String, "signature": pl.String},
        **{"grid": pl.List(pl.Int64), "block": pl.List(pl.Int64), "blocks": pl.Int64},
        **{"threads": pl.Int64, "shared_bytes": pl.Int64, "accesses": pl.Int64},
    }
    return pl.DataFrame(rows, head, orient="row")
