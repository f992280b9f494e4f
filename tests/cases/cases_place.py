"""How a grid's blocks fill a chip, in closed form."""

from pathlib import Path

from cases.counter_cases import HEAD, Case, Constants

import cutrace


def record_blocks(path: Path, constants: Constants) -> Path:
    """Blocks of so many threads that do nothing."""
    with cutrace.Session(path) as gpu:
        module = gpu.load_ptx(HEAD + ".visible .entry rest()\n{\n    ret;\n}\n")
        module.get_function("rest")[constants["blocks"], constants["threads"]]()
    return path


def _warps(c: Constants) -> int:
    return -(-c["threads"] // 32)


def _at_once(c: Constants) -> int:
    """A GTX 280 has 30 SMs of 32 warps and 8 blocks; few registers bind nothing."""
    return 30 * min(8, 32 // _warps(c))


PLACE = [
    Case(
        record_blocks,
        "gtx280",
        {"blocks": 500, "threads": 100, "registers": 8},
        {"blocks": 700, "threads": 200, "registers": 8},
        {
            "blocks_per_wave": _at_once,  # 240; 120
            "waves": lambda c: c["blocks"] / _at_once(c),  # 2.08; 5.83
            "tail_blocks": lambda c: c["blocks"] % _at_once(c),  # 20; 100
            "padding_lanes": lambda c: c["blocks"] * (32 * _warps(c) - c["threads"]),
        },
        replayed=("registers",),
    ),
]
