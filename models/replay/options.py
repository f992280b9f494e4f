"""What a user chooses for a replay."""

from dataclasses import dataclass

from ...errors import CutraceError, nearest

DLCM = ("ca", "cg")
CACHE_CONFIGS = ("prefer_shared", "prefer_l1", "equal")
SCHEDULES = ("round-robin", "greedy-oldest")


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How to replay, for all devices of one call.

    `profiled_blocks`: blocks of the profiled cluster (None: its round-robin share). `dlcm`: cache
    operator of global loads that name none. `cache_config`: how L1 and shared memory share their
    space (None: as much shared memory as there is). `registers`: a thread's, instead of the
    assembler's. `as_if`: count a launch that the device refuses. `schedule`: the order of warps
    (`schedule.py`). `caches`: count the stages that keep state too, which takes most of the time.

    Raises `CutraceError` for a value that does not exist.
    """

    profiled_blocks: int | None = None
    dlcm: str = "ca"
    cache_config: str | None = None
    registers: int | None = None
    as_if: bool = False
    schedule: str = SCHEDULES[0]
    caches: bool = True

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        _choose("dlcm", self.dlcm, DLCM)
        _choose("schedule", self.schedule, SCHEDULES)
        if self.cache_config is not None:
            _choose("cache_config", self.cache_config, CACHE_CONFIGS)
        for name in ("profiled_blocks", "registers"):
            value: int | None = getattr(self, name)
            if value is not None and value < 1:
                raise CutraceError(f"{name} is {value}; expected 1 or more")


def _choose(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise CutraceError(
            f"{name} is {value!r}; expected {' or '.join(known)}{nearest(value, known)}"
        )
