"""Counts by line and inline call stack, for flame graphs, speedscope and KCachegrind.

A stack is the launch, then the lines from the kernel's own to the innermost inlined one. Only
counts, which are additive, can be exported; ratios are refused.

Sources: README of github.com/brendangregg/FlameGraph (folded stacks); file-format-spec.ts of
github.com/jlfwong/speedscope; Callgrind Format Specification of the Valgrind manual.
"""

import json
from collections.abc import Iterator, Sequence

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..counting.vocabulary import Counter, find_counters, heading
from ..launch_profile import LaunchProfile
from ..profile import Profile
from ..text.launch_text import launch_text

DEFAULT = ("global_transactions", "shared_wavefronts", "cutrace.instructions")
"""Counters exported by default."""
RATIOS = ("%", "/", "ratio", "times")
"""Marks of units that are not counts."""
SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Stack:
    """Lines from the kernel's to the innermost, and the value of each counter there."""

    places: tuple[Place, ...]
    counts: tuple[int, ...]


def render_folded(profile: Profile, names: Sequence[str] = ()) -> str:
    """Return a line per stack with the first counter's count, for `flamegraph.pl` and compatible
    tools.
    """
    counters = _counts(names)[:1]
    lines = [
        f"{';'.join(map(_frame, (root, *map(_place, stack.places))))} {stack.counts[0]}"
        for root, launch in _launches(profile)
        for stack in read_stacks(launch, counters)
        if stack.counts[0]
    ]
    return "".join(f"{line}\n" for line in lines)


def render_speedscope(profile: Profile, names: Sequence[str] = ()) -> str:
    """Return one profile per counter, which speedscope.app shows one at a time."""
    counters = _counts(names)
    frames: dict[tuple[str, Place], int] = {}
    samples: list[list[int]] = []
    weights: list[tuple[int, ...]] = []
    for root, launch in _launches(profile):
        for stack in read_stacks(launch, counters):
            chain = [(root, ("", 0)), *((_place(place), place) for place in stack.places)]
            samples.append([frames.setdefault(frame, len(frames)) for frame in chain])
            weights.append(stack.counts)
    shared = [
        {"name": name} | ({"file": file, "line": line} if file else {})
        for name, (file, line) in frames
    ]
    profiles = [
        {
            "type": "sampled",
            "name": heading(counter),
            "unit": "bytes" if counter.unit == "bytes" else "none",
            "startValue": 0,
            "endValue": sum(weight[number] for weight in weights),
            "samples": samples,
            "weights": [weight[number] for weight in weights],
        }
        for number, counter in enumerate(counters)
    ]
    whole = {"$schema": SPEEDSCOPE, "shared": {"frames": shared}, "profiles": profiles}
    return json.dumps(whole | {"exporter": "cutrace"}, indent=1) + "\n"


def render_callgrind(profile: Profile, names: Sequence[str] = ()) -> str:
    """Return each launch as a function with its lines' self costs, for KCachegrind and
    callgrind_annotate.
    """
    counters = _counts(names)
    lines = ["# callgrind format", "version: 1", "creator: cutrace", "positions: line"]
    lines.append(f"events: {' '.join(heading(counter) for counter in counters)}")
    for root, launch in _launches(profile):
        stacks = list(read_stacks(launch, counters))
        file = stacks[0].places[0][0] if stacks else ""
        lines += ["", f"fl={file}", f"fn={root}"]
        for stack in stacks:
            innermost, line = stack.places[-1]
            if innermost != file:
                file = innermost
                lines.append(f"fi={file}")
            lines.append(" ".join(map(str, (line, *stack.counts))))
    return "\n".join(lines) + "\n"


def _counts(names: Sequence[str]) -> tuple[Counter, ...]:
    """Return the requested counters; CutraceError for one that is not additive."""
    counters = find_counters(names or DEFAULT)
    for counter in counters:
        ratio = any(word in counter.unit for word in RATIOS)
        if ratio or counter.whole_launch or counter.by:
            raise CutraceError(
                f"{counter.name} is no count that lines have parts of: a flame graph adds up; "
                f"name counts, as in {', '.join(DEFAULT)}"
            )
    return counters


def _launches(profile: Profile) -> Iterator[tuple[str, LaunchProfile]]:
    """Yield the launches that the devices can run, by name; with the device if there are
    several."""
    for launch in profile.launches:
        if not launch.refusal:
            place = f"{launch.device} " if len(profile.devices) > 1 else ""
            yield f"{place}{launch.number} {launch_text(launch.launch)}", launch


def read_stacks(launch: LaunchProfile, counters: Sequence[Counter]) -> Iterator[Stack]:
    """Yield the stacks of a launch with a nonzero count."""
    headings = [heading(counter) for counter in counters]
    for row in launch.table("stack").select("stack", *headings).iter_rows():
        counts = tuple(int(value or 0) for value in row[1:])
        if any(counts):
            yield Stack(tuple(_read(text) for text in row[0].split("\n")), counts)


def _read(text: str) -> Place:
    file, _, line = text.rpartition(":")
    return file, int(line)


def _place(place: Place) -> str:
    file, line = place
    return f"{file}:{line}" if line else "no line"


def _frame(text: str) -> str:
    """Escape `;` and line ends, the separators of a folded stack, in a frame."""
    return text.replace(";", ",").replace("\n", " ")
