"""The device files that come with cutrace, and the names by which they are found."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from ...errors import CutraceError, nearest

FOLDER = Path(__file__).parents[1] / "devices"
EVERY = "all"
"""The name of all devices that come with cutrace."""


def device_names() -> list[str]:
    """Return the names of the devices that come with cutrace, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def is_path(name: str) -> bool:
    """Whether a name is the path of a file."""
    return name.endswith(".toml") or "/" in name


def find_device(name: str) -> Path:
    """Return the file of a device; capitals, blanks and dashes in a name do not matter.

    Raises `CutraceError` for a name that is neither known nor the path of a TOML.
    """
    if is_path(name):
        return Path(name)
    plain = _plain(name)
    known = {_plain(stem): stem for stem in device_names()}
    if plain not in known:
        known = dict(_spellings())
    if plain not in known:
        raise CutraceError(
            f"no device {name!r}{nearest(plain, known)}; `cutrace devices` lists all, and the "
            "path of a TOML file names one of your own"
        )
    return FOLDER / f"{known[plain]}.toml"


def match_devices(name: str) -> Sequence[str] | None:
    """Return the devices that a pattern such as `sm_*`, or `all`, stands for; None for a name.

    Raises `CutraceError` for a pattern that fits none.
    """
    if name == EVERY:
        return device_names()
    if is_path(name) or not set(name) & set("*?["):
        return None
    found = [stem for stem in device_names() if fnmatchcase(stem, name.lower())]
    if not found:
        raise CutraceError(f"no device is called like {name!r}; `cutrace devices` lists all")
    return found


@cache
def _spellings() -> Mapping[str, str]:
    """Map every plain spelling of every device to its file's stem."""
    known: dict[str, str] = {}
    for stem in device_names():
        head = tomllib.loads((FOLDER / f"{stem}.toml").read_text(encoding="utf-8"))
        spellings: Iterable[str] = (stem, head["name"], *head.get("aliases", ()))
        for spelling in spellings:
            known.setdefault(_plain(spelling), stem)
    return known


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()
