"""Devices: a TOML of sizes, limits and stages, read strictly.

A file has `name`, `capability`, `aliases`, and the tables `[chip]`, `[limits]` and `[stage.NAME]`.
Every number in the files of `models/devices/` has its source beside it.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...errors import CutraceError, nearest
from .place import Chip
from .strict import make
from .wiring import Stage, wire

FOLDER = Path(__file__).parents[1] / "devices"
CALCULATORS = ("block", "spreadsheet", "header")
FALLBACKS = ("largest", "next")
SCOPES = ("sm", "cluster", "gpu")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one SM, block and thread may have; bytes where it is not a count.

    `calculator` is the rule by which blocks fit on an SM: `block` (1.x), `spreadsheet` (2.x) or
    `header` (3.x on; `models/occupancy.py`). `shared_reserved` is the system's share of each
    block's shared memory. `shared_carveouts` are the sizes that an SM's shared memory can have, in
    rising order; where the preferred one is too small for a block it gets the `largest` or the
    `next` (`carveout_fallback`). `barriers_per_sm` is 0 where barriers do not limit.
    """

    calculator: str
    threads_per_block: int
    block_dim: tuple[int, int, int]
    grid_dim: tuple[int, int, int]
    warps_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    registers_per_block: int
    registers_per_thread: int
    register_unit: int
    warp_unit: int
    shared_per_sm: int
    shared_per_block: int
    shared_unit: int
    shared_reserved: int
    shared_carveouts: tuple[int, ...]
    carveout_fallback: str
    barriers_per_sm: int
    constant_bytes: int


@dataclass(frozen=True, slots=True)
class Device:
    """A device: `key` is what a user types, `name` what the maker calls it."""

    key: str
    name: str
    capability: tuple[int, int]
    aliases: tuple[str, ...]
    chip: Chip
    limits: Limits
    stages: tuple[Stage, ...]
    file: str


@dataclass(frozen=True, slots=True)
class _Head:
    """The keys at the top of a file."""

    name: str
    capability: str
    aliases: tuple[str, ...]
    chip: dict[str, object]
    limits: dict[str, object]
    stage: dict[str, object]


def device_names() -> list[str]:
    """Return the names of the devices that come with cutrace, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_device(name: str, settings: Mapping[str, object] | None = None) -> Device:
    """Read a device by its name, an alias, or the path of a TOML.

    `settings` are values in place of the file's: `{"coalescer.load": "sector"}` for a stage's key,
    `{"limits.warps_per_sm": 48}` for another table's; a string is read as TOML if it is that.
    Raises `CutraceError` for a device, key or value that does not exist.
    """
    path = find_device(name)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CutraceError(f"{name}: cannot read this device file: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CutraceError(f"{path.name}: not TOML: {error}") from error
    for key, value in (settings or {}).items():
        _set(data, key, value, path.name)
    return _read(data, path)


def find_device(name: str) -> Path:
    """Return the file of a device; capitals, blanks and dashes in a name do not matter.

    Raises `CutraceError` for a name that is neither known nor the path of a TOML.
    """
    if name.endswith(".toml") or "/" in name:
        return Path(name)
    known = _spellings()
    plain = _plain(name)
    if plain not in known:
        raise CutraceError(
            f"no device {name!r}{nearest(plain, known)}; `cutrace devices` lists all, and the "
            "path of a TOML file names one of your own"
        )
    return FOLDER / f"{known[plain]}.toml"


@cache
def _spellings() -> Mapping[str, str]:
    """Map every plain spelling of every device to its file's stem."""
    known: dict[str, str] = {}
    for stem in device_names():
        head = tomllib.loads((FOLDER / f"{stem}.toml").read_text(encoding="utf-8"))
        for spelling in (stem, head["name"], *head["aliases"]):
            known.setdefault(_plain(spelling), stem)
    return known


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _set(data: dict[str, object], key: str, value: object, file: str) -> None:
    """Put one `table.key` in place of the file's."""
    stages = data.get("stage")
    named = {**data, **stages} if isinstance(stages, dict) else data
    tables = {n: t for n, t in named.items() if isinstance(t, dict) and n != "stage"}
    table_name, _, inner = key.partition(".")
    if table_name not in tables or not inner:
        known = [f"{name}.{k}" for name, table in tables.items() for k in table]
        raise CutraceError(
            f"{file}: nothing to set by `{key}`; expected STAGE.KEY{nearest(key, known)}"
        )
    tables[table_name][inner] = _value(value)


def _value(value: object) -> object:
    """Read a string as a TOML value, or leave it a string."""
    if not isinstance(value, str):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value


def _read(data: Mapping[str, object], path: Path) -> Device:
    """Build the device, checking every key."""
    file = path.name
    head = make(_Head, data, file)
    chip = make(Chip, head.chip, f"{file}: [chip]")
    limits = make(Limits, head.limits, f"{file}: [limits]")
    _choose(limits.calculator, CALCULATORS, f"{file}: [limits]: calculator")
    _choose(limits.carveout_fallback, FALLBACKS, f"{file}: [limits]: carveout_fallback")
    stages = tuple(_stage(name, table, file) for name, table in head.stage.items())
    wire(stages, file)
    capability = _capability(head.capability, file)
    return Device(path.stem, head.name, capability, head.aliases, chip, limits, stages, file)


def _choose(value: object, known: tuple[str, ...], where: str) -> None:
    """Refuse a value that is not among those that exist."""
    if value not in known:
        raise CutraceError(f"{where} = {value!r}; expected one of {', '.join(known)}")


def _capability(text: str, file: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)\.(\d+)", text)
    if not found:
        raise CutraceError(f"{file}: capability = {text!r}; expected a string such as '9.0'")
    return int(found[1]), int(found[2])


def _stage(name: str, table: object, file: str) -> Stage:
    """Take a stage's own keys apart from its model's."""
    where = f"{file}: [stage.{name}]"
    if not isinstance(table, dict):
        raise CutraceError(f"{where}: expected a table")
    keys = dict(table)
    for key in ("model", "from"):
        if key not in keys:
            raise CutraceError(f"{where}: the key `{key}` is missing")
    model, sources, scope = keys.pop("model"), keys.pop("from"), keys.pop("scope", "sm")
    _choose(scope, SCOPES, f"{where}: scope")
    if not isinstance(model, str) or not isinstance(sources, list):
        raise CutraceError(f"{where}: expected model = '...' and from = ['...']")
    return Stage(name, model, tuple(map(str, sources)), str(scope), keys)
