"""The controls of a live page: devices and what-if options, as on the command line.

A field holds the value of an option; several values are separated by blanks or commas.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from ...analyzer.html.value import Field
from ...errors import CutraceError
from ...models.replay.options import SCHEDULES, ReplayOptions
from ..options.replay import with_devices

PAIRS = {"pad": "ARRAY=[ROW+]N", "align": "ARRAY=BYTES[+BEYOND]", "set": "STAGE.KEY=VALUE"}
"""Fields of pairs, and what one looks like."""
_BETWEEN = re.compile(r"[\s,]+")


def asked(form: Mapping[str, str], options: ReplayOptions) -> ReplayOptions:
    """The options with what the form says in their place; `CutraceError` for what cannot be."""
    read = {name: _pairs(name, form.get(name, "")) for name in PAIRS}
    devices = tuple(_words(form.get("device", "")))
    schedule = form.get("schedule") or SCHEDULES[0]
    return with_devices(
        replace(
            options,
            device=devices,
            schedule=schedule,
            pad=read["pad"],
            align=read["align"],
            set=read["set"],
        )
    )


def fields(options: ReplayOptions) -> tuple[Field, ...]:
    """The controls with what they hold now."""
    return (
        Field("device", " ".join(options.devices), "NAME ..."),
        *(Field(name, _typed(getattr(options, name)), like) for name, like in PAIRS.items()),
        Field("schedule", options.schedule, "", SCHEDULES),
    )


def _words(text: str) -> list[str]:
    return [word for word in _BETWEEN.split(text) if word]


def _pairs(name: str, text: str) -> dict[str, str]:
    found = {}
    for word in _words(text):
        key, equals, value = word.partition("=")
        if not (key and equals and value):
            raise CutraceError(f"{name}: {word}: expected {PAIRS[name]}")
        found[key] = value
    return found


def _typed(pairs: Mapping[str, object]) -> str:
    return " ".join(f"{key}={value}" for key, value in pairs.items())
