"""Load and launch PTX that may be wrong in any way: what a careful user could do with it."""

import random
from functools import cache
from io import StringIO
from pathlib import Path

import numpy as np
from fuzz.mutation import TOKEN, mutate
from fuzz.run import without_assembler
from fuzz.sequence import draw
from fuzz.sequence_text import write
from ptx.ptx_run import HEADER

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.tracer.front.cuda import to_ptx
from cutrace.tracer.front.source import Options, Source
from cutrace.tracer.session.arguments import (
    FLOAT,
    POINTER,
    STRUCT,
    SURFACE,
    TEXTURE,
    WORD,
    Parameter,
)

ROOT = Path(__file__).parents[2]
MOST = 2000
"""Instructions of a warp: enough to get into trouble."""


@cache
def texts() -> tuple[str, ...]:
    """PTX of the gallery, of the golden cases and of kernels captured on a GPU."""
    folders = (ROOT / "traces/gallery", ROOT / "tests/golden/ptx", ROOT / "tests/validate")
    found = [path for folder in folders for path in sorted(folder.glob("*/*.ptx"))]
    return tuple(path.read_text(encoding="utf-8") for path in found)


@cache
def programs() -> tuple[str, ...]:
    """PTX that NVRTC makes of the programs, and random sequences of instructions."""
    sources = sorted((ROOT / "tests" / "programs").glob("*.cu"))
    given = [Source(path.name, path.read_text(), Options()) for path in sources]
    made = [to_ptx(source, "compute_90") for source in given]
    return (*(each.ptx for each in made), *(HEADER + write(draw(k), "k") for k in range(40)))


@cache
def words(real: bool = False) -> tuple[str, ...]:
    """All tokens of the texts, once each."""
    chosen = programs() if real else texts()
    return tuple(sorted({token for text in chosen for token in TOKEN.findall(text)}))


def nearly(number: int, real: bool = False) -> str:
    """Mutated text number so and so; a `real` one is what a compiler made of a program."""
    chance = random.Random(number)
    text = chance.choice(programs() if real else texts())
    return mutate(text, chance, words(real), chance.choice([1, 1, 1, 2, 3, 6]))


def refusal(text: str, engine: str = "auto") -> str:
    """Load a text and launch its kernels; return what the CutraceError says, or "" for runs."""
    try:
        with without_assembler(), _session(engine) as gpu:
            module = gpu.load_ptx(text if "\n" in text else text + "\n")
            for name in module.kernels[:2]:
                kernel = module.get_function(name)
                arguments = [_argument(gpu, each) for each in kernel.signature.parameters]
                kernel[2, 32, 0, 1024](*arguments)
    except CutraceError as error:
        return str(error)
    return ""


def _session(engine: str) -> cutrace.Session:
    return cutrace.Session(
        output=StringIO(), engine=engine, max_instructions=MOST, max_threads=1 << 12
    )


def _argument(gpu: cutrace.Session, parameter: Parameter) -> object:
    match parameter.kind:
        case kind if kind in (POINTER, WORD):
            return (
                gpu.device_array(4096, np.uint32).view(np.float32)
                if kind == POINTER and (parameter.pointee or ("i", 4))[0] == "f"
                else gpu.device_array(4096, np.uint32)
            )
        case kind if kind == FLOAT:
            return 1.5
        case kind if kind == STRUCT:
            return bytes(min(parameter.size, 1 << 16))
        case kind if kind in (TEXTURE, SURFACE):
            return None
    return 1
