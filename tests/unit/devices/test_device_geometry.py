"""Devices that there cannot be: each is refused in words, by file and table, when it is read."""

from pathlib import Path

import pytest

from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.models.replay.device import device as device_module
from cutrace.models.replay.device.catalog import device_names
from cutrace.models.replay.device.device import load_device


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("chip.sms=0", r"\[chip\]: 0 SMs in clusters of 2"),
        ("chip.sms_per_cluster=0", r"\[chip\]: 132 SMs in clusters of 0"),
        ("chip.gpc_apart=17", r"\[chip\]: gpcs = \[16, .*, gpc_apart = 17: expected SMs of each"),
        ("chip.gpcs=[0,132]", r"\[chip\]: gpcs = \[0, 132\], gpc_apart = 8: expected SMs of each"),
        ("chip.memory_gb_per_s=0", r"\[chip\]: memory of \d+ bytes at 0 GB/s"),
        ("chip.clock_mhz=-1", r"\[chip\]: .* -1 MHz: expected numbers above zero"),
        ("limits.warps_per_sm=0", r"\[limits\]: warps_per_sm = 0; expected 1 or more"),
        ("limits.register_unit=0", r"\[limits\]: register_unit = 0; expected 1 or more"),
        ("limits.shared_unit=-128", r"\[limits\]: shared_unit = -128; expected 1 or more"),
        ("limits.barriers_per_sm=-1", r"\[limits\]: barriers_per_sm = -1; expected 0 or more"),
        ("limits.block_dim=[1024,0,64]", r"\[limits\]: block_dim = \(1024, 0, 64\); expected 1"),
        ("limits.block_dim=[1024,64]", r"\[limits\]: block_dim = \[1024, 64\]; expected a list"),
        ("limits.shared_carveouts=[]", r"\[limits\]: shared_carveouts = \[\]; expected sizes in"),
        ("limits.shared_carveouts=[233472,8192]", "expected sizes in rising order"),
        ("limits.shared_per_sm=300000", r"up to shared_per_sm = 300000"),
        ("coalescer.request_lanes=[32,32,3]", "coalescer: request_lanes = 32, 32, 3; expected 3"),
        ("coalescer.merge_lanes=[0,32,32]", "coalescer: merge_lanes = 0, 32, 32; expected 3 of"),
        ("constant.request_lanes=5", "constant: request_lanes = 5; expected 1 of the divisors"),
        ("sampler.request_lanes=0", "texture: request_lanes = 0; expected 1 of the divisors"),
        ("sampler.fetch_lanes=[8,4]", "texture: fetch_lanes = 8, 4; expected 3 of the divisors"),
        ("sampler.tile=", "texture: tile = ''; expected letters x and y"),
        ("l1.line=96", "cache: line = 96; expected a power of two"),
        ("l1.ways=0", "cache: ways = 0; expected one of sets and ways, at least 1"),
        ("l1.sets=0", "cache: sets = 0; expected one of sets and ways, at least 1"),
        ("l1.ways=four", "ways = 'four'; expected a whole number"),
        ("lrc.window=0", "lrc: window = 0; expected 1 at least"),
        ("lrc.scope=0", r"\[stage\.lrc\]: scope = 0; expected one of sm, cluster, gpc, gpu"),
        ("l1.sector=256", "cache: lines of 128 bytes in sectors of 256"),
        ("l1.bytes=1", "cache: 1 bytes are too few; expected 1024 at least"),
        ("l1.serves=['globe']", "cache: no state space 'globe'; nearest: global"),
        ("l1.store=threw", "cache: no policy `threw` for stores; .*; nearest: through"),
        ("l2.scope=chip", r"\[stage\.l2\]: scope = 'chip'; expected one of sm, cluster, gpc, gpu"),
        ("l2.from=['l3']", r"\[stage\.l2\]: no state space or stage 'l3'"),
        ("l2.from=[]", r"\[stage\.l2\]: from = \[\]; expected a list of state spaces"),
        ("l2.from=['dram']", "form a circle"),
        ("l1.beside_shared=3", r"\[stage\.l1\]: beside_shared = 3; expected true or false"),
    ],
)
def test_a_setting_that_no_chip_can_have_is_refused(setting: str, message: str) -> None:
    key, _, value = setting.partition("=")
    with pytest.raises(CutraceError, match=message) as caught:
        load_device("h100", {key: value})
    assert str(caught.value).startswith(("--set: [", "h100.toml: "))


@pytest.mark.parametrize(
    ("device", "stage", "told", "then"),
    [
        # the file says sets of 2.x and 3.x, ways of 9.0: what is told takes their place
        ("gtx580", "l2", {"ways": 8}, {"ways": 8, "sets": None, "bytes": 768 << 10}),
        ("gtx580", "l2", {"bytes": "1M"}, {"sets": 768, "bytes": 1 << 20}),
        ("h100", "l1", {"sets": "32"}, {"sets": 32, "ways": None}),
        # a row is a word of every bank, on 3.x two
        ("h100", "banks", {"banks": 64}, {"banks": 64, "row_bytes": 64 * 4}),
        ("k20", "banks", {"banks": 16}, {"row_bytes": 16 * 4 * 2}),
        ("k20", "banks", {"bank_bytes": 8}, {"row_bytes": 32 * 8}),  # its other mode
        ("k20", "banks", {"banks": 16, "row_bytes": 64}, {"row_bytes": 64}),
    ],
)
def test_what_goes_with_a_setting_follows_it(
    device: str, stage: str, told: dict[str, object], then: dict[str, object]
) -> None:
    made = load_device(device, {f"{stage}.{key}": value for key, value in told.items()})
    (keys,) = (dict(each.keys) for each in made.stages if each.name == stage)
    assert {key: keys.get(key) for key in then} == then


def test_sets_and_ways_that_are_both_told_are_refused() -> None:
    with pytest.raises(CutraceError, match=r"cache: sets = 32 and ways = 4; expected one of"):
        load_device("h100", {"l1.sets": 32, "l1.ways": 4})


def test_a_file_may_say_ways_where_its_base_says_sets(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\nbase = "gtx580"\n[stage.l2]\nways = 4\n')
    (l2,) = (each for each in load_device(str(tmp_path / "mine.toml")).stages if each.name == "l2")
    assert l2.keys["ways"] == 4
    assert "sets" not in l2.keys


def test_l1_must_leave_room_beside_the_largest_shared_memory() -> None:
    # 228 KB of shared memory leave 14 KB of 242, but nothing of 228
    assert load_device("h100", {"l1.ways": 28}).key == "h100"
    with pytest.raises(CutraceError, match=r"--set: \[stage\.l1\]: .*, beside 233472 bytes of"):
        load_device("h100", {"l1.bytes": 233472})
    with pytest.raises(CutraceError, match=r"l1\.bytes=65536 is the size of both together"):
        load_device("h100", {"l1.bytes": 65536})


@pytest.mark.parametrize("verb", ["analyze", "why", "compare", "report", "export", "occupancy"])
def test_every_verb_that_replays_refuses_what_cannot_be_set_before_it_works(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"occupancy": ["--threads", "32"], "compare": ["a.cutrace", "b.cutrace"]}
    words["export"] = ["a.cutrace", "--to", "ncu-raw", "-d", "h100"]
    asked = words.get(verb, [str(tmp_path / "none.cutrace")])
    assert run([verb, *asked, "--set", "coalescr.load=line"]) == 2
    told = capsys.readouterr().err
    assert "--set: nothing to set by `coalescr.load` in h100.toml" in told
    assert "nearest: coalescer.load" in told


@pytest.mark.parametrize("name", device_names())
def test_the_wiring_of_a_device_that_comes_with_cutrace_passes_the_check(name: str) -> None:
    """Loading such a device leaves out the check that a user's own file has to pass."""
    device_module._check_stages(load_device(name))


def test_a_device_is_read_once_while_its_files_and_settings_stay(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "Mine"\ncapability = "9.0"\nbase = "h100"\n', encoding="utf-8")
    first = load_device(str(path))
    assert load_device(str(path)) is first
    set_once = load_device(str(path), {"chip.sms": 12})
    assert load_device(str(path), {"chip.sms": 12}) is set_once
    assert load_device(str(path), {"chip.sms": "12"}).chip.sms == set_once.chip.sms == 12
    with pytest.raises(CutraceError, match="chip"):
        load_device(str(path), {"chip.sms": 12.0})
    path.write_text(path.read_text("utf-8") + "[chip]\nsms = 6\n", encoding="utf-8")
    assert (load_device(str(path)).chip.sms, first.chip.sms) == (6, load_device("h100").chip.sms)
