"""What verbs answer as functions: values with a word, a picture, a frame."""

import pickle
from pathlib import Path

import pytest
from html_page import parse

import cutrace
from cutrace.base.errors import CutraceError

SOURCE = """// cutrace: scale<<<2, 64>>>(out:f32[2048], in:f32[2048]=arange)

__global__ void scale(float *out, const float *in)
{
    int i = 16 * (blockIdx.x * blockDim.x + threadIdx.x);
    out[i] = 2 * in[i];
}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "scale.cu"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def trace(source: Path) -> Path:
    return cutrace.record(source, out=source.with_suffix(".cutrace"))


def test_why_is_a_sentence_a_picture_and_a_row_a_device(source: Path, tmp_path: Path) -> None:
    found = cutrace.why(source, "scale.cu:6", device=["h100", "gtx580"])
    assert repr(found).startswith("h100: 32 lanes touch 32 sectors (stride 64 bytes): 4 needed\n")
    rows = found.frame().rows(named=True)
    # 32 lanes 64 bytes apart: 32 sectors of 32 bytes, 16 lines of 128; 128 bytes need 4 and 1
    assert [(r["device"], r["cost"], r["ideal"]) for r in rows] == [
        ("h100", 32, 4),
        ("gtx580", 16, 1),
    ]
    assert found.save(tmp_path / "why.svg").read_text().startswith("<svg")
    assert "<svg" in found._repr_html_()
    assert found[0].access is not None
    assert cutrace.why(source, access=found[0].access.identifier)[0].sentence == found[0].sentence


def test_advice_is_a_list_of_findings_with_their_launches(trace: Path) -> None:
    found = cutrace.advise(trace)
    launch, finding = found[0]
    assert (launch.device, finding.rule, finding.place) == ("h100", "uncoalesced", "scale.cu:6")
    assert found.frame()["rule"].to_list() == [finding.rule for _, finding in found]
    assert repr(found).startswith("scale.cu:6 (uncoalesced): let neighbouring lanes")
    assert parse(f"<div>{found._repr_html_()}</div>").find("li")


def test_a_check_is_true_where_every_limit_holds(trace: Path) -> None:
    # 4 warps load and store: 32 sectors each
    held = cutrace.check(trace, {"scale": {"global_transactions": 256}})
    broken = cutrace.check(trace, {"scale": {"global_transactions": 255}}, device="h200")
    assert held
    assert not broken
    assert (repr(held), repr(broken)) == ("1 limits hold", "1 of 1 limits broken")
    (row,) = broken.frame().rows(named=True)
    assert (row["device"], row["value"], row["limit"], row["holds"]) == ("h200", 256, 255, False)
    assert row["place"] == "scale.cu:6"
    assert "budget: not more than 255" in str(broken)
    assert '"holds": false' in broken.render("json")
    assert "broken" in broken._repr_html_()


def test_a_report_is_a_page_that_a_notebook_frames(trace: Path, tmp_path: Path) -> None:
    page = cutrace.report({"a": trace, "b": trace}, device="h100", caches=False)
    named = {chip.text for chip in parse(page.html).find("span", class_="chip")}
    assert {"a", "b", "h100"} <= named
    assert page.save(tmp_path / "page.html").read_text() == page.html
    (frame,) = parse(page._repr_html_()).find("iframe")
    assert frame.attributes["srcdoc"] == page.html
    assert frame.attributes["sandbox"] == "allow-scripts"
    (tmp_path / "other.html").write_text("mine")
    with pytest.raises(CutraceError, match="is no report of cutrace"):
        page.save(tmp_path / "other.html")


def test_occupancy_is_of_a_trace_or_of_numbers(trace: Path) -> None:
    # blocks of 2 warps: 32 blocks of 64 threads are 64 warps, all that an SM of 9.0 holds
    (row,) = cutrace.occupancy(trace, device="h100").frame().rows(named=True)
    assert (row["blocks"], row["warps"], row["occupancy"]) == (32, 64, 1.0)
    found = cutrace.occupancy(threads=1024, device=["gtx580", "h100"])
    # 1536 threads on an SM of 2.0, 2048 on one of 9.0
    assert found.frame()["blocks"].to_list() == [1, 2]
    assert len(parse(f"<div>{found._repr_html_()}</div>").find("table")) == 2
    with pytest.raises(CutraceError, match="give a trace, or --threads N"):
        cutrace.occupancy()


def test_devices_and_counters_are_frames() -> None:
    boards = cutrace.devices("sm_9*")
    assert boards["device"].to_list() == ["sm_90"]
    known = cutrace.counters()
    assert {"cutrace", "ncu", "nvprof"} <= {*known["vocabulary"]}
    assert known.filter(counter="global_transactions")["unit"].to_list() == ["transactions"]


def test_a_profile_says_little_until_it_is_asked_and_travels(trace: Path) -> None:
    profile = cutrace.analyze(trace, ["h100", "gtx580"])
    assert repr(profile) == "<profile of 1 launch on h100, gtx580>"
    assert repr(profile.launches[0]).startswith("<scale<<<2, 64>>>(out, in) on h100: limited by")
    long = profile.frame().filter(counter="global_transactions")
    # 4 warps: a sector a lane to load and to store; on 2.0 16 lines to load, 32 segments to store
    assert long.select("kernel", "device", "value").rows() == [
        ("scale", "h100", 4 * (32 + 32)),
        ("scale", "gtx580", 4 * (16 + 32)),
    ]
    again = pickle.loads(pickle.dumps(profile))
    assert again.frame().equals(profile.frame())
    assert again.launches[0].arrays.equals(profile.launches[0].arrays)


def test_an_option_that_is_not_there_is_named(trace: Path) -> None:
    with pytest.raises(TypeError, match="devise"):
        cutrace.why(trace, devise="h100")


def test_counters_have_the_words_of_nsight_compute_and_answer_to_their_old_names(
    trace: Path,
) -> None:
    (launch,) = cutrace.analyze(trace, "h100").launches
    # 4 warps, 32 lanes, 4 bytes, to load and to store
    for name in ("global_load_bytes_requested", "global_load_bytes_asked"):
        assert launch.counters[name] == 4 * 32 * 4
    # of 64 bytes between lanes a sector of 32 is moved and 4 bytes are used: an eighth
    for name in ("sector_efficiency", "bus_utilization"):
        limits = cutrace.check(trace, {"scale": {name: "== 0.125"}}).frame()
        assert limits.select("expression", "holds").rows() == [("sector_efficiency", True)]
    # 2 x 4 x 32 sectors of 32 bytes, for 512 bytes that loads ask for
    for moved, asked in (("transferred", "requested"), ("moved", "asked")):
        ratio = {f"global_bytes_{moved} / global_load_bytes_{asked}": "== 16"}
        assert cutrace.check(trace, {"scale": ratio})
