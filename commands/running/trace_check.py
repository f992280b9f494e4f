"""`cutrace check --races` and `--memory`: data races, and accesses outside of arrays."""

from pathlib import Path

from ...errors import CheckFailed


def check_memory(trace: Path) -> str:
    """`CheckFailed` with every line that accessed memory outside of every array, if any did."""
    from ...traces.outside import outside_text
    from ...traces.reader import read_trace

    opened = read_trace(trace)
    found = [
        f"launch {one.number}: {text}"
        for one in opened.launches
        if one.launch.outside
        for _, text in outside_text(one.launch, one.instructions())
    ]
    if opened.manifest.fault:
        found.append(f"the launch after these: {opened.manifest.fault}")
    if found:
        raise CheckFailed("\n".join(("accesses outside of every array", "", *found)))
    return "no lane accessed memory outside of every array"


def check_races(trace: Path) -> str:
    """The report on races; `CheckFailed` with it if there are any."""
    from ...analyzer.text.race_text import render_races
    from ...models.analyses.race import find_races
    from ...traces.reader import read_trace

    opened = read_trace(trace)
    checks = [find_races(launch) for launch in opened.launches]
    report = render_races(checks, opened.manifest.sources)
    if count := sum(len(check.races) for check in checks):
        pairs = f"{count} pair{'s' * (count > 1)} of lines"
        raise CheckFailed(f"races in shared memory between {pairs}\n\n{report}")
    return report
