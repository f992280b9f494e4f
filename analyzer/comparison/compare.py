"""Several variants on several devices: one tidy table."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import polars as pl

from ...errors import CutraceError
from ...traces.reader import Trace
from ..profile import analyze

SCHEMA = {
    "variant": pl.String,
    "device": pl.String,
    "launch": pl.Int64,
    "counter": pl.String,
    "value": pl.Float64,
}


def compare(
    variants: Mapping[str, Trace | str | PathLike[str]],
    device: str | Sequence[str] = (),
    **options: Any,
) -> pl.DataFrame:
    """Count several traces on several devices.

    `variants` maps a name to a trace or its path; `options` are further ones of `analyze()`.
    Returns a row for each variant, device, launch and counter: columns `variant`, `device`,
    `launch` (its number), `counter` (the headings of `LaunchProfile.counters`) and `value`
    (float64, integers exact up to 2**53; null where the device does not have the counter).
    Raises `CutraceError` for variants without names.
    """
    if not isinstance(variants, Mapping):
        raise CutraceError(
            f"compare() got {type(variants).__name__}; expected traces by name, say "
            'compare({"before": "a.cutrace", "after": "b.cutrace"})'
        )
    rows = [
        (variant, launch.device, launch.number, counter, value)
        for variant, trace in variants.items()
        for launch in analyze(trace, device, **options).launches
        for counter, value in launch.counters.items()
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row")
