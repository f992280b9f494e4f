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
    whole = re.search(r"\| all \| (\d+) \| [\d.]+ % \| ([\d.]+) % \|", page)
    taken = re.search(r"(\d+) launches of \d+ kernels", page)
    assert part
    assert whole
    assert taken
    headline = f"**{whole[2]} % of {whole[1]} values equal Nsight Compute's** on an H200"
    assert f"{headline}, {part[2]} % where" in readme
    assert f"compared {whole[1]} values of {taken[1]} launches" in readme
    assert f"on that H200: {whole[2]} % are equal" in readme
    assert f"({part[1]} values) {part[2]} % are equal" in readme
    sets = re.findall(r"\.cu` \| \d+ \| \d+ of (\d+), ([\d.]+) % \|", page)
    assert len(sets) == 4
    assert all(f"{percent} % of {of}" in readme for of, percent in sets)


def test_every_device_is_on_its_page() -> None:
    page = (ROOT / "docs" / "devices.md").read_text("utf-8")
    assert [name for name in device_names() if f"`{name}`" not in page] == []
