"""The launches that the page shows in full, each representing others.

Launches with the same kernel, grid and block are a family. Its worst launch is shown first: the one
with the most excess transactions and wavefronts, then the one that moves most bytes. Where there is
room, launches of the family with other scalar arguments are shown too.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from ...lazy_dataclass import dataclass
from ...models.replay.options import DEFAULT_DEVICE
from ..launch_profile import LaunchProfile
from ..profile import Profile
from .figures import moved_bytes

EXCESS = (
    *((f"global_{act}_transactions", f"global_{act}_ideal_transactions") for act in
      ("load", "store", "atomic", "reduction")),
    ("const_load_passes", "const_load_ideal_passes"),
)  # fmt: skip
"""Raw counters, and those of them that the same accesses need at least."""
CONFLICTS = tuple(f"shared_{act}_conflicts" for act in ("load", "store", "atomic", "reduction"))


@dataclass(frozen=True, slots=True)
class Choice:
    """The launches shown in full; `speaks` maps every launch to the one that is shown for it.

    `family` holds how many launches of its kernel and shape there are, for the worst of them;
    `first` is the worst of the family that costs most, None where nothing was launched.
    """

    first: int | None
    shown: tuple[int, ...]
    speaks: Mapping[int, int]
    family: Mapping[int, int]


def choose_devices(profile: Profile, room: int) -> tuple[str, ...]:
    """The devices that are shown in full: all if they have room, else one of each generation.

    Of a generation it is the newest board, and an architecture (sm_NN) where there is none; the
    default device stands first, then the newest of all.
    """
    capabilities = {p.device: p.capability for p in profile.launches}
    if len(capabilities) <= room:
        return tuple(capabilities)
    ordered = sorted(capabilities, key=lambda name: (name[:3] != "sm_", capabilities[name]))
    newest = {capabilities[name][0]: name for name in ordered}
    if DEFAULT_DEVICE in capabilities:
        newest[capabilities[DEFAULT_DEVICE][0]] = DEFAULT_DEVICE
    ordered = [newest[generation] for generation in sorted(newest, reverse=True)]
    ordered.sort(key=lambda name: name != DEFAULT_DEVICE)
    return tuple(ordered[:room])


def choose(profile: Profile, room: int) -> Choice:
    """Choose at most `room` launches: the worst of each family, then the worst of the others."""
    families: dict[tuple[object, ...], list[int]] = {}
    cost = _costs(profile)
    for number in profile.numbers:
        launch = profile.of(number)[0].launch
        key = (launch.kernel, launch.grid, launch.block, launch.shared_dynamic)
        families.setdefault(key, []).append(number)
    by_cost = [sorted(each, key=lambda n: (*map(_minus, cost[n]), n)) for each in families.values()]
    by_cost.sort(key=lambda each: -sum(cost[number][1] for number in each))
    kept = by_cost[:room]
    worst = [each[0] for each in kept]
    others = [number for each in kept for number in _with_other_scalars(profile, each)]
    others.sort(key=lambda number: (*map(_minus, cost[number]), number))
    shown = sorted((*worst, *others[: room - len(worst)]))
    speaks = {
        number: number if number in shown else _spokesman(profile, number, each, shown)
        for each in kept
        for number in each
    }
    return Choice(
        next(iter(worst), None), tuple(shown), speaks, {each[0]: len(each) for each in kept}
    )


def count_excess(launch: LaunchProfile) -> int:
    """Transactions and passes that another order of the lanes' addresses would save."""
    counts = launch.raw.counts
    names = {name for pair in EXCESS for name in pair} | {*CONFLICTS}
    known = [name for name in counts.columns if name in names]
    if not known or not counts.height:
        return 0
    sums = counts.select(pl.col(known).sum()).row(0, named=True)
    beyond = sum((sums.get(had) or 0) - (sums.get(least) or 0) for had, least in EXCESS)
    return beyond + sum(sums.get(name) or 0 for name in CONFLICTS)


def _costs(profile: Profile) -> Mapping[int, tuple[int, int]]:
    """Every launch's cost; of launches that did the same it is worked out once."""
    known: dict[int, tuple[int, int]] = {}
    for number in profile.numbers:
        on = profile.of(number)
        same = on[0].origin.number
        known[number] = known[same] if same in known else _cost(on)
    return known


def _cost(on: Sequence[LaunchProfile]) -> tuple[int, int]:
    """A launch's excess and bytes on the device that suffers most."""
    running = [(count_excess(p), moved_bytes(p)) for p in on if not p.refusal]
    return max(running, default=(0, 0))


def _minus(value: int) -> int:
    return -value


def _scalars(profile: Profile, number: int) -> tuple[object, ...]:
    """The arguments that are no arrays."""
    arguments = profile.of(number)[0].launch.arguments
    return tuple((a.name, a.value) for a in arguments if a.name != a.value)


def _with_other_scalars(profile: Profile, family: Sequence[int]) -> list[int]:
    """The worst launch for each set of scalar arguments, without that of the family's worst."""
    first: dict[tuple[object, ...], int] = {}
    for number in family:
        first.setdefault(_scalars(profile, number), number)
    return [number for number in first.values() if number != family[0]]


def _spokesman(profile: Profile, number: int, family: Sequence[int], shown: Sequence[int]) -> int:
    """The launch shown with the same scalars, else the family's worst."""
    mine = _scalars(profile, number)
    alike = (n for n in family if n in shown and _scalars(profile, n) == mine)
    return next(alike, family[0])
