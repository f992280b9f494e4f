"""Catalog: the device files that come with cutrace, their names, and their inheritance.

A device is found by name, alias, pattern or path. A file with a `base` is a layer over that
device's file; the layers are joined to tables, each value with the file that set it.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path

from ....base.config import Where, read_size, read_toml
from ....base.dataclass import dataclass
from ....base.errors import CutraceError, nearest
from ....base.plugins import DEVICES, extension_names, load_extension
from .wiring import seen_from

FOLDER = Path(__file__).parents[2] / "devices"
MAKER = re.compile(r"^(?:nvidia)?(?:geforce|tesla)?")
"""The prefix of a board's name in nvidia-smi, in plain spelling."""
EVERY = "all"
"""The name of all devices that come with cutrace."""


def device_names() -> list[str]:
    """Return the names of the devices that come with cutrace, sorted."""
    return [*_stems().values()]


@cache
def _stems() -> Mapping[str, str]:
    """Map the plain spelling of each device file's stem to the stem, in the stems' order."""
    return {_plain(stem): stem for stem in sorted(path.stem for path in FOLDER.glob("*.toml"))}


def every_name() -> list[str]:
    """Return the names of those, and of the devices in other packages."""
    return [*device_names(), *extension_names(DEVICES)]


def is_path(name: str) -> bool:
    """Return whether a name is the path of a file."""
    return name.endswith(".toml") or "/" in name


def find_device(name: str) -> Path:
    """Return the file of a device; case, blanks and dashes of the name do not matter.

    Nor does the maker's prefix: a board may have its name in nvidia-smi. Raises `CutraceError` for
    a name that is neither known nor the path of a TOML.
    """
    if is_path(name):
        return Path(name)
    plain = _plain(name)
    board = MAKER.sub("", plain)
    stem = _stems().get(plain) or _spellings().get(plain) or _spellings().get(board)
    if stem is None and (own := [n for n in extension_names(DEVICES) if _plain(n) == plain]):
        return Path(load_extension(DEVICES, own[0]))
    if stem is None:
        close = _relatives(name) or nearest(name.lower(), [*_names(), *extension_names(DEVICES)])
        raise CutraceError(
            f"no device {name!r}{close}; `cutrace devices` lists all, "
            "and the path of a TOML file names one of your own"
        )
    return FOLDER / f"{stem}.toml"


def _relatives(name: str) -> str:
    """Return `; nearest: rtx4090` for another board of that number, `RTX 4090 Laptop`, or ""."""
    words = re.split(r"[\s_-]+", name)
    starts = (MAKER.sub("", _plain("".join(words[:many]))) for many in range(len(words), 0, -1))
    stems = [_spellings()[start] for start in starts if start in _spellings()][:1]
    board = MAKER.sub("", _plain(name))
    for spelling, stem in _spellings().items():
        short, long = sorted((spelling, board), key=len)
        is_number = re.search(r"[a-z]\d+$", short) and not long[len(short) :][:1].isdigit()
        if not stems and long.startswith(short) and is_number:
            stems.append(stem)
    return f"; nearest: {', '.join(stems)}" if stems else ""


def match_devices(name: str) -> Sequence[str] | None:
    """Return the devices that match a pattern, like `sm_*` or `all`; None for a name.

    Raises `CutraceError` for a pattern without a match.
    """
    if name == EVERY:
        return every_name()
    if is_path(name) or not set(name) & set("*?["):
        return None
    stems = [stem for stem in every_name() if fnmatchcase(stem, name.lower())]
    if not stems:
        raise CutraceError(f"no device is called like {name!r}; `cutrace devices` lists all")
    return stems


@cache
def _spellings() -> Mapping[str, str]:
    """Map every plain spelling of every device to its file's stem."""
    stems: dict[str, str] = {}
    for stem, spellings in _heads().items():
        for spelling in (stem, *spellings):
            stems.setdefault(_plain(spelling), stem)
    return stems


def _names() -> Sequence[str]:
    """Return the names that a user may type for a device, the maker's name left out."""
    return [name for stem, (_, *aliases, _) in _heads().items() for name in (stem, *aliases)]


@cache
def _heads() -> Mapping[str, Sequence[str]]:
    """Map the stem of every device's file to its name, its aliases, and nvidia-smi's name."""
    heads = {
        stem: tomllib.loads((FOLDER / f"{stem}.toml").read_text(encoding="utf-8"))
        for stem in device_names()
    }
    return {
        stem: (head["name"], *head.get("aliases", ()), head.get("cuda_name", head["name"]))
        for stem, head in heads.items()
    }


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


Values = dict[str, object]

OWN = ("name", "cuda_name", "aliases", "base")
"""The keys of a file that are not inherited from its base."""
TABLES = ("chip", "limits", "rates")
STAGES = "stage"
MOST = 1 << 48
"""The largest number that a device can have."""


@dataclass(slots=True)
class Table:
    """A table with the values of every layer, and the file that set each value."""

    where: Where
    values: Values = field(default_factory=dict)

    def take(self, values: Mapping[str, object], file: str) -> None:
        """Override values by a layer's; a size may have a unit."""
        updates = {key: read_size(value) for key, value in values.items()}
        for key, value in updates.items():
            if isinstance(value, int | float) and not abs(value) <= MOST:  # a NaN is not, either
                shown = str(values[key])[:60]
                raise CutraceError(f"{file}: {self.where.table} `{key}` is {shown}; at most {MOST}")
        self.values = {**_without_rival(self.values, updates), **_with_row(self.values, updates)}
        self.where.files.update(dict.fromkeys(values, file))
        self.where.ended = file


def _without_rival(values: Values, updates: Values) -> Values:
    """Drop the sets of a cache if its ways are updated, and the reverse."""
    rivals = {"sets": "ways", "ways": "sets"} if values.get("model") == "cache" else {}
    gone = {rivals[key] for key in updates if key in rivals} - updates.keys()
    return {key: value for key, value in values.items() if key not in gone}


def _with_row(values: Values, updates: Values) -> Values:
    """Return the updates; if the number of banks changes, scale the row of all banks, so that each
    keeps its words.
    """
    row, before, banks = values.get("row_bytes"), values.get("banks"), updates.get("banks")
    if values.get("model") != "banks" or "row_bytes" in updates or not before:
        return updates
    if isinstance(row, int) and isinstance(before, int) and isinstance(banks, int):
        return {**updates, "row_bytes": row * banks // before}
    return updates


@dataclass(slots=True)
class Tables:
    """All tables of a device: its `head`, those named in TABLES, and its stages, by name."""

    head: Table
    plain: dict[str, Table]
    stages: dict[str, Table]

    def named(self) -> Mapping[str, Table]:
        """Return every table with keys to set, by its name for the user."""
        return {**self.plain, **self.stages}


@dataclass(frozen=True, slots=True)
class Layer:
    """One file; its text decides whether it equals another."""

    path: Path
    text: bytes
    values: Mapping[str, object] = field(compare=False)


def read_layers(path: Path) -> Sequence[Layer]:
    """Read a file and its chain of bases, the file first.

    Raises `CutraceError` for a file that cannot be read, a base that does not exist, and a cycle.
    """
    layers, resolved = [_read(path, str(path))], [path.resolve()]
    while "base" in layers[-1].values:
        user = layers[-1]
        base = _find_base(user)
        names = [layer.path.name for layer in layers]
        resolved.append(base.resolve())
        if resolved[-1] in resolved[:-1]:
            circle = " -> ".join((*names, base.name))
            raise CutraceError(f"{user.path.name}: base: the files {circle} form a circle")
        layers.append(_read(base, f"{user.path.name}: base: {user.values['base']}"))
    return layers


def join_layers(layers: Sequence[Layer]) -> Tables:
    """Join layers; the first overrides the others."""
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
    """Apply one layer."""
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
    """Return a nested table, empty if it is missing."""
    table = values.get(name, {}) if isinstance(values, dict) else {}
    if not isinstance(table, dict):
        raise CutraceError(f"{where}: expected a table, found {table!r}")
    return table


def _find_base(layer: Layer) -> Path:
    """Return the file of a layer's base; a path is relative to the layer's folder."""
    base, file = layer.values["base"], layer.path.name
    if not isinstance(base, str):
        raise CutraceError(f"{file}: base = {base!r}; expected a string")
    if is_path(base):
        return layer.path.parent / base
    try:
        return find_device(base)
    except CutraceError as error:
        raise CutraceError(f"{file}: base: {error}") from error


def _read(path: Path, label: str) -> Layer:
    """Read one file; `label` is the name for it in messages."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CutraceError(f"{label}: cannot read this device file: {error.strerror}") from error
    return Layer(path, text, _parse(text, path.name))


@lru_cache(maxsize=256)
def _parse(text: bytes, name: str) -> Mapping[str, object]:
    """Parse TOML; a capability's file is parsed once for all boards that build on it."""
    return read_toml(text, name)
