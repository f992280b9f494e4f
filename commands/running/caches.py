"""`analyze --by reuse` and `--by set`: miss ratios by cache size, and misses by set."""

from typing import TYPE_CHECKING

from ...errors import CutraceError
from ...models.replay.options import ReplayOptions
from ..options.tabular import FORMATS, render_frame

if TYPE_CHECKING:
    from ...analyzer.sheet.view import View
    from ...traces.reader import Trace


def caches_here(trace: "Trace", options: ReplayOptions, by: str, format: str, view: "View") -> str:
    """Measure each launch of a trace, and print it as asked."""
    from ...analyzer.reuse.reuse_text import render
    from ...models.replay.whatif.suppose import suppose
    from ..answers.miss_ratios import measure_each

    if format not in FORMATS:
        raise CutraceError(f"--by {by} is printed as {', '.join(FORMATS)}, not as {format}")
    supposed = suppose(trace, options.pad, options.align)
    found = measure_each(supposed, options, sets=by == "set")
    if format != "table":
        return render_frame(by, found.sets() if by == "set" else found.frame(), format)
    then = {"reuse": "set", "set": "line"}[by]
    last = "" if view.quiet else f"{view.typed} --by {then}{view.behind}"
    return render(found, by, view.width, view.first, last)
