"""Devices and their wiring as text."""

from pathlib import Path

import networkx as nx
import pytest

from cutrace.analyzer.device_report import describe_device, draw, list_devices
from cutrace.analyzer.text.layout import align
from cutrace.models.replay.device.catalog import device_names
from cutrace.models.replay.device.device import load_device, load_devices


def picture(*edges: str, **details: str) -> str:
    """The drawing of a graph, whose edges are written `a>b`."""
    graph = nx.DiGraph([edge.split(">") for edge in edges])
    return "\n".join(draw(graph, details))


def test_a_chain_is_a_line() -> None:
    assert picture("a>b", "b>c") == "a─── b─── c"


def test_lines_meet_in_the_row_of_the_first() -> None:
    assert picture("a>d", "b>d", "c>d") == "a─┬─ d\nb─┤\nc─┘"


def test_names_in_a_column_begin_below_each_other_and_sizes_lie_below_names() -> None:
    assert picture("ab>c", "b>c", c="8 KB") == "ab─┬─ c\n   │  8 KB\nb ─┘"


def test_a_line_from_afar_passes_below_what_lies_between() -> None:
    assert picture("a>b", "b>d", "c>d") == "a─── b─┬─ d\nc ─────┘"


def test_what_feeds_two_is_drawn_once_with_its_inputs_and_then_by_name() -> None:
    assert picture("a>b", "b>c", "b>d") == "a─── b─── c\n     b─── d"


def test_a_graph_without_nodes_is_no_line() -> None:
    assert draw(nx.DiGraph(), {}) == []


def test_the_wiring_of_an_h200_is_drawn_with_the_sizes_of_its_file() -> None:
    drawn = "\n".join(describe_device(load_device("h200"), ["h200.toml"], 60))
    assert "global ─┬─ coalescer─┬─ l1 ───" in drawn
    # 253952, 48758784 and 150109880320 bytes
    assert "248 KB          │  46.5 MB    140 GB" in drawn
    assert "shared ─── banks" in drawn
    for key in ("wavers", "on_the_way", "carveout_roomy", "lrc", "idc", "l15", "pair_merge"):
        assert f"\n{key}: " in drawn
    old = describe_device(load_device("8800gtx"), ["8800gtx.toml"], 60)
    assert not any(line.startswith("wavers: ") for line in old)


@pytest.mark.parametrize("name", device_names())
def test_a_device_is_described_within_60_columns(name: str) -> None:
    lines = describe_device(load_device(name), [f"{name}.toml"], 60)
    assert max(map(len, lines)) <= 60
    assert any("dram" in line and "─" in line for line in lines)


@pytest.mark.parametrize("width", [60, 200, None])
def test_every_limit_is_shown_whole_at_any_width(width: int | None) -> None:
    lines = describe_device(load_device("h200"), ["h200.toml"], width)
    words = " ".join(" ".join(lines).split())
    sizes = "[0, 8192, 16384, 32768, 65536, 102400, 135168, 167936, 200704, 233472]"
    assert f"shared_carveouts {sizes} carveout_fallback" in words
    assert "warps_per_sm 64" in words
    assert max(map(len, lines)) <= (width or 100)


def test_the_list_of_devices_fits_in_60_columns() -> None:
    lines = align([*list_devices(load_devices(["all"])).texts()])
    assert len(lines) == 1 + len(device_names())
    assert max(map(len, lines)) <= 60


def test_a_file_of_ones_own_with_a_stage_of_ones_own_is_drawn(tmp_path: Path) -> None:
    text = 'name = "Mine"\nbase = "h100"\n[stage.page]\nmodel = "own_models:Offsets"\n'
    (tmp_path / "mine.toml").write_text(text + 'from = ["coalescer"]\n')
    lines = describe_device(load_device(str(tmp_path / "mine.toml")), ["mine.toml"], 60)
    assert sum("page" in line and "coalescer" in line for line in lines) == 2  # drawn, and its keys
