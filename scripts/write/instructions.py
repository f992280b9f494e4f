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

TABLES = ROOT / "tests" / "validate" / "instructions"
IMAGE_CASES = ROOT / "tests" / "validate" / "images.npz"
ASKED_FORMS = ROOT / "tests" / "golden" / "instructions_asked.txt"
ARRAY_FORMS = ROOT / "tests" / "golden" / "instructions_array.txt"

HEAD = """# Instructions

Which PTX instructions run, how they were compared with silicon, and which are left out.
`scripts/write/instructions.py` writes this page from the engine's tables. cutrace refuses a kernel
at its launch, and only if the kernel can reach an instruction that does not run; the message names
the instruction and its lines in the PTX and the source.

## What runs

| family | instructions |
|---|---|
"""

ASKED = """
{forms} forms of instructions, with every modifier that the compilers write, have a case with its
arithmetic in `tests/golden/ptx` or a comparison with silicon. `tests/golden/instructions_asked.txt`
lists them, and a test fails for one without. What only capability 10.0 or 12.0 has (f32 in pairs
and with terms of f16 or bf16, `redux` of f32, numbers of 4 and 6 bits, scaled blocks, `tcgen05`)
and `mma.m8n8k4` of f16 (of 7.0) follow the ISA and published measurements: no such device was
available.
"""

OF_ISA = """
Of PTX ISA 8.8, by its headings of instructions and the targets that have them, and by {forms} of
their forms (`tests/golden/instructions_isa.txt`; ptxas says which target has which):

| target | instructions | refused by their names | forms | refused |
|---|---|---|---|---|
{rows}

Refused: {names}.
"""

COMPILED = """
## What the array engine runs

A launch of many threads, or of long loops, runs as machine code. There the array engine runs the
instructions below, with the same trace: all warps of a group at once, but slower where groups are
small. These are {count} of the forms above, and some cases of more;
`tests/golden/instructions_array.txt` lists them, and a test fails for one that is missing.

| what | instructions |
|---|---|
"""

COMPARED = """
## Compared with silicon

Every form below ran on an NVIDIA H200 (driver 580.159.04) with zeros, subnormal numbers,
infinities, NaNs, largest and smallest numbers and random bits, and cutrace gives the same bits.
Approximate functions are within the bound of the PTX ISA, which `tests/validate/instructions`
states beside each form; cutrace's are nearer to the true value than the hardware's.

| table | forms |
|---|---|
"""

SEQUENCES = """
1,000 random sequences of 30 of these instructions, in branches, loops and under predicates, ran
there in 4,096 threads each. Every register is equal in the end, except those for which the driver's
assembler disagrees with itself, with and without optimization (the payload of a NaN of f64). 57
kernels show what lanes get from others that are inactive, have exited, or are not in their mask.

200 random kernels of CUDA C, with functions, loops, atomics, textures, matrices, mbarriers and
clusters, left arrays whose digests are in `tests/validate/random_kernels`; both engines leave the
same.
"""

IMAGES = """
{images} forms of texture and surface instructions (geometries, formats, ways of addressing and
filtering, also out of bounds) ran on the same device. cutrace gives the results in
`tests/validate/images.npz` to the last bit, except for the quirks in
`tests/validate/test_images.py`.
"""

DETAILS = """
Where the ISA leaves a result open, cutrace does what the H200 does:

- The NaN of f32 is `0x7fffffff`, of f16 and bf16 `0x7fff`; f64 keeps the payload of a source (of
  several the second's, then the third's, then the first's), or is `0xfff8000000000000`.
- `.ftz` flushes a result that would be subnormal with exponents of any size after rounding.
- Integers divided by zero give all ones, and so do their remainders. A NaN becomes 0 as an integer
  of up to 32 bits, and the lowest signed pattern as one of 64 bits or from f64.
- A shuffle gives 0 from a lane that does not execute it.
- `cvt` from f32 to f16 takes subnormal numbers as they are, with `.ftz` too.
- `neg.s16` of -32768 is -32768. Optimized code may differ: ptxas combines a `cvt.s32.s16` of that
  result with the negation, in 32 bits, and gets 32768; with `-O0` it does not.
- `atom.add.f32` flushes subnormal numbers in global memory, not in shared memory.
- `mma` of f16, bf16 and tf32 adds all products of the instruction and the accumulator exactly,
  after cutting each off 25 bits below the largest exponent, and cuts the sum off to f32 (rounds it
  as f16); 8-bit floats take two bytes of every four at a time, and the accumulator at the end.
- `wgmma` does the same with f16, bf16 and tf32; it cuts 8-bit floats off 13 bits below, also the
  sum if it is f32. A zero sum is positive. The base offset of a descriptor is subtracted from the
  row that exchanges chunks. `tests/validate/wgmma.npz` has the H200's results for all types, with
  infinities, NaNs and subnormal numbers, and for descriptors of all layouts;
  `tests/validate/sparse_wgmma.npz` has an H100's for sparse factors.
- Products of narrow floats with `.kind` (12.0) and `tcgen05.mma` (10.0) cut every product and the
  accumulator off 25 bits below the largest exponent, add all of K exactly, and cut the sum off to
  f32 (round it to f16). With scaled blocks the exponents of the scales count too; of 4-bit floats
  16 products are added exactly, and scaled sums are cut off 35 bits below. arXiv 2511.10909 found
  this equal to a B200 and an RTX of 12.0 bit for bit. It says nothing of sparse factors, for which
  the same is assumed. The random bits of `cvt.rs` lie as others found on a B200.
- Tensor memory: blocks do not compete for columns, 512 each; a `tcgen05.alloc` that can never end
  is a fault, as are columns that are not allocated, lanes of another warp, and descriptors that the
  ISA does not have. `tcgen05.shift` and `.ashift` give a lane what the next one has. Copies unpack
  numbers of 4 bits to bits 2 to 5 of a byte, where products read them. Masks of columns of B
  (`.ws`) are a fault.
- `multimem` works on the one device that there is. A request of `clusterlaunchcontrol` is always
  denied: all blocks of a wave have begun.
- Boxes of tensor maps: rows in shared memory take the whole span of a swizzle; NaNs that fill them
  are `0x7ff7`; tf32 is rounded to nearest; a box must begin at a multiple of 16 bytes of the
  innermost dimension, and not below zero where it is stored, or the launch fails.
  `tests/validate/tensor_maps.npz` has 91 boxes, tiled, im2col and reduced.
- `sin` and `cos` first multiply by 1 / 2 pi in f32, so that large angles have the chip's errors.

Clocks count the warp's instructions. Cache hints have no effect. `cp.async`, bulk copies, `wgmma`
and `tcgen05` complete when they are issued; waits take no time. Bulk copies, operands of `wgmma`
and accesses to other blocks' shared memory are not accesses of a trace, nor does an H200 count
them as loads and stores (`tests/validate/test_hopper.py`). It counts bulk copies of global memory
as sectors of L2, and atomics on another block's memory as wavefronts; cutrace does not. Clusters of
several blocks run in the array engine.

## What is left out on purpose

The launch fails with the kernel, the reason, the instruction, its lines in the PTX and the source,
the section of the ISA, and the devices that have it:

    kernel `k`: cutrace leaves out textures with several samples a texel: `tex.2dms.v4.u32.s32
    {%r0, %r1, %r2, %r3}, [%rd1, {%r4, %r5, %r6, %r7}];` (PTX line 8; PTX ISA 9.7.10.3, compute
    capability 3.0 and later)

A kernel with such an instruction in unreachable code runs only if the code is in a function that
nobody calls. Missing functions of the device's runtime (`malloc`, `free`, `cudaLaunchDevice`) are
named in the same way. An unknown opcode, modifier or type gives `cutrace does not know this
instruction`; for wrong operands the message says what was expected.

| instructions | what they are |
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
    return "\n".join([HEAD + "\n".join(runs), begin + "\n".join(forms),
                      SEQUENCES + images + DETAILS + "\n".join(omitted), ""])  # fmt: skip


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
