"""A live report: poll the source, record and replay on a change, and serve the page.

One thread records and replays; request threads read the page and wait for the next version. After
an error the last good result stays, below the error. The server listens on this machine only, and
answers requests with the right token.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import field, replace
from errno import EADDRINUSE
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from threading import Condition, Event
from time import monotonic, strftime
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from ...analyzer.html.value import Field
from ...base.config import is_whole
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, message_of
from ...base.scope import scope
from ...models.replay.interface.options import SCHEDULES, ReplayOptions
from ..options.command_line import quote, typed
from ..options.recording import SOURCES
from ..options.replay import with_devices
from ..options.selection import Reading
from ..running.resolve_trace import open_trace

if TYPE_CHECKING:
    from ...analyzer.html.value import Comparison, Report
    from ...analyzer.profile import Profile
    from ...traces.reader import Trace


Stamp = tuple[tuple[str, int, int, int], ...]


def stamp(paths: Iterable[Path]) -> Stamp:
    """Return modification time, size and inode of each file, -1 for a missing one."""
    return tuple((str(path), *_of(path)) for path in sorted({*paths}))


def _of(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: a name with a NUL
        return -1, -1, -1
    return status.st_mtime_ns, status.st_size, status.st_ino


MANIFEST = "manifest.json"


@dataclass
class Live:
    """A source or a trace with the options of its report."""

    source: Path
    recording: Reading
    options: ReplayOptions
    number: int = 0
    page: str = ""
    ended: Event = field(default_factory=Event)
    _changed: Condition = field(default_factory=Condition)
    _request: Event = field(default_factory=Event)
    _form: Mapping[str, str] | None = None
    _stamp: Stamp = ()
    _names: tuple[str, ...] = ()
    _trace: "Trace | None" = None
    _resources: ExitStack = field(default_factory=ExitStack)
    _report: "Report | None" = None
    _profile: "Profile | None" = None

    def request(self, form: Mapping[str, str]) -> None:
        """Replay with other options after the present replay."""
        self._form = form
        self._request.set()

    def wait(self, since: int, seconds: float) -> int:
        """Return the page's version: at once if it is not `since`, else on change or timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self.number != since or self.ended.is_set(), seconds)
            return self.number

    def follow(self, pause: float) -> None:
        """Replay whenever a file changes or a request arrives, until the end."""
        try:
            while not self.ended.is_set():
                self.look()
                self._request.wait(pause)
        finally:
            self.end()
            self._resources.close()

    def end(self) -> None:
        """Wake all waiting threads."""
        self.ended.set()
        self._request.set()
        with self._changed:
            self._changed.notify_all()

    def look(self) -> bool:
        """Replay if files changed or on request; return whether it did. The page shows errors."""
        stamps = stamp(self._watched())
        is_new, is_asked = stamps != self._stamp, self._request.is_set()
        self._request.clear()
        if not (is_new or is_asked):
            return False
        begin = monotonic()
        try:
            if is_asked and self._form is not None:
                self.options = apply_form(self._form, self.options)
            if is_new or self._trace is None:
                self._record()
            changes = self._count()
            error = ""
        except (Exception, SystemExit) as problem:
            changes, error = (), message_of(problem)
        # Keep the stamps from before the replay: a file saved during it counts as changed at the
        # next poll. Only files that the new trace added get their present stamp.
        by_path = {entry[0]: entry for entry in stamps}
        self._stamp = tuple(by_path.get(entry[0], entry) for entry in stamp(self._watched()))
        try:
            self._show(error, changes, monotonic() - begin)
        except (Exception, SystemExit) as problem:  # the last result cannot be rendered
            self._report = self._profile = None
            self._show(error or message_of(problem), (), monotonic() - begin)
        return True

    def _watched(self) -> list[Path]:
        """Return the files to poll: the source, or the trace's manifest, and files of its lines."""
        if self.source.suffix not in SOURCES:
            return [self.source / MANIFEST]
        neighbors = (self.source.parent / name for name in self._names)
        return [self.source, *(path for path in neighbors if path.is_file())]

    def _record(self) -> None:
        """Record the source; remove the previous trace after the new one is complete."""
        with scope() as stack:
            trace = open_trace(self.source, self.recording, self.options)
            self._trace = self.recording.select(trace)
            self._names = tuple(self._trace.manifest.sources)
            before, self._resources = self._resources, stack.pop_all()
        before.close()

    def _count(self) -> "tuple[Comparison, ...]":
        """Replay, build the report, and return the differences from the previous one."""
        from ...analyzer.html.gather import Subject
        from ...analyzer.html.page import gather
        from ...analyzer.profile import count
        from ...models.replay.suppose import suppose

        assert self._trace is not None
        trace = suppose(self._trace, self.options.pad, self.options.align)
        profile = count(trace, replace(self.options, pad={}, align={}))
        again = f"cutrace report {quote(self.source)}{typed(self.recording)}{typed(self.options)}"
        self._report = gather([Subject(self.source.name, trace, profile)], self.options, again)
        before, self._profile = self._profile, profile
        return differences(before, profile) if before else ()

    def _show(self, error: str, changes: "tuple[Comparison, ...]", seconds: float) -> None:
        """Render the page, and notify all waiting threads."""
        from ...analyzer.html.page import fill
        from ...analyzer.html.value import Report, Served

        number = self.number + 1
        served = Served(
            str(self.source),
            number,
            strftime("%H:%M:%S"),
            seconds,
            error,
            changes,
            fields(self.options),
        )
        page = fill(self._report or Report(self.source.name, (), (), (), (), ""), served)
        with self._changed:
            self.number, self.page = number, page
            self._changed.notify_all()


def differences(before: "Profile", now: "Profile") -> "tuple[Comparison, ...]":
    """Return the differences of two results, one per launch and device.

    Empty if their devices differ.
    """
    from ...analyzer.comparison.comparison import compare_profiles
    from ...analyzer.html.figures import compare_table

    if before.devices != now.devices or not (before.launches and now.launches):
        return ()
    compared = compare_profiles({"before": before, "now": now})
    return tuple(part for table in compared.tables if (part := compare_table(compared, table)))


PAIRS = {"pad": "ARRAY=[ROW+]N", "align": "ARRAY=BYTES[+BEYOND]", "set": "STAGE.KEY=VALUE"}
"""Fields of pairs, with their syntax."""
_BETWEEN = re.compile(r"[\s,]+")


def apply_form(form: Mapping[str, str], options: ReplayOptions) -> ReplayOptions:
    """Return the options changed by a form; raise `CutraceError` for invalid values."""
    read = {name: _pairs(name, form.get(name, "")) for name in PAIRS}
    devices = tuple(_words(form.get("device", "")))
    schedule = form.get("schedule") or SCHEDULES[0]
    return with_devices(
        replace(
            options,
            device=devices,
            schedule=schedule,
            pad=read["pad"],
            align=read["align"],
            set=read["set"],
        )
    )


def fields(options: ReplayOptions) -> tuple[Field, ...]:
    """Return the form's controls with their present values."""
    return (
        Field("device", " ".join(options.devices), "NAME ..."),
        *(Field(name, _typed(getattr(options, name)), like) for name, like in PAIRS.items()),
        Field("schedule", options.schedule, "", SCHEDULES),
    )


def _words(text: str) -> list[str]:
    return [word for word in _BETWEEN.split(text) if word]


def _pairs(name: str, text: str) -> dict[str, str]:
    pairs = {}
    for word in _words(text):
        key, equals, value = word.partition("=")
        if not (key and equals and value):
            raise CutraceError(f"{name}: {word}: expected {PAIRS[name]}")
        pairs[key] = value
    return pairs


def _typed(pairs: Mapping[str, object]) -> str:
    return " ".join(f"{key}={value}" for key, value in pairs.items())


HOST = "127.0.0.1"
WAIT = 20.0
"""Seconds after which a waiting browser gets the answer that nothing changed."""
MOST = 16_384
"""Most bytes of a form."""
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Server(ThreadingHTTPServer):
    """HTTP server of one live report; raises `CutraceError` if the port is in use."""

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # on Windows it would share a port that is in use

    def __init__(self, live: Live, port: int) -> None:
        self.live, self.token = live, token_urlsafe(16)
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            if error.errno != EADDRINUSE:
                raise CutraceError(f"port {port}: {error.strerror or error}") from error
            raise CutraceError(
                f"port {port} is taken, perhaps by another `cutrace serve`;"
                " --port N chooses another, --port 0 one that is free"
            ) from error
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        """URL of the page."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a browser that has disconnected; report any other exception."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """Handles one request."""

    server: Server
    server_version = "cutrace"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        """Send the page, or whether there is a newer one."""
        name, query = self._parse_request()
        if name == "":
            self._answer(HTTPStatus.OK, self.server.live.page, "text/html")
        elif name == "state":
            since = query.get("since", "")
            number = self.server.live.wait(int(since) if is_whole(since) else -1, WAIT)
            self._answer(HTTPStatus.OK, json.dumps({"number": number}), "application/json")
        elif name is not None:
            self._answer(HTTPStatus.NOT_FOUND, "there is no such page\n")

    def do_POST(self) -> None:
        """Apply other devices and assumptions."""
        name, _ = self._parse_request()
        if name is None:
            return
        size = self.headers.get("Content-Length", "")
        origin = self.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc not in self.server.hosts:
            self._answer(HTTPStatus.FORBIDDEN, "refused: the form is of another site\n")
        elif name != "ask" or not is_whole(size) or int(size) > MOST:
            self._answer(HTTPStatus.BAD_REQUEST, "expected the form of the page\n")
        else:
            text = self.rfile.read(int(size)).decode(errors="replace")
            live, number = self.server.live, self.server.live.number
            live.request(dict(parse_qsl(text)))
            live.wait(number, WAIT)
            self.send_response(HTTPStatus.SEE_OTHER)
            self.send_header("Location", "./")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _parse_request(self) -> tuple[str | None, dict[str, str]]:
        """Return the path after the token, and the query; None if the request was refused."""
        url = urlsplit(self.path)
        _, token, *tail = (*url.path.split("/", 2), "")
        if self.headers.get("Host") not in self.server.hosts:
            self._answer(HTTPStatus.FORBIDDEN, "refused: this server has no such host name\n")
        elif not compare_digest(token.encode(), self.server.token.encode()):
            self._answer(
                HTTPStatus.FORBIDDEN,
                "refused: open the address that `cutrace serve` printed, with its token\n",
            )
        else:
            return tail[0], dict(parse_qsl(url.query))
        return None, {}

    def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""
