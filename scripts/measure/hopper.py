"""Write the program that measures bulk copies, mbarriers and the tensor pipe of 9.0.

    python scripts/measure/hopper.py OUT.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -o hopper OUT.cu && ./hopper > OUT.csv

The kernels are those of `hopper.cu` beside this file, which says what its lines mean; this script
adds a structure for each form of a product. models/devices/measured/sm_90.csv has the lines of an
H100 at the chip's own clock.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

GROUPS = {
    "f16_f32": ("f16", 16, (8, 32, 64, 96, 128, 192, 256)),
    "f16_f16": ("f16", 16, (128, 256)),
    "bf16_f32": ("bf16", 16, (128,)),
    "tf32_f32": ("tf32", 8, (64, 128, 256)),
    "e4m3_f32": ("e4m3", 32, (64, 128, 256)),
    "s8_s32": ("s8", 32, (64, 128, 256)),
}
"""Products of a warpgroup: the type of the factors, the depth, the columns."""
REGISTERS = "f16_f32", (64, 128, 256)
"""Those that are measured with a factor in registers, too."""
WARPS = {
    "f16_f32_16816": ("m16n8k16.row.col.f32.f16.f16.f32", (4, 2, 4), "f"),
    "f16_f32_1688": ("m16n8k8.row.col.f32.f16.f16.f32", (2, 1, 4), "f"),
    "f16_f16_16816": ("m16n8k16.row.col.f16.f16.f16.f16", (4, 2, 2), "r"),
    "bf16_f32_16816": ("m16n8k16.row.col.f32.bf16.bf16.f32", (4, 2, 4), "f"),
    "tf32_f32_1688": ("m16n8k8.row.col.f32.tf32.tf32.f32", (4, 2, 4), "f"),
    "tf32_f32_1684": ("m16n8k4.row.col.f32.tf32.tf32.f32", (2, 1, 4), "f"),
    "s8_s32_16832": ("m16n8k32.row.col.s32.s8.s8.s32", (4, 2, 4), "r"),
    "s8_s32_16816": ("m16n8k16.row.col.s32.s8.s8.s32", (2, 1, 4), "r"),
    "s4_s32_16864": ("m16n8k64.row.col.s32.s4.s4.s32", (4, 2, 4), "r"),
    "e4m3_f32_16832": ("m16n8k32.row.col.f32.e4m3.e4m3.f32", (4, 2, 4), "f"),
    "f64_884": ("m8n8k4.row.col.f64.f64.f64.f64", (1, 1, 2), "d"),
    "f64_16816": ("m16n8k16.row.col.f64.f64.f64.f64", (8, 4, 4), "d"),
}
"""Products of a warp: registers of both factors and of the sum, and the constraint of the sum."""


def main(target: str) -> None:
    """Write the program."""
    source = Path(__file__).with_name("hopper.cu").read_text()
    groups = [(name, n, False) for name, (_, _, columns) in GROUPS.items() for n in columns]
    groups += [(REGISTERS[0], n, True) for n in REGISTERS[1]]
    parts = {
        "//WGMMA": "".join(group_source(*each) for each in groups),
        "//MMA": "".join(warp_source(*each) for each in WARPS.items()),
        "//RUNW": "".join(
            f'    wg<w_{name}_{n}{"_r" * own}>("{name}{"_r" * own}", {n});\n'
            for name, n, own in groups
        ),
        "//RUNM": "".join(f'    mm<m_{name}>("{name}");\n' for name in WARPS),
    }
    for mark, text in parts.items():
        source = source.replace(mark, text)
    Path(target).write_text(source)


def group_source(name: str, columns: int, is_own: bool) -> str:
    """Return the structure of a warpgroup's product; `is_own`: the first factor is in registers."""
    factor, depth, _ = GROUPS[name]
    sums = name.partition("_")[2]
    count = columns // (4 if sums == "f16" else 2)
    letter, kind = ("f", "float") if sums == "f32" else ("r", "int")
    registers = ", ".join(f"%{place}" for place in range(count))
    outputs = ", ".join(f'"+{letter}"(d[{place}])' for place in range(count))
    inputs = ", ".join(f'"r"(a[{place}])' for place in range(4)) if is_own else '"l"(da)'
    places = [f"%{count + place}" for place in range(4 if is_own else 1)]
    first = f"{{{', '.join(places)}}}" if is_own else places[0]
    signs = "" if sums == "s32" else ", 1, 1"
    orders = ("" if factor not in ("f16", "bf16") else ", 0" if is_own else ", 0, 0") * bool(signs)
    form = f"m64n{columns}k{depth}.{sums}.{factor}.{factor}"
    second = f"%{count + len(places)}"
    return f"""struct w_{name}_{columns}{"_r" * is_own} {{
  typedef {kind} T; static const int C = {count};
  __device__ static __forceinline__ void go(T *d, const unsigned *a, u64 da, u64 db) {{
    asm volatile("{{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.{form} "
      "{{{registers}}}, {first}, {second}, p{signs}{orders}; }}"
      : {outputs} : {inputs}, "l"(db)); }} }};
"""


def warp_source(name: str, form: tuple[str, tuple[int, int, int], str]) -> str:
    """Return the structure of a warp's product."""
    mnemonic, (first, second, sums), letter = form
    kind = {"f": "float", "r": "int", "d": "double"}[letter]
    factor, own = ("double", "d") if letter == "d" else ("unsigned", "r")
    lists = list(_lists(sums, first, second))
    outputs = ", ".join(f'"+{letter}"(d[{place}])' for place in range(sums))
    inputs = ", ".join(
        f'"{own}"({of}[{place}])' for of, n in (("a", first), ("b", second)) for place in range(n)
    )
    return f"""struct m_{name} {{
  typedef {kind} T; typedef {factor} A; static const int C = {sums}, NA = {first}, NB = {second};
  __device__ static __forceinline__ void go(T *d, const A *a, const A *b) {{
    asm volatile("mma.sync.aligned.{mnemonic} {lists[0]}, {lists[1]}, {lists[2]}, {lists[0]};"
      : {outputs} : {inputs}); }} }};
"""


def _lists(*sizes: int) -> Iterator[str]:
    start = 0
    for size in sizes:
        yield "{" + ", ".join(f"%{place}" for place in range(start, start + size)) + "}"
        start += size


if __name__ == "__main__":
    main(*sys.argv[1:])
