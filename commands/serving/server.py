"""The server of a live report: local, and protected by a token.

The token is the first part of every path. A request under another host name is refused, whatever
it knows: so a page of somebody else, whose name points to this machine, reads nothing. A form must
come from a page of this server.
"""

import json
import os
import sys
from errno import EADDRINUSE
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import compare_digest, token_urlsafe
from urllib.parse import parse_qsl, urlsplit

from ...errors import CutraceError
from ...size import is_whole
from .live import Live

HOST = "127.0.0.1"
WAIT = 20.0
"""Seconds after which a browser that waits for a change is told that there is none."""
MOST = 16_384
"""Bytes of a form."""
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Server(ThreadingHTTPServer):
    """Serves one live report; raises `CutraceError` if the port is taken."""

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # there it would share the port with who has it

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
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing where the browser has gone away; anything else is a fault of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version = "cutrace"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        """The page, or whether there is a newer one."""
        name, query = self._asked()
        if name == "":
            self._answer(HTTPStatus.OK, self.server.live.page, "text/html")
        elif name == "state":
            since = query.get("since", "")
            number = self.server.live.wait(int(since) if is_whole(since) else -1, WAIT)
            self._answer(HTTPStatus.OK, json.dumps({"number": number}), "application/json")
        elif name is not None:
            self._answer(HTTPStatus.NOT_FOUND, "there is no such page\n")

    def do_POST(self) -> None:
        """Other devices and suppositions."""
        name, _ = self._asked()
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
            live.ask(dict(parse_qsl(text)))
            live.wait(number, WAIT)
            self.send_response(HTTPStatus.SEE_OTHER)
            self.send_header("Location", "./")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _asked(self) -> tuple[str | None, dict[str, str]]:
        """The path behind the token, and the query; None if the request was refused."""
        asked = urlsplit(self.path)
        _, token, *rest = (*asked.path.split("/", 2), "")
        if self.headers.get("Host") not in self.server.hosts:
            self._answer(HTTPStatus.FORBIDDEN, "refused: this server has no such host name\n")
        elif not compare_digest(token.encode(), self.server.token.encode()):
            self._answer(
                HTTPStatus.FORBIDDEN,
                "refused: open the address that `cutrace serve` printed, with its token\n",
            )
        else:
            return rest[0], dict(parse_qsl(asked.query))
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
        """Say nothing of requests."""
