"""Zip: a trace as one file, NAME.cutrace.zip, which every verb reads as it is; unzip undoes it."""

import os
from pathlib import Path

from ...errors import CutraceError
from ...models.replay.options import ReplayOptions
from ...traces.folder.archive import SUFFIX, is_archive, pack
from ...traces.folder.folder import check_target, reason
from ...traces.reader import Trace

DEVICE = ""


def write(trace: Trace, out: Path | None, options: ReplayOptions) -> str:
    """Write the trace beside its folder, or as `out`."""
    target = out or Path(f"{trace.path.name.removesuffix('.cutrace')}{SUFFIX}")
    if not is_archive(target):
        raise CutraceError(f"{target}: a packed trace is called NAME{SUFFIX}")
    check_target(target)
    partial = target.with_name(f".{target.name}.partial")
    try:
        pack(trace.path, partial)
        for launch in trace.launches:
            launch.check_unchanged()
        os.replace(partial, target)
    except OSError as error:
        raise CutraceError(f"{target}: cannot write it: {reason(error)}") from error
    finally:
        partial.unlink(missing_ok=True)
    return f"{target}\nnext: cutrace analyze {target}"
