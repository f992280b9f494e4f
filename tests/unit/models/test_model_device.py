from pathlib import Path

import pytest

from cutrace.base.errors import CutraceError
from cutrace.models.replay.device.catalog import FOLDER, device_names, find_device
from cutrace.models.replay.device.device import load_device

WHOLE = (FOLDER / "sm_70.toml").read_text()
"""A file without a base."""


def write(folder: Path, text: str) -> str:
    """A device file of a user's own."""
    file = folder / "mine.toml"
    file.write_text(text)
    return str(file)


def test_devices_are_listed_in_the_order_of_their_names() -> None:
    assert device_names() == sorted(path.stem for path in FOLDER.glob("*.toml"))
    assert {"8800gtx", "gtx280", "k20", "h100", "h200", "sm_10", "sm_121"} <= set(device_names())


@pytest.mark.parametrize("name", device_names())
@pytest.mark.document("003.6", "limits of every device with their sources")
def test_every_device_loads_and_every_number_of_it_has_a_source(name: str) -> None:
    device = load_device(name)
    assert device.key == name
    assert device.limits.warps_per_sm * 32 >= device.limits.threads_per_block
    blocks = (FOLDER / f"{name}.toml").read_text().split("\n\n")
    for block in blocks:
        lines = block.strip().splitlines()
        if "[" in block and not lines[0].startswith("#"):
            assert all("#" in line for line in lines if line[-1] not in ']"')


@pytest.mark.parametrize("name", ["H100 SXM", "h100-sxm", "Hopper", "GH100", "h100"])
def test_names_and_aliases_are_found_in_any_spelling(name: str) -> None:
    assert load_device(name).key == "h100"


def test_an_unknown_device_names_the_nearest() -> None:
    with pytest.raises(
        CutraceError, match=r"no device '8800gtz'; nearest: 8800gtx.*cutrace devices"
    ):
        load_device("8800gtz")
    with pytest.raises(CutraceError, match=r"no device 'SM_91'; nearest: sm_90"):
        load_device("SM_91")


def test_a_device_by_path(tmp_path: Path) -> None:
    path = write(tmp_path, WHOLE.replace("sms = 80", "sms = 2"))
    assert load_device(path).chip.sms == 2
    assert find_device(path) == Path(path)


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(CutraceError, match=r"nowhere\.toml: cannot read this device file"):
        load_device("nowhere.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "warps_per_sm",
            "warp_per_sm",
            r"\[limits\]: unknown key `warp_per_sm`; nearest: warps_per",
        ),
        ("warps_per_sm = 64\n", "", r"\[limits\]: the key `warps_per_sm` is missing"),
        ("= 64", "= '64'", r"\[limits\]: warps_per_sm = '64'; expected a whole number"),
        ("grid_dim = [2147483647, ", "grid_dim = [", r"grid_dim = .*; expected a list"),
        (
            '"header"',
            '"heder"',
            r"calculator = 'heder'; expected one of block, spreadsheet, header",
        ),
        (
            'capability = "7.0"',
            'capability = "seven"',
            r"capability = 'seven'; expected a string such as '9\.0'",
        ),
        ("uncached_load", "uncashed_load", r"\[stage\.coalescer\]: unknown key `uncashed_load`"),
        ('model = "coalescer"', 'model = "coalesce"', r"no model 'coalesce'; nearest: coalescer"),
        ('model = "coalescer"', 'model = "no_such:Thing"', "cannot import model 'no_such:Thing'"),
        ('["global", "local"]', '["globule"]', r"no state space or stage 'globule' .*; nearest: g"),
        ('load = "sector"', 'load = "sektor"', r"no rule `sektor` for load; .*; nearest: sector"),
        ("[chip]", "[chop]", r"mine\.toml: unknown key `chop`; nearest: chip"),
        ("[chip]", "[chip", r"mine\.toml: not TOML"),
        ("sms = 80", "sms = 81", "81 SMs in clusters of 2"),
    ],
)
def test_a_wrong_device_file_says_what_and_where(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in WHOLE
    with pytest.raises(CutraceError, match=message):
        load_device(write(tmp_path, WHOLE.replace(old, new, 1)))


def test_stages_in_a_circle_are_refused(tmp_path: Path) -> None:
    stage = '\n[stage.{}]\nmodel = "own_models:Offsets"\nfrom = ["{}"]\n'
    text = WHOLE + stage.format("first", "second") + stage.format("second", "first")
    with pytest.raises(CutraceError, match="stages first, second form a circle"):
        load_device(write(tmp_path, text))


def test_two_stages_that_count_the_same_are_refused(tmp_path: Path) -> None:
    stage = '\n[stage.{}]\nmodel = "own_models:Offsets"\nfrom = ["global"]\n'
    with pytest.raises(CutraceError, match="stages first and second both count `global_load_pla"):
        load_device(write(tmp_path, WHOLE + stage.format("first") + stage.format("second")))


def test_settings_replace_values_of_the_file() -> None:
    device = load_device("h100", {"limits.warps_per_sm": "48", "coalescer.load": "line"})
    assert device.limits.warps_per_sm == 48
    assert device.stages[0].keys["load"] == "line"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("coalescr.load", "line", r"nothing to set by `coalescr\.load`.*nearest: coalescer\.load"),
        ("load", "line", "nothing to set by `load`"),
        ("coalescer.lode", "line", "unknown key `lode`; nearest: load"),
        ("limits.warps_per_sm", "many", "expected a whole number"),
    ],
)
def test_settings_that_do_not_exist(key: str, value: str, message: str) -> None:
    with pytest.raises(CutraceError, match=message):
        load_device("h100", {key: value})


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("NVIDIA GeForce RTX 3060", "rtx3060"),
        ("NVIDIA GeForce GTX 750 Ti", "gtx750ti"),
        ("GeForce 8800 GTX", "8800gtx"),
        ("Tesla T4", "t4"),
        ("NVIDIA Tesla T4", "t4"),
        ("Tesla K20m", "k20"),
        ("Tesla K40m", "k40"),
        ("Tesla P100-PCIE-16GB", "p100"),
        ("Tesla V100-PCIE-16GB", "v100"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA A100-PCIE-40GB", "a100-40gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA B300 SXM6 AC", "b300"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtxpro6000"),
        ("NVIDIA RTX A6000", "a6000"),
        ("NVIDIA GeForce RTX 3060 Ti", "rtx3060ti"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"),
        ("NVIDIA GeForce GTX 1060 6GB", "gtx1060"),
        ("NVIDIA GeForce GTX TITAN X", "titanx"),
        ("NVIDIA TITAN X (Pascal)", "titanx-pascal"),
        ("Tesla K80", "k80"),
    ],
)
def test_a_board_is_found_by_the_name_that_nvidia_smi_has(name: str, stem: str) -> None:
    assert find_device(name).stem == stem


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("RTX 4090 Laptop GPU", "rtx4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx4090"),
        ("NVIDIA GeForce GTX 1660 SUPER", "gtx1660"),
        ("NVIDIA A100 96GB PCIe", "a100"),
        ("Tesla V100-FHHL-16GB", "v100"),
        ("NVIDIA A40-48Q", "a40"),
    ],
)
def test_another_board_of_that_number_is_told_as_the_nearest(name: str, near: str) -> None:
    with pytest.raises(CutraceError, match=f"^no device '{name}'; nearest: {near}; `cutrace"):
        find_device(name)
