"""Device files that build on others: what they inherit, and who is blamed for what is wrong."""

from pathlib import Path

import pytest

from cutrace.base.errors import CutraceError
from cutrace.models.replay.device.catalog import match_devices
from cutrace.models.replay.device.device import load_device, load_devices

MINE = 'name = "Mine"\nbase = "h100"\n'
STAGE = '\n[stage.{}]\nmodel = "own_models:Offsets"\nfrom = ["global"]\n'


def write(folder: Path, text: str, name: str = "mine.toml") -> str:
    """A device file of a user's own."""
    file = folder / name
    file.write_text(text)
    return str(file)


def test_a_file_with_a_base_says_only_what_is_its_own(tmp_path: Path) -> None:
    mine = load_device(write(tmp_path, MINE + "[chip]\nsms = 4\n[limits]\nwarps_per_sm = 32\n"))
    h100 = load_device("h100")
    assert (mine.key, mine.name, mine.capability) == ("mine", "Mine", (9, 0))
    assert (mine.chip.sms, mine.limits.warps_per_sm) == (4, 32)
    assert mine.chip.sms_per_cluster == h100.chip.sms_per_cluster
    assert mine.limits.blocks_per_sm == h100.limits.blocks_per_sm
    assert [s.name for s in mine.stages] == [s.name for s in h100.stages]


def test_aliases_are_not_inherited(tmp_path: Path) -> None:
    assert load_device("h100").aliases
    assert load_device(write(tmp_path, MINE)).aliases == ()


def test_a_stage_without_a_model_changes_keys_of_the_bases_stage(tmp_path: Path) -> None:
    mine = load_device(write(tmp_path, MINE + '[stage.coalescer]\nload = "line"\n'))
    stage = next(stage for stage in mine.stages if stage.name == "coalescer")
    old = next(stage for stage in load_device("h100").stages if stage.name == "coalescer")
    assert stage.keys == {**old.keys, "load": "line"}
    assert stage.sources == old.sources


def test_a_stage_with_a_model_takes_the_place_of_the_bases_stage(tmp_path: Path) -> None:
    text = MINE + '[stage.constant]\nmodel = "own_models:Offsets"\nfrom = ["const"]\n'
    mine = load_device(write(tmp_path, text))
    stage = next(stage for stage in mine.stages if stage.name == "constant")
    assert (stage.model, stage.keys) == ("own_models:Offsets", {})


def test_bases_form_a_chain_in_which_the_nearest_file_wins(tmp_path: Path) -> None:
    lowest = MINE + "[limits]\nwarps_per_sm = 32\nblocks_per_sm = 4\n"
    write(tmp_path, lowest, "low.toml")
    high = 'name = "High"\nbase = "./low.toml"\n[limits]\nblocks_per_sm = 2\n'
    limits = load_device(write(tmp_path, high, "high.toml")).limits
    assert (limits.warps_per_sm, limits.blocks_per_sm) == (32, 2)


def test_a_bases_path_is_seen_from_the_file_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path, MINE, "low.toml")
    write(tmp_path, 'name = "High"\nbase = "../low.toml"\n', "deep/high.toml")
    monkeypatch.chdir(tmp_path / "deep")
    assert load_device("./high.toml").capability == (9, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('base = "h100"', r"^mine\.toml: the key `name` is missing$"),
        (MINE.replace("h100", "h1000"), r"^mine\.toml: base: no device 'h1000'; nearest: h100"),
        (MINE.replace("h100", "./no.toml"), r"^mine\.toml: base: \./no\.toml: cannot read"),
        ('name = "Mine"\nbase = 9\n', r"^mine\.toml: base = 9; expected a string"),
        (MINE + "chip = 3\n", r"^mine\.toml: \[chip\]: expected a table, found 3"),
        (MINE + "stage = 3\n", r"^mine\.toml: \[stage\]: expected a table, found 3"),
        (MINE + "[stage]\nl1 = 3\n", r"^mine\.toml: \[stage\.l1\]: expected a table, found 3"),
        (MINE + "[limit]\n", r"^mine\.toml: unknown key `limit`; nearest: limits"),
        (MINE + "[chip]\nsm = 4\n", r"^mine\.toml: \[chip\]: unknown key `sm`; nearest: sms"),
        (MINE + "[chip]\nsms = 3\n", r"^mine\.toml: \[chip\]: 3 SMs in clusters of 2"),
        (MINE + "[chip]\nsms = true\n", r"^mine\.toml: \[chip\]: sms = True; expected a whole"),
        (
            MINE + "[stage.coalesce]\nload = 'line'\n",
            r"^mine\.toml: \[stage\.coalesce\]: its base has no such stage; nearest: coalescer, ",
        ),
        (
            MINE + "[stage.coalescer]\nlode = 'line'\n",
            r"^mine\.toml: \[stage\.coalescer\]: unknown key `lode`; nearest: load",
        ),
        (
            MINE + "[stage.coalescer]\nload = 'lime'\n",
            r"^mine\.toml: \[stage\.coalescer\]: coalescer: no rule `lime`",
        ),
        (
            MINE + "[stage.coalescer]\nmodel = 'coalescer'\n",
            r"^mine\.toml: \[stage\.coalescer\]: the key `from` is missing",
        ),
        (
            MINE + "[stage.coalescer]\nfrom = ['globe']\n",
            r"^mine\.toml: \[stage\.coalescer\]: no state space or stage 'globe'",
        ),
        (
            MINE + "[stage.coalescer]\nfrom = 'global'\n",
            r"^mine\.toml: \[stage\.coalescer\]: from = 'global'; expected a list",
        ),
        (
            MINE + "[stage.global]\nmodel = 'constant'\nfrom = ['const']\n",
            r"^mine\.toml: \[stage\.global\]: the name is taken",
        ),
        (MINE + "[limits]\ncalculator = 'x'\n", r"^mine\.toml: \[limits\]: calculator = 'x'"),
    ],
)
def test_what_is_wrong_in_a_file_with_a_base_is_said_of_that_file(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(CutraceError, match=message):
        load_device(write(tmp_path, text))


def test_what_is_wrong_in_the_base_is_said_of_the_base(tmp_path: Path) -> None:
    write(tmp_path, MINE + "[limits]\nwarps_per_sm = 'many'\n", "low.toml")
    high = 'name = "High"\nbase = "./low.toml"\n[limits]\nblocks_per_sm = 2\n'
    with pytest.raises(CutraceError, match=r"^low\.toml: \[limits\]: warps_per_sm = 'many'"):
        load_device(write(tmp_path, high, "high.toml"))


def test_what_no_file_says_is_missing_where_its_table_begins(tmp_path: Path) -> None:
    write(tmp_path, 'name = "Low"\ncapability = "9.0"\n[chip]\nsms = 1\n', "low.toml")
    high = 'name = "High"\nbase = "./low.toml"\n[chip]\nsms_per_cluster = 1\n'
    with pytest.raises(CutraceError, match=r"^low\.toml: \[chip\]: the key `memory_gb_per_s` is"):
        load_device(write(tmp_path, high, "high.toml"))


def test_bases_in_a_circle_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, 'name = "A"\nbase = "./b.toml"\n', "a.toml")
    write(tmp_path, 'name = "B"\nbase = "./a.toml"\n', "b.toml")
    with pytest.raises(CutraceError, match=r"b\.toml: base: the files a\.toml -> b\.toml -> a\.t"):
        load_device(path)
    itself = write(tmp_path, 'name = "C"\nbase = "./c.toml"\n', "c.toml")
    with pytest.raises(CutraceError, match=r"c\.toml: base: the files c\.toml -> c\.toml form a"):
        load_device(itself)


def test_settings_lie_above_all_files(tmp_path: Path) -> None:
    path = write(tmp_path, MINE + "[chip]\nsms = 4\n")
    assert load_device(path, {"chip.sms": "6"}).chip.sms == 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chip.sms": "5"}, r"^--set: \[chip\]: 5 SMs in clusters of 2"),
        ({"chip.sms": "x"}, r"^--set: \[chip\]: sms = 'x'; expected a whole number"),
        ({"chip.smss": 2}, r"^--set: \[chip\] of h100\.toml: unknown key `smss`; nearest: sms"),
        ({"chip.zzz": 2}, r"it has sms, sms_per_cluster, memory_gb_per_s"),
        ({"zzz.sms": 2}, r"there are the tables chip, limits, rates, coalescer, banks, constant"),
        ({"coalescer.scope": "sn"}, r"^--set: \[stage\.coalescer\]: scope = 'sn'; expected one of"),
        ({"coalescer.model": "x"}, r"^--set: \[stage\.coalescer\]: no model 'x'"),
    ],
)
def test_wrong_settings_say_what_can_be_set(settings: dict[str, object], message: str) -> None:
    with pytest.raises(CutraceError, match=message):
        load_device("h100", settings)


def test_several_devices_are_read_once_each_in_the_order_asked_for() -> None:
    assert [d.key for d in load_devices(["h200", "H100", "hopper"])] == ["h200", "h100"]


def test_a_pattern_stands_for_devices_in_the_order_of_capability() -> None:
    found = load_devices(["gtx*"])
    assert {"gtx280", "gtx580", "gtx980"} <= {device.key for device in found}
    order = [device.capability for device in found]
    assert order == sorted(order)
    everything = match_devices("all")
    assert everything is not None
    assert {d.key for d in load_devices(["all"])} == set(everything)


def test_a_pattern_that_fits_no_device_is_refused() -> None:
    with pytest.raises(CutraceError, match=r"no device is called like 'quadro\*'"):
        load_devices(["quadro*"])


def test_a_file_of_ones_own_does_not_take_the_name_of_another(tmp_path: Path) -> None:
    own = write(tmp_path, MINE, "h200.toml")
    assert [d.key for d in load_devices(["h200", own])] == ["h200", "h200.toml"]
    (tmp_path / "deep").mkdir()
    first = write(tmp_path, MINE)
    second = write(tmp_path, MINE, "deep/mine.toml")
    with pytest.raises(CutraceError, match=r"mine\.toml are both called mine"):
        load_devices([first, second])
