"""Markdown: the tables of the terminal report for an issue, a merge request or a notebook."""

from collections.abc import Iterator

from ..profile import Profile
from ..sheet import Block, Sheet, sheets
from ..text.layout import markdown_row
from ..wording import PTX_IS_NOT_SASS, costs, estimate, is_folded, times, title, zeros


def render(profile: Profile) -> str:
    """Return the profile as Markdown: a heading per launch and a table per vocabulary."""
    laid_out = sheets(profile.launches, profile.view)
    parts = [profile.view.first] if profile.view.first else []
    for sheet in laid_out:
        parts += _sheet(sheet, profile)
    if any(sheet.follows_ptx for sheet in laid_out) and not profile.manifest.is_machine_code:
        parts.append(PTX_IS_NOT_SASS)
    if profile.view.last:
        parts.append(f"Next: `{profile.view.last}`")
    return "\n\n".join(parts) + "\n"


def _sheet(sheet: Sheet, profile: Profile) -> Iterator[str]:
    """Yield the paragraphs of one launch."""
    yield f"## `{sheet.heading}`"
    if sheet.ranges:
        yield f"In range `{sheet.ranges}`."
    yield from times(sheet)
    for block in sheet.blocks:
        if block.key:
            yield f"### `{title(block)}`"
        yield from _tables(sheet, block, profile)
    if folded := zeros(sheet, profile.view):
        yield folded
    if lines := costs(sheet):
        yield "```\n" + "\n".join(lines) + "\n```"
    yield from (f"- {note}" for note in sheet.notes)


def _tables(sheet: Sheet, block: Block, profile: Profile) -> Iterator[str]:
    """Yield a table per vocabulary; the first one also lists devices that cannot launch."""
    for index, section in enumerate(block.sections):
        rows = [row for row in section.rows if not is_folded(row, section, profile.view)]
        lines = [
            markdown_row(section.vocabulary, *sheet.devices),
            markdown_row("---", *("---:" for _ in sheet.devices)),
        ]
        if index == 0 and any(sheet.refusals):
            lines.append(markdown_row("launch", *(refusal or "runs" for refusal in sheet.refusals)))
        for row in rows:
            cells = (estimate(row, device) for device in range(len(row.values)))
            lines.append(markdown_row(f"`{row.counter.name}`", *cells))
        if len(lines) > 2:
            yield "\n".join(lines)
