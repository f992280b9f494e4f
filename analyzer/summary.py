"""The facts of the first screen: one launch on one device, as Nsight Compute's user looks for them.

`summarize` collects them once; the terminal prints them as lines (`summary_text.py`), JSON as
fields.
"""

from collections.abc import Mapping

from ..base.dataclass import dataclass
from .counting.evaluate import Value
from .launch_profile import LaunchProfile

SECTOR = 32
IDEAL = "global_ideal_transactions"
UNITS = ("SM", "L1", "L2", "DRAM")
"""Units in the order of their bars."""


@dataclass(frozen=True, slots=True)
class GlobalAccess:
    """Requests to global memory, their transactions, and the fewest that would do.

    `unit` is `sectors`, or `transactions` where these have other sizes than 32 bytes. `used` is the
    part of the bytes moved by loads and stores that lanes asked for; None for atomics alone.
    """

    requests: int
    transactions: int
    ideal: int
    unit: str
    used: float | None
    has_atomics: bool = False


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """Requests to shared memory, their wavefronts, and the fewest that would do."""

    requests: int
    wavefronts: int
    ideal: int


@dataclass(frozen=True, slots=True)
class Caches:
    """Hit rates of loads, 0 to 1 (None: no such cache, or no load), and bytes of DRAM: all, and
    those written; then bytes over the link to the host.
    """

    l1_hit_rate: float | None
    l2_hit_rate: float | None
    dram_bytes: int
    dram_bytes_written: int
    host_bytes_read: int = 0
    host_bytes_written: int = 0


@dataclass(frozen=True, slots=True)
class Residency:
    """What fits on an SM, and the grid against all SMs.

    `limited_by` are the resources that would have to grow for one more block. `waves` is the number
    of times that the grid fills all SMs.
    """

    occupancy: float
    limited_by: tuple[str, ...]
    registers: int | None
    blocks: int
    sms: int
    waves: float

    @property
    def idle_sms(self) -> int:
        """SMs without a block."""
        return max(0, self.sms - self.blocks)


@dataclass(frozen=True, slots=True)
class Summary:
    """The facts of a launch on a device; None where a launch or a trace has none.

    `busy` is the utilization of UNITS over the estimated time, `stalls` the shares of a warp's
    time; both are empty without an estimate.
    """

    access: GlobalAccess | None
    shared: SharedAccess | None
    caches: Caches | None
    residency: Residency | None
    busy: Mapping[str, float]
    stalls: Mapping[str, float]


def summarize(launch: LaunchProfile) -> Summary | None:
    """Collect the facts of a launch; None if the device refuses it."""
    if launch.refusal:
        return None
    estimate = launch.estimate
    return Summary(
        _access(launch),
        _shared(launch),
        _caches(launch),
        _residency(launch),
        {unit: estimate.busy[unit] for unit in UNITS if unit in estimate.busy} if estimate else {},
        dict(estimate.stalls) if estimate else {},
    )


def _count(launch: LaunchProfile, *names: str) -> int:
    return sum(int(launch.counters[name] or 0) for name in names)


def _access(launch: LaunchProfile) -> GlobalAccess | None:
    requests = _count(launch, *(f"global_{a}_requests" for a in ("load", "store", "atomic")))
    transactions = _count(launch, "global_transactions")
    if not requests or not transactions:
        return None
    moved, ideal = _count(launch, "global_bytes_transferred"), launch.counters[IDEAL]
    unit = "sectors" if moved == SECTOR * transactions else "transactions"
    needed = transactions if ideal is None else int(ideal)
    used = _share(launch.counters["sector_efficiency"])
    has_atomics = _count(launch, "global_atomic_requests") > 0
    return GlobalAccess(requests, transactions, needed, unit, used, has_atomics)


def _shared(launch: LaunchProfile) -> SharedAccess | None:
    requests = _count(launch, *(f"shared_{a}_requests" for a in ("load", "store", "atomic")))
    wavefronts = _count(launch, "shared_wavefronts")
    ideal = _count(launch, "shared_ideal_wavefronts")
    return SharedAccess(requests, wavefronts, ideal) if requests and wavefronts else None


def _caches(launch: LaunchProfile) -> Caches | None:
    names = "dram_bytes_read", "dram_bytes_written"
    if all(launch.counters[name] is None for name in names):
        return None
    l1, l2 = (_share(launch.counters[f"{level}_hit_rate"]) for level in ("l1", "l2"))
    host = (_count(launch, f"host_bytes_{what}") for what in ("read", "written"))
    caches = Caches(l1, l2, _count(launch, *names), _count(launch, names[1]), *host)
    return caches if caches != Caches(None, None, 0, 0) else None


def _residency(launch: LaunchProfile) -> Residency | None:
    resident, sms = launch.occupancy, launch.raw.facts.get("sms") or 0
    if not resident.limits or not resident.blocks or not sms:
        return None
    return Residency(
        resident.active_warps / resident.max_warps,
        resident.limited_by,
        resident.registers,
        launch.launch.blocks,
        sms,
        launch.launch.blocks / (resident.blocks * sms),
    )


def _share(value: Value) -> float | None:
    return None if value is None else float(value)
