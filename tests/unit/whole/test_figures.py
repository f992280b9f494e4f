"""The README and the FAQ have the figures of the page of comparisons, which is generated."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def read(name: str) -> str:
    """A document, with figures as the page writes them: no commas, and no line ends."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", " ".join((ROOT / name).read_text().split()))


def test_counts_that_equal_the_chip_s_are_those_of_the_page() -> None:
    page, readme, faq = map(read, ("docs/validation.md", "README.md", "docs/faq.md"))
    part = re.search(r"Of (\d+) comparable counts .*? are equal: ([\d.]+) %\*\*", page)
    whole = re.search(r"\| all \| (\d+) \| [\d.]+ % \| ([\d.]+) % \|", page)
    taken = re.search(r"(\d+) launches of \d+ kernels", page)
    assert part
    assert whole
    assert taken
    assert f"**{part[2]} % of {part[1]} counts equal Nsight Compute's**" in readme
    assert f"Of {part[1]} counts by Nsight Compute on that H200, of {taken[1]} launches," in readme
    assert f"{part[2]} % are equal, of all {whole[1]} it is {whole[2]} %" in readme
    assert f"{whole[2]} % of all counts are then equal, and {part[2]} % of those" in faq
    sets = re.findall(r"\.cu` \| \d+ \| \d+ of (\d+), ([\d.]+) % \|", page)
    assert len(sets) == 4
    assert all(f"{percent} % of {of}" in readme for of, percent in sets)
