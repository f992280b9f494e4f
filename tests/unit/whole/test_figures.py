"""The README has the figures of the generated page of comparisons; the devices' page has all."""

import re
from pathlib import Path

from cutrace.models.replay.device.catalog import device_names

ROOT = Path(__file__).parents[3]


def read(name: str) -> str:
    """A document, with figures as the page writes them: no commas, and no line ends."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", " ".join((ROOT / name).read_text().split()))


def test_counts_that_equal_the_chip_s_are_those_of_the_page() -> None:
    page, readme = map(read, ("docs/validation.md", "README.md"))
    part = re.search(r"Of (\d+) comparable counts .*? are equal: ([\d.]+) %\*\*", page)
    whole = re.search(r"\| all \| (\d+) \| ([\d.]+) % \|", page)
    drawn = re.search(r"first run in cutrace \| [^|]* \| (\d+) \| ([\d.]+) % \|", page)
    taken = re.search(r"(\d+) launches of \d+ kernels", page)
    assert part
    assert whole
    assert drawn
    assert taken
    assert f"{whole[1]} values with Nsight Compute on an H200: **{whole[2]} % are equal**" in readme
    assert (
        f"{taken[1]} launches of our kernels (Nsight Compute, H200) | {whole[1]} | {whole[2]} %"
        in readme
    )
    assert f"the same memory instructions | {part[1]} | {part[2]} % |" in readme
    assert f"first run in cutrace | {drawn[1]} | {drawn[2]} % |" in readme


def test_every_device_is_on_its_page() -> None:
    page = (ROOT / "docs" / "devices.md").read_text("utf-8")
    assert [name for name in device_names() if f"`{name}`" not in page] == []
