"""Profiles written by hand: one launch of two lines, on devices of any capability."""

import polars as pl

from cutrace.analyzer import report
from cutrace.analyzer.counting.evaluate import Raw
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import Profile
from cutrace.analyzer.profile_report import profile_document
from cutrace.analyzer.report.view import View
from cutrace.models.analyses.occupancy import Need, Occupancy
from cutrace.traces.schema import Argument, Compiler, Event, Launch, Manifest


def render(profile: Profile, format: str) -> str:
    """What `analyze` prints of a profile."""
    return report.render(profile_document(profile), format)


LAUNCH = Launch(
    kernel="_Z7reversePiPKi",
    signature="reverse(int *out, const int *in)",
    grid=(1024, 1, 1),
    block=(256, 1, 1),
    shared_static=0,
    shared_dynamic=0,
    local_bytes=0,
    arguments=(Argument("out", "int *", "out"), Argument("in", "const int *", "in")),
)
MANIFEST = Manifest(
    compilers=(Compiler("nvrtc", "12.9", (), "compute_75"),),
    events=(
        Event("copy", 1048576, "HtoD", "in"),
        Event("launch", launch=0),
        Event("copy", 1048576, "DtoH", "out"),
    ),
    launches=(LAUNCH,),
)
LOAD = ("in", 2, "    int v = in[i];", "ld.global.u32 %r1, [%rd1];")
STORE = ("out", 3, "    out[n - i] = v;", "st.global.u32 [%rd2], %r1;")


def counts(**columns: list[int]) -> pl.DataFrame:
    """Raw counts of four rows: a load on the profiled SM, a store there, in its cluster, beyond."""
    places = (LOAD, STORE, STORE, STORE)
    array, line, text, ptx = zip(*places, strict=True)
    return pl.DataFrame(
        {
            "pc": pl.Series([4, 5, 5, 5], dtype=pl.UInt32),
            "array": array,
            "scope": ["sm", "sm", "cluster", "rest"],
            "file": ["reverse.cu"] * 4,
            "line": pl.Series(line, dtype=pl.UInt32),
            "text": text,
            "ptx": ptx,
            **{name: pl.Series(values, dtype=pl.Int64) for name, values in columns.items()},
        }
    )


def launch_profile(
    device: str, capability: tuple[int, int], table: pl.DataFrame, refusal: str = ""
) -> LaunchProfile:
    """One launch on one device, every warp of the SM resident."""
    return LaunchProfile(
        number=0,
        launch=LAUNCH,
        device=device,
        device_name=f"Maker's {device}",
        capability=capability,
        raw=Raw(
            table.clear() if refusal else table,
            {"active_warps": 24, "max_warps": 24, "registers": 10},
        ),
        mixed=table.clear(),
        blocks={"sm": 61, "cluster": 122},
        occupancy=Occupancy(Need(256, 10), 24, {"warps": 3}),
        refusal=refusal,
    )


def profile(*launches: LaunchProfile, view: View | None = None) -> Profile:
    """A profile of these launches."""
    return Profile(launches, MANIFEST, view or View())
