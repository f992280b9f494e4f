"""Traces from a web server of this machine that stalls, ends early, or sends without end."""

from collections.abc import Iterator
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from hand_trace import Access, hand_trace
from warps import warp

from cutrace.base.errors import CutraceError
from cutrace.traces import remote
from cutrace.traces.reader import read_trace

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

MOST = 1 << 16
LINKS = b"".join(b'<a href="%d">\n' % number for number in range(100))


class Server(ThreadingHTTPServer):
    """Serves a folder; the first part of a path says how."""

    daemon_threads = True

    def __init__(self) -> None:
        self.ended = Event()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(SimpleHTTPRequestHandler):
    """A whole answer, or a part, or more and more."""

    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def translate_path(self, path: str) -> str:
        """Return the file of a path without its first part."""
        return super().translate_path("/" + path.split("/", 2)[2])

    def send_head(self) -> Any:
        _, how, path = self.path.split("/", 2)
        if how == "silent" or (how == "stalled" and path.endswith(".arrow")):
            self.server.ended.wait(60)
        if how == "endless":
            self._send_links()
        if how == "deep":
            self._send_page(b'<a href="more/"><a href="manifest.json">')
        if how in ("endless", "deep"):
            return None
        file = super().send_head()
        if file and how == "early" and path.endswith(".arrow") and self.command == "GET":
            with file:
                self.wfile.write(file.read(10))
            return None
        return file

    def _send_page(self, text: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(text)

    def _send_links(self) -> None:
        with suppress(OSError):
            self._send_page(b"")
            while not self.server.ended.is_set():
                self.wfile.write(LINKS)


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server with a trace, whose answers may be of MOST bytes, and soon."""
    hand_trace(tmp_path / "a.cutrace", [Access(warp(stride=4))])
    monkeypatch.setattr(remote, "RESPONSE_BYTES", MOST)
    monkeypatch.setattr(remote, "SILENCE", 0.5)
    monkeypatch.chdir(tmp_path)
    server = Server()
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.ended.set()
    server.shutdown()
    server.server_close()


def test_a_trace_of_a_web_server_is_read(address: str) -> None:
    assert read_trace(f"{address}/whole/a.cutrace").launches[0].count("accesses") == 1


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("silent", "nothing is there, or nobody answers"),
        ("stalled", "cannot read it: Timeout"),
        ("early", "cannot read it|cut off in the middle"),
        ("endless", f"an answer of more than {MOST} bytes"),
        ("deep", "not a manifest|not a trace|no JSON|Expecting value"),
    ],
)
def test_a_server_that_does_otherwise_is_told(how: str, message: str, address: str) -> None:
    with pytest.raises(CutraceError, match=message):
        read_trace(f"{address}/{how}/a.cutrace").launches[0].accesses()
