"""Shared-memory races as a document: the place, both accesses, and the fix."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ...models.analyses.race import Party, Race, RaceCheck
from ..report.document import Document, Note, Section, listing
from ..report.view import View
from ..text.launch_text import NO_LAUNCHES, ROOM, launch_text

_VERBS = {"load": "loads", "store": "stores", "atomic": "updates atomically"}


def races_document(checks: Sequence[RaceCheck], sources: Mapping[str, str]) -> Document:
    """Return the document of the races of some launches; `sources` maps files, as the trace names
    them, to their texts.
    """

    def sections() -> Iterator[Section]:
        if not checks:
            yield [Note(NO_LAUNCHES)]
        for check in checks:
            text = "\n".join(_launch(check, sources))
            yield [listing(text.split("\n"))]

    return Document(View(), sections)


def _launch(check: RaceCheck, sources: Mapping[str, str]) -> Iterator[str]:
    title = f"launch {check.number}  {launch_text(check.launch, ROOM)}"
    if check.refusal:
        yield f"{title}\n  races not checked: {check.refusal}"
    elif not check.races:
        yield f"{title}\n  no shared-memory races between warps"
    else:
        yield title
    for race in check.races:
        yield from ("  " + line for line in _race(race, check.launch.blocks, sources))


def _race(race: Race, blocks: int, sources: Mapping[str, str]) -> Iterator[str]:
    where = f"{race.variable}, element" if race.variable else "shared memory, element"
    yield (
        f"race at {where} {race.element} of {race.itemsize} bytes (shared address {race.address})"
        f" in block {race.block}:"
    )
    for party in (race.first, race.second):
        yield from ("  " + line for line in _party(party, sources))
    yield (
        f"  {race.pairs} pair{'s' * (race.pairs != 1)} of accesses in {race.blocks} of {blocks}"
        f" block{'s' * (blocks != 1)}, with no barrier between"
    )
    yield f"  {_advice(race)}"


def _party(party: Party, sources: Mapping[str, str]) -> Iterator[str]:
    yield f"{_place(party)}  {_text(party.file, party.line, sources)}".rstrip()
    for file, line in party.inlined_at:
        yield f"  called from {file}:{line}  {_text(file, line, sources)}".rstrip()
    runs = list(_runs(party.lanes))
    lanes = ", ".join(_span(party.lanes, run) for run in runs)
    threads = ", ".join(_span(party.threads, run) for run in runs)
    many = "s" * (len(party.lanes) > 1)
    yield f"  {_VERBS[party.act]}: warp {party.warp}, lane{many} {lanes}, thread{many} {threads}"
    yield f"  {party.text}"


def _advice(race: Race) -> str:
    first, second = race.first, race.second
    if first.pc == second.pc and first.step == second.step:
        return "let one thread store it, or use an atomic"
    if _place(first) == _place(second):
        return (
            f"{_place(first)} races with itself: put `__syncthreads()` between its {first.act} and"
            f" the {second.act} of another warp, where all threads of the block come by"
        )
    return (
        f"put `__syncthreads()` after the {first.act} at {_place(first)} and before the"
        f" {second.act} at {_place(second)}, where all threads of the block come by"
    )


def _place(party: Party) -> str:
    return f"{party.file}:{party.line}" if party.line else f"pc {party.pc}"


def _text(file: str, line: int, sources: Mapping[str, str]) -> str:
    """Return the source line, or empty text if it is not in the trace."""
    lines = sources.get(file, "").splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _runs(lanes: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the indices of consecutive lanes: 3, 4, 5, 9 gives 0-2 and 3."""
    for _, run in groupby(range(len(lanes)), lambda place: lanes[place] - place):
        yield list(run)


def _span(values: Sequence[object], places: Sequence[int]) -> str:
    """Return the first and last of some neighbours.

    >>> _span((3, 4, 5, 9), [0, 1, 2])
    '3 to 5'
    """
    first, last = values[places[0]], values[places[-1]]
    return str(first) if len(places) == 1 else f"{first} to {last}"
