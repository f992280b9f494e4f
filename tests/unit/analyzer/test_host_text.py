"""What the host computed is said on the first screen and in the page."""

from dataclasses import replace
from pathlib import Path

from hand_trace import Access, hand_trace
from warps import warp

import cutrace
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
