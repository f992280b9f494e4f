"""The data model of the page: the values that the templates render, and the bounds of its size."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from markupsafe import Markup

from ...base.dataclass import dataclass
from ..report.document import Cell, Table

DRAWN = 6
"""Maximum number of accesses drawn per launch and device."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Maximum amounts of content on a page.

    `launches` of a trace are shown in full, and `listed` in one line; `rows` of source, `pictures`
    of accesses and bytes of `text` in a line apply to the whole page. Beyond `devices`, devices
    appear in charts only.
    """

    launches: int = 12
    listed: int = 1000
    rows: int = 4000
    pictures: int = 48
    text: int = 2000
    devices: int = 10

    def share(self, parts: int) -> "Bounds":
        """Return the bounds of one of several parts (launch and device): at most DRAWN pictures
        each.
        """
        parts = max(1, parts)
        pictures = min(DRAWN, max(1, self.pictures // parts)) if self.pictures else 0
        return replace(self, rows=self.rows // parts, pictures=pictures)

    def smaller(self) -> "Bounds":
        """Return bounds with half of everything that can fill a page."""
        half = max(1, self.launches // 2), max(10, self.listed // 2), max(40, self.rows // 2)
        return Bounds(*half, self.pictures // 2, max(200, self.text // 2), self.devices)


@dataclass(frozen=True, slots=True)
class Tile:
    """A large figure; `is_bad` if there is advice on it."""

    title: str
    figure: str
    detail: str
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class CostlyLine:
    """A costly line: its share of the launch's traffic, and a sentence on its worst access."""

    place: str
    text: str
    share: float
    what: str
    sentence: str
    target: str


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding of a rule; `target` is the link target of its picture, or empty, as is `gain`."""

    rule: str
    place: str
    what: str
    evidence: str
    change: str
    share: float | None
    access: str
    target: str
    gain: str


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A line with its counters; `heats` are its shares of each measure; `skipped` lines precede it.

    `number` is empty for an instruction. `target` is the link target of the picture of its worst
    access. `marked` is the highlighted text, if its language is known; a line that is `far` from
    any with a cost is folded. `ptx` are the instructions of the line.
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
    """A run of rows that are shown, or folded if they are `far`."""

    far: bool
    rows: tuple[SourceRow, ...]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, or the instructions of a kernel without line information.

    A column has the counter's heading, its description, and its kind of traffic.
    """

    name: str
    columns: tuple[tuple[str, str, str], ...]
    rows: tuple[SourceRow, ...]
    left_out: int

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Return the rows in alternating runs of near and far ones."""
        runs = groupby(self.rows, key=lambda row: row.far)
        return tuple(Fold(far, tuple(rows)) for far, rows in runs)


@dataclass(frozen=True, slots=True)
class Source:
    """All files of a launch, its arrays, and the measures that can shade lines: key and label."""

    files: tuple[SourceFile, ...]
    arrays: SourceFile
    measures: tuple[tuple[str, str], ...]
    has_lines: bool
    flame: str = ""

    @property
    def has_ptx(self) -> bool:
        """Return whether the instructions of lines can be shown."""
        return any(row.ptx for file in self.files for row in file.rows)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing of the worst access of a line."""

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
    """Occupancy curves, with the number of warps that an SM holds as a sentence."""

    sentence: str
    limits: tuple[tuple[str, int, bool], ...]
    drawings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DevicePart:
    """A launch on one device; everything below `refusal` is empty if it cannot run."""

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
    """A launch in full, the worst of its kernel and shape.

    `equal_launches` are all launches of that kernel and shape, itself included; `is_first` marks
    the launch that a page with scripts shows initially. `charts` compare counters over the devices
    `charted`, if these are many; `devices` may be a subset.
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

    `key` is the link target of its full description, or of the launch `instead` that represents it;
    `name` is the kernel's whole name.
    """

    number: int
    heading: str
    name: str
    moved: tuple[Cell, ...]
    key: str
    instead: int | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """A trace: its launches in full and in lines, and the number of omitted lines."""

    name: str
    launches: tuple[LaunchPart, ...]
    listed: tuple[Listed, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Variants on a device: the verdict of their times, the main counters, others that differ."""

    device: str
    title: str
    refusals: tuple[str, ...]
    first: Table
    more: Table
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class TwinLine:
    """A line of one of two sources, `number` None if absent; `part` is its share of the maximum."""

    number: int | None
    text: str
    cost: int
    part: float


@dataclass(frozen=True, slots=True)
class TwinRow:
    """A pair of lines, one from each of two sources."""

    left: TwinLine
    right: TwinLine

    @property
    def differs(self) -> bool:
        """Return whether the two texts differ."""
        return self.left.text.strip() != self.right.text.strip()


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The sources of two variants on a device, and the measures that shade their lines."""

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

    `number` counts the results, `at` is the time of the last one, which took `seconds`; `error` is
    the reason if the current source has no result, and `changes` are the differences from the
    previous result.
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
