"""Variants side by side: differences, ratios, the best, aligned lines, every format."""

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hand_trace import Access, hand_trace, instruction, launch, write_rows
from profiles import counts, launch_profile, profile
from warps import BASE, warp

import cutrace
from cutrace.analyzer import report
from cutrace.analyzer.comparison.comparison import Comparison, compare_profiles
from cutrace.analyzer.comparison.comparison_report import comparison_document
from cutrace.analyzer.profile import Profile, analyze
from cutrace.analyzer.report.view import View
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.traces.schema import Argument
from cutrace.traces.writer import TraceWriter

Captured = pytest.CaptureFixture[str]
SECTORS = "global_load_transactions"
ASKED = ("global_store_transactions", "global_store_sector_efficiency")
DEVICES = ["gtx280", "h200"]


def made(transactions: int, moved: int) -> Profile:
    """A launch whose store makes so many transactions and moves so many bytes for 128 wanted."""
    table = counts(
        global_store_transactions=[0, transactions, 0, 0],
        global_store_bytes_moved=[0, moved, 0, 0],
        global_store_bytes_distinct=[0, 128, 0, 0],
    )
    return profile(launch_profile("h200", (9, 0), table))


def render(comparison: Comparison, format: str, view: View) -> str:
    return report.render(comparison_document(comparison, view), format)


def three(**options: str) -> Comparison:
    profiles = {"naive": made(32, 1024), "tiled": made(4, 128), "padded": made(4, 128)}
    return compare_profiles(profiles, counters=ASKED, **options)


def test_each_variant_has_its_difference_and_ratio_and_the_best_are_marked() -> None:
    (table,) = three().tables
    transactions, utilization = (row.cells for row in table.rows)
    assert [(c.value, c.difference, c.ratio, c.is_best) for c in transactions] == [
        (32, 0, 1, False),
        (4, -28, 0.125, True),
        (4, -28, 0.125, True),
    ]
    # a ratio is the better the higher: 128 of 1024, 128 of 128 bytes
    assert [(c.value, c.is_best) for c in utilization] == [(0.125, False), (1, True), (1, True)]


def test_another_baseline_turns_the_ratios_around() -> None:
    (table,) = three(baseline="tiled").tables
    assert [cell.ratio for cell in table.rows[0].cells] == [8, 1, 1]


def test_the_table_shows_all_side_by_side_and_narrow_ones_in_pairs() -> None:
    view = View(counters=ASKED, last="x")
    wide = render(three(), "table", view)
    assert wide == (
        "h200, launch 0\n"
        "  naive: reverse<<<1024, 256>>>(out, in)\n"
        "  tiled: reverse<<<1024, 256>>>(out, in)\n"
        "  padded: reverse<<<1024, 256>>>(out, in)\n"
        "\n"
        "counter                          naive    tiled  difference    ratio"
        "   padded  difference    ratio\n"
        "global_store_transactions           32      4 *         -28  8x less"
        "      4 *         -28  8x less\n"
        "global_store_sector_efficiency  12.5 %  100 % *   +87.5 pts  8x more"
        "  100 % *   +87.5 pts  8x more\n"
        "\n"
        "* is the best of its row\n"
        "next: x\n"
    )
    narrow = render(three(), "table", View(counters=ASKED, last="x", width=70))
    assert max(map(len, narrow.splitlines())) <= 70
    assert narrow.count("global_store_transactions") == 2
    assert set(wide.split()) == set(narrow.split())
    narrower = render(three(), "table", View(counters=ASKED, last="x", width=60))
    assert max(map(len, narrower.splitlines())) <= 60
    assert set(wide.split()) - set(narrower.split()) == {"difference", "-28", "+87.5", "pts"}


def test_two_variants_leave_out_differences_too_where_these_have_no_room() -> None:
    two = compare_profiles({"naive": made(32, 1024), "tiled": made(4, 128)}, counters=ASKED)
    wide, narrow = (render(two, "table", View(counters=ASKED, width=n)) for n in (100, 60))
    assert max(map(len, narrow.splitlines())) <= 60
    assert {*wide.split()} - {*narrow.split()} == {"difference", "-28", "+87.5", "pts"}


def test_programs_read_csv_and_json() -> None:
    view = View(counters=ASKED)
    records = [*csv.DictReader(StringIO(render(three(), "csv", view)))]
    assert len(records) == 2 * 3
    assert records[1] == {
        "device": "h200",
        "launch": "0",
        "vocabulary": "cutrace",
        "counter": "global_store_transactions",
        "unit": "transactions",
        "variant": "tiled",
        "place": "",
        "value": "4",
        "difference": "-28",
        "ratio": "0.125",
        "best": "True",
    }
    document = json.loads(render(three(), "json", view))
    assert document["baseline"] == "naive"
    assert document["values"][1]["ratio"] == 0.125
    markdown = render(three(), "md", view)
    assert "| global_store_transactions | 32 | 4 * | -28 | 8x less |" in markdown


def traced(path: Path, source: str, stores: dict[int, int]) -> Path:
    """A trace of a source, with a store of this stride on each of its lines."""
    with TraceWriter(path) as trace:
        trace.source("k.cu", source)
        with trace.launch(launch()) as rows:
            table = [instruction(n, "st.global.f32", line=line) for n, line in enumerate(stores)]
            accesses = [
                Access(warp(stride=stride, base=BASE + 4096 * n), pc=n, step=n)
                for n, stride in enumerate(stores.values())
            ]
            write_rows(rows, accesses, table)
    return path


@pytest.fixture
def variants(tmp_path: Path) -> dict[str, Path]:
    first = "kernel()\nsame(i);\nout[x * n + y] = 1;\nend\n"
    second = "kernel()\nadded(i);\nsame(i);\nout[y * n + x] = 1;\nend\n"
    return {
        "a": traced(tmp_path / "a.cutrace", first, {2: 4, 3: 128}),
        "b": traced(tmp_path / "b.cutrace", second, {2: 8, 3: 4, 4: 4}),
    }


def test_lines_are_aligned_by_their_text_and_likeness(variants: dict[str, Path]) -> None:
    profiles = {name: analyze(path, ["h200"]) for name, path in variants.items()}
    tables = compare_profiles(profiles, by="line", counters=ASKED[:1]).tables
    found = [(t.text, t.places, tuple(c.value for c in t.rows[0].cells)) for t in tables]
    assert found == [
        ("added(i);", ("", "k.cu:2"), (None, 8)),
        ("same(i);", ("k.cu:2", "k.cu:3"), (4, 4)),
        ("out[x * n + y] = 1;", ("k.cu:3", "k.cu:4"), (32, 4)),
    ]


def test_unequally_many_launches_are_compared_as_their_sums(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "two.cutrace") as trace:
        for stride in (4, 128):
            with trace.launch(launch()) as rows:
                write_rows(rows, [Access(warp(stride=stride))])
    hand_trace(tmp_path / "one.cutrace", [Access(warp())])
    profiles = {n: analyze(tmp_path / f"{n}.cutrace", DEVICES) for n in ("two", "one")}
    asked = ("global_load_transactions", "occupancy")
    found = compare_profiles(profiles, counters=asked)
    # 4 sectors and 32; on 1.3 two segments of 64 bytes and 32 of 32
    values = [[cell.value for cell in table.rows[0].cells] for table in found.tables]
    assert values == [[2 + 32, 2], [4 + 32, 4]]
    assert found.notes == (
        "unequally many launches (two has 2, one has 1): compared as the sums of all",
    )
    assert found.launches[None][0] == "k<<<1, 32>>>(), k<<<1, 32>>>()"


def test_kernels_of_one_trace_stand_side_by_side(tmp_path: Path, capsys: Captured) -> None:
    with TraceWriter(tmp_path / "all.cutrace") as trace:
        for kernel, stride in (("far", 128), ("near", 4), ("near", 8)):
            with trace.launch(launch(kernel=kernel, signature=f"{kernel}()")) as rows:
                write_rows(rows, [Access(warp(stride=stride))])
    asked = ["compare", str(tmp_path / "all.cutrace"), "-d", "h200", "--counters", SECTORS]
    # 32 sectors, and 4 and 8
    assert values(asked, capsys) == {"far": 32, "near": 4 + 8}
    assert values([*asked, "--launch", "0-1"], capsys) == {"far": 32, "near": 4}
    # of one kernel its launches
    assert values([*asked, "--launch", "1,2"], capsys) == {"launch 1": 4, "launch 2": 8}
    frame = cutrace.compare(tmp_path / "all.cutrace", "h200")
    assert set(frame["variant"]) == {"far", "near"}


def values(words: list[str], capsys: Captured) -> dict[str, int]:
    """What is said of each variant, of a single counter."""
    assert run([*words, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["values"]
    return {cell["variant"]: cell["value"] for cell in found}


def test_a_trace_of_many_kernels_is_not_put_side_by_side(tmp_path: Path, capsys: Captured) -> None:
    with TraceWriter(tmp_path / "all.cutrace") as trace:
        for number in range(9):
            with trace.launch(launch(signature=f"k{number}()")) as rows:
                write_rows(rows, [Access(warp())])
    assert run(["compare", str(tmp_path / "all.cutrace")]) == 2
    assert "all has 9 kernels, too many side by side" in capsys.readouterr().err


def test_a_variant_that_a_device_refuses_says_so(tmp_path: Path, capsys: Captured) -> None:
    hand_trace(tmp_path / "big.cutrace", [Access(warp())], launch=launch(block=(1024, 1, 1)))
    hand_trace(tmp_path / "small.cutrace", [Access(warp())])
    paths = [str(tmp_path / name) for name in ("small.cutrace", "big.cutrace")]
    assert run(["compare", *paths, "-d", "8800gtx"]) == 0
    assert "  big: cannot launch: 512 threads a block at most\n" in capsys.readouterr().out


def test_the_verb_takes_names_a_baseline_and_formats(
    variants: dict[str, Path], capsys: Captured
) -> None:
    a, b = (str(path) for path in variants.values())
    assert run(["compare", a, f"other={b}", "-d", "gtx280,h200", "--baseline", "other"]) == 0
    said = capsys.readouterr().out
    assert "gtx280, launch 0\n" in said
    assert "h200, launch 0\n" in said
    assert "the same in all variants: " in said
    assert said.endswith("--by line\n")
    for format in report.formats():
        assert run(["compare", a, b, "-d", "h200", "--format", format]) == 0
        assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["A"], "nothing to compare with: one launch of a; choose two, or give two traces"),
        (["x=A", "x=B"], "two variants have one name"),
        (["A", "B", "--baseline", "bb"], "no variant 'bb'; nearest: b"),
        (["A", "B", "--by", "array"], "cannot compare by 'array'; expected launch or line"),
        (["A", "B", "--format", "cvs"], "no format 'cvs'; nearest: csv"),
        (["A", "nothing.cutrace"], "nothing.cutrace: no such trace"),
    ],
)
def test_what_cannot_be_compared_is_answered(
    words: list[str], message: str, variants: dict[str, Path], capsys: Captured
) -> None:
    known = {"A": variants["a"], "B": variants["b"]}
    spelt = [
        w.replace(key, str(path)) for w in words for key, path in known.items() if key in w
    ] + [w for w in words if not any(key in w for key in known)]
    assert run(["compare", "-d", "h200", *spelt]) == 2
    assert message in capsys.readouterr().err


def test_a_baseline_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(CutraceError, match="no variant 'nave'; nearest: naive"):
        three(baseline="nave")


def launched(signature: str, types: tuple[str, ...], **numbers: int) -> Profile:
    """A profile of one launch; `numbers` are its scalar arguments."""
    arguments = tuple(
        Argument(name, type_, numbers.get(name, name))
        for name, type_ in zip((*"ab", *numbers), types, strict=True)
    )
    found = made(4, 128)
    own = replace(found.launches[0].launch, signature=signature, arguments=arguments)
    return replace(found, launches=(replace(found.launches[0], launch=own),))


POINTERS = ("float *", "const float *")


def notes_on(one: Profile, other: Profile) -> tuple[str, ...]:
    return compare_profiles({"one": one, "other": other}, counters=ASKED).notes


def test_kernels_of_other_names_and_other_arguments_are_doubted() -> None:
    turn = launched("turn(float *a, const float *b)", POINTERS)
    total = launched("total(int *a, const int *b)", ("int *", "const int *"))
    assert notes_on(turn, total) == (
        "launch 0: different kernels, one launches turn(float *a, const float *b) and other"
        " launches total(int *a, const int *b): do they do the same work?",
    )
    # another name for the same arguments, and other arguments under one name, are variants
    assert notes_on(turn, launched("turnTiled<16>(float *a, const float *b)", POINTERS)) == ()
    assert notes_on(turn, launched("turn<int>(int *a, int *b)", ("int *", "int *"))) == ()


def test_numbers_that_both_take_and_that_differ_are_told() -> None:
    types = (*POINTERS, "int")
    small = launched("turn(float *a, const float *b, int n)", types, n=64)
    large = launched("turnTiled(float *a, const float *b, int n)", types, n=128)
    assert notes_on(small, large) == ("launch 0: one and other have other numbers, n=64 and 128",)
    assert notes_on(small, small) == ()


def test_lines_of_several_launches_name_the_launch() -> None:
    profiles = {"a": made(4, 128), "b": made(8, 256)}
    first = compare_profiles(profiles, counters=ASKED)
    table = replace(first.tables[0], places=("k.cu:1", "k.cu:1"), text="x = 1;")
    several = replace(first, tables=(table,), launches={0: ("", ""), 1: ("", "")})
    assert render(several, "table", View()).startswith("h200, launch 0  x = 1;\n")
    assert render(replace(several, launches={0: ("", "")}), "table", View()).startswith("h200  x")


def marked(one: Profile, other: Profile, *counters: str) -> list[bool]:
    tables = compare_profiles({"one": one, "other": other}, counters=counters).tables
    return [cell.is_best for table in tables for row in table.rows for cell in row.cells]


def test_nothing_is_best_where_the_work_is_not_the_same() -> None:
    turn = launched("turn(float *a, const float *b)", POINTERS)
    dear = replace(
        turn, launches=(replace(made(32, 1024).launches[0], launch=turn.launches[0].launch),)
    )
    total = launched("total(int *a, const int *b)", ("int *", "const int *"))
    assert marked(dear, turn, *ASKED) == [False, True, False, True]
    assert marked(dear, total, *ASKED) == [False] * 4
    said = render(compare_profiles({"a": dear, "b": total}, counters=ASKED), "table", View())
    assert "is the best of its row" not in said


def test_a_hit_rate_has_no_better() -> None:
    # 7 of 8 sectors that need not be asked for at all are no better than none of one
    asking = counts(l1_reads=[8, 0, 0, 0], l1_read_hits=[7, 0, 0, 0])
    needing = counts(l1_reads=[1, 0, 0, 0], l1_read_hits=[0, 0, 0, 0])
    one, other = (profile(launch_profile("h200", (9, 0), t)) for t in (asking, needing))
    assert one.launches[0].counters["l1_hit_rate"] == 0.875
    assert marked(one, other, "l1_hit_rate") == [False, False]


def test_lines_that_are_alike_are_counted_and_not_listed(tmp_path: Path) -> None:
    text = "kernel()\nout[i] = 1;\nother[i] = 1;\n"
    profiles = {
        name: analyze(traced(tmp_path / f"{name}.cutrace", text, {2: stride, 3: 4}), ["h200"])
        for name, stride in (("far", 64), ("near", 4))
    }
    told = render(compare_profiles(profiles, by="line"), "table", View())
    assert told.count("\nglobal_store_transactions ") == 1
    assert "\n1 more line: no counter differs\n" in told
    # 32 sectors for 32 lanes 64 bytes apart, 4 side by side
    assert "8x less" in told
