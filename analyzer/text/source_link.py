"""Links to source lines: a terminal opens the file that a line of a report names."""

import re
from collections.abc import Iterator
from pathlib import Path

_PLACE = re.compile(r"(?<![\w./-])([\w./-]+\.(?:cu|cuh|h|hpp|ptx|py)):(\d+)")


def source_links(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each FILE:LINE of a text begins and ends, and the address of that file on this machine.

    A file that is not here has no link.
    """
    for found in _PLACE.finditer(text):
        path = Path(found[1])
        if path.is_file():
            yield found.start(), found.end(), f"{path.resolve().as_uri()}#L{found[2]}"
