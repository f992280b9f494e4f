"""The HTML report: whole, safe, offline, bounded, and with the profile's numbers."""

import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

import pytest
from hand_trace import Access, hand_trace, instruction, launch, write_rows
from html_page import Element, parse
from warps import warp

import cutrace
from cutrace.analyzer.html.gather import Subject
from cutrace.analyzer.html.page import MOST, digits, render
from cutrace.analyzer.html.value import Bounds
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.schema import Argument, Array, Space
from cutrace.traces.writer import TraceWriter

HOSTILE = "<script>hostile</script>\"&'"
DEVICES = ("8800gtx", "h200")
Captured = pytest.CaptureFixture[str]


def page_of(*traces: Trace, devices: Sequence[str] = DEVICES, bounds: Bounds | None = None) -> str:
    subjects = [
        Subject(f"{index}{trace.path.name}", trace, cutrace.analyze(trace, devices))
        for index, trace in enumerate(traces)
    ]
    return render(subjects, ReplayOptions(), "cutrace report", bounds or Bounds())


def small(path: Path, **columns: object) -> Trace:
    """A strided load on line 1 of `k.cu`, a bank conflict on line 2."""
    table = [instruction(0) | columns, instruction(1, "ld.shared.f32") | columns]
    rows = [
        Access(warp(stride=64)),
        Access(warp(stride=8, base=0), pc=1, step=1, space=Space.SHARED),
    ]
    return hand_trace(path / "k.cutrace", rows, instructions=table)


def check_offline(text: str) -> Element:
    """Nothing on the page asks for anything that is not on the page."""
    root = parse(text)
    scripts = root.find("script")
    assert len(scripts) == 1
    assert scripts[0].attributes == {}
    assert "default-src 'none'" in text
    without = re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.S)
    for pattern in ("@import", "url("):
        assert pattern not in text
    for element in (*root.find(), root):
        for name, value in element.attributes.items():
            assert not name.startswith("on"), (element.tag, name)
            if name in ("src", "href", "action", "xlink:href", "srcset", "poster"):
                assert value.startswith(("#", "data:,")), (element.tag, name, value)
    assert "<iframe" not in without
    return root


def check_accessible(root: Element) -> None:
    """Headings do not skip a level, tables' headings have a scope, identifiers are unique."""
    assert root.find("html")[0].attributes["lang"] == "en"
    levels = [int(e.tag[1]) for e in root.find() if re.fullmatch(r"h[1-6]", e.tag)]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert root.find("th")
    assert all(th.attributes.get("scope") in ("row", "col") for th in root.find("th"))
    ids = [e.attributes["id"] for e in root.find() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    for link in root.find("a"):
        assert link.attributes["href"].removeprefix("#") in ids
    for svg in root.find("svg"):
        assert svg.attributes.get("role") == "img"
        assert svg.attributes.get("aria-label") or svg.find("title")


def test_the_page_is_whole_offline_and_accessible(tmp_path: Path) -> None:
    text = page_of(small(tmp_path))
    check_accessible(check_offline(text))
    assert text == page_of(read_trace(tmp_path / "k.cutrace"))


def test_every_number_is_the_profiles(tmp_path: Path) -> None:
    trace = small(tmp_path)
    root = parse(page_of(trace))
    (counters,) = root.find("section", id="counters")
    rows = {row.find("th")[0].text: row for row in counters.find("tr") if row.find("td")}
    profiles = cutrace.analyze(trace, DEVICES).launches
    checked = 0
    for name, row in rows.items():
        shown = [cell.find("data") for cell in row.find("td")]
        for profile, data in zip(profiles, shown, strict=True):
            value = profile.counters[name]
            assert [d.attributes["value"] for d in data] == ([] if value is None else [str(value)])
            checked += value is not None
    assert checked > 20
    # 32 lanes 64 bytes apart: a transaction each, of 4 x 32 bytes at best on 9.0
    told = rows["global_transactions"].find("data")
    assert [d.text for d in told] == ["32", "32"]
    assert [d.text for d in rows["global_ideal_transactions"].find("data")] == ["2", "4"]


def test_lines_have_their_counters_their_heat_and_their_picture(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "k.cutrace") as made:
        made.source("k.cu", "float v = in[16 * i];\nv += tile[2 * i];\n// rest\n")
        with made.launch(launch()) as rows:
            accesses = [
                Access(warp(stride=64)),
                Access(warp(stride=8, base=0), pc=1, step=1, space=Space.SHARED),
            ]
            write_rows(rows, accesses, [instruction(0), instruction(1, "ld.shared.f32")])
    root = parse(page_of(read_trace(tmp_path / "k.cutrace"), devices=["h200"]))
    (table,) = root.find("table", class_="source")
    lines = [row for row in table.find("tr") if row.attributes.get("class") != "ptx"]
    first, second, third = (row for row in lines if row.find("td"))
    assert [row.find("th")[0].text for row in (first, second, third)] == ["1", "2", "3"]
    assert first.find("pre")[0].text == "float v = in[16 * i];"
    # all bytes of global memory are line 1's, all conflicts line 2's
    assert "--bytes:1.000;" in first.attributes["style"]
    assert "--conflicts:1.000;" in second.attributes["style"]
    assert "style" not in third.attributes
    line, lanes = first.find("a")
    assert line.attributes["href"] == f"#{first.attributes['id']}"
    target = lanes.attributes["href"].removeprefix("#")
    (figure,) = root.find("figure", id=target)
    assert figure.find("p", class_="say")[0].text.startswith("32 lanes touch 32 sectors (stride 64")


def test_all_text_of_a_trace_is_escaped(tmp_path: Path) -> None:
    arrays = (Array(HOSTILE, Space.GLOBAL, 0x1000_0000, 1 << 20),)
    table = [instruction(0, text=HOSTILE, file=f"{HOSTILE}.cu")]
    shape = launch(signature=f"{HOSTILE}(float *x)", kernel=HOSTILE, arrays=arrays)
    with TraceWriter(tmp_path / "k.cutrace") as made:
        made.source(f"{HOSTILE}.cu", f"{HOSTILE}\n")
        with made.launch(shape) as rows:
            write_rows(rows, [Access(warp(stride=64))], table)
    trace = read_trace(tmp_path / "k.cutrace")
    subjects = [Subject(HOSTILE + n, trace, cutrace.analyze(trace, DEVICES)) for n in ("a", "b")]
    text = render(subjects, ReplayOptions(), f"cutrace report {HOSTILE}")
    root = check_offline(text)
    assert root.find("h1")[0].text == HOSTILE
    assert root.find("table", class_="source")[0].find("pre")[0].text == HOSTILE
    assert any(HOSTILE in svg.text for svg in root.find("svg", class_="access"))
    assert "hostile" not in root.find("script")[0].text
    assert text.count("<script") == 1
    assert escape("<script>") in text


def test_text_that_no_file_can_hold_is_replaced(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "k.cutrace") as made:
        made.source("k.cu", "int \ud800;\n")
        with made.launch(launch()) as rows:
            write_rows(rows, [Access(warp())])
    root = check_offline(page_of(read_trace(tmp_path / "k.cutrace"), devices=["h200"]))
    assert root.find("table", class_="source")[0].find("pre")[0].text == r"int \ud800;"


def test_lines_with_conflicts_are_costly_too(tmp_path: Path) -> None:
    root = parse(page_of(small(tmp_path), devices=["h200"]))
    (costly,) = root.find("ol", class_="costly")
    shares = [line.find("p", class_="share")[0].text for line in costly.find("li")]
    # all of the bytes on line 1; the one conflict of 2 passes on line 2
    assert [" ".join(share.split()) for share in shares] == [
        "100 % of the bytes moved k.cu:1",
        "100 % of the bank conflicts k.cu:2",
    ]


def test_a_trace_without_lines_shows_its_instructions(tmp_path: Path) -> None:
    text = page_of(small(tmp_path, file="", line=0))
    root = check_offline(text)
    assert "The trace knows no source lines" in text
    table = root.find("table", class_="source")[0]
    assert [pre.text for pre in table.find("pre")] == ["ld.global.f32 ...;", "ld.shared.f32 ...;"]


def test_a_trace_without_launches_has_a_page(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "k.cutrace"):
        pass
    root = check_offline(page_of(read_trace(tmp_path / "k.cutrace")))
    assert root.find("h1")[0].text == "no launches"


def test_a_device_that_refuses_says_so_and_the_other_is_shown(tmp_path: Path) -> None:
    shape = launch(block=(1024, 1, 1))
    trace = hand_trace(tmp_path / "k.cutrace", [Access(warp())], launch=shape)
    root = parse(page_of(trace))
    refused = root.find("article", data_device="8800gtx")
    assert all("cannot launch: 512 threads a block at most" in a.text for a in refused)
    assert not any("cannot launch" in a.text for a in root.find("article", data_device="h200"))


def test_thousands_of_lines_and_hundreds_of_launches_stay_small(tmp_path: Path) -> None:
    lines, launches, kernels = 1500, 60, 15
    source = "".join(f"float v{n} = in[{n}]; // {'x' * 60}\n" for n in range(lines))
    table = [instruction(n) for n in range(lines)]
    every = [Access(warp(stride=4 + 4 * (n % 2)), pc=n, step=n) for n in range(lines)]
    with TraceWriter(tmp_path / "k.cutrace") as made:
        made.source("k.cu", source)
        for number in range(launches):
            with made.launch(
                launch(kernel=f"k{number % kernels}", signature=f"k{number % kernels}()")
            ) as rows:
                many = lines if number == 0 else 2
                write_rows(rows, every[:many], table[:many])
    text = page_of(
        read_trace(tmp_path / "k.cutrace"), devices=["8800gtx"], bounds=Bounds(listed=50)
    )
    assert len(text.encode()) < MOST
    root = check_offline(text)
    assert "more lines of this file cost less" in text
    assert "and 10 more launches, which" in root.text
    # 48 pictures for 12 launches, 4 each: of 1500 lines so many, of 2 lines both
    assert len(root.find("figure")) == 4 + 11 * 2
    # of 15 kernels the 12 that move most are shown, each for its 4 launches
    assert len(root.find("option")) == 12 + 1
    assert root.text.count("the worst of 4 launches of this kernel and shape") == 12


def strided(path: Path, *strides: int, scalar: str = "int") -> Trace:
    """Launches of one kernel whose lanes lie a stride apart, which is an argument."""
    with TraceWriter(path / "k.cutrace") as made:
        for stride in strides:
            argument = Argument("stride", scalar, stride)
            with made.launch(launch(arguments=(argument,))) as rows:
                write_rows(rows, [Access(warp(stride=stride))])
    return read_trace(path / "k.cutrace")


def test_the_worst_launch_is_shown_and_the_others_are_linked(tmp_path: Path) -> None:
    # 32 lanes in 4, 8, 16, 32 and 4 sectors: the fourth has 28 excess, and moves most
    trace = strided(tmp_path, 4, 8, 16, 64, 4)
    root = check_offline(page_of(trace, devices=["h200"], bounds=Bounds(launches=1)))
    (facts,) = (p.text for p in root.find("p", class_="facts") if "worst" in p.text)
    assert "launch 3, the worst of 5 launches of this kernel and shape" in facts
    rows = [row.text for row in root.find("table")[0].find("tr") if "stride=" in row.text]
    assert len(rows) == 5
    assert ["shown as launch 3" in row for row in rows] == [True, True, True, False, True]
    assert "28 excess" in rows[3]
    assert "too many" not in rows[0]


def test_launches_with_other_scalars_are_shown_where_there_is_room(tmp_path: Path) -> None:
    trace = strided(tmp_path, 4, 8, 16, 64, 4)
    root = check_offline(page_of(trace, devices=["h200"]))
    rows = [row for row in root.find("table")[0].find("tr") if "stride=" in row.text]
    opened = [row.find("a")[0].attributes["data-open"] for row in rows]
    # the last has the arguments of the first, which stands for it
    assert opened == ["v0-0", "v0-1", "v0-2", "v0-3", "v0-0"]
    assert "shown as launch 0" in rows[4].text
    options = [option for option in root.find("option") if "stride=" in option.text]
    assert len(options) == 4
    (chosen,) = (o.attributes["value"] for o in options if "selected" in o.attributes)
    assert chosen == "v0-3", "the worst is what one sees first"


def test_conflicts_make_a_launch_the_worst_where_bytes_are_alike(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "k.cutrace") as made:
        for stride in (4, 128, 8):
            with made.launch(launch(arguments=(Argument("stride", "int", stride),))) as rows:
                access = Access(warp(stride=stride, base=0), space=Space.SHARED)
                write_rows(rows, [access], [instruction(0, "ld.shared.f32")])
    bounds = Bounds(launches=1)
    root = parse(page_of(read_trace(tmp_path / "k.cutrace"), devices=["h200"], bounds=bounds))
    # 32 words of one bank: 31 passes too many; two words of each bank: one
    assert "launch 1, the worst of 3" in root.find("p", class_="facts")[0].text
    assert "31 excess" in root.find("table")[0].text


def test_variants_stand_side_by_side_with_the_best_marked(tmp_path: Path) -> None:
    good = hand_trace(tmp_path / "good.cutrace", [Access(warp())])
    bad = hand_trace(tmp_path / "bad.cutrace", [Access(warp(stride=128))])
    root = parse(page_of(bad, good))
    (variants,) = root.find("section", id="variants")
    rows = {r.find("th")[0].text: r for r in variants.find("tr") if r.find("td")}
    worse, better = rows["global_transactions"].find("td")[2:] or rows["global_transactions"].find(
        "td"
    )
    assert "best" in better.attributes["class"].split()
    assert "best" not in worse.attributes["class"].split()
    assert [d.attributes["value"] for d in rows["global_transactions"].find("data")][-2:] == [
        "32",
        "4",
    ]
    assert not parse(page_of(good)).find("section", id="variants")


def test_digits_are_parted_for_the_eye_only() -> None:
    assert parse(str(digits("1234567.25 %"))).text == "1234567.25 %"
    assert str(digits("1234567")) == '1<span class="t"></span>234<span class="t"></span>567'
    assert str(digits("1234")) == '1<span class="t"></span>234'
    assert str(digits("123")) == "123"
    assert str(digits("<b>")) == "&lt;b&gt;"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    small(tmp_path)
    return tmp_path


def test_the_verb_writes_the_file_and_replaces_its_own_only(folder: Path, capsys: Captured) -> None:
    command = ["report", "k.cutrace", "-d", "h200"]
    assert run([*command, "-o", "r.html"]) == 0
    assert capsys.readouterr().out == "r.html\nnext: open r.html in a browser\n"
    assert run([*command, "-o", "r.html"]) == 0
    assert check_offline((folder / "r.html").read_text()).find("h1")[0].text == "k"
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    (folder / "mine.html").write_text("<p>mine</p>")
    assert run([*command, "-o", "mine.html"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("cutrace: mine.html: exists and is no report of cutrace; ")
    assert (folder / "mine.html").read_text() == "<p>mine</p>"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["k.cutrace", "-o", "no/r.html"], "no/r.html: cannot write it: there is no folder no"),
        (["k.cutrace", "-o", "."], ".: a folder; name a file, say report.html"),
        (["k.cutrace", "-d", "h2000"], "no device 'h2000'; nearest: h200"),
        (["kk.cutrace"], "kk.cutrace: no such trace; nearest: k.cutrace"),
        (["k.cutrace", "k.cutrace"], "two variants have one name"),
        (["k.cutrace", "--pad", "tyle=1"], "no array `tyle` to change"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_written(
    folder: Path, capsys: Captured, arguments: list[str], complaint: str
) -> None:
    assert run(["report", *arguments]) == 2
    assert complaint in capsys.readouterr().err
    assert not (folder / "report.html").exists()


def test_a_page_that_would_be_too_large_leaves_more_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = 120
    table = [instruction(n) for n in range(lines)]
    every = [Access(warp(stride=128), pc=n, step=n) for n in range(lines)]
    trace = hand_trace(tmp_path / "k.cutrace", every, instructions=table)
    whole = page_of(trace, devices=["8800gtx"])
    assert "more lines of this file" not in whole
    monkeypatch.setattr("cutrace.analyzer.html.page.MOST", len(whole) - 10_000)
    smaller = page_of(trace, devices=["8800gtx"])
    assert len(smaller) <= len(whole) - 10_000
    check_offline(smaller)
    monkeypatch.setattr("cutrace.analyzer.html.page.MOST", 10_000)
    with pytest.raises(CutraceError, match=r"the report would have .* 10000 at most"):
        page_of(hand_trace(tmp_path / "l.cutrace"), devices=["8800gtx"])


@pytest.mark.parametrize("stride", [4, 8, 64])
def test_a_figure_is_bad_where_there_is_advice_on_it_and_nowhere_else(
    stride: int, tmp_path: Path
) -> None:
    trace = hand_trace(tmp_path / "k.cutrace", [Access(warp(stride=stride))])
    root = parse(page_of(trace, devices=["h200"]))
    bad = [tile for tile in root.find("li") if "bad" in tile.attributes.get("class", "")]
    advice = root.find("ul", class_="advice") + root.find("ol", class_="advice")
    assert bool(bad) == bool(advice), "neither red figures without advice, nor the reverse"
    # sectors of 32 bytes: 4 for 128 bytes in order; 8, twice as many; 32
    assert bool(advice) == (stride != 4)


def test_a_little_excess_of_which_nothing_is_advised_is_not_red(tmp_path: Path) -> None:
    # two rows of 16 lanes on one address each, as in a matrix product: 2 sectors, 1 needed
    lanes = warp(addresses=[0x1000_0000 + 4096 * (n // 16) for n in range(32)])
    trace = hand_trace(tmp_path / "k.cutrace", [Access(lanes)])
    root = parse(page_of(trace, devices=["h200"]))
    assert "nothing to advise" in root.text.lower()
    assert not [tile for tile in root.find("li") if "bad" in tile.attributes.get("class", "")]
    assert "1 needed" in root.text


def test_a_file_is_whole_with_far_lines_folded_and_words_marked(tmp_path: Path) -> None:
    text = "/* two\n   lines */\n" + "\n" * 20 + 'float v = in[0]; // "x" < 1\n'
    with TraceWriter(tmp_path / "k.cutrace") as made:
        made.source("k.cu", text)
        with made.launch(launch()) as rows:
            write_rows(rows, [Access(warp(stride=64))], [instruction(0, line=23)])
    root = parse(page_of(read_trace(tmp_path / "k.cutrace"), devices=["h200"]))
    (table,) = root.find("table", class_="source")
    shown = [row for row in table.find("tr") if row.attributes.get("class") != "ptx"]
    lines = [row.find("pre")[0].text for row in shown if row.find("pre")]
    assert lines == text.removesuffix("\n").split("\n")
    (far,) = table.find("tbody", class_="far")
    assert len(far.find("tr")) == 23 - 4  # three lines before the costly one stay
    assert [b.text for b in far.find("b", class_="c")] == ["/* two", "   lines */"]
    last = shown[-1]
    assert [(b.attributes["class"], b.text) for b in last.find("b")] == [
        ("k", "float"),
        ("n", "0"),
        ("c", '// "x" < 1'),
    ]
    # all bytes are this line's
    assert last.find("td", class_="part")[0].attributes["data-bytes"] == "100 %"


def test_a_launch_on_many_devices_has_a_bar_for_each_in_the_order_of_the_chips(
    tmp_path: Path,
) -> None:
    root = parse(page_of(small(tmp_path), devices=["h200", "gtx580", "8800gtx"]))
    drawn = [svg for svg in root.find("svg") if "a bar a device" in svg.text]
    transactions = next(svg for svg in drawn if "transactions of global memory" in svg.text)
    names = [t.text for t in transactions.find("text") if t.text in ("8800gtx", "gtx580", "h200")]
    assert names == ["8800gtx", "gtx580", "h200"]
    # a load with 64 bytes between lanes: 32 segments on 1.0, 16 lines on 2.0, 32 sectors on 9.0
    labels = [t.text for t in transactions.find("text", class_="soft")]
    assert labels == ["32", "16", "32"]


def test_of_very_many_devices_one_of_each_generation_is_shown_and_all_are_in_the_chart(
    tmp_path: Path,
) -> None:
    trace = hand_trace(tmp_path / "k.cutrace", [Access(warp(stride=64))])
    devices = ["8800gtx", "gtx280", "gtx480", "m2070", "sm_90", "h200", "h100"]
    root = check_offline(page_of(trace, devices=devices, bounds=Bounds(devices=4)))
    shown = [option.attributes["value"] for option in root.find("select", id="device")[0].find()]
    # the default one, then the newest board of 2.x and of 1.x
    assert shown == ["h100", "m2070", "gtx280"]
    charts = root.find("div", class_="curves")[0]
    assert all(device in charts.text for device in devices)
    assert "All 7 devices" in root.find("section", id="summary")[0].text


def test_two_devices_need_no_chart(tmp_path: Path) -> None:
    assert "Over the devices" not in page_of(small(tmp_path))
