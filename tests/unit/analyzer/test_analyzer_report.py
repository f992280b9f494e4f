"""Reports of profiles written by hand: what a reader sees, at any width and in any format."""

import csv
import json
import re
from dataclasses import replace
from itertools import product

import pytest
from profiles import counts, launch_profile, profile, render

from cutrace.analyzer.profile import Profile
from cutrace.analyzer.report import formats
from cutrace.analyzer.report.view import View, check_grouping
from cutrace.base.errors import CutraceError

ASKED = ("gst_incoherent", "global_store_transactions", "sector_efficiency")


def two_devices(**view: object) -> Profile:
    """A load of 1 request and stores of 2, 3 and 5; in each store 8 of 32 bytes are wanted."""
    table = counts(
        global_load_requests=[1, 0, 0, 0],
        global_load_transactions=[1, 0, 0, 0],
        global_load_bytes_moved=[64, 0, 0, 0],
        global_load_bytes_distinct=[64, 0, 0, 0],
        global_store_requests=[0, 2, 3, 5],
        global_store_transactions=[0, 32, 48, 80],
        global_store_bytes_moved=[0, 64, 96, 160],
        global_store_bytes_distinct=[0, 16, 24, 40],
        global_store_incoherent_32=[0, 32, 48, 80],
        instructions=[1, 2, 3, 5],
        barriers=[0, 0, 0, 0],
    )
    old, new = launch_profile("8800gtx", (1, 0), table), launch_profile("h200", (9, 0), table)
    return profile(old, new, view=View(**view))  # type: ignore[arg-type]


def test_rows_are_counters_columns_are_devices_and_what_a_device_lacks_is_empty() -> None:
    told = "costs most: reverse.cu:3  out[n - i] = v;\n  83 % of the bytes moved on 8800gtx, h200\n"
    sample = (
        "8800gtx: cuda-profiler saw 122 of 1024 blocks, those of one cluster, or the 61 of one SM"
        " in it;\n--scope all counts the grid\n"
    )
    # 2 x (32 + 48) on the cluster; 32 + 48 + 80; (64 + 80) / (64 + 320) bytes
    assert render(two_devices(counters=ASKED, first="device: h200", last="cutrace x"), "table") == (
        "device: h200\n"
        "\n"
        "reverse<<<1024, 256>>>(out, in)\n"
        "\n"
        "counter                    8800gtx    h200\n"
        "[cuda-profiler]\n"
        "gst_incoherent                 160\n"
        "[cutrace]\n"
        "global_store_transactions      160     160\n"
        "sector_efficiency           37.5 %  37.5 %\n"
        f"\n{told}{sample}"
        "\n"
        "next: cutrace x\n"
    )


def test_a_narrow_terminal_gets_a_block_a_device_and_no_cell_is_cut() -> None:
    widest = len("global_store_transactions  8800gtx    h200")
    for width, blocks in ((None, 1), (200, 1), (widest, 1), (widest - 1, 2), (20, 2)):
        text = render(two_devices(counters=ASKED, width=width), "table")
        assert text.count("global_store_transactions") == blocks, width
        for word in ("gst_incoherent", "8800gtx", "h200", "160", "37.5 %"):
            assert word in text


def test_the_devices_of_a_costly_line_take_the_lines_that_they_need() -> None:
    text = render(two_devices(width=40), "table")
    assert "\ncosts most: reverse.cu:3  out[n - i] =\n  v;\n" in text
    assert "\n  83 % of the bytes moved on 8800gtx,\n  h200\n" in text


def test_several_devices_speak_plain_and_one_alone_its_eras_words_too() -> None:
    both = two_devices()
    assert "[cuda-profiler]" not in render(both, "table")
    alone = render(profile(both.launches[0]), "table")
    assert "[cuda-profiler]\ngst_incoherent" in alone
    assert re.search(r"\ngst_incoherent +160\n", alone)
    assert "[cuda-profiler]" not in render(profile(both.launches[1]), "table")


def test_zeros_are_told_in_one_sentence_unless_asked_for_or_the_eras_own() -> None:
    text = render(two_devices(), "table")
    assert "\n0 on every device: barriers\n" in text
    assert "\nbarriers " not in text
    asked = render(two_devices(counters=("barriers",)), "table")
    assert "\nbarriers        0     0\n" in asked
    alone = render(
        profile(launch_profile("8800gtx", (1, 0), counts(branches_taken=[0] * 4))), "table"
    )
    assert "0 on every device" not in alone


def test_a_counter_that_was_asked_for_and_that_no_device_has_is_said_to_be_none() -> None:
    names = ("gld_transactions", "gst_incoherent", "global_store_transactions")
    text = " ".join(render(two_devices(counters=names), "table").split())
    assert "gld_transactions (`cutrace counters gld_transactions` says which have it)" in text
    told = text.partition("not counted on ")[2].partition(" costs most")[0]
    assert "gst_incoherent" not in told  # the 8800 GTX has it
    assert "not counted on" not in render(two_devices(), "table")


def test_of_nvidias_many_zeros_their_number_is_told() -> None:
    idle = {
        f"{space}_{access}_{what}": [0] * 4
        for space, what in product(("local", "global"), ("requests", "transactions", "bytes_moved"))
        for access in ("load", "store", "atomic", "reduction")
    }
    h200 = launch_profile("h200", (9, 0), counts(instructions=[1, 2, 3, 5], **idle))
    text = render(profile(h200), "table")
    told = " ".join(text.partition("0 on every device: ")[2].partition("\n\n")[0].split())
    assert re.search(r", \d\d counters of ncu$", told)
    assert told.startswith("global_load_requests, ")
    assert "smsp__" not in told


def test_where_a_page_has_no_room_each_row_has_a_block_without_its_zeros() -> None:
    for by, headings in (
        ("line", ["reverse.cu:2  int v = in[i];", "reverse.cu:3  out[n - i] = v;"]),
        ("array", ["array in", "array out"]),
        (
            "instruction",
            [
                "pc 4  ld.global.u32 %r1, [%rd1];  (reverse.cu:2)",
                "pc 5  st.global.u32 [%rd2], %r1;  (reverse.cu:3)",
            ],
        ),
    ):
        one = profile(two_devices().launches[1], view=View(by=by, width=30))
        text = render(one, "table")
        load, store = (text.index(f"\n{heading}\n") for heading in headings)
        assert load < text.index("  global_load_requests") < store
        assert store < text.index("  global_store_requests")
        assert text.count("global_load_requests") == 1


def test_what_a_device_refuses_stands_in_its_column_and_its_cells_are_empty() -> None:
    table = counts(instructions=[1, 2, 3, 5])
    refused = launch_profile("8800gtx", (1, 0), table, "cannot launch: 512 threads a block at most")
    text = render(profile(refused, launch_profile("h200", (9, 0), table)), "table")
    words = "cannot launch: 512 threads a block at most"
    assert f"\nlaunch        {words}   runs\n" in text
    assert f"\ninstructions  {' ' * len(words)}     11\n" in text
    assert refused.lines.is_empty()


def test_that_ptx_is_not_sass_is_said_once_and_only_where_it_matters() -> None:
    (old, new), again = two_devices().launches, two_devices().launches
    both = profile(old, new, *(replace(launch, number=1) for launch in again))
    text = render(both, "table")
    assert text.count("reverse<<<1024, 256>>>(out, in)") == 2
    assert text.count("PTX is not SASS") == 1
    assert "PTX is not SASS" not in render(two_devices(counters=ASKED), "table")


def test_a_terminal_gets_colours_and_a_pipe_none() -> None:
    assert "\x1b[" in render(two_devices(colour=True, width=100), "table")
    assert "\x1b[" not in render(two_devices(), "table")


def test_markdown_has_a_table_a_vocabulary() -> None:
    text = render(two_devices(counters=ASKED), "md")
    assert "| cuda-profiler | 8800gtx | h200 |\n| --- | ---: | ---: |\n" in text
    assert "| `gst_incoherent` | 160 |  |\n" in text
    assert "| `sector_efficiency` | 37.5 % | 37.5 % |\n" in text


def test_csv_and_json_have_every_digit_and_nothing_for_what_is_absent() -> None:
    rows = list(csv.DictReader(render(two_devices(counters=ASKED, by="line"), "csv").splitlines()))
    found = {(r["device"], r["line"], r["counter"]): r["value"] for r in rows}
    assert found["8800gtx", "3", "gst_incoherent"] == "160"
    assert found["h200", "3", "gst_incoherent"] == ""
    assert found["h200", "3", "sector_efficiency"] == "0.25"
    (launch,) = json.loads(render(two_devices(counters=ASKED), "json"))["launches"]
    assert launch["devices"][0]["costs_most"]["text"] == "out[n - i] = v;"
    assert [c["values"] for c in launch["counters"]] == [
        {"8800gtx": 160, "h200": None},
        {"8800gtx": 160, "h200": 160},
        {"8800gtx": 0.375, "h200": 0.375},
    ]


def test_formats_are_found_by_listing_and_a_misspelt_one_is_answered() -> None:
    assert formats() == ("csv", "html", "json", "md", "table")
    with pytest.raises(CutraceError, match="no format 'tabel'; nearest: table, html;"):
        render(two_devices(), "tabel")
    with pytest.raises(CutraceError, match="cannot count by 'lines'; nearest: line;"):
        check_grouping("lines")


def test_a_misspelt_counter_of_a_profile_is_answered_with_the_nearest() -> None:
    with pytest.raises(KeyError, match="gst_incohrent'; nearest: gst_incoherent, gst_coherent"):
        two_devices().launches[0].counters["gst_incohrent"]


def test_what_is_true_of_every_launch_is_said_once() -> None:
    one = launch_profile("h200", (9, 0), counts(global_load_requests=[8, 0, 0, 0]))
    one = replace(one, remarks=("the same remark",))
    other = replace(one, number=1, remarks=("the same remark", "its own remark"))
    said = render(profile(one, other), "table")
    assert said.count("the same remark") == 1
    assert said.index("its own remark") < said.index("every launch:\n")
    assert said.index("every launch:\n") < said.index("the same remark")
    assert "every launch:" not in render(profile(one), "table")
