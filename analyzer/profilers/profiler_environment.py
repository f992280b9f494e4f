"""Environment variables of NVIDIA's first profiler: `CUDA_PROFILE` and its options.

`CUDA_PROFILE=1` writes a log at the end of a session. Every variable has a later spelling,
`COMPUTE_PROFILE...`, which wins where both are set: `..._LOG` names the log (`%d` stands for the
device's number, always 0 here, and `%p` for the process), `..._CSV=1` writes it between commas,
`..._CONFIG` names a file with one counter or option a line and `#` for comments.

Nothing heavy is imported here: a session asks this file, and only a log needs the rest.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...models.replay.interface.options import ReplayOptions

DEFAULT_DEVICE = "8800gtx"


@dataclass(frozen=True, slots=True)
class Switches:
    """The profiler's settings: path and form of the log, and the lines of the config file."""

    log: Path
    is_csv: bool
    config: tuple[str, ...]


def read_switches(environment: Mapping[str, str] = os.environ) -> Switches | None:
    """Read the variables; None if the profiler is off. `CutraceError` for an unreadable config."""

    def value(suffix: str) -> str:
        later = environment.get(f"COMPUTE_PROFILE{suffix}", "")
        return later or environment.get(f"CUDA_PROFILE{suffix}", "")

    if value("") in ("", "0"):
        return None
    later = environment.get("COMPUTE_PROFILE", "") not in ("", "0")
    name = value("_LOG") or ("cuda_profile_%d.log" if later else "cuda_profile.log")
    name = name.replace("%d", "0").replace("%p", str(os.getpid()))
    config = read_config(Path(value("_CONFIG"))) if value("_CONFIG") else ()
    return Switches(Path(name), value("_CSV") not in ("", "0"), config)


def read_config(path: Path) -> tuple[str, ...]:
    """Return the lines of a config file without comments and empty lines."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise CutraceError(
            f"profiler config {path}: {reason}; expected a text with one counter or option a line"
        ) from error
    stripped = (line.strip() for line in lines)
    return tuple(line for line in stripped if line and not line.startswith("#"))


def attach(at_close: list[Callable[[Path], None]], options: ReplayOptions | None = None) -> None:
    """Append the log writer to `at_close`, the functions that run at the end of a session.

    `options` are those of the replay; None keeps those of an earlier call.
    """
    earlier = [f for f in at_close if getattr(f, "func", None) is write_when_asked]
    if earlier and options is None:
        return
    at_close[:] = [f for f in at_close if f not in earlier]
    at_close.append(partial(write_when_asked, options or ReplayOptions()))


def write_when_asked(options: ReplayOptions, trace: Path) -> None:
    """Write the log of a complete trace if the environment requests one; report it on stderr."""
    switches = read_switches()
    if switches is None:
        return
    from ..profile import count
    from ..text.output import write_report
    from .profiler_log import render

    devices = options.devices or (os.environ.get("CUTRACE_DEVICE") or DEFAULT_DEVICE,)
    profile = count(trace, replace(options, device=devices[0]))
    text = render(profile, switches.config, switches.is_csv)
    write_report(switches.log, text)
    print(
        f"cutrace: {switches.log}: the profiler's log for {profile.devices[0]}"
        " ($CUTRACE_DEVICE chooses the device)",
        file=sys.stderr,
    )
