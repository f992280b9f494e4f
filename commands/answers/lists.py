"""`cutrace.devices` and `cutrace.counters`: what there is to ask for, as frames."""

import polars as pl

from ...analyzer.counting.vocabulary import vocabularies
from ...models.replay.device.catalog import EVERY
from ...models.replay.device.device import load_devices


def devices(pattern: str = EVERY) -> pl.DataFrame:
    """A row a device: its name here, its board's, and the numbers that name it."""
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
    """A row a counter of every vocabulary, with its definition and source."""
    rows = [
        (v.name, c.name, c.unit, c.devices, c.doc, c.formula, c.better, c.source)
        for v in vocabularies()
        for c in v.counters
    ]
    head = ("vocabulary", "counter", "unit", "devices", "doc", "formula", "better", "source")
    return pl.DataFrame(rows, head, orient="row")
