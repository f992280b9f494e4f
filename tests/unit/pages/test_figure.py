"""Drawings as files: SVG as it is, PNG and PDF by a browser."""

import re
import shutil
from pathlib import Path

import pytest

from cutrace.analyzer.text.output import BROWSERS, SHARP, write_figure
from cutrace.base.errors import CutraceError

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 60 20"><rect width="9" height="9"/></svg>'
)
needs_browser = pytest.mark.skipif(
    not any(map(shutil.which, BROWSERS)), reason="no browser here: apt install chromium"
)


def test_svg_is_written_as_it_is(tmp_path: Path) -> None:
    write_figure(tmp_path / "a.svg", SVG)
    assert (tmp_path / "a.svg").read_text() == SVG


@needs_browser
def test_png_has_two_pixels_for_each_unit(tmp_path: Path) -> None:
    write_figure(tmp_path / "a.png", SVG)
    head = (tmp_path / "a.png").read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    # width and height stand in the first chunk, 4 bytes each, the most significant first
    assert [int.from_bytes(head[n : n + 4], "big") for n in (16, 20)] == [60 * SHARP, 20 * SHARP]


@needs_browser
def test_pdf_is_one_page_of_the_drawings_size(tmp_path: Path) -> None:
    write_figure(tmp_path / "a.PDF", SVG)
    made = (tmp_path / "a.PDF").read_bytes()
    assert made.startswith(b"%PDF")
    assert re.findall(rb"/Count (\d+)", made) == [b"1"]
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", made)
    assert box is not None
    # 96 units are an inch, which is 72 points; pages end at whole pixels
    assert [float(each) for each in box.groups()] == pytest.approx([45, 15], abs=0.75)


def test_other_endings_and_no_browser_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CutraceError, match=r"a\.gif: expected a name that ends in \.svg"):
        write_figure(tmp_path / "a.gif", SVG)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUTRACE_BROWSER", raising=False)
    with pytest.raises(CutraceError, match="drawn by a browser, and there is none here"):
        write_figure(tmp_path / "a.png", SVG)
