"""The report's page in a browser: what its address chooses, and that nothing goes wrong in it.

Needs Chromium (Debian's package chromium) and says so where there is none; .ci/run tells it, too.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
from hand_trace import Access, launch, write_rows
from html_page import Element, parse
from warps import warp

import cutrace
from cutrace.analyzer.html.gather import Subject
from cutrace.analyzer.html.page import render
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import Argument
from cutrace.traces.writer import TraceWriter

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DEVICES = ("gtx580", "h100")

pytestmark = pytest.mark.skipif(not BROWSER, reason="no chromium here: apt install chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    with TraceWriter(folder / "k.cutrace") as made:
        made.source("k.cu", "float v = in[16 * i];\n" + "// far away\n" * 20)
        for stride in (4, 64, 8):
            shape = launch(arguments=(Argument("stride", "int", stride),))
            with made.launch(shape) as rows:
                write_rows(rows, [Access(warp(stride=stride))])
    trace = read_trace(folder / "k.cutrace")
    subject = Subject("k", trace, cutrace.analyze(trace, DEVICES))
    (folder / "page.html").write_text(render([subject], ReplayOptions(), "cutrace report"))
    return folder / "page.html"


def opened(page: Path, address: str, *options: str) -> Element:
    """The page as it is when its scripts have run."""
    profile = f"--user-data-dir={page.parent / 'profile'}"
    words = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", profile, *options]
    words += ["--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom"]
    done = subprocess.run(
        [*words, page.as_uri() + address], capture_output=True, text=True, timeout=60
    )
    assert "CONSOLE" not in done.stderr, done.stderr
    return parse(done.stdout)


def classes(element: Element) -> list[str]:
    return element.attributes.get("class", "").split()


def test_an_address_holds_the_part_the_launch_and_the_device(page: Path) -> None:
    root = opened(page, "#source;launch=v0-2;device=h100;by=excess")
    shown = [s.attributes["id"] for s in root.find("section") if "now" in classes(s)]
    assert shown == ["source"]
    (source,) = root.find("section", id="source")
    here = [a for a in source.find("article") if "off" not in classes(a)]
    chosen = [(a.attributes["data-launch"], a.attributes["data-device"]) for a in here]
    assert chosen == [("v0-2", "h100")]
    assert classes(here[0].find("table", class_="source")[0]) == ["source", "by-excess"]
    (folded,) = here[0].find("tbody", class_="far")
    assert "closed" in classes(folded)
    assert len(folded.find("tr")) == 17  # of 21 lines the costly one and three behind it stay


def test_the_worst_launch_is_what_one_sees_first(page: Path) -> None:
    root = opened(page, "")
    (summary,) = root.find("section", id="summary")
    (here,) = [a for a in summary.find("article") if "off" not in classes(a)]
    assert here.attributes["data-launch"] == "v0-1"


def test_a_line_has_an_address_that_unfolds_it(page: Path) -> None:
    root = opened(page, "#v0-0-h100-1-19")
    (row,) = root.find("tr", id="v0-0-h100-1-19")
    (source,) = root.find("section", id="source")
    assert "now" in classes(source)
    (far,) = [t for t in source.find("tbody", class_="far") if row in t.find("tr")]
    assert "closed" not in classes(far)


def test_launches_are_found_and_can_be_sorted(page: Path) -> None:
    root = opened(page, "#summary;find=stride=64")
    (table,) = root.find("table", class_="launches")
    rows = table.find("tbody")[0].find("tr")
    assert ["hidden" in row.attributes for row in rows] == [True, False, True]
    assert root.find(id="found")[0].text == "1 found"
    assert len(table.find("thead")[0].find("button")) == 4


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_is_no_wider_than_its_window(page: Path, width: int) -> None:
    # what is wider scrolls in its own region: the page itself has no bar
    wide = page.parent / f"wide{width}.html"
    frame = f'<iframe src="page.html" style="width:{width}px;height:800px;border:0"></iframe>'
    tell = (
        "<script>onload = () => { const d = document.querySelector('iframe').contentDocument;"
        "document.title = d.documentElement.scrollWidth; }</script>"
    )
    wide.write_text(
        f"<!DOCTYPE html><html><head><title></title></head><body>{frame}{tell}</body></html>"
    )
    root = opened(wide, "", "--allow-file-access-from-files")
    assert int(root.find("title")[0].text) <= width
