"""Zip: a trace as one file, NAME.cutrace.zip, which every command reads directly; unzip undoes
it."""

from pathlib import Path

from ...base.claim import whole_file
from ...base.errors import CutraceError
from ...models.replay.interface.options import ReplayOptions
from ...traces.archive import SUFFIX, is_archive, pack
from ...traces.reader import Trace
from ...traces.trace_folder import check_target, reason

DEVICE = ""


def write(trace: Trace, out: Path | None, options: ReplayOptions) -> str:
    """Write the trace beside its folder, or as `out`."""
    target = out or Path(f"{trace.path.name.removesuffix('.cutrace')}{SUFFIX}")
    if not is_archive(target):
        raise CutraceError(f"{target}: a packed trace is called NAME{SUFFIX}")
    check_target(target)
    try:
        with whole_file(target) as partial:
            pack(trace.path, partial)
            for launch in trace.launches:
                launch.check_unchanged()
            check_target(target)  # it may have been replaced since the first check
    except OSError as error:
        raise CutraceError(f"{target}: cannot write it: {reason(error)}") from error
    codes = {launch.launch.code for launch in trace.launches} - {""}
    device = f" -d {codes.pop()}" if len(codes) == 1 else ""
    return f"{target}\nnext: cutrace analyze {target}{device}"
