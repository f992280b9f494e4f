"""Traces that somebody damaged: bits, bytes, whole files, the manifest's JSON, cells of tables."""

import copy
import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Damage: TypeAlias = Callable[[random.Random, Path, Sequence[Path]], None]
"""Does something to a trace; the others are traces that it may take files from."""

INTEGERS = (
    *(0, 1, -1, 2, 3, 31, 32, 33, 255, 1023, 1024, 1025, 65535, 65536, 1 << 20, (1 << 31) - 1),
    *(1 << 31, (1 << 32) - 1, 1 << 32, (1 << 53) + 1, 1 << 62, (1 << 63) - 1, 1 << 63, 1 << 64),
    *(-(1 << 31), -(1 << 63), 1 << 200, 10**30),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "x", "\u0000", "\x1b[31mred\x1b[0m", "../../x", "0", "inf", "<b>"),
    *("a" * 5000, 0.5, -0.0, 1e308, 1e-320, [], [[]], [1, 2, 3], {}, {"a": 1}, [0] * 2000),
)


def damage(number: int, sources: Sequence[Path], target: Path) -> Path:
    """Write damaged trace number so and so beside others in `target`; return its path."""
    chance = random.Random(number)
    path = target / f"{number}.cutrace"
    shutil.copytree(chance.choice(sources), path)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        chance.choice(DAMAGES)(chance, path, sources)
        if not path.is_dir():
            break
    return path


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file())


def _some_file(chance: random.Random, path: Path) -> Path:
    files = _files(path)
    manifest = [file for file in files if file.suffix == ".json"]
    return chance.choice(manifest if manifest and chance.random() < 0.2 else files)


def _flip_bits(chance: random.Random, path: Path, others: Sequence[Path]) -> None:
    file = _some_file(chance, path)
    data = bytearray(file.read_bytes())
    for _ in range(chance.choice([1, 1, 2, 8, 64]) if data else 0):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def _put_bytes(chance: random.Random, path: Path, others: Sequence[Path]) -> None:
    file = _some_file(chance, path)
    data = bytearray(file.read_bytes())
    if not data:
        return
    fill = chance.choice([b"\xff", b"\x00", b"\x7f", b"\x80", b"9"])
    length = chance.choice([1, 2, 4, 8, 16, 100])
    start = chance.randrange(len(data))
    data[start : start + length] = fill * min(length, len(data) - start)
    file.write_bytes(data)


def _truncate(chance: random.Random, path: Path, others: Sequence[Path]) -> None:
    file = _some_file(chance, path)
    data = file.read_bytes()
    end = data[-6:] if chance.random() < 0.5 else b""  # Arrow's magic, as if it were whole
    file.write_bytes(data[: chance.randrange(len(data) + 1)] + end)


def _insert(chance: random.Random, path: Path, others: Sequence[Path]) -> None:
    file = _some_file(chance, path)
    data = file.read_bytes()
    place = chance.randrange(len(data) + 1)
    start = chance.randrange(len(data) + 1)
    file.write_bytes(data[:place] + data[start : start + chance.randrange(64)] + data[place:])


def _remove(chance: random.Random, path: Path, others: Sequence[Path]) -> None:
    file = _some_file(chance, path)
    file.unlink()
    if chance.random() < 0.3:
        file.mkdir()


def _swap_files(chance: random.Random, path: Path, others: Sequence[Path]) -> None:
    one, other = _some_file(chance, path), _some_file(chance, path)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def _take_file(chance: random.Random, path: Path, others: Sequence[Path]) -> None:
    """Take a file of the same name from another trace, or another launch."""
    file = _some_file(chance, path)
    same = [each for other in others for each in _files(other) if each.name == file.name]
    file.write_bytes(chance.choice(same).read_bytes())


def _edit_manifest(chance: random.Random, path: Path, others: Sequence[Path]) -> None:
    file = path / "manifest.json"
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return
    for _ in range(chance.choice([1, 1, 2, 4])):
        _edit(chance, value)
    file.write_text(json.dumps(value))


def _edit(chance: random.Random, value: Any) -> None:
    """Change one place of a JSON value, deep inside more often than at the surface."""
    places = list(_places(value))
    if not places:
        return
    holder, key = chance.choice(places)
    old = holder[key]
    match chance.randrange(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, old)
        case 1:
            holder[f"{key}_"] = old
        case 2:
            other, there = chance.choice(places)
            if there in other if isinstance(other, dict) else there < len(other):
                holder[key] = copy.deepcopy(other[there])  # which may hold this place
        case 3:
            holder[key] = chance.choice(VALUES)
        case _ if isinstance(old, int):
            holder[key] = chance.choice([*INTEGERS, old + 1, old - 1, old * 1000])
        case _ if isinstance(old, str) and old:
            cut = chance.randrange(len(old))
            holder[key] = (
                old[:cut] + chance.choice(["", "é", "\\", "<<<", "9" * 40]) + old[cut + 1 :]
            )
        case _ if isinstance(old, list) and old:
            holder[key] = old * chance.choice([0, 2, 50]) if len(old) < 100 else old[::-1]


def _places(value: Any) -> Any:
    """Yield (holder, key) of every value inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _edit_table(chance: random.Random, path: Path, others: Sequence[Path]) -> None:
    """Change cells of a table, or its rows, and write it as a sound file."""
    tables = [file for file in _files(path) if file.suffix == ".arrow"]
    file = chance.choice(tables or [path / "none"])
    try:
        with pa.OSFile(str(file)) as source:
            table = pa.ipc.open_file(source).read_all().combine_chunks()
    except (OSError, pa.ArrowInvalid):
        return
    try:
        table = _edited(chance, table)
    except (pa.ArrowInvalid, OverflowError, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return
    options = pa.ipc.IpcWriteOptions(compression=chance.choice(["lz4", "zstd", None]))
    with (
        pa.OSFile(str(file), "wb") as sink,
        pa.ipc.new_file(sink, table.schema, options=options) as writer,
    ):
        writer.write_table(table, max_chunksize=chance.choice([1 << 20, 3]))


def _edited(chance: random.Random, table: pa.Table) -> pa.Table:
    rows = table.num_rows
    match chance.randrange(5):
        case 0:
            return table.take([chance.randrange(rows) for _ in range(rows)] if rows else [])
        case 1:
            return pa.concat_tables([table] * chance.choice([0, 2, 40]))
        case 2:
            return table.slice(0, chance.randrange(rows + 1))
        case _ if rows:
            name = chance.choice(table.schema.names)
            column, field = table[name].to_pylist(), table.schema.field(name)
            for _ in range(chance.choice([1, 2, rows])):
                place = chance.randrange(rows)
                column[place] = _changed(chance, column[place], field.type)
            number = table.schema.get_field_index(name)
            return table.set_column(number, field, pa.array(column, field.type))
    return table


def _changed(chance: random.Random, value: Any, kind: pa.DataType) -> Any:
    """Return another value of an Arrow type."""
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        among = (*INTEGERS, (value or 0) + 1, (value or 0) - 1, limits.min, limits.max)
        return chance.choice([each for each in among if limits.min <= each <= limits.max])
    if pa.types.is_boolean(kind):
        return not value
    if pa.types.is_string(kind):
        return chance.choice(["", "x", "%p1", "global", "bra", "ld.global.f32", str(value) * 40])
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return _changed_list(chance, list(value or ()), kind)
    return value


def _changed_list(chance: random.Random, value: list[Any], kind: pa.DataType) -> list[Any]:
    if pa.types.is_list(kind) and chance.random() < 0.4:
        return value * chance.choice([0, 2, 30])
    if value:
        place = chance.randrange(len(value))
        value[place] = _changed(chance, value[place], kind.value_type)
    return value


DAMAGES: tuple[Damage, ...] = (
    *(_flip_bits, _flip_bits, _put_bytes, _truncate, _insert, _remove, _swap_files, _take_file),
    *(_edit_manifest,) * 5,
    *(_edit_table,) * 5,
)
