"""`cutrace serve`: the report's page from this machine, which follows its source."""

import sys
import webbrowser
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

from ..base.errors import CutraceError
from ..models.replay.interface.options import ReplayOptions
from ..traces.address import as_given
from .options.recording import SOURCES
from .options.replay import REPLAY, with_devices
from .options.selection import READING, Reading
from .options.verb import argument, flag, value, verb

PORT = 8017
PAUSE = 0.2
"""Seconds between two polls of the files."""


@verb(
    "Ask",
    "cutrace serve scale.cu",
    "cutrace serve scale.cu -d h100,rtx4090 --port 0 --open",
    "cutrace serve scale.cutrace --pad tile=1",
)
def serve(
    source: Annotated[Path, argument("A source to record whenever it is saved, or a trace")],
    port: Annotated[
        int, value("Port of the server; 0: any free one.", "N", min=0, max=65535)
    ] = PORT,
    open_: Annotated[bool, flag("Open the page in a browser.", "--open")] = False,
    *,
    replay: ReplayOptions = REPLAY,
    recording: Reading = READING,
    **options: Any,
) -> None:
    """Show the report in a browser and renew it whenever the source is saved, until Ctrl-C."""
    from .serving.live import Live, Server

    if source.suffix not in SOURCES and not source.is_dir():
        raise CutraceError(f"{as_given(source)}: expected a .cu, .ptx or .py file, or a trace")
    if not source.exists():
        raise CutraceError(f"{source}: there is no such file")
    live = Live(source, recording, with_devices(replay))
    with Server(live, port) as server:
        live.look()
        follower = Thread(target=live.follow, args=(PAUSE,), daemon=True)
        follower.start()
        print(f"{server.address}\nwatching {source}; Ctrl-C ends it", flush=True)
        if open_:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        finally:
            live.end()
            follower.join(10)
            sys.stdout.flush()
