"""A served report: who is answered, what follows a saved source, and what stays when it breaks."""

import json
import os
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Thread
from time import monotonic

import pytest
from hand_trace import Access, hand_trace
from html_page import Page
from warps import warp

from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.commands.options.selection import Reading
from cutrace.commands.serving import live as live_module
from cutrace.commands.serving.live import Live, Server
from cutrace.models.replay.interface.options import ReplayOptions

SOURCE = """// cutrace: scale<<<2, 64>>>(out:f32[2048], in:f32[2048]=arange)

__global__ void scale(float *out, const float *in)
{
    int i = STRIDE * (blockIdx.x * blockDim.x + threadIdx.x);
    out[i] = 2 * in[i];
}
"""


def save(path: Path, text: str) -> None:
    """Write a file with a time of its own, however coarse the clock of the disk is."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(text)
    os.utime(draft, ns=(len(text) * 10**9, draft.stat().st_mtime_ns + 10**9))
    draft.replace(path)


@pytest.fixture
def live(tmp_path: Path) -> Live:
    source = tmp_path / "scale.cu"
    save(source, SOURCE.replace("STRIDE", "16"))
    return Live(source, Reading(), ReplayOptions(device=("h100",), caches=False))


@pytest.fixture
def server(live: Live) -> Iterator[Server]:
    live.page = "<p>the page</p>"
    with Server(live, 0) as made:
        thread = Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        live.end()
        made.shutdown()
        thread.join()


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> HTTPResponse:
    """One request to the server; `path` stands behind the token."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    body = "device=h100&pad=" if method == "POST" else None
    connection.request(method, path, body, headers)
    return connection.getresponse()


def test_the_page_is_for_who_knows_the_token(server: Server) -> None:
    answer = ask(server, f"/{server.token}/")
    assert (answer.status, answer.read()) == (200, b"<p>the page</p>")
    assert answer.headers["Cache-Control"] == "no-store"
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.token}/"
    for path in ("/", "/state", "/x/", f"/{server.token[:-1]}/"):
        refused = ask(server, path)
        assert refused.status == 403
        assert b"the page" not in refused.read()
    assert ask(server, f"/{server.token}/other").status == 404


def test_another_host_name_is_refused_with_the_token_too(server: Server) -> None:
    path = f"/{server.token}/"
    assert ask(server, path, Host=f"localhost:{server.server_port}").status == 200
    for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1", ""):
        assert ask(server, path, Host=host).status == 403


def test_a_form_of_another_site_changes_nothing(server: Server) -> None:
    path = f"/{server.token}/ask"
    assert ask(server, path, "POST", Origin="http://evil.example").status == 403
    assert ask(server, path, "POST", Origin="null").status == 403
    assert ask(server, f"/{server.token}/other", "POST").status == 400
    assert server.live._form is None


def test_two_servers_do_not_share_a_port(server: Server, live: Live) -> None:
    with pytest.raises(CutraceError, match=r"port \d+ is taken, .*--port N chooses another"):
        Server(live, server.server_port)


def test_who_waits_hears_of_a_change_at_once(server: Server) -> None:
    server.live.number = 7
    answer = ask(server, f"/{server.token}/state?since=6")
    assert json.loads(answer.read()) == {"number": 7}
    assert server.live.wait(7, 0.01) == 7


def test_a_saved_source_is_counted_and_what_changed_is_shown(live: Live) -> None:
    assert live.look()
    assert not live.look()
    page = Page(live.page).root
    assert "Changed since" not in page.text
    save(live.source, SOURCE.replace("STRIDE", "1"))
    assert live.look()
    (table,) = Page(live.page).root.find("aside")[0].find("table")[:1]
    rows = {row.find("th")[0].text: row.find("data") for row in table.find("tr")[1:]}
    # 4 warps load and store: 32 sectors each, then 4 each
    before, now = (int(value.attributes["value"]) for value in rows["global_transactions"])
    assert (before, now) == (4 * 2 * 32, 4 * 2 * 4)


def test_a_source_that_does_not_compile_keeps_the_last_good_result(live: Live) -> None:
    live.look()
    save(live.source, SOURCE.replace("STRIDE", "1").replace("out[i]", "<b>out</b>[i]"))
    assert live.look()
    root = Page(live.page).root
    (alert,) = root.find(role="alert")
    assert "scale.cu" in alert.text
    assert "<b>out</b>" in alert.text
    assert "256" in root.find("main")[0].text  # the sectors of the last good result
    assert live.number == 2
    assert not live.look()
    save(live.source, SOURCE.replace("STRIDE", "1"))
    assert live.look()
    assert not Page(live.page).root.find(role="alert")


def test_a_source_that_never_compiled_has_a_page_that_says_so(live: Live) -> None:
    save(live.source, "__global__ void f(")
    live.look()
    assert Page(live.page).root.find(role="alert")


def test_controls_of_the_page_count_with_other_options(live: Live) -> None:
    live.look()
    live.request({"device": "h100, gtx580", "set": "", "pad": "", "schedule": "round-robin"})
    assert live.look()
    root = Page(live.page).root
    assert root.find("input", name="device")[0].attributes["value"] == "h100 gtx580"
    assert "GeForce GTX 580" in root.text
    live.request({"device": "gtx581"})
    live.look()
    root = Page(live.page).root
    assert "gtx581" in root.find(role="alert")[0].text
    assert "GeForce GTX 580" in root.text
    live.request({"device": "h100", "pad": "in"})
    live.look()
    assert "pad: in: expected ARRAY=[ROW+]N" in Page(live.page).root.find(role="alert")[0].text


def follow(live: Live) -> Thread:
    thread = Thread(target=live.follow, args=(0.01,), daemon=True)
    thread.start()
    return thread


def wait_for(live: Live, number: int) -> str:
    """What the page says is wrong, from the result of this number on."""
    while live.number < number:
        assert live.wait(live.number, 120) > number - 2, "nothing was counted"
    return "".join(alert.text for alert in Page(live.page).root.find(role="alert"))


FAULTS = [ZeroDivisionError("by zero"), MemoryError("of 9 bytes"), SystemExit("left")]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", ["_record", "_count", "differences", "fields"])
def test_whatever_goes_wrong_is_shown_and_the_next_save_is_counted(
    live: Live, monkeypatch: pytest.MonkeyPatch, step: str, fault: BaseException
) -> None:
    live.look()
    owner = live if step.startswith("_") else live_module

    def fail(*_: object) -> None:
        monkeypatch.undo()
        raise fault

    monkeypatch.setattr(owner, step, fail)
    thread = follow(live)
    save(live.source, SOURCE.replace("STRIDE", "2"))
    assert str(fault) in wait_for(live, 2)
    save(live.source, SOURCE.replace("STRIDE", "1"))
    assert wait_for(live, 3) == ""
    live.end()
    thread.join(10)
    assert not thread.is_alive()


def test_a_number_too_large_in_the_form_is_shown_and_the_next_save_is_counted(live: Live) -> None:
    live.look()
    thread = follow(live)
    for number, align in enumerate((1 << 64, 1 << 48, 10**30), 2):
        live.request({"align": f"in={align}", "device": "h100"})
        assert "expected at most 140737488355328" in wait_for(live, number)
    save(live.source, SOURCE.replace("STRIDE", "2"))
    live.request({"align": "in=1024", "device": "h100"})
    assert wait_for(live, 5) == ""
    live.end()
    thread.join(10)


def test_who_posts_a_form_does_not_wait_for_a_thread_that_ended(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise SystemExit

    monkeypatch.setattr(server.live, "look", fail)
    with pytest.raises(SystemExit):
        server.live.follow(0.01)
    begin = monotonic()
    assert ask(server, f"/{server.token}/ask", "POST").status == 303
    assert ask(server, f"/{server.token}/state?since={'9' * 5000}").status == 200
    assert monotonic() - begin < 5


def test_a_trace_that_is_recorded_anew_while_it_is_counted_is_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hand_trace(tmp_path / "a.cutrace", [Access(warp(stride=4))]).path
    live = Live(path, Reading(), ReplayOptions(device=("h100",), caches=False))
    count = Live._count

    def count_later(self: Live) -> object:
        monkeypatch.setattr(Live, "_count", count)
        hand_trace(path, [Access(warp(stride=128), step=step) for step in (0, 1)])
        return count(self)

    monkeypatch.setattr(Live, "_count", count_later)
    assert live.look()
    assert "replaced meanwhile" in Page(live.page).root.find(role="alert")[0].text
    assert live.look()
    assert not Page(live.page).root.find(role="alert")
    assert not live.look()


@pytest.mark.parametrize(
    ("name", "said"),
    [("none.cu", "there is no such file"), ("notes.txt", "expected a .cu, .ptx or .py file")],
)
def test_what_cannot_be_served_is_said_at_once(
    name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", name]) == 2
    assert said in capsys.readouterr().err
