"""The first screen: what limits each launch, which lines cost most, and what to ask next.

Every counter is a table of many rows; most who ask want one answer. Nothing here is counted anew.
"""

from collections.abc import Iterator, Sequence

from ..base.sanitize import one_line
from .counting.hottest_line import costliest_lines
from .launch_profile import LaunchProfile
from .profile import Profile
from .text.launch_text import ROOM, launch_text, ranges_text
from .view import View
from .wording import estimate_sentences, limit_sentences

SHOWN = 2
"""The costliest lines of a launch that are shown, at most."""
LEAST = 0.005
"""The share of the cost from which on a line is shown."""
MORE = "--all shows every counter, --advice what to change, --by line each line."


def is_brief(view: View) -> bool:
    """Whether the first screen was asked for: nothing else was."""
    return view.brief and view.by == "launch" and not view.counters


def launch_lines(on: Sequence[LaunchProfile]) -> Iterator[tuple[str, str]]:
    """The lines about one launch on all devices, each with its style."""
    yield launch_text(on[0].launch, ROOM), "bold"
    if ranges := ranges_text(on[0].launch):
        yield f"In range {ranges}.", ""
    yield from ((text, "") for text in (*limit_sentences(on), *estimate_sentences(on)))
    for warning, devices in _warnings(on).items():
        yield f"{', '.join(devices)}: {warning}", ""
    first = next((profile for profile in on if not profile.refusal), None)
    if first is None:
        return
    costliest = costliest_lines(first.lines, first.limited_by, SHOWN)
    costliest = [top for top in costliest if top.share >= LEAST]
    where = f" on {first.device}" if len(on) > 1 else ""
    for top in costliest:
        text = one_line(f"{top.file}:{top.line}  {top.text}")
        yield f"{100 * top.share:.0f} % of the {top.what}{where}: {text}", "yellow"


def _warnings(on: Sequence[LaunchProfile]) -> dict[str, list[str]]:
    """Warnings, each with the devices that it is true of."""
    devices_by_text: dict[str, list[str]] = {}
    for profile in on:
        for text in (*profile.substitutions, *profile.warnings):
            devices_by_text.setdefault(text, []).append(profile.device)
    return devices_by_text


def distinct_launches(profile: Profile) -> Iterator[tuple[Sequence[LaunchProfile], int]]:
    """Launches that look the same and did the same once, with how many they are."""
    groups: dict[tuple[int, str], list[int]] = {}
    for number in profile.numbers:
        first = profile.of(number)[0]
        groups.setdefault((first.origin.number, launch_text(first.launch)), []).append(number)
    for numbers in groups.values():
        yield profile.of(numbers[0]), len(numbers)
