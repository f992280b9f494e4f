"""What the host computed is said on the first screen and in the page; rows of XLA's ranges."""

from dataclasses import replace
from pathlib import Path

from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.analyzer.overview import kernel_rows
from cutrace.analyzer.profile_report import profile_document
from cutrace.analyzer.report import render
from cutrace.analyzer.text.launch_text import host_text
from cutrace.traces.schema import Event


def test_the_first_screen_says_how_many_operators_the_host_computed(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp())])  # one kernel, `k`
    profile = cutrace.analyze(trace, device="h100")
    names = ("aten::mm", "aten::add", "aten::mm")
    events = tuple(Event("library", name=name) for name in names)
    manifest = replace(profile.manifest, events=(*profile.manifest.events, *events))
    said = "2 of 3 operators (3 calls) computed on the host: their kernels are not counted"
    assert host_text(manifest) == said
    shown = replace(profile, manifest=manifest)
    assert said in render(profile_document(shown), "table")
    assert "on the host" not in render(profile_document(profile), "table")
    one = replace(manifest, events=events[:1])
    assert host_text(one) == ("aten::mm (1 call) computed on the host: its kernels are not counted")


def test_the_page_says_it_of_each_launch(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp())])
    event = Event("library", name="aten::mm")
    manifest = replace(trace.manifest, events=(*trace.manifest.events, event))
    page = cutrace.report(replace(trace, manifest=manifest), device="h100").html
    assert "aten::mm (1 call) computed on the host" in page


def test_rows_of_ranges_have_the_names_of_xla_s_operations(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp())])
    profile = cutrace.analyze(trace, device="h100")
    (launch,) = profile.launches
    thunk = "TSL@Thunk:#name=jit(loss)/transpose(jvp()),hlo_op=gemm.1#"
    ranges = ("TSL@XlaModule:#hlo_module=jit_loss,program_id=0#", thunk)
    in_range = replace(launch, launch=replace(launch.launch, ranges=ranges))
    view = replace(profile.view, of_ranges=True)
    (row,) = kernel_rows(replace(profile, launches=(in_range,), view=view), "h100")
    assert row.name == "gemm.1 (jit(loss)/transpose(jvp()))"
