"""Write docs/instructions.md from the engine's tables: `python scripts/write/instructions.py`."""

import itertools
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from cutrace.tracer.simt.interp.decode import LEFT_OUT
from cutrace.tracer.simt.ops.family import families

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from ptx.isa_forms import TARGETS, headings  # noqa: E402
from silicon.filled import filled  # noqa: E402

TABLES = ROOT / "tests" / "validate" / "instructions"
IMAGE_CASES = ROOT / "tests" / "validate" / "images.npz"
ASKED_FORMS = ROOT / "tests" / "golden" / "instructions_asked.txt"
ARRAY_FORMS = ROOT / "tests" / "golden" / "instructions_array.txt"

HEAD = """# Instructions

Which PTX instructions run, how they were compared with silicon, and which are left out.
`scripts/write/instructions.py` writes this page from the engine's tables. cutrace refuses a kernel
at its launch, and only if the kernel can reach an instruction that cutrace does not have. The
message names the instruction and its lines in the PTX and the source.

## What runs

| family | instructions |
|---|---|
"""

ASKED = """
A form is an instruction with its modifiers and types. {forms} forms, with every modifier that the
compilers write, are tested, by a case with its arithmetic in `tests/golden/ptx` or by a comparison
with silicon. `tests/golden/instructions_asked.txt` lists these forms; a test fails if one is
untested. No device of capability 7.0, 10.0 or 12.0 was available. So the forms that exist only on
these follow the ISA and published measurements: `mma.m8n8k4` of f16 (7.0); f32 in pairs or with
terms of f16 or bf16, `redux` of f32, numbers of 4 and 6 bits, scaled blocks, `tcgen05` (10.0,
12.0).
"""

OF_ISA = """
The next table shows how much of PTX ISA 8.8 runs on each target. Instructions are the ISA's
headings. Forms are {forms} examples of them (`tests/golden/instructions_isa.txt`); ptxas decides
which target has a form.

| target | instructions | of these refused | forms | of these refused |
|---|---|---|---|---|
{rows}

Refused: {names}.
"""

COMPILED = """
## What the array engine runs

cutrace runs a launch of many threads, or of long loops, as machine code. Even then the instructions
below run in the [array engine](architecture.md#one-core-two-ways-to-run-a-block). Traces are the
same, but the array engine is slow where few warps run an instruction together. The table has
{count} of the forms above, and more; `some` stands before an opcode of which only some forms belong
here. `tests/golden/instructions_array.txt` lists the forms, and a test fails if one is missing.

| what | instructions |
|---|---|
"""

COMPARED = """
## Compared with silicon

Every form in this table ran on an NVIDIA H200 (driver 580.159.04) with zeros, subnormal numbers,
infinities, NaNs, largest and smallest numbers and random bits. cutrace gives the same bits, except
for approximate functions. These are within the error that the PTX ISA allows, which
`tests/validate/instructions` states beside each form; cutrace is nearer to the true value than the
hardware.

| file of `tests/validate/instructions` | forms |
|---|---|
"""

SEQUENCES = """
1,000 random sequences of 30 of these instructions, with branches, loops and predicates, ran on the
H200 in 4,096 threads each. At the end every register is equal, with one exception: the payload of a
NaN of f64, for which ptxas gives different results with and without optimization. 57 kernels show
what a lane reads from lanes that are inactive, have exited, or are not in its mask.

200 random kernels of CUDA C ran on the H200, with functions, loops, atomics, textures, matrices,
mbarriers and clusters. `tests/validate/random_kernels` has digests of the arrays that they left;
both engines leave the same arrays.
"""

IMAGES = """
{images} forms of texture and surface instructions (geometries, formats, address modes and filters,
also out of bounds) ran on the H200. [Textures](textures.md#how-samples-are-computed) says which
results are equal.
"""

DETAILS = """
Where the ISA leaves a result open, cutrace does what the H200 does:

- A NaN result is `0x7fffffff` in f32 and `0x7fff` in f16 and bf16. In f64 it keeps the payload of
  a NaN operand (the second operand's, else the third's, else the first's); without a NaN operand it
  is `0xfff8000000000000`.
- `.ftz` flushes a result that is subnormal after rounding with an unlimited exponent.
- An integer division by zero gives all ones; so does the remainder. A NaN converts to 0 in integers
  of up to 32 bits. In 64-bit integers, and from f64, it converts to the lowest signed number.
- `shfl` reads 0 from a lane that does not execute it.
- `cvt` from f32 to f16 does not flush subnormal numbers, not even with `.ftz`.
- `neg.s16` of -32768 is -32768. Optimized machine code may differ: ptxas combines the negation with
  a following `cvt.s32.s16` in 32 bits, which gives 32768; with `-O0` it does not.
- `atom.add.f32` flushes subnormal numbers in global memory, not in shared memory.
- `mma` of f16, bf16 and tf32 truncates each product and the accumulator 25 bits below the largest
  exponent, adds them exactly, and truncates the sum to f32 (or rounds it to f16). With 8-bit floats
  it adds two bytes of every four at a time, and the accumulator last.
- `wgmma` does the same with f16, bf16 and tf32. It truncates products of 8-bit floats 13 bits below
  the largest exponent, and so the sum if it is f32. A sum of zero is positive. The base offset of a
  descriptor is subtracted from the row number that a swizzle uses. `tests/validate/wgmma.npz` has
  the H200's results for all types, with infinities, NaNs and subnormal numbers, and for descriptors
  of all layouts; `tests/validate/sparse_wgmma.npz` has an H100's results for sparse factors.
- `mma` of narrow floats with `.kind` (12.0) and `tcgen05.mma` (10.0) truncate each product and the
  accumulator 25 bits below the largest exponent, add all of K exactly, and truncate the sum to f32
  (or round it to f16). With scaled blocks the largest exponent includes the scales. Of 4-bit
  floats, 16 products are added exactly, and scaled sums are truncated 35 bits below. arXiv
  2511.10909 found these rules equal to a B200 and an RTX of 12.0 bit for bit. For sparse factors
  cutrace assumes the same rules. The layout of the random bits of `cvt.rs` is one that others found
  on a B200.
- Tensor memory: each block has 512 columns of its own. A `tcgen05.alloc` that can never end is a
  fault; so are accesses to columns that are not allocated or to lanes of another warp, descriptors
  that the ISA does not have, and masks of columns of B (`.ws`). `tcgen05.shift` and `.ashift` give
  each lane the next lane's value. Copies unpack numbers of 4 bits to bits 2 to 5 of a byte.
- `multimem` addresses one device. `clusterlaunchcontrol` always denies a request, since all blocks
  of a wave have begun.
- Boxes of tensor maps: a row in shared memory takes the whole span of the swizzle. Fill values that
  are NaNs are `0x7ff7`. tf32 is rounded to nearest. A box must begin at a multiple of 16 bytes of
  the innermost dimension, and a stored box must not begin below zero; otherwise the launch fails.
  `tests/validate/tensor_maps.npz` has 91 boxes, tiled, im2col and reduced.
- `sin` and `cos` first multiply by 1 / 2 pi in f32, so that large angles have the chip's errors.

`%clock` counts the warp's instructions. Cache hints have no effect. `cp.async`, bulk copies,
`wgmma` and `tcgen05` complete when they are issued; waits take no time. Bulk copies count in the
`bulk_` counters and in sectors of L2, but not as loads and stores. Operands of `wgmma` and accesses
to other blocks' shared memory are not in a trace. An H200 does not count these as loads and stores
either (`tests/validate/test_hopper.py`), but it counts atomics on another block's memory as
wavefronts.

## What is left out on purpose

The launch fails with a message: the kernel, the reason, the instruction, its lines in the PTX and
the source, the section of the ISA, and the devices that have the instruction:

```text
kernel `k`: cutrace leaves out textures with several samples a texel: `tex.2dms.v4.u32.s32
{%r0, %r1, %r2, %r3}, [%rd1, {%r4, %r5, %r6, %r7}];` (PTX line 8; PTX ISA 9.7.10.3, compute
capability 3.0 and later)
```

The instruction may stand in unreachable code only if this code is in a function that is never
called. A message of the same form names missing functions of the device's runtime (`malloc`,
`free`, `cudaLaunchDevice`). An unknown opcode, modifier or type gives `cutrace does not know this
instruction`. For wrong operands the message says what was expected.

| instructions left out | what they are |
|---|---|
"""


def text() -> str:
    """Return the document."""
    runs = [
        f"| {name} | {' '.join(f'`{opcode}`' for opcode in opcodes)} |"
        for name, opcodes in families().items()
    ]
    forms = [f"| {path.stem} | {count(path)} |" for path in sorted(TABLES.glob("*.txt"))]
    missing: dict[str, list[str]] = {}
    for opcode, modifiers, what in LEFT_OUT:
        name = ".".join((opcode, *sorted(modifiers)))
        missing.setdefault(what, []).append(f"`{name}`")
    omitted = [f"| {' '.join(names)} | {what} |" for what, names in missing.items()]
    asked = ASKED.format(forms=count(ASKED_FORMS, by_word=True))
    images = IMAGES.format(images=len(np.load(IMAGE_CASES)["case"]))
    begin = asked + _of_isa() + _compiled() + COMPARED
    end = SEQUENCES + images + DETAILS + "\n".join(omitted)
    return filled("\n".join([HEAD + "\n".join(runs), begin + "\n".join(forms), end, ""]))


def _of_isa() -> str:
    """Return how much of the ISA runs."""
    found, names, rows = headings(), set(), []
    for target in TARGETS:
        mine = [heading for heading in found if target in heading.targets]
        forms = [form for heading in mine for form in heading.forms]
        refused = {h.name for h in mine if any(map(_is_refused, h.forms))}
        count = sum(map(_is_refused, forms))
        share = 100 * len(refused) / len(mine)
        cells = len(mine), f"{len(refused)}, {share:.1f} %", len(forms), count
        rows.append(f"| {target} | {' | '.join(map(str, cells))} |")
        names |= refused
    total = sum(len(heading.forms) for heading in found)
    listed = ", ".join(f"`{name}`" for name in sorted(names)) or "none"
    return OF_ISA.format(forms=total, rows="\n".join(rows), names=listed)


@cache
def _is_refused(form: str) -> bool:
    opcode, *modifiers = form.split()[0].split(".")
    named = {modifier.partition("::")[0] for modifier in modifiers} | {*modifiers}
    return any(opcode == left and names <= named for left, names, _ in LEFT_OUT)


def _compiled() -> str:
    """Return the section on what the array engine runs amid machine code."""
    lines = [
        line
        for line in ARRAY_FORMS.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    named: dict[str, list[str]] = {}
    for line in lines:
        form, _, what = line.partition(": ")
        some = "some " if form.startswith("~") else ""
        named.setdefault(what, []).append(f"{some}`{form.lstrip('~')}`")
    always = [line.partition(": ")[0] for line in lines if not line.startswith("~")]
    there = sum(any(_is_form(form, asked) for form in always) for asked in _asked())
    rows = [f"| {what} | {', '.join(forms)} |" for what, forms in named.items()]
    return COMPILED.format(count=there) + "\n".join(rows) + "\n"


def _asked() -> Iterator[str]:
    """Yield the forms that are asked for, one for each choice in braces."""
    for line in ASKED_FORMS.read_text(encoding="utf-8").splitlines():
        for word in line.partition(": ")[2].split() if not line.startswith("#") else ():
            parts = re.split(r"\{([^{}]*)\}", word)
            choices = [part.split(",") if n % 2 else [part] for n, part in enumerate(parts)]
            yield from map("".join, itertools.product(*choices))


def _is_form(form: str, asked: str) -> bool:
    opcode, *modifiers = form.split(".")
    found, *others = asked.split(".")
    return opcode == found and set(modifiers) <= set(others)


def count(path: Path, by_word: bool = False) -> int:
    """Return how many forms a table has, of a line or of each word of it: braces multiply."""
    total = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.partition("# ")[0].strip()
        words = line.partition(": ")[2].split() if by_word else [line] if line else []
        total += sum(map(_choices, words))
    return total


def _choices(form: str) -> int:
    choices = 1
    for part in form.split("{")[1:]:
        inside, closed, _ = part.partition("}")
        choices *= inside.count(",") + 1 if closed and "$" not in inside else 1
    return choices


def main() -> None:
    """Write the document."""
    (ROOT / "docs" / "instructions.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
