"""What NVRTC made of a source before, kept between runs: starting and asking it takes 0.1 s.

Only of sources that stand alone: where anything may be included, files elsewhere decide, too.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ....cache import keep, key_of, load
from ..toolkit import library

KIND, MOST_BYTES = "ptx", 1 << 26
"""What answers are kept as, and how many bytes of them."""
_ALONE = ("-D", "-I", "-U", "-lineinfo", "--gpu-architecture=", "-std=", "--std=", "-w")
"""How options begin that read no file where nothing is included."""


def key_of_request(request: Mapping[str, Any]) -> str | None:
    """Return a key for a request, None where its answer is not kept."""
    stands_alone = "include" not in request["text"] and not request["headers"]
    if not stands_alone or not all(each.startswith(_ALONE) for each in request["options"]):
        return None
    return key_of(_compiler(), json.dumps(request, sort_keys=True))


def load_answer(key: str | None) -> dict[str, Any] | None:
    """Return the answer that was kept."""
    data = None if key is None else load(KIND, key)
    return None if data is None else dict(json.loads(data))


def keep_answer(key: str | None, answer: Mapping[str, Any]) -> None:
    """Keep an answer with PTX."""
    if key is not None and answer.get("ptx"):
        keep(KIND, key, json.dumps(answer).encode(), MOST_BYTES)


@cache
def _compiler() -> str:
    """Which NVRTC, and which program of ours asks it."""
    files = (library("nvrtc"), Path(__file__).with_name("process.py"))
    told = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return repr(told)
