"""The device files that come with cutrace, and the names by which they are found."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from ....errors import CutraceError, nearest
from ....extension import DEVICES, extension_names, load_extension

FOLDER = Path(__file__).parents[2] / "devices"
MAKER = re.compile(r"^(?:nvidia)?(?:geforce|tesla)?")
"""How nvidia-smi begins a board's name, in plain spelling."""
EVERY = "all"
"""The name of all devices that come with cutrace."""


def device_names() -> list[str]:
    """Return the names of the devices that come with cutrace, sorted."""
    return [*_stems().values()]


@cache
def _stems() -> Mapping[str, str]:
    """Map the plain spelling of each device file's stem to the stem, in the stems' order."""
    return {_plain(stem): stem for stem in sorted(path.stem for path in FOLDER.glob("*.toml"))}


def every_name() -> list[str]:
    """Return the names of those, and of the devices that other packages bring."""
    return [*device_names(), *extension_names(DEVICES)]


def is_path(name: str) -> bool:
    """Whether a name is the path of a file."""
    return name.endswith(".toml") or "/" in name


def find_device(name: str) -> Path:
    """Return the file of a device; capitals, blanks and dashes in a name do not matter.

    Nor do the maker's words in front: a board may be called as nvidia-smi has it. Raises
    `CutraceError` for a name that is neither known nor the path of a TOML.
    """
    if is_path(name):
        return Path(name)
    plain = _plain(name)
    board = MAKER.sub("", plain)
    found = _stems().get(plain) or _spellings().get(plain) or _spellings().get(board)
    if found is None and (own := [n for n in extension_names(DEVICES) if _plain(n) == plain]):
        return Path(load_extension(DEVICES, own[0]))
    if found is None:
        close = _relatives(name) or nearest(name.lower(), [*_names(), *extension_names(DEVICES)])
        raise CutraceError(
            f"no device {name!r}{close}; `cutrace devices` lists all, "
            "and the path of a TOML file names one of your own"
        )
    return FOLDER / f"{found}.toml"


def _relatives(name: str) -> str:
    """Return `; nearest: rtx4090` for another board of that number, `RTX 4090 Laptop`, or ""."""
    words = re.split(r"[\s_-]+", name)
    starts = (MAKER.sub("", _plain("".join(words[:many]))) for many in range(len(words), 0, -1))
    known = [_spellings()[start] for start in starts if start in _spellings()][:1]
    board = MAKER.sub("", _plain(name))
    for spelling, stem in _spellings().items():
        short, long = sorted((spelling, board), key=len)
        is_number = re.search(r"[a-z]\d+$", short) and not long[len(short) :][:1].isdigit()
        if not known and long.startswith(short) and is_number:
            known.append(stem)
    return f"; nearest: {', '.join(known)}" if known else ""


def match_devices(name: str) -> Sequence[str] | None:
    """Return the devices that match a pattern such as `sm_*`, or `all`; None for a name.

    Raises `CutraceError` for a pattern that fits none.
    """
    if name == EVERY:
        return every_name()
    if is_path(name) or not set(name) & set("*?["):
        return None
    found = [stem for stem in every_name() if fnmatchcase(stem, name.lower())]
    if not found:
        raise CutraceError(f"no device is called like {name!r}; `cutrace devices` lists all")
    return found


@cache
def _spellings() -> Mapping[str, str]:
    """Map every plain spelling of every device to its file's stem."""
    known: dict[str, str] = {}
    for stem, spellings in _heads().items():
        for spelling in (stem, *spellings):
            known.setdefault(_plain(spelling), stem)
    return known


def _names() -> Sequence[str]:
    """Return what may be typed for a device, its maker's name left out."""
    return [name for stem, (_, *aliases) in _heads().items() for name in (stem, *aliases)]


@cache
def _heads() -> Mapping[str, Sequence[str]]:
    """Map the stem of every device's file to its maker's name and its aliases."""
    heads = {
        stem: tomllib.loads((FOLDER / f"{stem}.toml").read_text(encoding="utf-8"))
        for stem in device_names()
    }
    return {stem: (head["name"], *head.get("aliases", ())) for stem, head in heads.items()}


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()
