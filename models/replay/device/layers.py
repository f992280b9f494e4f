"""Layers: a device's file, the file that it names as its `base`, and so on, joined into one.

A file with a base has the differing values only. Keys of `[chip]`, `[limits]` and a stage take the
place of the base's one by one; a stage that names its `model` takes the place of the base's stage
as a whole. `capability` is inherited, `name`, `cuda_name` and `aliases` are not. What a user sets
for one run is one more layer on top.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path

from ....errors import CutraceError, nearest
from ....lazy_dataclass import dataclass
from ....size import read_size
from ....strict_toml import Where, read_toml
from .catalog import find_device, is_path
from .model_class import seen_from

Values = dict[str, object]

OWN = ("name", "cuda_name", "aliases", "base")
"""What a file does not take from its base."""
TABLES = ("chip", "limits", "rates")
STAGES = "stage"
MOST = 1 << 48
"""The largest number that a device can have."""


@dataclass(slots=True)
class Table:
    """A table with what every layer says in it, and who said so."""

    where: Where
    values: Values = field(default_factory=dict)

    def take(self, values: Mapping[str, object], file: str) -> None:
        """Put a layer's values over those that are there; a size may have a unit."""
        told = {key: read_size(value) for key, value in values.items()}
        for key, value in told.items():
            if isinstance(value, int | float) and not abs(value) <= MOST:  # a NaN is not, either
                shown = str(values[key])[:60]
                raise CutraceError(f"{file}: {self.where.table} `{key}` is {shown}; at most {MOST}")
        self.values = {**_without_rival(self.values, told), **_with_row(self.values, told)}
        self.where.files.update(dict.fromkeys(values, file))
        self.where.ended = file


def _without_rival(values: Values, told: Values) -> Values:
    """Return the values without the sets of a cache that is told its ways, and the reverse."""
    rivals = {"sets": "ways", "ways": "sets"} if values.get("model") == "cache" else {}
    gone = {rivals[key] for key in told if key in rivals} - told.keys()
    return {key: value for key, value in values.items() if key not in gone}


def _with_row(values: Values, told: Values) -> Values:
    """Return what is told, and the row of banks of which there are more or fewer: as many words of
    each.
    """
    row, before, banks = values.get("row_bytes"), values.get("banks"), told.get("banks")
    if values.get("model") != "banks" or "row_bytes" in told or not before:
        return told
    if isinstance(row, int) and isinstance(before, int) and isinstance(banks, int):
        return {**told, "row_bytes": row * banks // before}
    return told


@dataclass(slots=True)
class Tables:
    """All tables of a device: its `head`, those named in TABLES, and its stages, by name."""

    head: Table
    plain: dict[str, Table]
    stages: dict[str, Table]

    def named(self) -> Mapping[str, Table]:
        """Return every table that has keys to set, by the name that a user gives it."""
        return {**self.plain, **self.stages}


@dataclass(frozen=True, slots=True)
class Layer:
    """One file."""

    path: Path
    values: Mapping[str, object]


def read_layers(path: Path) -> Sequence[Layer]:
    """Read a file and all that it is based on: itself first.

    Raises `CutraceError` for a file that cannot be read, a base that does not exist, and a circle.
    """
    layers = [_read(path, str(path))]
    while "base" in layers[-1].values:
        user = layers[-1]
        found = _find_base(user)
        names = [layer.path.name for layer in layers]
        if found.resolve() in [layer.path.resolve() for layer in layers]:
            circle = " -> ".join((*names, found.name))
            raise CutraceError(f"{user.path.name}: base: the files {circle} form a circle")
        layers.append(_read(found, f"{user.path.name}: base: {user.values['base']}"))
    return layers


def join_layers(layers: Sequence[Layer]) -> Tables:
    """Join layers, the first on top."""
    root = layers[-1].path.name
    joined = Tables(
        Table(Where("", root, root)),
        {name: Table(Where(f"[{name}]", root, root)) for name in TABLES},
        {},
    )
    for layer in reversed(layers):
        _join(joined, layer)
    return joined


def _join(joined: Tables, layer: Layer) -> None:
    """Put one layer on top."""
    file = layer.path.name
    for name in OWN:
        joined.head.values.pop(name, None)
        joined.head.where.files.pop(name, None)
    joined.head.where.begun = file
    plain = {k: v for k, v in layer.values.items() if k not in (*TABLES, STAGES)}
    if isinstance(counters := plain.get("counters"), str):
        plain["counters"] = str((layer.path.parent / counters).resolve())
    joined.head.take(plain, file)
    for name in TABLES:
        joined.plain[name].take(_table(layer.values, name, f"{file}: [{name}]"), file)
    for name in _table(layer.values, STAGES, f"{file}: [{STAGES}]"):
        where = f"[{STAGES}.{name}]"
        values = _table(dict(layer.values)[STAGES], name, f"{file}: {where}")
        if "model" not in values and name not in joined.stages and joined.stages:
            raise CutraceError(
                f"{file}: {where}: its base has no such stage{nearest(name, joined.stages)}; a new "
                "one says its `model`"
            )
        if "model" in values or name not in joined.stages:
            joined.stages[name] = Table(Where(where, file, file))
        if isinstance(model := values.get("model"), str):
            values = {**values, "model": seen_from(layer.path.parent, model)}
        joined.stages[name].take(values, file)


def _table(values: object, name: str, where: str) -> Values:
    """Return a table of a table, empty if it is not there."""
    found = values.get(name, {}) if isinstance(values, dict) else {}
    if not isinstance(found, dict):
        raise CutraceError(f"{where}: expected a table, found {found!r}")
    return found


def _find_base(layer: Layer) -> Path:
    """Return the file of a layer's base; a path is seen from the layer's own folder."""
    base, file = layer.values["base"], layer.path.name
    if not isinstance(base, str):
        raise CutraceError(f"{file}: base = {base!r}; expected a string")
    if is_path(base):
        return layer.path.parent / base
    try:
        return find_device(base)
    except CutraceError as error:
        raise CutraceError(f"{file}: base: {error}") from error


def _read(path: Path, said: str) -> Layer:
    """Read one file; `said` is how it was asked for."""
    try:
        return Layer(path, _parse(path.read_bytes(), path.name))
    except OSError as error:
        raise CutraceError(f"{said}: cannot read this device file: {error.strerror}") from error


@lru_cache(maxsize=256)
def _parse(text: bytes, name: str) -> Mapping[str, object]:
    """Read TOML, the file of a capability once for all boards that build on it."""
    return read_toml(text, name)
