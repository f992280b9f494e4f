"""The explanation of a line on each device: the value that the text and the drawing show."""

from collections.abc import Collection, Iterator, Sequence

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...models.analyses.occupancy import refuse_launch
from ...models.replay.device.device import Device, load_devices
from ...models.replay.interface.options import ReplayOptions
from ...models.replay.replay import check_code
from ...models.replay.suppose import suppose
from ...traces.reader import LaunchTrace, Trace
from ...traces.schema import Array
from ..profile import first_alike
from ..text.launch_text import NO_LAUNCHES, launch_text
from .picture import Group, draw_groups
from .place import Place, instructions_on, no_access, read_place
from .search import Access, Searcher, read_identifier
from .sentence import describe_access, give_reason, summarize


@dataclass(frozen=True, slots=True)
class Explanation:
    """One access on one device.

    `place` is its source line, None if unknown, with the text `source`; `ptx` is the instruction.
    `sentence` states the cost, `reason` its cause, or is empty. `others` are the worst accesses of
    the line's other instructions. If the device refuses every launch, `refusal` states why, and the
    other fields are empty.
    """

    device: str
    device_name: str
    refusal: str = ""
    access: Access | None = None
    launch: str = ""
    block: tuple[int, int, int] = (0, 0, 0)
    place: Place | None = None
    source: str = ""
    ptx: str = ""
    arrays: tuple[Array, ...] = ()
    groups: tuple[Group, ...] = ()
    sentence: str = ""
    reason: str = ""
    others: tuple[str, ...] = ()


def explain(
    trace: Trace,
    where: str | None,
    options: ReplayOptions,
    identifier: str | None = None,
) -> tuple[Explanation, ...]:
    """Explain on each device the worst access of a line, or the access with this identifier.

    `where` is FILE:LINE. Without both, the worst access of all is explained: the worst on the first
    device that can run it, and the same access on the others, so that pictures can be compared. If
    another access is worse on such a device, it is among `others`. Raises `CutraceError` for a
    line, access or device that does not exist.
    """
    trace = suppose(trace, options.pad, options.align)
    devices = load_devices(options.devices, options.set)
    if not trace.launches:
        raise CutraceError(f"{trace.label}: {NO_LAUNCHES}")
    place = read_place(where, trace) if where else None
    location = read_identifier(identifier) if identifier else None
    explained: list[Explanation] = []
    for device in devices:
        for launch in trace.launches:
            check_code(launch, device)
        explainer = _Explainer(trace, device, place, options.dlcm, options.as_if)
        explained.append(explainer.explain(location) if location else explainer.follow(explained))
    return tuple(explained)


def explain_worst(
    trace: Trace, number: int, device: Device, dlcm: str, groups: Sequence[Collection[int]]
) -> list[Explanation | None]:
    """Explain the worst access of each group of instructions of one launch; None without any.

    Does not check whether the device refuses the launch.
    """
    launch = trace.launch(number)
    accesses = Searcher(launch, device, dlcm).worst(None)
    places = launch.instructions().select(["file", "line"]).to_pylist()
    explained: list[Explanation | None] = []
    for pcs in groups:
        mine = [access for access in accesses if access.pc in pcs]
        if not mine:
            explained.append(None)
            continue
        at = places[mine[0].pc]
        place = Place(at["file"], at["line"]) if at["line"] else None
        explainer = _Explainer(trace, device, place, dlcm, True)
        explained.append(explainer.describe(mine[0], mine[1:]))
    return explained


@dataclass(frozen=True, slots=True)
class _Explainer:
    """Explains accesses on one device."""

    trace: Trace
    device: Device
    place: Place | None
    dlcm: str
    as_if: bool

    def explain(self, identifier: tuple[int, ...]) -> Explanation:
        """Explain the access with this identifier."""
        accesses = self._find(identifier)
        return self.describe(accesses[0], ()) if accesses else self._refuse(identifier[0])

    def follow(self, before: Sequence[Explanation]) -> Explanation:
        """Explain the access that another device's explanation shows, else the worst on this
        device.
        """
        worst = self._worst()
        if not worst:
            return self._refuse(self.trace.launches[0].number)
        shown = next((e.access for e in before if e.access), worst[0])
        accesses = self._find(read_identifier(shown.identifier)) or worst[:1]
        others = (a for a in worst if a.pc != accesses[0].pc or a.order > accesses[0].order)
        return self.describe(accesses[0], [*others])

    def _refuse(self, number: int) -> Explanation:
        """Return an explanation with the reason why the device cannot run a launch."""
        refusal = refuse_launch(self.device, self.trace.launch(number).launch)
        return Explanation(self.device.key, self.device.name, refusal)

    def _find(self, identifier: tuple[int, ...]) -> list[Access]:
        """Return the access with this identifier; empty if the device refuses its launch."""
        number, *position = identifier
        launch = self.trace.launch(number)
        if not self._runs(launch):
            return []
        access = Searcher(launch, self.device, self.dlcm).find(position)
        if access is None:
            raise CutraceError(
                f"no access {'.'.join(map(str, identifier))} in {self.trace.label}; `cutrace why`"
                " with a source line names one"
            )
        return [access]

    def _worst(self) -> list[Access]:
        """Return the worst access of each instruction of the line in any launch, worst first.

        Launches that repeat an earlier one are skipped.
        """
        accessed: list[Collection[int]] = [()] * len(self.trace.launches)
        accesses: list[Access] = []
        first = first_alike(self.trace.launches)
        for number, launch in enumerate(self.trace.launches):
            if first[number] != number:
                accessed[number] = accessed[first[number]]
                continue
            searcher = Searcher(launch, self.device, self.dlcm)
            pcs = instructions_on(launch, self.place) if self.place else None
            if self._runs(launch):
                accesses += searcher.worst(pcs)
            accessed[number] = searcher.accessed() if not accesses else ()
        refused = [one for one in self.trace.launches if not self._runs(one)]
        if not accesses and len(refused) < len(accessed):
            raise self._nothing(accessed)
        return sorted(accesses, key=lambda access: access.order, reverse=True)

    def _nothing(self, accessed: Sequence[Collection[int]]) -> CutraceError:
        if self.place:
            return no_access(self.place, self.trace, accessed)
        return CutraceError(f"{self.trace.label}: no launch accesses memory")

    def _runs(self, launch: LaunchTrace) -> bool:
        return self.as_if or not refuse_launch(self.device, launch.launch)

    def describe(self, access: Access, others: Sequence[Access]) -> Explanation:
        """Build the explanation of an access."""
        trace = self.trace.launch(access.launch)
        row = trace.instructions().slice(access.pc, 1).to_pylist()[0]
        place = self.place or (Place(row["file"], row["line"]) if row["line"] else None)
        lines = self.trace.manifest.sources.get(place.file, "").splitlines() if place else []
        grid, groups = trace.launch.grid, draw_groups(access)
        return Explanation(
            device=self.device.key,
            device_name=self.device.name,
            access=access,
            launch=launch_text(trace.launch),
            block=(
                access.block % grid[0],
                access.block // grid[0] % grid[1],
                access.block // grid[0] // grid[1],
            ),
            place=place,
            source=lines[place.line - 1].strip() if place and place.line <= len(lines) else "",
            ptx=row["text"],
            arrays=trace.launch.arrays,
            groups=groups,
            sentence=describe_access(access, groups, self.device.capability),
            reason=give_reason(access, groups, self.device.capability),
            others=tuple(self._others(access, others)),
        )

    def _others(self, shown: Access, others: Sequence[Access]) -> Iterator[str]:
        """Yield a line for each other instruction of the same launch."""
        for other in others:
            if other.launch == shown.launch and self.place:
                yield f"{summarize(other)} (--access {other.identifier})"
