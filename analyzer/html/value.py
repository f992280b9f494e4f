"""The values that the page's templates render, within the bounds of its size."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from markupsafe import Markup

from ...base.dataclass import dataclass
from ..counting.evaluate import Value

DRAWN = 6
"""Accesses that are drawn of a launch on a device."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of everything a page has room for.

    `launches` of a trace are shown in full, and `listed` in one line; `rows` of source, `pictures`
    of accesses and bytes of `text` in a line are for the page as a whole. More than `devices` are
    in charts only.
    """

    launches: int = 12
    listed: int = 1000
    rows: int = 4000
    pictures: int = 48
    text: int = 2000
    devices: int = 10

    def share(self, parts: int) -> "Bounds":
        """The bounds of one of several launches on devices: a part has DRAWN pictures at most."""
        parts = max(1, parts)
        pictures = min(DRAWN, max(1, self.pictures // parts)) if self.pictures else 0
        return replace(self, rows=self.rows // parts, pictures=pictures)

    def smaller(self) -> "Bounds":
        """Half of everything that can fill a page."""
        half = max(1, self.launches // 2), max(10, self.listed // 2), max(40, self.rows // 2)
        return Bounds(*half, self.pictures // 2, max(200, self.text // 2), self.devices)


@dataclass(frozen=True, slots=True)
class Cell:
    """A value, how it is written, and how long its bar is, 0 to 1."""

    value: Value
    text: str
    bar: float = 0.0
    is_best: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A counter with its explanation, a cell a column."""

    name: str
    doc: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Counters in rows. `title` may be empty."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure to be seen from afar; `is_bad` where there is advice on it."""

    title: str
    figure: str
    detail: str
    is_bad: bool


@dataclass(frozen=True, slots=True)
class CostlyLine:
    """A line that costs: its part of the launch's traffic, and the sentence on its worst access."""

    place: str
    text: str
    share: float
    what: str
    sentence: str
    target: str


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding of a rule; `target` is where its picture is, or empty."""

    rule: str
    place: str
    what: str
    evidence: str
    change: str
    share: float | None
    access: str
    target: str


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A line with its counters; `heats` are its parts of each measure; `skipped` lines came before.

    `number` is empty for an instruction. `target` is where the picture of its worst access is.
    `marked` is the text with its words marked, if its language is known; a line that is `far` from
    those that cost is folded away. `ptx` are the instructions of the line.
    """

    number: str
    text: str
    cells: tuple[Cell, ...]
    heats: Mapping[str, float]
    target: str
    skipped: int = 0
    marked: Markup | None = None
    far: bool = False
    ptx: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows one below the other that are shown, or folded away where they are `far`."""

    far: bool
    rows: tuple[SourceRow, ...]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, or the instructions of a kernel without line information.

    A column has the counter's heading, what it counts, and the kind of traffic that it is of.
    """

    name: str
    columns: tuple[tuple[str, str, str], ...]
    rows: tuple[SourceRow, ...]
    left_out: int

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The rows in runs of those that are far and those that are not."""
        runs = groupby(self.rows, key=lambda row: row.far)
        return tuple(Fold(far, tuple(rows)) for far, rows in runs)


@dataclass(frozen=True, slots=True)
class Source:
    """All files of a launch, its arrays, and the measures that can shade lines: key and words."""

    files: tuple[SourceFile, ...]
    arrays: SourceFile
    measures: tuple[tuple[str, str], ...]
    has_lines: bool
    flame: str = ""

    @property
    def has_ptx(self) -> bool:
        """Whether the instructions of lines can be shown."""
        return any(row.ptx for file in self.files for row in file.rows)


@dataclass(frozen=True, slots=True)
class Picture:
    """The worst access of a line, drawn."""

    key: str
    place: str
    text: str
    sentence: str
    reason: str
    warp: str
    access: str
    ptx: str
    svg: str


@dataclass(frozen=True, slots=True)
class Curves:
    """How many warps an SM holds, in a sentence, and against what."""

    sentence: str
    limits: tuple[tuple[str, int, bool], ...]
    drawings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DevicePart:
    """A launch on one device; everything below `refusal` is empty where it cannot run."""

    key: str
    device: str
    name: str
    refusal: str
    notes: tuple[str, ...] = ()
    tiles: tuple[Tile, ...] = ()
    costly: tuple[CostlyLine, ...] = ()
    advice: tuple[Advice, ...] = ()
    source: Source | None = None
    flow: str = ""
    reuse: str = ""
    limits: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    curves: Curves | None = None


@dataclass(frozen=True, slots=True)
class LaunchPart:
    """A launch in full.

    `equal_launches` are the launches of its kernel and shape of which it is the worst, itself
    included; `is_first` is what a page with scripts shows until another is chosen. `charts` draw
    counters over the devices, where these are many: `charted`, of which `devices` may be a part.
    """

    key: str
    variant: str
    number: int
    heading: str
    signature: str
    facts: tuple[tuple[str, str], ...]
    equal_launches: int
    is_first: bool
    glance: Table
    tables: tuple[Table, ...]
    zeros: tuple[str, ...]
    devices: tuple[DevicePart, ...]
    charts: tuple[str, ...] = ()
    charted: int = 0


@dataclass(frozen=True, slots=True)
class Listed:
    """A launch in one line: bytes moved on each device, None where it cannot run.

    `key` is where it is shown in full, or the launch `instead` of it.
    """

    number: int
    heading: str
    moved: tuple[Cell, ...]
    key: str
    instead: int | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """A trace: its launches in full and in lines, and how many of the latter are left out."""

    name: str
    launches: tuple[LaunchPart, ...]
    listed: tuple[Listed, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Variants on a device: the counters that matter first, then the others that differ."""

    device: str
    title: str
    refusals: tuple[str, ...]
    first: Table
    more: Table


@dataclass(frozen=True, slots=True)
class TwinLine:
    """A line of one of two sources, `number` None where it has none; `part` is that of the most."""

    number: int | None
    text: str
    cost: int
    part: float


@dataclass(frozen=True, slots=True)
class TwinRow:
    """A line of each of two sources."""

    left: TwinLine
    right: TwinLine

    @property
    def differs(self) -> bool:
        """Whether the two are not the same text."""
        return self.left.text.strip() != self.right.text.strip()


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The sources of two variants on a device, and what their lines are shaded by."""

    device: str
    names: tuple[str, str]
    what: str
    rows: tuple[TwinRow, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A control of a served page: its name, its value, an example of a value, the choices."""

    name: str
    value: str
    like: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Served:
    """The state of a live page.

    `number` counts the results, `at` is when the last was had, after so many `seconds`; `error` is
    why the present source has none, and `changes` are what differs from the result before.
    """

    source: str
    number: int
    at: str
    seconds: float
    error: str
    changes: tuple[Comparison, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The whole page."""

    title: str
    devices: tuple[tuple[str, str], ...]
    variants: tuple[Variant, ...]
    comparisons: tuple[Comparison, ...]
    remarks: tuple[str, ...]
    command: str
    twins: tuple[SideBySide, ...] = ()
