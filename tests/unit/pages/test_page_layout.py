"""The report's layout: nothing above its roof, nothing out of its box, the comparison first."""

import re
from pathlib import Path

import pytest
from html_page import parse

from cutrace.analyzer.counting.memory_flow import Box, Flow
from cutrace.analyzer.html.flow_svg import WIDE, draw_flow
from cutrace.commands._main import run

SOURCE = """\
// cutrace: scale<<<1024, 256>>>(out:f32[262144], in:f32[262144])
// cutrace: chain<<<16, 256>>>(o:f32[4096], i:f32[4096])
__global__ void scale(float *out, const float *in)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i * 1024 % 262144 + i / 256] = 2 * in[i];
}
__global__ void chain(float *out, const float *in)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float x = in[i];
    for (int k = 0; k < 64; k++)
        x = x * 1.5f + 0.5f;
    out[i] = x;
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a source of two kernels."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    (tmp_path / "both.cu").write_text(SOURCE)
    return tmp_path


def page(*words: str) -> str:
    assert run(["report", *words, "-o", "page.html"]) == 0
    return Path("page.html").read_text()


@pytest.mark.parametrize("device", ["h100", "rtx4090", "gtx580"])
def test_no_mark_is_above_its_roof_or_out_of_the_drawing(device: str) -> None:
    drawings = re.findall(r'<svg [^>]*aria-label="roofline.*?</svg>', page("both.cu", "-d", device))
    assert len(drawings) == 2
    for drawing in drawings:
        cores = re.search(r'class="line" d="M\S+ (\S+)L\S+ \S+"/><text[^>]*>cores', drawing)
        assert cores
        roofs = re.findall(
            r'class="line" d="M(\S+) (\S+)L(\S+) (\S+)"/>'
            r'<circle class="\w+" cx="(\S+)" cy="(\S+)"',
            drawing,
        )
        assert roofs
        for numbers in roofs:
            x1, y1, x2, y2, x, y = map(float, numbers)
            assert y >= float(cores[1]) - 0.1  # downwards
            assert x >= x2 or y >= y1 + (x - x1) / (x2 - x1) * (y2 - y1) - 0.2
        for x, anchor, words in re.findall(
            r'<text x="(\S+)" y="\S+" class="mark" text-anchor="(\w+)">([^<]*)', drawing
        ):
            assert 0 < float(x) + (7 * len(words) if anchor == "start" else 0) < 640
            assert anchor == "start" or float(x) > 7 * len(words)
        assert "e+" not in re.sub("<[^>]*>", "", drawing)


def test_a_long_figure_is_written_smaller_to_stay_in_its_card() -> None:
    root = parse(page("both.cu"))
    for tile in root.find("ul", class_="tiles")[0].find("strong"):
        assert int(tile.attributes["style"].removeprefix("--n:")) >= len(tile.text)
    style = root.find("style")[0].text
    assert "font-size: min(1.55rem, calc(228px / var(--n)))" in style
    # 13 letters of 1,108,344,832 at 0.58 of the size are within 168 - 2 * 16 - 2 pixels
    assert 13 * 0.58 * 228 / 13 <= 168 - 2 * 16 - 2


def test_text_of_the_memory_flow_stays_in_its_box() -> None:
    lines = ("1,108,344,832 transactions", "9 needed")
    drawing = draw_flow(Flow((Box("global", "Global", 0, lines),), ()), "flow")
    texts = drawing.split("<text")[1:]
    long, brief = (text for text in texts if any(each in text for each in lines))
    assert f'textLength="{WIDE - 24}"' in long
    assert "textLength" not in brief


def test_stores_that_do_not_reach_memory_are_noted() -> None:
    launch = "scale<<<16, 256>>>(out:f32[262144], in:f32[262144])"
    assert "stores stay in L2" in page("both.cu", "--launch", launch)


def test_a_page_of_variants_opens_on_their_comparison_by_estimates() -> None:
    Path("other.cu").write_text(SOURCE.replace("i * 1024 % 262144 + i / 256", "i"))
    root = parse(page("before=both.cu", "after=other.cu", "--kernels", "scale"))
    tabs = [tab.text for tab in root.find("nav")[0].find("a")]
    assert tabs[:2] == ["Variants", "Summary"]
    sections = [each.attributes.get("id") for each in root.find("section")]
    assert sections[0] == "variants"
    table = root.find("section", id="variants")[0].find("table")[0]
    names = [row.find("th", scope="row")[0].text for row in table.find("tr")[1:]]
    assert "estimated_time" in names[:2]


@pytest.mark.parametrize("device", ["h100", "t4", "gtx580"])
def test_the_summary_begins_with_the_time_and_the_gain_of_the_first_screen(
    device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = parse(page("both.cu", "-d", device, "--kernels", "scale"))
    capsys.readouterr()
    assert run(["analyze", "both.cu", "-d", device, "--kernels", "scale"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    (summary,) = root.find("section", id="summary")
    text = " ".join(summary.text.split())
    if time := re.search(r"time about (\S+ us) \((\S+ to \S+)\)", said):
        assert re.search(rf"about *{time[1]} *{time[2]} expected; .*at least", text)
    assert bool(time) == (device != "gtx580")
    gain = re.search(r"; about \S+ us becomes about \S+ us ", said)
    assert bool(gain) == bool(time)
    assert not gain or gain[0].rstrip() in text


def test_a_page_of_variants_says_what_compare_says(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.cu").write_text(SOURCE.replace("i * 1024 % 262144 + i / 256", "i"))
    words = ("before=both.cu", "after=other.cu", "-d", "h100,t4,gtx580")
    (panel,) = parse(page(*words, "--kernels", "scale")).find("section", id="variants")
    capsys.readouterr()
    assert run(["compare", *words, "--kernels", "scale"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    verdicts = [each.text for each in panel.find("p")[1:]]
    assert len(verdicts) == 3
    assert all(verdict in said for verdict in verdicts)
    assert not parse(page("both.cu")).find("section", id="variants")[0].find("p")[1:]


def test_kernels_of_one_program_are_side_by_side() -> None:
    root = parse(page("both.cu"))
    tabs = [tab.text for tab in root.find("nav")[0].find("a")]
    assert tabs[0] == "Summary"
    assert tabs[-2:] == ["Kernels", "Counters"]
    (panel,) = root.find("section", id="variants")
    heads = [head.text for head in panel.find("table")[0].find("th", scope="col")]
    assert heads == ["counter", "scale", "chain"]
    assert "Kernels" not in page("both.cu", "--kernels", "scale")


def test_what_scrolls_has_a_shadow_at_its_edge() -> None:
    style = parse(page("both.cu")).find("style")[0].text
    rule = re.search(r"nav, \.scroll \{.*?\}", style, re.DOTALL)
    assert rule
    assert "background-attachment: local, local, scroll, scroll" in rule[0]
