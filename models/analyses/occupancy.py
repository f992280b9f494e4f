"""Occupancy: the number of resident blocks per SM, and the resource that limits it.

Hardware: an SM has a limited number of blocks, warps, registers, bytes of shared memory and (from
9.0 on) named barriers. It admits a block when all of them suffice.

Model: NVIDIA's three calculators:

- `block` (1.x): registers are allocated per block. Its warps are rounded up to an even number, then
  its registers to 256 (1.0, 1.1) or 512 (1.2, 1.3).
- `spreadsheet` (2.x): registers are allocated per warp, rounded up to 64; the number of warps that
  the register file holds is rounded down to an even number.
- `header` (3.x on): registers are allocated per warp, rounded up to 256, in one of 4 partitions (2
  on 6.0); each must hold its warps. A launch is refused if its warps, rounded up to a multiple of
  4, need more registers than a block may have.

A trace has a register count for each of several architectures. A launch takes the count for the
device's own architecture, else for the newest older one, else for the oldest (sm_50 for devices
before 5.0); from 7.0 on at least 16. On 1.x the block's shared memory also holds the kernel's
parameters and 16 bytes more.

Limits: no achieved occupancy, which needs time; no partitioned global caching of 5.2 and 6.1.

Source: CUDA Occupancy Calculator 4.x (1.x, 2.x); `cuda_occupancy.h` of nvidia-cuda-runtime 12.9;
CUDA C Programming Guide 4.2, 4.2 and F.1; docs/validation.md for the minimum of registers and for
the carveout that a driver chooses, both measured on 9.0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...traces.schema import LANES, Launch, Resources
from ..replay.device.device import Device, Limits
from ..replay.interface.options import ReplayOptions

LAUNCH_BYTES = 16
"""Bytes of shared memory of a launch on 1.x beside the kernel's parameters."""
CHECKED_WARPS = 4
"""The multiple to which the launch check of 3.x and later rounds a block's warps up, also on 6.0.
"""
PERCENT = {"prefer_shared": 100, "equal": 50}
"""The percentage of shared memory of a cache configuration on 9.0, as measured."""
LEAST = "prefer_l1"
"""The configuration with the smallest size."""
CONFIGS = frozenset({*PERCENT, LEAST})


@dataclass(frozen=True, slots=True)
class Need:
    """Resources of one block: threads, registers per thread (None: unknown), bytes, barriers."""

    threads: int
    registers: int | None = None
    shared: int = 0
    barriers: int = 1

    @property
    def warps(self) -> int:
        """Warps of the block; the last one may be partly filled."""
        return -(-self.threads // LANES)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks on one SM. `limits` maps each used resource to the number of blocks that fit.

    `registers` are those per thread in this calculation; `registers_from` is their source.
    `carveout` is the number of bytes of the SM's memory that serve as shared memory. `refusal` is
    the reason why the device cannot launch such blocks, or empty.
    """

    need: Need
    max_warps: int
    limits: Mapping[str, int] = field(default_factory=dict)
    registers_from: str = ""
    carveout: int = 0
    refusal: str = ""

    @property
    def registers(self) -> int | None:
        """Registers per thread, or None if unknown."""
        return self.need.registers

    @property
    def blocks(self) -> int:
        """Resident blocks of one SM."""
        return min(self.limits.values())

    @property
    def active_warps(self) -> int:
        """Resident warps of one SM."""
        return self.blocks * self.need.warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """All resources that would have to grow for one more block."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)


def occupancy(
    limits: Limits, need: Need, cache_config: str | None = None, prefers: str = ""
) -> Occupancy:
    """Compute the blocks on one SM, from numbers alone.

    `cache_config` is a what-if setting, `prefers` is the program's preference for the kernel.
    """
    carveout = choose_carveout(limits, need, cache_config, prefers)
    ceilings = {
        "blocks": limits.blocks_per_sm,
        "warps": limits.warps_per_sm // need.warps,
        "registers": _CALCULATORS[limits.calculator](limits, need) if need.registers else None,
        "shared": _shared(limits, need, cache_config, carveout if prefers else None),
        "barriers": limits.barriers_per_sm // need.barriers if limits.barriers_per_sm else None,
    }
    refusal = _refuse(_check_threads(limits, need.threads))
    if refusal:
        ceilings["warps"] = 0
    block_limits = {name: blocks for name, blocks in ceilings.items() if blocks is not None}
    return Occupancy(need, limits.warps_per_sm, block_limits, carveout=carveout, refusal=refusal)


def launch_occupancy(
    device: Device, launch: Launch, barriers: int, options: ReplayOptions
) -> Occupancy:
    """Compute a launch's blocks on one SM, with the registers of the nearest architecture.

    `barriers` is the default number per block, where that architecture does not record it.
    """
    nearest = _nearest(device.capability, launch.resources) if launch.resources else None
    registers, source = _registers(device, nearest, options.registers)
    if registers is not None and options.registers is None:
        least = device.limits.registers_least
        if registers < least:
            registers, source = least, f"{source}: {registers} used, {least} allocated at least"
    if nearest and nearest.barriers >= 0:
        barriers = nearest.barriers
    shared = _shared_bytes(device.limits, launch)
    need = Need(launch.threads, registers, shared, max(1, barriers))
    preference = "" if options.cache_config else launch.prefers
    sm_occupancy = occupancy(device.limits, need, options.cache_config, preference)
    return replace(sm_occupancy, registers_from=source, refusal=refuse_launch(device, launch))


def choose_carveout(
    limits: Limits, need: Need, cache_config: str | None = None, prefers: str = ""
) -> int:
    """Return the carveout: the bytes of an SM that serve as shared memory.

    A what-if `cache_config` decides first. Next comes the program's preference for the kernel, as
    measured (tests/validate/carveouts_preferred.csv): that share of the maximum, or as many whole
    blocks as it would hold, with their reserved bytes, if that is more. By default the driver of
    devices with `carveout_roomy` takes the smallest size that holds the blocks that fit by threads,
    registers and shared memory; or, of two or more, twice as many, up to `carveout_roomy` bytes and
    up to as many blocks as an SM may hold, less one for each warp of a block. Without shared memory
    it takes the reserved bytes of 32 blocks, halved for each 256 threads of a block beyond the
    first. If barriers limit an SM to fewer blocks, that is the number that it may hold. Other
    devices take the maximum.
    """
    sizes, block_bytes = limits.shared_carveouts, _allocated_shared(limits, need)
    if not limits.carveout_roomy:
        config = prefers if prefers in CONFIGS else None
        return _carveout(limits, block_bytes, cache_config or config)
    if cache_config is not None:
        return _carveout(limits, block_bytes, cache_config)
    block_slots = limits.blocks_per_sm
    if limits.barriers_per_sm:
        block_slots = min(block_slots, limits.barriers_per_sm // need.barriers)
    most = min(block_slots, limits.warps_per_sm // need.warps)
    if need.registers:
        most = min(most, max(1, _CALCULATORS[limits.calculator](limits, need)))
    if need.shared and prefers:
        preference = _preferred(limits, prefers)
        target = max(preference, max(1, preference // need.shared) * block_bytes)
    elif not need.shared:
        target = limits.shared_reserved * min(32, block_slots) >> max(0, need.threads // 256 - 1)
        target = max(target, _preferred(limits, prefers)) if prefers else target
    else:
        roomy = most if most == 1 else min(2 * most, block_slots - need.warps)
        capacity = max(most, roomy) * block_bytes
        fitting = min(most, limits.shared_per_sm // block_bytes) * block_bytes
        target = max(fitting, min(capacity, limits.carveout_roomy))
    return next((size for size in sizes if size >= target), sizes[-1])


def _preferred(limits: Limits, prefers: str) -> int:
    """Return the bytes of shared memory that a program prefers."""
    if prefers == LEAST:
        return min(size for size in limits.shared_carveouts if size)
    percent = PERCENT[prefers] if prefers in PERCENT else int(prefers)
    return limits.shared_carveouts[-1] * percent // 100


def refuse_launch(device: Device, launch: Launch) -> str:
    """Return the reason why a device cannot launch, or `""`."""
    limits = device.limits
    return _refuse(
        _check_threads(limits, launch.threads),
        *_axes(launch.block, limits.block_dim, "threads a block"),
        *_axes(launch.grid, limits.grid_dim, "blocks"),
        (_shared_bytes(limits, launch), limits.shared_per_block, "bytes of shared memory a block"),
    )


Check: TypeAlias = tuple[int, int, str]
"""An extent, the most that a device allows, and words for it."""


def _check_threads(limits: Limits, threads: int) -> Check:
    return threads, limits.threads_per_block, "threads a block"


def _refuse(*checks: Check) -> str:
    """Return the first failing check in words, or `""`."""
    for extent, most, words in checks:
        if extent > most:
            return f"cannot launch: {most} {words} at most"
    return ""


def _axes(extents: Sequence[int], most: Sequence[int], words: str) -> list[Check]:
    return [(a, m, f"{words} in {axis}") for a, m, axis in zip(extents, most, "xyz", strict=True)]


def _shared_bytes(limits: Limits, launch: Launch) -> int:
    """Return the bytes of shared memory per block of this launch."""
    declared = launch.shared_static + launch.shared_dynamic
    if limits.calculator == "block":
        return declared + LAUNCH_BYTES + launch.parameter_bytes
    return declared


def _registers(
    device: Device, nearest: Resources | None, override: int | None
) -> tuple[int | None, str]:
    """Return the registers per thread, and their source."""
    if override is not None:
        return override, "given"
    if nearest is None:
        return None, "unknown: the trace has no resources"
    most = device.limits.registers_per_thread
    if nearest.registers > most:
        return most, f"{nearest.arch} ({nearest.registers}, of which {most} exist here)"
    return nearest.registers, nearest.arch


def _nearest(capability: tuple[int, int], resources: Sequence[Resources]) -> Resources:
    """Return the resources of the newest architecture up to `capability`, else of the oldest."""
    target = 10 * capability[0] + capability[1]
    ordered = sorted(resources, key=_number)
    older = [candidate for candidate in ordered if _number(candidate) <= target]
    return older[-1] if older else ordered[0]


def _number(resources: Resources) -> int:
    """Return 90 of `sm_90a`."""
    return int("".join(c for c in resources.arch if c.isdigit()))


def _up(value: int, unit: int) -> int:
    """Round up to a multiple."""
    return -(-value // unit) * unit


def _block(limits: Limits, need: Need) -> int:
    """Return the blocks by registers on 1.x."""
    warps = _up(need.warps, limits.warp_unit)
    registers = _up(warps * LANES * (need.registers or 0), limits.register_unit)
    return limits.registers_per_sm // registers


def _spreadsheet(limits: Limits, need: Need) -> int:
    """Return the blocks by registers on 2.x."""
    a_warp = _up((need.registers or 0) * LANES, limits.register_unit)
    warps = limits.registers_per_sm // a_warp // limits.warp_unit * limits.warp_unit
    return _if_allowed(limits, need, a_warp * need.warps, warps // need.warps)


def _header(limits: Limits, need: Need) -> int:
    """Return the blocks by registers on 3.x and later."""
    a_warp = _up((need.registers or 0) * LANES, limits.register_unit)
    warps = limits.registers_per_sm // limits.warp_unit // a_warp * limits.warp_unit
    checked = a_warp * _up(need.warps, CHECKED_WARPS)
    return _if_allowed(limits, need, checked, warps // need.warps)


def _if_allowed(limits: Limits, need: Need, registers: int, blocks: int) -> int:
    """Return 0 blocks if a block or thread has more registers than allowed."""
    too_many = (need.registers or 0) > limits.registers_per_thread
    return 0 if too_many or registers > limits.registers_per_block else blocks


_CALCULATORS: Mapping[str, Callable[[Limits, Need], int]] = {
    "block": _block,
    "spreadsheet": _spreadsheet,
    "header": _header,
}


def _shared(
    limits: Limits, need: Need, cache_config: str | None, carveout: int | None
) -> int | None:
    """Return the number of blocks that fit by shared memory, or None if they use none."""
    block_bytes = _allocated_shared(limits, need)
    if not block_bytes:
        return None
    if block_bytes > limits.shared_per_block + limits.shared_reserved:
        return 0
    return (
        _carveout(limits, block_bytes, cache_config) if carveout is None else carveout
    ) // block_bytes


def _allocated_shared(limits: Limits, need: Need) -> int:
    """Return the shared memory of a block, with the system's share."""
    return _up(need.shared + limits.shared_reserved, limits.shared_unit)


def _carveout(limits: Limits, block_bytes: int, cache_config: str | None) -> int:
    """Return the SM's shared memory: the preferred size, or a larger one if one block needs it."""
    sizes = limits.shared_carveouts
    if limits.carveout_fallback == "largest":
        presets = {"prefer_l1": sizes[0], "equal": sizes[len(sizes) // 2]}
        preferred = presets.get(cache_config or "", limits.shared_per_sm)
        return preferred if preferred >= block_bytes else limits.shared_per_sm
    percent = {"prefer_l1": 0, "equal": 50}.get(cache_config or "", 100)
    target = max(block_bytes, limits.shared_per_sm * percent // 100)
    return next((size for size in sizes if size >= target), sizes[-1])
