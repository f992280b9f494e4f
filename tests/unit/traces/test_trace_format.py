"""FORMAT.md says what the schema says, and its programs run."""

import re
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest

import cutrace
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import (
    FORMAT_VERSION,
    TABLES,
    Argument,
    Array,
    Compiler,
    Event,
    Kept,
    Launch,
    Manifest,
    Resources,
    Sample,
    Space,
    Texture,
)
from cutrace.traces.verify import verify

TEXT = (Path(cutrace.__path__[0]) / "traces" / "FORMAT.md").read_text("utf-8")
WRITING, READING = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
PRINTED = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)[-1]
ROWS = re.findall(r"^\| (\w+) \| (.+?) \| .*\|$", TEXT, re.MULTILINE)


def spelled(field: pa.Field) -> str:
    """A column's type as FORMAT.md spells it."""
    kind = field.type
    if pa.types.is_fixed_size_list(kind):
        return f"fixed-size list of {kind.list_size} {kind.value_type}"
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        return f"list of struct of {', '.join(inner.name for inner in kind.value_type)}"
    if pa.types.is_list(kind):
        return f"list of {kind.value_type}"
    return f"{kind} or null" if field.nullable else str(kind)


def test_every_column_is_there_in_order_with_its_type() -> None:
    order = ("instructions", "control", "paths", "accesses", "patterns", "lanes_on", "texels")
    columns = [(field.name, spelled(field)) for name in order for field in TABLES[name]]
    assert columns == [row for row in ROWS if row != ("column", "type")]


def test_every_table_is_named() -> None:
    assert all(f" {name}.arrow " in TEXT for name in TABLES)


@pytest.mark.parametrize(
    "kind", [Argument, Array, Compiler, Event, Kept, Launch, Manifest, Resources, Sample, Texture]
)
def test_every_key_of_the_manifest_is_named(kind: type) -> None:
    assert [field.name for field in fields(kind) if f"`{field.name}`" not in TEXT] == []


def test_every_space_is_named_with_its_number() -> None:
    assert all(f"{space.value} {space.name.lower()}" in TEXT for space in Space)
    assert f"version {FORMAT_VERSION}\n" in TEXT


def test_the_example_writes_a_sound_trace_of_three_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(WRITING, {})
    trace = read_trace("twice.cutrace")
    assert verify(trace) == []
    assert trace.launches[0].accesses().num_rows == 3
    exec(READING, {})
    assert capsys.readouterr().out == PRINTED
