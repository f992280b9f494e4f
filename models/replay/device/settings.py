"""Settings: what a user changes for one run, `--set coalescer.load=line`, on top of the files."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ....errors import CutraceError, nearest
from .layers import Table, Tables
from .wiring import STAGE_KEYS, model_keys

SETTINGS = "--set"
"""What stands for a file's name where the user set a value for one run."""

Made = Mapping[str, Any]
"""What is made of each table that is no stage: a dataclass, whose fields are its keys."""


def apply_settings(tables: Tables, settings: Mapping[str, object], made: Made, device: str) -> None:
    """Put each `table.key` in place of the files'; a string is read as TOML if it is that.

    Raises `CutraceError` for a table or a key that does not exist; what type a value must have is
    checked with the files' own.
    """
    every = {name: _keys(name, table, made) for name, table in tables.named().items()}
    told: dict[str, dict[str, object]] = {}
    for key, value in settings.items():
        name, _, inner = key.partition(".")
        if name not in every or not inner:
            close = nearest(key, [f"{table}.{k}" for table, keys in every.items() for k in keys])
            raise CutraceError(
                f"{SETTINGS}: nothing to set by `{key}` in {device}; expected TABLE.KEY{close}; "
                f"there are the tables {', '.join(every)}"
            )
        if inner not in every[name]:
            raise CutraceError(
                f"{SETTINGS}: [{name}] of {device}: unknown key `{inner}`"
                f"{nearest(inner, every[name])}; it has {', '.join(every[name])}"
            )
        told.setdefault(name, {})[inner] = _value(value)
    for name, values in told.items():
        tables.named()[name].take(values, SETTINGS)


def _keys(name: str, table: Table, made: Made) -> Sequence[str]:
    """Return the keys that a table can have."""
    if name in made:
        return [field.name for field in fields(made[name])]
    model = table.values.get("model")
    return [*STAGE_KEYS, *model_keys(str(model), table.where.of("model"))]


def _value(value: object) -> object:
    """Read a string as a TOML value, or leave it a string."""
    if not isinstance(value, str):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
