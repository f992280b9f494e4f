"""The options of a replay, each defined once for the command line and for Python."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from ....base.config import is_whole, read_size
from ....base.dataclass import dataclass
from ....base.errors import CutraceError, nearest
from ....base.executor import Executor
from ....base.options import NOTHING, option
from ....base.progress import ignore

DEFAULT_DEVICE = "h100"
MOST = (1 << 31) - 1
"""The largest number of blocks, registers or processes."""
DLCM = ("ca", "cg")
CACHE_CONFIGS = ("prefer_shared", "prefer_l1", "equal")
SCHEDULES = ("round-robin", "greedy-oldest")
WARM = "warm"
L2 = ("cold", WARM)
SCOPES = ("cluster", "all")
CODE = ("assembled", "ptx")
_CHOICES = {
    **{"scope": SCOPES, "dlcm": DLCM, "code": CODE, "schedule": SCHEDULES},
    **{"cache_config": CACHE_CONFIGS, "l2": L2},
}


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of replay and counting, for all devices of one call.

    `tell` is called with the share that is done, from 0 to 1, in place of who listens. An
    `executor` runs replays in place of processes on this machine.

    Raises `CutraceError` for a value that does not exist.
    """

    device: str | Sequence[str] = option(
        (),
        "Devices: names of `cutrace devices`, or device files (default: $CUTRACE_DEVICE, else"
        f" {DEFAULT_DEVICE}).",
        "NAME,...",
        *("--device", "-d"),
        commas=True,
    )
    profiled_blocks: int | None = option(
        None, "Blocks assigned to the profiled TPC (default: an equal share).", "N"
    )
    scope: str = option(
        SCOPES[0],
        "Count one SM or TPC (cluster), as the first profilers did, or the whole grid.",
        "|".join(SCOPES),
    )
    dlcm: str = option(DLCM[0], "Cache global loads in L1 and L2, or in L2 only.", "|".join(DLCM))
    code: str = option(
        CODE[0],
        "Count loads and stores of the machine code (SASS, from 7.0 on), or of the PTX.",
        "|".join(CODE),
        choices=CODE,
    )
    cache_config: str | None = option(
        None, "How L1 and shared memory divide their space.", "|".join(CACHE_CONFIGS)
    )
    schedule: str = option(
        SCHEDULES[0],
        "The order of warps that caches see: warps in turn, or the oldest warp until it must wait.",
        "|".join(SCHEDULES),
    )
    l2: str = option(
        L2[0],
        "L2 before a launch: empty, or with what the same launch left, as in a loop that times it.",
        "|".join(L2),
    )
    registers: int | None = option(None, "Registers a thread (default: what ptxas assigns).", "N")
    set: Mapping[str, object] = option(
        NOTHING,
        "Override a value of the device file, say coalescer.load=sector.",
        "STAGE.KEY=VALUE",
    )
    as_if: bool = option(False, "Count a launch even on a device that cannot run it.")
    caches: bool = option(True, "Do not replay caches: no hits, misses or bounds, but much faster.")
    pad: Mapping[str, int | str] = option(
        NOTHING,
        "What-if: pad each row of an array by N elements. ROW is the row length, if the trace"
        " does not have it.",
        "ARRAY=[ROW+]N",
    )
    align: Mapping[str, int | str] = option(
        NOTHING,
        "What-if: align an array to a multiple of BYTES, or to BEYOND bytes past one.",
        "ARRAY=BYTES[+BEYOND]",
    )
    jobs: int | None = option(
        None,
        "Replay launches or devices in N processes, at most one a core (default: one process,"
        " or all cores for replays of more than some seconds).",
        "N",
    )

    tell: Callable[[float], None] = field(default=ignore, repr=False, compare=False)
    executor: Executor | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        for name, choices in _CHOICES.items():
            choice: str | None = getattr(self, name)
            if choice is not None and choice not in choices:
                expected = f"{' or '.join(choices)}{nearest(choice, choices)}"
                raise CutraceError(f"{name} is {choice!r}; expected {expected}")
        for name in ("profiled_blocks", "registers", "jobs"):
            value: int | None = getattr(self, name)
            if value is not None and not 1 <= value <= MOST:
                expected = "1 or more" if value < 1 else f"at most {MOST}"
                raise CutraceError(f"{name} is {value}; expected {expected}")

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that were named; none if the environment chooses."""
        return (self.device,) if isinstance(self.device, str) else tuple(self.device)

    @property
    def of_a_device(self) -> "ReplayOptions":
        """The options on which the counts of one device and one trace depend; the others are
        defaults.

        `pad` and `align` are part of the trace that is replayed, `set` of the device.
        """
        return replace(self.for_worker, device=(), set={}, pad={}, align={}, scope=SCOPES[0])

    @property
    def for_worker(self) -> "ReplayOptions":
        """The options for a worker process, without progress reports."""
        return replace(self, jobs=1, tell=ignore, executor=None)


MOST_BYTES = 1 << 47
"""The exclusive limit of device addresses."""

Wish = int | str
"""A number, or a text with a `+` in it."""


@dataclass(frozen=True, slots=True)
class Pad:
    """Padding of an array's rows by `elements`; a row has `row` elements, None to infer them."""

    array: str
    elements: int
    row: int | None = None

    def __str__(self) -> str:
        return f"pad {self.array}={'' if self.row is None else f'{self.row}+'}{self.elements}"


@dataclass(frozen=True, slots=True)
class Alignment:
    """An alignment of an array: it begins `beyond` bytes past a multiple of `bytes`."""

    array: str
    bytes: int
    beyond: int = 0

    def __str__(self) -> str:
        return f"align {self.array}={self.bytes}{f'+{self.beyond}' if self.beyond else ''}"


@dataclass(frozen=True, slots=True)
class Changes:
    """All what-if changes of one trace, by the arrays' names."""

    pads: Mapping[str, Pad]
    alignments: Mapping[str, Alignment]

    def names(self) -> frozenset[str]:
        """The arrays that are named."""
        return frozenset((*self.pads, *self.alignments))


def read_changes(pad: Mapping[str, Wish], align: Mapping[str, Wish]) -> Changes:
    """Parse what-if changes; raises `CutraceError` for invalid ones."""
    return Changes(
        {name: _read_pad(name, wish) for name, wish in pad.items()},
        {name: _read_alignment(name, wish) for name, wish in align.items()},
    )


def _read_pad(name: str, wish: Wish) -> Pad:
    first, second = _numbers("pad", name, wish, "N or ROW+N, elements")
    pad = Pad(name, first) if second is None else Pad(name, second, first)
    if pad.elements < 1 or (pad.row is not None and pad.row < 1):
        raise CutraceError(f"{pad}: expected 1 or more")
    return pad


def _read_alignment(name: str, wish: Wish) -> Alignment:
    first, second = _numbers("align", name, wish, "BYTES or BYTES+BEYOND")
    alignment = Alignment(name, first, second or 0)
    if first < 1 or first.bit_count() != 1:
        raise CutraceError(f"{alignment}: expected a power of two")
    if alignment.beyond >= first:
        raise CutraceError(f"{alignment}: expected less than {first} bytes beyond")
    return alignment


def _numbers(option: str, name: str, wish: Wish, expected: str) -> tuple[int, int | None]:
    """Parse one number, or the two around a `+`."""
    words = [str(read_size(word.strip())) for word in str(wish).split("+")]
    if len(words) > 2 or not all(is_whole(word) for word in words):
        raise CutraceError(f"{option} {name}={str(wish)[:60]}: expected {expected}")
    first, *tail = map(int, words)
    if max((first, *tail)) > MOST_BYTES:
        raise CutraceError(f"{option} {name}={wish}: expected at most {MOST_BYTES}")
    return first, tail[0] if tail else None
