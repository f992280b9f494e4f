"""Vocabularies: what the TOML files must hold, and how names find their definitions."""

import runpy
from pathlib import Path

import pytest
from profiles import counts, launch_profile

from cutrace.analyzer.counting.evaluate import columns
from cutrace.analyzer.counting.vocabulary import (
    SCOPES,
    capability_range,
    era,
    find_counters,
    headings,
    read_vocabulary,
    today,
    vocabularies,
)
from cutrace.base.errors import CutraceError
from cutrace.models.replay.device.catalog import device_names
from cutrace.models.replay.device.device import load_devices

ROOT = Path(__file__).parents[3]
HEAD = '[vocabulary]\nname = "mine"\ndoc = "d"\ndevices = "1.0-"\n'
ENTRY = (
    '[[counter]]\nname = "a"\ndoc = "d"\nunit = "u"\ndevices = "{}"\n'
    'formula = "SUM(x)"\nsource = "s"\n'
)
FIRST_PROFILER = [  # the 2008 article's list, as far as today's models carry it
    *("gld_incoherent", "gld_coherent", "gst_incoherent", "gst_coherent"),
    *("local_load", "local_store", "branch", "divergent_branch", "instructions"),
    *("warp_serialize", "cta_launched"),
]


def test_plain_comes_first_and_every_definition_is_complete() -> None:
    assert vocabularies()[0].name == "cutrace"
    for vocabulary in vocabularies():
        for counter in vocabulary.counters:
            assert counter.doc.endswith("."), counter.qualified
            assert counter.unit, counter.qualified
            assert counter.source, counter.qualified
            assert counter.scope in SCOPES, counter.qualified
            assert columns(counter.formula), counter.qualified


def test_plain_counters_exist_on_every_device() -> None:
    """But for the estimate, where latencies are known, and for copies that 9.0 brought."""
    plain = vocabularies()[0]
    names = [*dict.fromkeys(c.name for c in plain.counters)]
    since = {"estimated_time": (7, 0)}
    since |= dict.fromkeys((name for name in names if name.startswith("bulk_")), (9, 0))
    for device in load_devices(device_names()):
        expected = [name for name in names if device.capability >= since.get(name, (1, 0))]
        assert [c.name for c in plain.of(device.capability)] == expected, device.key


@pytest.mark.document("001.2", "all eleven counters")
def test_the_first_profiler_prints_its_counters_in_the_order_of_the_2008_article() -> None:
    g80 = era((1, 0))
    assert g80 is not None
    names = [c.name for c in g80.of((1, 0))]
    assert [n for n in names if n in FIRST_PROFILER] == FIRST_PROFILER


def test_sized_counters_come_with_capability_1_2() -> None:
    profiler = era((1, 0))
    assert profiler is not None
    sized = {"gld_32b", "gld_64b", "gld_128b", "gst_32b", "gst_64b", "gst_128b"}
    assert not sized & {c.name for c in profiler.of((1, 1))}
    assert sized <= {c.name for c in profiler.of((1, 2))}


def test_a_device_lacks_the_counters_of_another_era() -> None:
    assert headings((1, 3))["gst_incoherent"] is not None
    assert headings((2, 0))["gst_incoherent"] is None


def test_a_name_of_two_vocabularies_is_plain_bare_and_the_profilers_qualified() -> None:
    found = headings((1, 0))
    plain, profiler = found["instructions"], found["cuda-profiler.instructions"]
    assert plain is not None
    assert profiler is not None
    assert (plain.vocabulary, plain.scope) == ("cutrace", "all")
    assert (profiler.vocabulary, profiler.scope) == ("cuda-profiler", "sm")
    assert [c.qualified for c in find_counters(["instructions"])] == [
        "cutrace.instructions",
        "cuda-profiler.instructions",
    ]


def test_a_misspelt_counter_is_answered_with_the_three_nearest() -> None:
    with pytest.raises(
        CutraceError, match=r"no counter 'gst_incoherrent'; nearest: gst_incoherent,"
    ):
        find_counters(["gst_incoherrent"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (HEAD, "no counter"),
        (HEAD + ENTRY.format("1.0-") + 'forumla = "SUM(y)"\n', "unknown key `forumla`"),
        (HEAD + ENTRY.format("1.0-") + "scope = 3\n", "scope must be a str, not 3"),
        (HEAD + ENTRY.format("1.0-") + 'scope = "gpu"\n', "scope must be one of sm, cluster, all"),
        (HEAD + ENTRY.format("new"), "compute capability 'new'"),
        (HEAD + ENTRY.format("1.0-1.3") + ENTRY.format("1.3-"), "counter 'a' is defined twice"),
        ("= nothing", "not TOML"),
    ],
)
def test_a_faulty_vocabulary_is_refused_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(CutraceError, match=complaint):
        read_vocabulary(text, "mine.toml")


def test_a_name_may_mean_different_things_on_different_devices() -> None:
    found = read_vocabulary(HEAD + ENTRY.format("1.0-1.3") + ENTRY.format("2.0-"), "mine.toml")
    assert [c.devices for c in found.of((1, 3))] == ["1.0-1.3"]
    assert [c.devices for c in found.of((2, 0))] == ["2.0-"]


def test_the_document_of_vocabularies_is_current() -> None:
    script = ROOT / "scripts" / "write" / "vocabularies.py"
    if not script.exists():
        pytest.skip("the scripts are not beside the tests")
    wanted = runpy.run_path(str(script))["text"]().rstrip() + "\n"
    page = (ROOT / "docs" / "vocabularies.md").read_text(encoding="utf-8")
    assert page == wanted, "python scripts/write/vocabularies.py renews it"


def test_capability_ranges_are_inclusive_and_may_be_open() -> None:
    assert capability_range("1.0-1.3") == ((1, 0), (1, 3))
    low, high = capability_range("7.0-")
    assert low == (7, 0)
    assert high > (12, 1)


def test_a_counter_answers_to_the_name_that_it_had_before() -> None:
    (found,) = find_counters(["idle_lanes"])
    assert (found.name, found.unit) == ("padding_lanes", "lanes")
    launch = launch_profile("h200", (9, 0), counts(global_load_requests=[1, 0, 0, 0]))
    today = launch.counters["padding_lanes"]
    assert launch.counters["idle_lanes"] == today


@pytest.mark.parametrize("better", ["less", "more"])
def test_what_is_better_is_said_of_costs_and_not_of_facts_or_of_hits(better: str) -> None:
    known = {c.name for c in vocabularies()[0].counters if c.better == better}
    costs = {"global_transactions", "shared_conflicts", "instructions", "dram_bytes_read"}
    uses = {"sector_efficiency", "arithmetic_intensity"}
    assert known >= (costs if better == "less" else uses)
    assert not known & {"l1_hit_rate", "l2_hit_rate", "occupancy", "blocks_launched", "flops"}


@pytest.mark.parametrize(
    ("old", "now"),
    [
        ("shared_passes", "shared_wavefronts"),
        ("constant_ideal_passes", "constant_ideal_wavefronts"),
        ("global_load_bytes_asked", "global_load_bytes_requested"),
        ("global_bytes_moved", "global_bytes_transferred"),
        ("bus_utilization", "sector_efficiency"),
        ("plain.global_load_bus_utilization", "global_load_sector_efficiency"),
        ("plain.idle_lanes", "padding_lanes"),
    ],
)
def test_an_old_name_means_the_counter_in_the_words_of_nsight_compute(old: str, now: str) -> None:
    assert [c.name for c in find_counters([old])] == [now]
    assert today(now) == now
    with pytest.raises(CutraceError, match="no counter"):
        find_counters([f"{old}_of_nothing"])


def test_a_name_of_nsight_compute_itself_is_not_changed() -> None:
    name = "l1tex__data_pipe_lsu_wavefronts.sum"
    assert today(name) == name
