"""Load and launch PTX that may be wrong in any way: what a careful user could do with it."""

import random
from functools import cache
from io import StringIO
from pathlib import Path

import numpy as np
from fuzz.mutation import TOKEN, mutate
from fuzz.run import without_assembler

import cutrace
from cutrace.errors import CutraceError
from cutrace.tracer.host.signature import FLOAT, POINTER, STRUCT, SURFACE, TEXTURE, WORD, Parameter

ROOT = Path(__file__).parents[2]
MOST = 2000
"""Instructions of a warp: enough to get into trouble."""


@cache
def texts() -> tuple[str, ...]:
    """PTX of the gallery and of the golden cases."""
    folders = (ROOT / "traces" / "gallery", ROOT / "tests" / "golden" / "ptx")
    found = [path for folder in folders for path in sorted(folder.glob("*/*.ptx"))]
    return tuple(path.read_text(encoding="utf-8") for path in found)


@cache
def words() -> tuple[str, ...]:
    """All tokens of the texts, once each."""
    return tuple(sorted({token for text in texts() for token in TOKEN.findall(text)}))


def nearly(number: int) -> str:
    """Mutated text number so and so."""
    chance = random.Random(number)
    text = chance.choice(texts())
    return mutate(text, chance, words(), chance.choice([1, 1, 1, 2, 3, 6]))


def refusal(text: str) -> str:
    """Load a text and launch its kernels; return what the CutraceError says, or "" for runs."""
    try:
        with without_assembler(), _session() as gpu:
            module = gpu.load_ptx(text if "\n" in text else text + "\n")
            for name in module.kernels[:2]:
                kernel = module.get_function(name)
                arguments = [_argument(gpu, each) for each in kernel.signature.parameters]
                kernel[2, 32, 0, 1024](*arguments)
    except CutraceError as error:
        return str(error)
    return ""


def _session() -> cutrace.Session:
    return cutrace.Session(output=StringIO(), max_instructions=MOST, max_threads=1 << 12)


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
