"""Suite of a sweep: variants of a kernel by sizes, shapes and defines, read from a TOML file.

    devices = ["gtx580", "h200"]          # default; -d on the command line overrides them
    counters = ["shared_conflicts"]       # of the summary; default: those that differ
    baseline = "naive"                    # to compare with; default: the first

    [sizes]                               # each combination is a recording
    N = [256, 512]
    [shapes]
    BLOCK = [128, 256]
    [set]                                 # each combination replays the same recordings
    l2.bytes = ["16M", "32M"]             # a stage's key, as in --set

    [[variant]]
    name = "tiled"
    source = "tiled.cu"                   # relative path: .cu, .ptx, or a .py with a session
    launch = "tiled<<<{N / BLOCK}, {BLOCK}>>>(out:f32[{N}], in:f32[{N}]=arange, {N})"
    defines = { EDGE = [16, 32] }         # of this variant; sizes and shapes likewise

Several launch lines run in order. A script has no launch lines: it reads sizes and shapes from
environment variables, and `take = [0]` selects some of its launches.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from ...base.config import check_keys, read_toml
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ..counting.vocabulary import find_counters, with_counters_of

Setting = int | str
BRACES = re.compile(r"\{([^{}]*)\}")
_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def names_in(text: str, where: str) -> frozenset[str]:
    """Return the names that a text's placeholders read; `CutraceError` if one is not arithmetic."""
    names: set[str] = set()
    for inside in BRACES.findall(text):
        names |= {n.id for n in ast.walk(_parse(inside, where)) if isinstance(n, ast.Name)}
    return frozenset(names)


def fill(text: str, settings: Mapping[str, Setting], where: str) -> str:
    """Fill in all placeholders; `CutraceError` for a name without a value suggests the nearest.

    >>> fill("f<<<{(N + 31) / 32}, 32>>>(x:{T}[{N}])", {"N": 40, "T": "f32"}, "")
    'f<<<2, 32>>>(x:f32[40])'
    """
    return BRACES.sub(lambda match: str(_value(match[1], settings, where)), text)


def _value(inside: str, settings: Mapping[str, Setting], where: str) -> Setting:
    try:
        return _evaluate(_parse(inside, where), settings, where)
    except ZeroDivisionError:
        raise CutraceError(f"{where}: {{{inside}}} divides by zero") from None


def _parse(inside: str, where: str) -> ast.expr:
    try:
        return ast.parse(inside.strip(), mode="eval").body
    except SyntaxError:
        raise _no_arithmetic(inside, where) from None


def _evaluate(node: ast.expr, settings: Mapping[str, Setting], where: str) -> Setting:
    match node:
        case ast.Name(id=name):
            if name not in settings:
                raise CutraceError(f"{where}: no value for {{{name}}}{nearest(name, settings)}")
            return settings[name]
        case ast.Constant(value=int(value)):
            return value
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATIONS:
            sides = [_evaluate(side, settings, where) for side in (left, right)]
            first, second = (side for side in sides)
            if isinstance(first, int) and isinstance(second, int):
                return _OPERATIONS[type(sign)](first, second)
    raise _no_arithmetic(ast.unparse(node), where)


def _no_arithmetic(inside: str, where: str) -> CutraceError:
    return CutraceError(
        f"{where}: {{{inside}}}: expected a name, or integer arithmetic with + - * / % over names"
    )


HEAD = ("devices", "counters", "baseline", "sizes", "shapes", "set", "variant")
KEYS = (
    *("name", "source", "launch", "defines", "sizes", "shapes"),
    *("arch", "options", "take"),
)
COLUMNS = ("variant", "device", "launch", "kernel", "counter", "value", "refusal")
"""Columns of a sweep's table; sizes must not use these names."""
Axes = Mapping[str, Sequence[Setting]]


@dataclass(frozen=True, slots=True)
class Variant:
    """One `[[variant]]`: `axes` are its sizes and shapes, including those `shared` by all."""

    name: str
    source: Path
    launch: tuple[str, ...]
    shared: Axes
    axes: Axes
    defines: Axes
    arch: str
    options: tuple[str, ...]
    take: tuple[int, ...]

    @property
    def is_script(self) -> bool:
        """Return whether it is a script that launches its kernels itself."""
        return self.source.suffix == ".py"


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite file."""

    path: Path
    variants: tuple[Variant, ...]
    devices: tuple[str, ...]
    counters: tuple[str, ...]
    baseline: str
    parameters: Axes
    """Values of device parameters, by `stage.key`."""

    def settings(self) -> tuple[Mapping[str, Setting], ...]:
        """Return all combinations of device parameters; a single empty one if none is set."""
        values = product(*self.parameters.values())
        return tuple(dict(zip(self.parameters, each, strict=True)) for each in values)


@dataclass(frozen=True, slots=True)
class Job:
    """One recording: a variant with all its settings filled in.

    `label` distinguishes it within its `group`, the jobs with the same sizes and shapes of the
    suite: the variant's name, and its own settings with several values.
    """

    variant: str
    label: str
    group: str
    source: Path
    launches: tuple[str, ...]
    options: tuple[str, ...]
    arch: str
    settings: Mapping[str, Setting]
    take: tuple[int, ...]

    def __str__(self) -> str:
        return " ".join((self.variant, *_words(self.settings)))


def read_suite(path: Path) -> Suite:
    """Read a suite; `CutraceError` names the wrong table and key, and suggests the nearest key."""
    document = read_toml(path.read_bytes(), str(path))
    check_keys(document, HEAD, str(path))
    tables = document.get("variant", [])
    if not isinstance(tables, list) or not tables:
        raise CutraceError(f"{path}: no [[variant]] in it")
    shared = _axes(document, ("sizes", "shapes"), str(path))
    variants = tuple(_variant(n, table, shared, path) for n, table in enumerate(tables))
    names = [variant.name for variant in variants]
    if twice := [name for name in names if names.count(name) > 1]:
        raise CutraceError(f"{path}: two variants are called {twice[0]!r}")
    baseline = _text(document, "baseline", str(path)) or names[0]
    if baseline not in names:
        raise CutraceError(f"{path}: baseline = {baseline!r}{nearest(baseline, names)}")
    counters = _texts(document, "counters", str(path))
    devices = _texts(document, "devices", str(path))
    with with_counters_of(devices):
        try:
            find_counters(counters)
        except CutraceError as error:
            raise CutraceError(f"{path}: counters: {error}") from error
    parameters = _parameters(document.get("set", {}), str(path))
    return Suite(path, variants, devices, counters, baseline, parameters)


def list_jobs(suite: Suite) -> tuple[Job, ...]:
    """Return all recordings, in file order."""
    return tuple(job for variant in suite.variants for job in _jobs(variant, suite.path))


def _jobs(variant: Variant, path: Path) -> Iterator[Job]:
    where = f"{path}: variant {variant.name!r}"
    every = {**variant.axes, **variant.defines}
    for values in product(*every.values()):
        settings = dict(zip(every, values, strict=True))
        for name in variant.defines:
            settings[name] = _filled(settings[name], settings, f"{where}: defines.{name}")
        launches = tuple(fill(line, settings, f"{where}: launch") for line in variant.launch)
        defines = (f"-D{name}={settings[name]}" for name in variant.defines)
        own = {k: v for k, v in settings.items() if k not in variant.shared and len(every[k]) > 1}
        yield Job(
            variant.name,
            " ".join((variant.name, *_words(own))),
            " ".join(_words({name: settings[name] for name in variant.shared})),
            variant.source,
            launches,
            (*defines, *variant.options),
            variant.arch,
            settings,
            variant.take,
        )


def _words(settings: Mapping[str, Setting]) -> Iterator[str]:
    return (f"{name}={value}" for name, value in settings.items())


def _filled(value: Setting, settings: Mapping[str, Setting], where: str) -> Setting:
    """Return a define's value with sizes filled in."""
    if isinstance(value, int) or not BRACES.search(value):
        return value
    text = fill(value, settings, where)
    return int(text) if text.lstrip("-").isdecimal() else text


def _variant(number: int, table: object, shared: Axes, path: Path) -> Variant:
    """Parse one table."""
    where = f"{path}: variant {number + 1}"
    if not isinstance(table, dict):
        raise CutraceError(f"{path}: `variant` must be a list of tables, each `[[variant]]`")
    check_keys(table, KEYS, where)
    name = _text(table, "name", where)
    where = f"{path}: variant {name!r}" if name else where
    source = _text(table, "source", where)
    if not source:
        raise CutraceError(f"{where}: no `source`: the file to record")
    source_path = path.parent / source
    if not source_path.is_file():
        siblings = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
        raise CutraceError(f"{where}: source = {source!r}: no such file{nearest(source, siblings)}")
    axes = {**shared, **_axes(table, ("sizes", "shapes"), where)}
    defines = _axes(table, ("defines",), where)
    launch = table.get("launch", [])
    lines = (launch,) if isinstance(launch, str) else _texts(table, "launch", where)
    take = table.get("take", [])
    if not isinstance(take, list) or not all(isinstance(n, int) and n >= 0 for n in take):
        raise CutraceError(f"{where}: take = {take!r}; expected numbers of launches, from 0")
    variant = Variant(
        name or Path(source).stem,
        source_path,
        lines,
        {name: values for name, values in shared.items() if axes[name] == values},
        axes,
        defines,
        _text(table, "arch", where),
        _texts(table, "options", where),
        tuple(take),
    )
    _check_use(variant, where)
    return variant


def _check_use(variant: Variant, where: str) -> None:
    """Reject sizes that change nothing, and launch lines for a script."""
    if variant.is_script:
        if variant.launch:
            raise CutraceError(f"{where}: a script launches its kernels itself, without `launch`")
        return
    texts = [*variant.launch, *(str(v) for vs in variant.defines.values() for v in vs)]
    used = {name for text in texts for name in names_in(text, where)}
    for name in sorted(used - variant.axes.keys() - variant.defines.keys()):
        names = (*variant.axes, *variant.defines)
        hint = (
            f"there are {', '.join(names)}" if names else "`sizes`, `shapes`, `defines` give them"
        )
        there_are = nearest(name, names) or f"; {hint}"
        raise CutraceError(f"{where}: no value for {{{name}}}{there_are}")
    for name in variant.axes:
        if name not in used:
            raise CutraceError(
                f"{where}: {name} has values, but neither launch lines nor defines have"
                f" {{{name}}}{nearest(name, used)}"
            )


def _axes(table: Mapping[str, object], keys: Sequence[str], where: str) -> Axes:
    """Return the named values of some tables, each a list."""
    axes: dict[str, Sequence[Setting]] = {}
    for key in keys:
        inner = table.get(key, {})
        if not isinstance(inner, dict):
            raise CutraceError(f"{where}: {key} = {inner!r}; expected a table, say N = [256, 512]")
        for name, value in inner.items():
            values = value if isinstance(value, list) else [value]
            plain = all(isinstance(v, int | str) and not isinstance(v, bool) for v in values)
            if not values or not plain:
                raise CutraceError(
                    f"{where}: {key}.{name} = {value!r}; expected whole numbers or texts"
                )
            if not name.isidentifier() or name in COLUMNS:
                raise CutraceError(f"{where}: {key}.{name}: the name cannot be used")
            axes[name] = tuple(values)
    return axes


def _parameters(tables: object, where: str) -> Axes:
    """Return the values of device parameters, each a list: `l2.bytes = ["16M", "32M"]`."""
    parameters: dict[str, Sequence[Setting]] = {}
    for stage, keys in tables.items() if isinstance(tables, dict) else [("", tables)]:
        if not isinstance(keys, dict):
            raise CutraceError(f'{where}: set: expected a key of a stage, say l2.bytes = ["16M"]')
        for key, value in keys.items():
            values = value if isinstance(value, list) else [value]
            if not values or not all(isinstance(v, int | str) for v in values):
                raise CutraceError(
                    f"{where}: set: {stage}.{key} = {value!r}; expected whole numbers or texts"
                )
            parameters[f"{stage}.{key}"] = tuple(values)
    return parameters


def words(settings: Mapping[str, Setting]) -> str:
    """Return settings as text for a title: `N=64 l2.bytes=16M`."""
    return " ".join(_words(settings))


def _text(table: Mapping[str, object], key: str, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise CutraceError(f"{where}: {key} = {value!r}; expected a text")
    return value


def _texts(table: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise CutraceError(f"{where}: {key} = {value!r}; expected a list of texts")
    return tuple(value)
