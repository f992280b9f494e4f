"""Devices: a TOML of sizes, limits and stages, read strictly.

A file has `name`, `capability`, `aliases`, optionally `cuda_name` and `counters`, and the tables
`[chip]`, `[limits]`, `[rates]` and `[stage.NAME]`. With `base`, the name of another device, it has
only the values that differ (`catalog.py`). Every number in the files of `models/devices/` has a
comment with its source.
"""

import re
import tomllib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ....base.config import Where, make
from ....base.dataclass import dataclass
from ....base.errors import CutraceError, nearest
from ..schedule.place import Chip
from .catalog import (
    FOLDER,
    Table,
    Tables,
    find_device,
    is_path,
    join_layers,
    match_devices,
    read_layers,
)
from .wiring import STAGE_KEYS, Stage, find_model, is_foreign, model_keys, wire

CALCULATORS = ("block", "spreadsheet", "header")
FALLBACKS = ("largest", "next")
MAY_BE_ZERO = ("shared_reserved", "shared_carveouts", "carveout_roomy", "barriers_per_sm")
SCOPES = ("sm", "cluster", "gpc", "gpu")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one SM, block and thread; in bytes unless it is a count.

    `calculator` is the rule of block residency: `block` (1.x), `spreadsheet` (2.x) or `header` (3.x
    on; `analyses/occupancy.py`). `shared_reserved` is the system's share of each block's shared
    memory. `shared_carveouts` are the possible sizes of an SM's shared memory, rising. If the
    preferred size is too small for a block, it gets the `largest` or the `next`
    (`carveout_fallback`). `carveout_roomy` is 0 where the driver does not choose. `registers_least`
    is the minimum per thread. `barriers_per_sm` is 0 where barriers do not limit.
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
    registers_least: int
    register_unit: int
    warp_unit: int
    shared_per_sm: int
    shared_per_block: int
    shared_unit: int
    shared_reserved: int
    shared_carveouts: tuple[int, ...]
    carveout_fallback: str
    carveout_roomy: int
    barriers_per_sm: int
    constant_bytes: int

    def __post_init__(self) -> None:
        """Refuse numbers that no chip has."""
        for name, value in asdict(self).items():
            least = 0 if name in MAY_BE_ZERO else 1
            numbers = value if isinstance(value, tuple) else (value,)
            if any(isinstance(number, int) and number < least for number in numbers):
                raise CutraceError(f"{name} = {value}; expected {least} or more")
        sizes = self.shared_carveouts
        if not sizes or list(sizes) != sorted(set(sizes)) or sizes[-1] < self.shared_per_sm:
            raise CutraceError(
                f"shared_carveouts = {list(sizes)}; expected sizes in rising order, up to "
                f"shared_per_sm = {self.shared_per_sm}"
            )


@dataclass(frozen=True, slots=True)
class Rates:
    """The peak rates of an SM per cycle; 0: unknown, or never the limit.

    `issue` is in warp instructions, `half` to `special` in lanes of an instruction of that
    precision (`special`: reciprocals, roots, sines, powers and logarithms in single precision),
    `shared` in passes over the banks, `constant` in passes of the constant cache, `texture` in
    samples, `l1_bytes` and `l2_bytes` in bytes of these levels. `atomic` is in operations of the
    whole chip on one address of global memory, `atomic_real` in those with floating-point numbers
    where they are slower. `tensor` is in products of halves that `mma` adds up in single precision,
    `tensor_half` in those that it adds up as halves.
    """

    issue: float = 0.0
    half: float = 0.0
    single: float = 0.0
    double: float = 0.0
    special: float = 0.0
    shared: float = 0.0
    constant: float = 0.0
    texture: float = 0.0
    l1_bytes: float = 0.0
    l2_bytes: float = 0.0
    atomic: float = 0.0
    atomic_real: float = 0.0
    tensor: float = 0.0
    tensor_half: float = 0.0

    def __post_init__(self) -> None:
        """Refuse negative rates."""
        for name, rate in asdict(self).items():
            if not 0 <= rate < float("inf"):
                raise CutraceError(f"{name} = {rate}; expected a number from 0 on")


@dataclass(frozen=True, slots=True)
class Device:
    """A device: `key` is its name on the command line, `name` that of its maker.

    `cuda_name` is the name in CUDA, if known. `counters` is the path of a file with the definitions
    of its own models' counters, if it has any.
    """

    key: str
    name: str
    capability: tuple[int, int]
    aliases: tuple[str, ...]
    chip: Chip
    limits: Limits
    rates: Rates
    stages: tuple[Stage, ...]
    path: Path
    counters: str = ""
    cuda_name: str = ""

    @property
    def file(self) -> str:
        """The file's name, for messages."""
        return self.path.name

    @property
    def has_foreign_models(self) -> bool:
        """Whether a stage has a model that does not come with cutrace."""
        return any(is_foreign(stage.model) for stage in self.stages)


@dataclass(frozen=True, slots=True)
class _Head:
    """The keys at the top of a file."""

    name: str
    capability: str
    chip: object
    limits: object
    rates: object
    stage: object
    aliases: tuple[str, ...] = ()
    base: str = ""
    counters: str = ""
    cuda_name: str = ""


def load_device(name: str, settings: Mapping[str, object] | None = None) -> Device:
    """Read a device by its name, an alias, or the path of a TOML.

    `settings` override the file's values: `{"coalescer.load": "sector"}` for a stage's key,
    `{"limits.warps_per_sm": 48}` for another table's; a string is parsed as TOML if it is valid
    TOML. Raises `CutraceError` for a device, key or value that does not exist.
    """
    path, settings = find_device(name), settings or {}
    # The files that come with cutrace do not change while a process runs.
    is_shipped = not is_path(name) and path.parent == FOLDER
    layers = () if is_shipped else tuple(read_layers(path))
    typed = [(each, type(value), value) for each, value in settings.items()]
    key = path, path.absolute(), layers, repr(typed)
    device = _DEVICES.get(key)
    if device is None:
        tables = join_layers(layers or read_layers(path))
        if settings:
            classes = {"chip": Chip, "limits": Limits, "rates": Rates}
            apply_settings(tables, settings, classes, path.name)
        device = _read(tables, path)
        if settings or not is_shipped:
            _check_stages(device)
        if not device.has_foreign_models:  # whose file may change
            if len(_DEVICES) >= MOST_DEVICES:
                _DEVICES.clear()
            _DEVICES[key] = device
    return device


_DEVICES: dict[Hashable, Device] = {}
MOST_DEVICES = 256
"""The most devices that are kept in memory."""


def load_devices(
    names: Sequence[str], settings: Mapping[str, object] | None = None
) -> tuple[Device, ...]:
    """Read several devices, each once; a pattern like `sm_*`, or `all`, names several.

    Matches of a pattern are in the order of their capabilities. Raises `CutraceError` as
    `load_device` does, and for two files that give two devices one name.
    """
    registry: dict[str, Device] = {}
    for name in names:
        devices = [load_device(one, settings) for one in match_devices(name) or (name,)]
        for device in sorted(devices, key=lambda device: (device.capability, device.key)):
            other = registry.setdefault(device.key, device)
            if other is not device and other.path.resolve() != device.path.resolve():
                raise CutraceError(f"{other.path} and {device.path} are both called {device.key}")
    return tuple(registry.values())


def _read(tables: Tables, path: Path) -> Device:
    """Build the device, checking every key."""
    head = make(_Head, {**tables.head.values, **_OTHERS}, tables.head.where)
    capability = _capability(head.capability, tables.head.where)
    chip = make(Chip, tables.plain["chip"].values, tables.plain["chip"].where)
    limits = _limits(tables.plain["limits"])
    rates = make(Rates, tables.plain["rates"].values, tables.plain["rates"].where)
    stages = tuple(_stage(name, table) for name, table in tables.stages.items())
    arguments = _key(path), head.name, capability, head.aliases, chip, limits, rates, stages, path
    return Device(*arguments, head.counters, head.cuda_name)


_OTHERS: Mapping[str, object] = {"chip": {}, "limits": {}, "rates": {}, "stage": {}}
"""The tables beside the keys at the top, which are read separately."""


def _key(path: Path) -> str:
    """Return the key of a device: a user's file does not take the name of another device."""
    own = path.parent != FOLDER and path.resolve().parent != FOLDER.resolve()
    return path.name if own and (FOLDER / path.name).exists() else path.stem


def _limits(table: Table) -> Limits:
    """Read the limits, and check their words."""
    limits = make(Limits, table.values, table.where)
    for key, choices in (("calculator", CALCULATORS), ("carveout_fallback", FALLBACKS)):
        _choose(getattr(limits, key), choices, table.where, key)
    return limits


def _check_stages(device: Device) -> None:
    """Check the wiring of a device, also with the largest shared memory."""
    wire(device.stages, device.file)
    largest = device.limits.shared_carveouts[-1]
    for stage in device.stages:
        if stage.beside_shared:
            where = stage.find(device.file)
            build, keys = find_model(stage.model, where.of("model")), stage.without(largest).keys
            try:
                make(build, keys, where)
            except CutraceError as error:
                raise CutraceError(
                    f"{error}, beside {largest} bytes of shared memory: {stage.name}.bytes="
                    f"{stage.keys['bytes']} is the size of both together"
                ) from error


def _choose(value: object, choices: tuple[str, ...], where: Where, key: str) -> None:
    """Refuse a value that is not a valid choice."""
    if value not in choices:
        raise CutraceError(
            f"{where.of(key)}: {key} = {value!r}; expected one of {', '.join(choices)}"
        )


def _capability(text: str, where: Where) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)\.(\d+)", text)
    if not match:
        raise CutraceError(
            f"{where.of('capability')}: capability = {text!r}; expected a string such as '9.0'"
        )
    return int(match[1]), int(match[2])


def _stage(name: str, table: Table) -> Stage:
    """Separate a stage's own keys from those of its model."""
    keys, where = dict(table.values), table.where
    for key in ("model", "from"):
        if key not in keys:
            raise CutraceError(f"{where.of(key)}: the key `{key}` is missing")
    model, sources, scope = keys.pop("model"), keys.pop("from"), keys.pop("scope", "sm")
    beside_shared = keys.pop("beside_shared", False)
    if not isinstance(beside_shared, bool) or (beside_shared and "bytes" not in keys):
        raise CutraceError(
            f"{where.of('beside_shared')}: beside_shared = {beside_shared!r}; expected true or "
            "false, and a key `bytes` to be shared"
        )
    if type(scope) is not int or scope < 1:
        _choose(scope, SCOPES, where, "scope")
    if not isinstance(model, str):
        raise CutraceError(f"{where.of('model')}: model = {model!r}; expected a string")
    if not isinstance(sources, list) or not sources:
        expected = "expected a list of state spaces and stages"
        raise CutraceError(f"{where.of('from')}: from = {sources!r}; {expected}")
    arguments = (name, model, tuple(map(str, sources)), str(scope), keys)
    return Stage(*arguments, beside_shared=beside_shared, where=where)


SETTINGS = "--set"
"""The file's name in messages about a value that the user set for one run."""

Loaded = Mapping[str, Any]
"""The class of each table that is not a stage: a dataclass, whose fields are the keys."""


def apply_settings(
    tables: Tables, settings: Mapping[str, object], classes: Loaded, device: str
) -> None:
    """Override the files' values by `table.key`; a string is parsed as TOML if it is valid TOML.

    Raises `CutraceError` for a table or a key that does not exist. Types of values are checked with
    the files' own.
    """
    every = {name: _keys(name, table, classes) for name, table in tables.named().items()}
    updates: dict[str, dict[str, object]] = {}
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
        updates.setdefault(name, {})[inner] = _value(value)
    for name, values in updates.items():
        tables.named()[name].take(values, SETTINGS)


def _keys(name: str, table: Table, classes: Loaded) -> Sequence[str]:
    """Return the valid keys of a table."""
    if name in classes:
        return [field.name for field in fields(classes[name])]
    model = table.values.get("model")
    return [*STAGE_KEYS, *model_keys(str(model), table.where.of("model"))]


def _value(value: object) -> object:
    """Parse a string as a TOML value, or return it unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
