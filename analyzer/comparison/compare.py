"""Several variants on several devices: one tidy table."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import polars as pl

from ...base.errors import CutraceError
from ...traces.reader import Trace
from ..profile import Profile, analyze
from .comparison import split_kernels

SCHEMA = {
    "variant": pl.String,
    "device": pl.String,
    "launch": pl.Int64,
    "counter": pl.String,
    "value": pl.Float64,
}


def compare(
    variants: Mapping[str, Trace | str | PathLike[str]] | Trace | str | PathLike[str],
    device: str | Sequence[str] = (),
    **options: Any,
) -> pl.DataFrame:
    """Count several traces, or the kernels of one, on several devices.

    `variants` maps names to traces or their paths, or is one trace, whose kernels are compared (or
    its launches, if it has one kernel). `options` are further options of `analyze()`. Returns a row
    per variant, device, launch and counter: columns `variant`, `device`, `launch` (its number),
    `counter` (the headings of `LaunchProfile.counters`) and `value` (float64, integers exact up to
    2**53; null if the device lacks the counter). Raises `CutraceError` for variants without names.
    """
    rows = [
        (variant, launch.device, launch.number, counter, value)
        for variant, profile in _profiles(variants, device, options).items()
        for launch in profile.launches
        for counter, value in launch.counters.items()
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _profiles(
    variants: object, device: str | Sequence[str], options: Mapping[str, Any]
) -> dict[str, Profile]:
    if isinstance(variants, Mapping):
        return {name: analyze(trace, device, **options) for name, trace in variants.items()}
    if isinstance(variants, Trace | str | PathLike):
        name = str(variants.path if isinstance(variants, Trace) else variants)
        return split_kernels(analyze(variants, device, **options), name)
    raise CutraceError(
        f"compare() got {type(variants).__name__}; expected traces by name, say "
        'compare({"before": "a.cutrace", "after": "b.cutrace"})'
    )
