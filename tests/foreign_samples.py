"""Traces of other tools, written from their documented grammar; and counts of what is in them.

The counts are plain arithmetic over the addresses as Python's integers: no array, no model.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

FULL = 0xFFFFFFFF
SHARED_WINDOW, LOCAL_WINDOW = 0x7FB139000000, 0x7FB137000000
GLOBAL = 0x7FB0FC400000
WIDTHS = {"64": 8, "128": 16, "U8": 1}


@dataclass(frozen=True)
class Step:
    """An executed instruction: `lanes` maps active lanes to addresses; none: no memory access."""

    pc: int
    opcode: str
    mask: int = FULL
    lanes: tuple[tuple[int, int], ...] = ()
    line: int = 0

    @property
    def width(self) -> int:
        return next((WIDTHS[m] for m in self.opcode.split(".") if m in WIDTHS), 4)


Warp = tuple[int, int, Sequence[Step]]
"""Block, warp of the block, and what it executed."""


def random_warps(seed: int, blocks: int = 3, warps: int = 2, steps: int = 12) -> list[Warp]:
    """Loads and stores of 1 to 16 bytes in rows, strides and at random, global and shared."""
    draw = random.Random(seed)
    opcodes = ("LDG.E", "LDG.E.64", "LDG.E.128", "LDG.E.U8", "STG.E", "STG.E.64", "LDS", "STS.64")
    found: list[Warp] = []
    for block in range(blocks):
        for warp in range(warps):
            made = [_random_step(draw, 16 * n, draw.choice(opcodes)) for n in range(steps)]
            by_pc = [Step(s.pc, opcodes[n % 8], s.mask, s.lanes) for n, s in enumerate(made)]
            found.append((block, warp, [_aligned(step) for step in by_pc]))
    return found


def _random_step(draw: random.Random, pc: int, opcode: str) -> Step:
    mask = draw.choice([FULL, 0xFFFF, draw.getrandbits(32) | 1])
    stride = draw.choice([0, 16, 32, 160, -64])
    base, spread = 1 << 20, draw.choice([0, 0, 1 << 16])
    lanes = [n for n in range(32) if mask >> n & 1]
    at = [(n, base + stride * n + 16 * draw.randrange(spread // 16 + 1)) for n in lanes]
    return Step(pc, opcode, mask, tuple(at))


def _aligned(step: Step) -> Step:
    """Addresses in the window of the opcode's space; shared memory has 48 KiB."""
    if step.opcode.startswith(("LDS", "STS")):
        lanes = tuple((n, SHARED_WINDOW + a % 0xC000) for n, a in step.lanes)
    else:
        lanes = tuple((n, GLOBAL + a) for n, a in step.lanes)
    return Step(step.pc, step.opcode, step.mask, lanes, step.line)


def count(warps: Sequence[Warp]) -> dict[str, int]:
    """Requests of global and shared loads and stores, sectors of 32 bytes of the global ones."""
    found = dict.fromkeys(
        ("loads", "stores", "load_sectors", "store_sectors", "shared_loads", "shared_stores"), 0
    )
    for _, _, steps in warps:
        for step in (s for s in steps if s.lanes):
            kind = "load" if step.opcode.startswith("LD") else "store"
            if step.opcode.startswith(("LDS", "STS")):
                found[f"shared_{kind}s"] += 1
                continue
            touched = {(a + n) // 32 for _, a in step.lanes for n in range(step.width)}
            found[f"{kind}s"] += 1
            found[f"{kind}_sectors"] += len(touched)
    return found


def traceg(
    warps: Sequence[Warp],
    blocks: int,
    threads: int,
    mode: int = 2,
    version: int = 5,
    lineinfo: bool = False,
    grouped: bool = True,
) -> str:
    """Accel-Sim's kernel file: addresses in a mode, where it can; below headers, or not."""
    prefix = (
        "" if grouped and version > 2 else "threadblock_x threadblock_y threadblock_z warpid_tb "
    )
    parts = [
        "-kernel name = _Z5scalePf",
        "-kernel id = 1",
        f"-grid dim = ({blocks},1,1)",
        f"-block dim = ({threads},1,1)",
        "-shmem = 49152",
        "-nregs = 24",
        "-binary version = 80",
        "-cuda stream id = 0",
        f"-shmem base_addr = 0x{SHARED_WINDOW:016x}",
        f"-local mem base_addr = 0x{LOCAL_WINDOW:016x}",
        "-nvbit version = 1.7",
        f"-accelsim tracer version = {version}",
        f"-enable lineinfo = {int(lineinfo)}",
        "",
        f"#traces format = {'[line_num] ' if lineinfo else ''}{prefix}PC mask dest_num [reg_dests]"
        " opcode src_num [reg_srcs] mem_width [adrrescompress?] [mem_addresses] immediate",
        "",
    ]
    last = -1
    for block, warp, steps in warps:
        if grouped and block != last:
            parts += ["", *(["#END_TB", ""] if last >= 0 else []), "#BEGIN_TB", ""]
            parts += [f"thread block = {block},0,0", ""]
        last = block
        parts += [f"warp = {warp}", f"insts = {len(steps)}"] if grouped else []
        front = f"{block} 0 0 {warp} " if prefix else ""
        for step in steps:
            line = f"{step.line} " if lineinfo else ""
            parts.append(f"{front}{line}{_line(step, mode)}{' 0' if version > 4 else ''} ")
        parts += [""] if grouped else []
    return "\n".join([*parts, *(["#END_TB"] if grouped else []), ""])


def _line(step: Step, mode: int) -> str:
    registers = "0 STG 2 R2 R4" if step.opcode.startswith("ST") else "1 R4 LDG 1 R2"
    registers = registers.replace("STG", step.opcode).replace("LDG", step.opcode)
    start = f"{step.pc:04x} {step.mask:08x} "
    if not step.lanes:
        return f"{start}0 {step.opcode} 0 0"
    return (
        f"{start}{registers} {step.width} {_addresses([a for _, a in step.lanes], mode, step.mask)}"
    )


def _addresses(at: list[int], mode: int, mask: int) -> str:
    steps = [b - a for a, b in pairwise(at)]
    side_by_side = "01" not in bin(mask)[2:].rstrip("0")
    if mode == 1 and len({*steps}) == 1 and side_by_side:
        return f"1 0x{at[0]:x} {steps[0]}"
    if mode == 0:
        return " ".join(["0", *(f"0x{a:016x}" for a in at)])
    return " ".join(["2", f"0x{at[0]:x}", *map(str, steps)])


def mem_trace(warps: Sequence[Warp], blocks: int, threads: int) -> str:
    """What NVBit's mem_trace prints, with a line of the program's own between."""
    head = (
        "MEMTRACE: CTX 0x0000560df95ced70 - LAUNCH - Kernel pc 0x00007faedadc0200 - Kernel name "
        f"scale(float*, int) - grid launch id 1 - grid size {blocks},1,1 - block size {threads},1,1"
        " - nregs 20 - shmem 49152 - cuda stream id 94618018363472"
    )
    parts = ["hello from the program", head]
    for number, (block, warp, step) in enumerate(_accesses(warps)):
        text = " ".join(f"0x{a:016x}" for a in _thirty_two(step))
        parts.append(
            f"MEMTRACE: CTX 0x0000560df95ced70 - grid_launch_id 1 - CTA {block},0,0 - warp {warp}"
            f" - {step.opcode} - {text} "
        )
        parts += ["progress: 50 %"] if number == 3 else []
    return "\n".join([*parts, ""])


def cutracer(warps: Sequence[Warp], blocks: int, threads: int) -> str:
    """CUTracer's mem_addr_trace of a launch; its warps have their numbers on the multiprocessor."""
    head = {
        "type": "kernel_metadata",
        "mangled_name": "_Z5scalePf",
        "unmangled_name": "scale(float*)",
        "kernel_checksum": "5f3a",
        "func_addr": "0x7faedadc0200",
        "nregs": 20,
        "shmem_static": 49152,
        "shmem_dynamic": 0,
        "grid": [blocks, 1, 1],
        "block": [threads, 1, 1],
    }
    parts = [head]
    each = -(-threads // 32)
    for number, (block, warp, step) in enumerate(_accesses(warps)):
        parts.append(
            {
                "type": "mem_addr_trace",
                "ctx": "0x5a1100",
                "grid_launch_id": 0,
                "cta": [block, 0, 0],
                "warp": block % 4 * each + warp,
                "opcode_id": step.pc // 16,
                "pc": f"0x{step.pc:x}",
                "sass": f"{step.opcode} R4, [R2.64] ;",
                "trace_index": number,
                "timestamp": 1763069214784647489 + number,
                "addrs": _thirty_two(step),
                "ipoint": "B",
            }
        )
    return "\n".join([*map(json.dumps, parts), ""])


def _accesses(warps: Sequence[Warp]) -> Iterator[tuple[int, int, Step]]:
    for block, warp, steps in warps:
        yield from ((block, warp, step) for step in steps if step.lanes)


def _thirty_two(step: Step) -> list[int]:
    return [dict(step.lanes).get(lane, 0) for lane in range(32)]
