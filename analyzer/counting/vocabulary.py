"""Vocabularies of counters: names, definitions and formulas, read from `counters/*.toml`.

A vocabulary is one TOML file with a `[vocabulary]` table (`name`, `doc`, `devices`) and a list of
`[[counter]]` tables. Every key without a default is required, and an unknown key is an error, so
that a typo cannot silently drop a definition.

A user's own file has only `[[counter]]` tables, which join cutrace's own. A device's file
(`counters`), $CUTRACE_COUNTERS, or an entry point of `cutrace.counters` names it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, replace
from functools import cache, reduce
from importlib.resources import files
from os import environ, pathsep
from pathlib import Path
from types import MappingProxyType

from ...base.config import check_keys, read_toml
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...base.plugins import COUNTERS, extension_names, load_extension

Capability = tuple[int, int]
"""Compute capability, `(major, minor)`."""

SCOPES = ("sm", "cluster", "all")
OURS = "cutrace"
"""The first vocabulary; its names are the same on every device."""
FORMER: Mapping[str, str] = {
    "bytes_asked": "bytes_requested",
    "bytes_moved": "bytes_transferred",
    "passes": "wavefronts",
    "bus_utilization": "sector_efficiency",
    "plain.": "cutrace.",
}
"""Words of former counter names to today's words, which are Nsight Compute's."""
BETTER = ("", "less", "more")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
OWN = "CUTRACE_COUNTERS"
"""Variable that names the user's counter files, separated as folders in $PATH."""


@dataclass(frozen=True, slots=True)
class Counter:
    """The definition of one counter.

    `formula` is a polars SQL expression over the counts: one Int64 column per raw counter of the
    models, one row per pc, array and scope. `scope` names the blocks that it counts: those of the
    profiled `sm`, of its `cluster`, or `all`. `whole_launch` marks counters of the launch as a
    whole, which have no value per line; they may also read the launch facts (occupancy).
    `follows_ptx` marks counters that depend on the assembler's choices. `label` is the profiler's
    printed name of the counter, `section` the part of its output that has it. `by` is the only
    grouping that has the counter (`array`), empty where all do. `better` is `less` or `more` if one
    is known to be better between kernels that do the same work. `was` is the counter's former name,
    which still finds it.
    """

    name: str
    vocabulary: str
    doc: str
    unit: str
    devices: str
    formula: str
    source: str
    scope: str = "all"
    differs: str = ""
    follows_ptx: bool = False
    whole_launch: bool = False
    label: str = ""
    section: str = ""
    by_name_only: bool = False
    by: str = ""
    better: str = ""
    was: str = ""

    def exists_on(self, capability: Capability) -> bool:
        """Return whether devices of this compute capability have the counter."""
        low, high = capability_range(self.devices)
        return low <= capability <= high

    @property
    def qualified(self) -> str:
        """`vocabulary.name`: unique where two vocabularies share a name."""
        return f"{self.vocabulary}.{self.name}"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The counters of one profiler, in the profiler's print order.

    A name may have several definitions, for devices of different capabilities.
    """

    name: str
    doc: str
    devices: str
    counters: tuple[Counter, ...]

    def of(self, capability: Capability) -> tuple[Counter, ...]:
        """Return the counters of devices of this compute capability."""
        return tuple(c for c in self.counters if c.exists_on(capability))


def capability_range(text: str) -> tuple[Capability, Capability]:
    """Read `1.0-1.3`, `7.0-` or `2.1` as an inclusive range of compute capabilities.

    >>> capability_range("1.0-1.3"), capability_range("7.0-"), capability_range("2.1")
    (((1, 0), (1, 3)), ((7, 0), (99, 9)), ((2, 1), (2, 1)))
    """
    low, dash, high = text.partition("-")
    return capability(low), capability(high) if high else ((99, 9) if dash else capability(low))


def capability(text: str) -> Capability:
    """Parse `7.5` as `(7, 5)`; raise `CutraceError` for anything else."""
    major, dot, minor = text.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()):
        raise CutraceError(f"compute capability {text!r}: expected MAJOR.MINOR, say 7.5")
    return int(major), int(minor)


@cache
def vocabularies() -> tuple[Vocabulary, ...]:
    """Return all vocabularies: `cutrace`, then the profilers' in the order of their devices."""
    folder = files("cutrace.analyzer.counters")
    all_vocabularies = [
        read_vocabulary(entry.read_text(encoding="utf-8"), entry.name)
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    ]
    plain, *others = sorted(
        all_vocabularies, key=lambda v: (v.name != OURS, capability_range(v.devices), v.name)
    )
    counters = (*plain.counters, *_own_counters(plain.name))
    _check_overlaps(counters, OWN)
    return replace(plain, counters=counters), *others


def _own_counters(vocabulary: str) -> Iterator[Counter]:
    """Yield the user's counters and those of other packages."""
    named = environ.get(OWN, "").split(pathsep)
    brought = (load_extension(COUNTERS, name) for name in extension_names(COUNTERS))
    every = dict.fromkeys(Path(name).resolve() for name in (*named, *brought) if name)
    for path in every:
        try:
            document = read_toml(path.read_bytes(), path.name)
        except OSError as error:
            raise CutraceError(f"cannot read counters {path}: {error.strerror}") from error
        _check_keys(document, {"counter"}, set(), path.name)
        yield from (_counter(entry, vocabulary, path.name) for entry in document["counter"])


@contextmanager
def with_counters(paths: Iterable[str]) -> Iterator[None]:
    """Register the counters of some files within a `with` block, also for child processes.

    Raises `CutraceError` for a file that cannot be read as counters.
    """
    before = environ.get(OWN, "")
    fresh = [path for path in paths if path and path not in before.split(pathsep)]
    if not fresh:
        yield
        return
    environ[OWN] = pathsep.join(filter(None, (before, *fresh)))
    _forget()
    try:
        vocabularies()
        yield
    finally:
        environ[OWN] = before
        _forget()


def _forget() -> None:
    for function in (vocabularies, heading, _names, today, headings, known_counter):
        function.cache_clear()


def era(of: Capability) -> Vocabulary | None:
    """Return the vocabulary of NVIDIA's profiler for a device, or None."""
    for vocabulary in vocabularies()[1:]:
        low, high = capability_range(vocabulary.devices)
        if low <= of <= high:
            return vocabulary
    return None


@cache
def heading(counter: Counter) -> str:
    """Return the heading of a counter's column.

    It is the bare name, or `vocabulary.name` if an earlier vocabulary has the same name.
    """
    for vocabulary in vocabularies():
        if vocabulary.name == counter.vocabulary:
            return counter.name
        if counter.name in _names()[vocabulary.name]:
            return counter.qualified
    return counter.name


@cache
def _names() -> Mapping[str, frozenset[str]]:
    """Return the counter names of each vocabulary."""
    return {v.name: frozenset(counter.name for counter in v.counters) for v in vocabularies()}


@cache
def today(name: str) -> str:
    """Return the present name of a counter for a former one; return any other name unchanged.

    >>> today("shared_passes"), today("plain.instructions"), today("idle_lanes")
    ('shared_wavefronts', 'cutrace.instructions', 'padding_lanes')
    """
    every = [c for vocabulary in vocabularies() for c in vocabulary.counters]
    names = {n for c in every for n in (c.name, c.qualified)}
    if name in names:
        return name
    later = _in_todays_words(name)
    if later in names:
        return later
    return next((heading(c) for c in every if later in (c.was, f"{c.vocabulary}.{c.was}")), name)


def _in_todays_words(name: str) -> str:
    return reduce(lambda text, words: text.replace(*words), FORMER.items(), name)


def containing(word: str) -> tuple[Counter, ...]:
    """Return the counters with a word in their names; empty if the word is a counter's name."""
    every = tuple(c for vocabulary in vocabularies() for c in vocabulary.counters)
    word = _in_todays_words(word)
    is_name = any(today(word) in (c.name, c.qualified) for c in every)
    return () if is_name else tuple(c for c in every if word in c.name)


def in_todays_names(text: str) -> str:
    """Replace former counter names in an expression by the present ones.

    >>> in_todays_names("global_load_bytes_moved / global_load_bytes_asked")
    'global_load_bytes_transferred / global_load_bytes_requested'
    """
    return _NAME.sub(lambda match: today(match[0]), text)


@cache
def headings(of: Capability) -> Mapping[str, Counter | None]:
    """Return every heading and its definition on a device (None: the device lacks it)."""
    definitions: dict[str, Counter | None] = {}
    for counter in (c for vocabulary in vocabularies() for c in vocabulary.counters):
        name = heading(counter)
        definitions[name] = counter if counter.exists_on(of) else definitions.get(name)
    return MappingProxyType(definitions)


def nearest_on(name: str, of: Capability) -> str:
    """Return `; nearest: a, b` for a heading that a device lacks: the counters that it has with the
    same formula, else those with the most similar names, or `""`.
    """
    present = {other: counter for other, counter in headings(of).items() if counter}
    formulas = {c.formula for v in vocabularies() for c in v.counters if heading(c) == name}
    equal = [other for other, counter in present.items() if counter.formula in formulas]
    if equal:
        return f"; nearest: {', '.join(equal)}"
    first_word = name.partition("_")[0]
    return nearest(name, (n for n in present if n.startswith(first_word))) or nearest(name, present)


def find_counters(names: Iterable[str]) -> tuple[Counter, ...]:
    """Return every definition of the named counters (`name` or `vocabulary.name`), in that order.

    A bare name that several vocabularies define selects all of them, `cutrace` first; a former name
    selects the present counter. Raises `CutraceError` with the three nearest names for an unknown
    name.
    """
    counters: list[Counter] = []
    every = [c for vocabulary in vocabularies() for c in vocabulary.counters]
    for name in map(today, names):
        matching = [c for c in every if name in (c.name, c.qualified)]
        if not matching:
            close = nearest(name, {n: None for c in every for n in (c.name, c.qualified)})
            raise CutraceError(f"no counter {name!r}{close}; `cutrace counters` lists all")
        counters += (c for c in matching if c not in counters)
    return tuple(counters)


@cache
def known_counter(name: str) -> Counter:
    """Return the first definition of an existing counter."""
    return find_counters([name])[0]


def check_parts(counters: Iterable[Counter], by: str) -> None:
    """Raise `CutraceError` for a counter without a value in rows of this grouping."""
    for counter in counters:
        if counter.by not in ("", by):
            raise CutraceError(f"{counter.name} is known by {counter.by} only: --by {counter.by}")
        if counter.whole_launch and by != "launch":
            raise CutraceError(
                f"{counter.name} belongs to the launch as a whole, not to a part: no --by {by}"
            )


def read_vocabulary(text: str, where: str) -> Vocabulary:
    """Parse one TOML text; a `CutraceError` names `where`, the counter, and the invalid key."""
    document = read_toml(text, where)
    _check_keys(document, {"vocabulary", "counter"}, set(), where)
    head = document["vocabulary"]
    _check_keys(head, {"name", "doc", "devices"}, set(), f"{where}: [vocabulary]")
    counters = tuple(_counter(entry, head["name"], where) for entry in document["counter"])
    _check_overlaps(counters, where)
    return Vocabulary(head["name"], head["doc"], head["devices"], counters)


def _check_overlaps(counters: Iterable[Counter], where: str) -> None:
    """Reject two definitions of one name for the same devices."""
    ranges_by_name: dict[str, list[tuple[Capability, Capability]]] = {}
    for counter in counters:
        low, high = capability_range(counter.devices)
        ranges = ranges_by_name.setdefault(counter.name, [])
        if any(low <= other[1] and other[0] <= high for other in ranges):
            raise CutraceError(f"{where}: counter {counter.name!r} is defined twice")
        ranges.append((low, high))


def _counter(entry: Mapping[str, object], vocabulary: str, where: str) -> Counter:
    """Build a counter from one `[[counter]]` table, checking each key."""
    place = f"{where}: counter {entry.get('name', '?')!r}"
    keys = {f.name for f in fields(Counter)} - {"vocabulary"}
    flags = {"follows_ptx", "whole_launch", "by_name_only"}
    optional = {"scope", "differs", "by", "label", "section", "better", "was", *flags}
    _check_keys(entry, keys - optional, optional, place)
    for key, value in entry.items():
        expected = bool if key in flags else str
        if not isinstance(value, expected):
            raise CutraceError(f"{place}: {key} must be a {expected.__name__}, not {value!r}")
    counter = Counter(vocabulary=vocabulary, **entry)  # type: ignore[arg-type]
    capability_range(counter.devices)
    if counter.scope not in SCOPES:
        raise CutraceError(f"{place}: scope must be one of {', '.join(SCOPES)}")
    if counter.better not in BETTER:
        raise CutraceError(f"{place}: better must be less or more, or left out")
    return counter


def _check_keys(
    table: Mapping[str, object], required: set[str], optional: set[str], place: str
) -> None:
    """Reject a table with a missing or unknown key."""
    if missing := sorted(required - table.keys()):
        raise CutraceError(f"{place}: no {', '.join(missing)}")
    check_keys(table, required | optional, place)


def with_counters_of(devices: Iterable[str]) -> AbstractContextManager[None]:
    """Register the counters of the devices' files within a `with` block."""
    from ...models.replay.device.catalog import is_path
    from ...models.replay.device.device import load_device

    own = [load_device(name) for name in devices if is_path(name)]
    if not (files := [device.counters for device in own if device.counters]):
        return nullcontext()

    return with_counters(files)
