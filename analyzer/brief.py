"""The default summary of a profile: what limits each launch and which lines cost most.

It is shown if the user asks for neither counters nor groupings. It reads the counters of the
profile and computes no others.
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
"""Maximum number of costly lines shown per launch."""
LEAST = 0.005
"""Minimum share of the cost for a line to be shown."""
MORE = "--all shows every counter, --advice what to change, --by line each line."


def is_brief(view: View) -> bool:
    """Return whether the view shows the summary: no counters, groupings or other output
    requested."""
    return view.brief and view.by == "launch" and not view.counters


def launch_lines(on: Sequence[LaunchProfile]) -> Iterator[tuple[str, str]]:
    """Yield the summary lines of one launch on all devices, each with its style."""
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
    """Return the warnings of a launch, each with the devices that it applies to."""
    devices_by_text: dict[str, list[str]] = {}
    for profile in on:
        for text in (*profile.substitutions, *profile.warnings):
            devices_by_text.setdefault(text, []).append(profile.device)
    return devices_by_text


def distinct_launches(profile: Profile) -> Iterator[tuple[Sequence[LaunchProfile], int]]:
    """Yield each distinct launch once, with the number of launches that look and behave the
    same."""
    groups: dict[tuple[int, str], list[int]] = {}
    for number in profile.numbers:
        first = profile.of(number)[0]
        groups.setdefault((first.origin.number, launch_text(first.launch)), []).append(number)
    for numbers in groups.values():
        yield profile.of(numbers[0]), len(numbers)
