"""Tiny cases, one an instruction: `ptx/*.txt` are tables of them, `ptx/*/*.ptx` whole kernels.

A table's line is `INSTRUCTION | sources -> results; ...  # why`: the instruction as in `ptx_case`,
then values in the form of their type: `1.5`, `nan`, `0x7fff` (bits), `true`, `1/2` (lower and upper
half). A kernel says in its first comments what it takes and leaves: `// in: u32 0..31`,
`// out: u32 7*32`, an array a line, in the order of its parameters; threads of its one block are
`// block: 32`. `// texture NAME: u8x2 3x5 0..29` is a texture of 3 rows of 5 texels bound to the
reference NAME, `// surface NAME: ...` likewise; `linear`, `normalized`, `layered` or `cubemap` may
stand before the format. `// fault: TEXT` is the message of a kernel that has to fail.
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.image_run import record_nothing
from numpy.typing import NDArray
from ptx.ptx_case import ALIASES, bits_of, read_case, stored_dtype
from ptx.ptx_golden import read_array, read_golden
from ptx.ptx_run import Rows, run_case, run_kernel, same_under_both

from cutrace.base.errors import KernelFault
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.session.recording import Recording
from cutrace.tracer.session.surface import TexelForm, make_surface
from cutrace.tracer.session.texture import Modes, make_texture
from cutrace.tracer.simt.ops.family import families

HERE = Path(__file__).parent / "ptx"
FLOATS: dict[str, str] = {"f16": "f2", "f32": "f4", "f64": "f8"}


def table_lines() -> Iterator[Any]:
    for path in sorted(HERE.glob("*.txt")):
        for number, text in enumerate(path.read_text().splitlines(), start=1):
            line = text.partition("# ")[0].strip()
            if line:
                name = line.partition("|")[0].strip()
                yield pytest.param(line, id=f"{path.stem}-{number}-{name[:50]}")


def bits(text: str, kind: str) -> int:
    """A value in the form of its type as bits."""
    kind = ALIASES.get(kind, kind)
    if "/" in text:
        low, high = (bits(part, kind.removesuffix("x2")) for part in text.split("/"))
        return low | high << 16
    if kind == "pred":
        return int(text == "true")
    if text.lower().startswith(("0x", "0b")):
        return int(text, 0)
    if kind == "bf16":
        return int(np.float32(text).view(np.uint32)) >> 16
    if kind in FLOATS:
        return int(np.array(text, FLOATS[kind]).view(f"u{bits_of(kind) // 8}"))
    return int(text) & (1 << bits_of(kind)) - 1


@pytest.mark.parametrize("line", list(table_lines()))
def test_an_instruction_of_the_tables(line: str) -> None:
    name, _, examples = line.partition(" | ")
    case = read_case(name.strip())
    rows = [example.split(" -> ") for example in examples.split(";")]
    sources = [
        np.array([bits(row[0].split(",")[k].strip(), kind) for row in rows], stored_dtype(kind))
        for k, kind in enumerate(case.sources)
    ]
    given = [s.astype(f"u{bits_of(k) // 8}") for s, k in zip(sources, case.sources, strict=True)]
    found = same_under_both(lambda rows: run_case(case, given, rows))
    for row, *ours in zip(rows, *found, strict=True):
        wanted = [
            bits(text.strip(), f"{kind[0]}32" if kind in ("u8", "s8") else kind)
            for text, kind in zip(row[1].split(","), case.results, strict=True)
        ]
        assert [hex(int(bits_)) for bits_ in ours] == [hex(bits_) for bits_ in wanted], row


def images(text: str) -> tuple[Recording, dict[str, int]]:
    """The textures and surfaces that a kernel's comments ask for, by the names of references."""
    recording, handles = record_nothing(), {}
    for kind, name, line in re.findall(r"^// (texture|surface) (\w+): (.*)$", text, re.MULTILINE):
        words = line.partition("#")[0].split()
        options = set(itertools.takewhile(str.isalpha, words))
        texel, shape, *values = words[len(options) :]
        element, _, channels = texel.partition("x")
        extent = [*map(int, shape.split("x")), *([int(channels)] if channels else [])]
        host = read_array(f"{element} {' '.join(values)}").reshape(extent)
        form = TexelForm(int(channels or 1), "layered" in options, "cubemap" in options)
        if kind == "surface":
            handles[name] = make_surface(recording, host, form, name).handle
            continue
        filter_mode = "linear" if "linear" in options else "point"
        modes = Modes("clamp", filter_mode, bool(options & {"normalized", "cubemap"}), "element")
        handles[name] = make_texture(recording, host, modes, form, name).handle
    return recording, handles


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=f"{p.parent.name}-{p.stem}") for p in sorted(HERE.glob("*/*.ptx"))]
)
def test_a_kernel(path: Path) -> None:
    text = path.read_text()
    case = read_golden(text)
    arrays = [*case.sources, *(np.zeros_like(a) for a in case.wanted)]

    def run(rows: Rows) -> list[NDArray[Any]]:
        recording, handles = images(text)
        given = case.name, case.block, arrays, case.block
        return run_kernel(text, *given, recording.memory, handles, rows)

    if case.fault:
        with pytest.raises(KernelFault, match=f"^{re.escape(case.fault)}$"):
            same_under_both(run)
        return
    found = same_under_both(run)[len(case.sources) :]
    for ours, expected in zip(found, case.wanted, strict=True):
        assert ours.tolist() == expected.tolist()


def test_every_instruction_has_a_case() -> None:
    seen: set[str] = set()
    for path in sorted(HERE.glob("*.txt")):
        for line in path.read_text().splitlines():
            name = line.partition("# ")[0].partition("|")[0].partition(" : ")[0]
            seen.update(
                part.split()[0].partition(".")[0] for part in name.split(";") if part.strip()
            )
    for path in sorted(HERE.glob("*/*.ptx")):
        for function in parse_module(path.read_text()).functions.values():
            seen.update(instruction.opcode for instruction in function.instructions)
    wanted = {opcode.partition(".")[0] for opcodes in families().values() for opcode in opcodes}
    assert wanted - seen == set()
