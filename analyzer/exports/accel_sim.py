"""Accel-Sim: export a trace as the files of its tracer, `kernelslist.g` and `kernel-N.traceg`.

Instructions are PTX with the nearest SASS mnemonic; those that an assembler removes are left out.
Global addresses are those of the trace, since cache sets depend on them; shared and local addresses
are mapped into windows. The simulator treats address 0 as no access: a trace with an array there is
moved to another one, so that other lines share a cache set. Lines follow tracer version 3, which
has no immediates.

The format cannot represent: addresses of constants and texels; the shared side of an asynchronous
copy; source files; lanes disabled by a predicate, unless in all warps of a block; names.

Source: as traces/imports/read_accel_sim.py, which reads these files.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...models.replay.interface.model import Ints
from ...models.replay.interface.options import ReplayOptions
from ...traces.reader import LaunchTrace, Trace
from ...traces.row_filter import keeps_blocks
from ...traces.schema import LANES, STRONG_LOADS, Launch, Space
from ..counting.paths import Paths, Steps, read_columns, read_paths
from ..time.chain import read_operands

DEVICE = ""
SHARED_WINDOW, LOCAL_WINDOW = 0x7FFD00000000, 0x7FFE00000000
"""Windows of shared and local memory: the simulator takes a generic address for shared only from
the first bound up to the second."""
MOVED = 1 << 40
"""Bytes by which global memory is moved if it has an array at address 0."""
WINDOWS = {Space.SHARED: SHARED_WINDOW, Space.LOCAL: LOCAL_WINDOW}
ADDRESSED = (Space.GLOBAL, Space.SHARED, Space.LOCAL)
"""State spaces whose addresses the format represents."""
BINARIES = (60, 61, 70, 75, 80, 86)
"""SASS targets whose opcodes the simulator knows (gpu-simulator/ISA_Def); it stops at others."""
REGISTERS = 254
SOURCES = 4
FORMAT = (
    "#traces format = [line_num] PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width "
    "[adrrescompress?] [mem_addresses]"
)


def write(trace: Trace, out: Path | None, options: ReplayOptions) -> str:
    """Write the kernel list and a file per launch into the folder `out`."""
    folder = out or Path(f"{trace.path.stem}-traces")
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise CutraceError(f"{folder}: is there already; name a new folder")
    for launch in trace.launches:
        _check(launch)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernelslist.g").write_text("".join(_commands(trace)))
    windows = {**WINDOWS, Space.GLOBAL: _global_window(trace)}
    for launch in trace.launches:
        with (folder / f"kernel-{launch.number + 1}.traceg").open("w") as file:
            _Kernel(launch, windows).write(file)
    note = ASSEMBLED if any(_is_assembled(launch.launch) for launch in trace.launches) else ""
    return f"{folder / 'kernelslist.g'}\n{note}next: cutrace import {folder / 'kernelslist.g'}"


ASSEMBLED = (
    "The files have the accesses of the PTX. ptxas changed some of them, and devices from 7.0 on\n"
    "count those: an import counts what --code ptx does, other requests, wavefronts and bounds.\n"
)


def _is_assembled(launch: Launch) -> bool:
    return any(one.accesses for one in launch.resources)


def _check(trace: LaunchTrace) -> None:
    scope = trace.launch.kept
    whole = scope.control and scope.rows and trace.count("control")
    if not whole or scope.warps or scope.lines or scope.spaces:
        raise CutraceError(
            f"launch {trace.number} ({trace.launch.name}): the trace has not all that its warps "
            "ran, which is what Accel-Sim reads: record it again in full"
        )


def _global_window(trace: Trace) -> int:
    """Return how far global memory is moved."""
    arrays = (array for launch in trace.manifest.launches for array in launch.arrays)
    return MOVED * any(array.space == Space.GLOBAL and not array.offset for array in arrays)


def _commands(trace: Trace) -> Iterator[str]:
    """Yield the lines of the list: copies to the device, and kernels."""
    moved = _global_window(trace)
    addresses = {
        array.name: array.offset + moved
        for launch in trace.manifest.launches
        for array in launch.arrays
        if array.space == Space.GLOBAL
    }
    chosen = {launch.number for launch in trace.launches}
    for event in trace.manifest.events:
        if event.kind == "launch" and event.launch in chosen:
            yield f"kernel-{event.launch + 1}.traceg\n"
        elif event.kind != "launch" and event.direction == "HtoD" and event.array in addresses:
            yield f"MemcpyHtoD,0x{addresses[event.array]:016x},{event.bytes}\n"


@dataclass(frozen=True)
class _Kernel:
    """Writes one launch as a file."""

    trace: LaunchTrace
    windows: Mapping[Space, int]

    @property
    def launch(self) -> Launch:
        """Return the launch of the manifest."""
        return self.trace.launch

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Return the instructions."""
        records: list[dict[str, Any]] = self.trace.instructions().to_pylist()
        return records

    @cached_property
    def texts(self) -> list[tuple[str, str]]:
        """Return the text before and after the mask of each instruction."""
        numbers: dict[str, int] = {}
        has_lines = any(row["line"] for row in self.rows)
        pairs = []
        for row in self.rows:
            line = f"{row['line']} " if has_lines else ""
            pairs.append((f"{line}{16 * row['pc']:04x} ", self._operands(row, numbers)))
        return pairs

    @staticmethod
    def _operands(row: Mapping[str, Any], numbers: dict[str, int]) -> str:
        """Return destinations, opcode and sources; each register name maps to one number."""
        operands = read_operands(row["text"])

        def number(name: str) -> str:
            return f"R{numbers.setdefault(name, len(numbers)) % REGISTERS}"

        plain = [name for name in operands.writes if not name.startswith("%p")]
        read = [name for name in operands.reads if not name.startswith("%p")]
        writes, reads = [*map(number, plain[:1])], [*map(number, read[:SOURCES])]
        parts = [str(len(writes)), *writes, machine_name(row), str(len(reads)), *reads]
        return " ".join(parts)

    def write(self, file: TextIO) -> None:
        """Write the headers, then the recorded blocks in order."""
        file.write("\n".join((*self._headers(), "", FORMAT, "")))
        for block, lines in self._blocks():
            grid = self.launch.grid
            x, y, z = block % grid[0], block // grid[0] % grid[1], block // grid[0] // grid[1]
            file.write(f"\n#BEGIN_TB\n\nthread block = {x},{y},{z}\n")
            for warp, some in enumerate(lines):
                body = "".join(some)
                file.write(f"\nwarp = {warp}\ninsts = {len(some)}\n{body}")
            file.write("\n#END_TB\n")

    def _headers(self) -> Iterator[str]:
        launch = self.launch
        binary, registers = _binary(launch)
        yield f"-kernel name = {launch.kernel}"
        yield f"-kernel id = {self.trace.number + 1}"
        yield f"-grid dim = ({','.join(map(str, launch.grid))})"
        yield f"-block dim = ({','.join(map(str, launch.block))})"
        yield f"-shmem = {launch.shared_static + launch.shared_dynamic}"
        yield f"-nregs = {registers}"
        yield f"-binary version = {binary}"
        yield "-cuda stream id = 0"
        yield f"-shmem base_addr = 0x{SHARED_WINDOW:016x}"
        yield f"-local mem base_addr = 0x{LOCAL_WINDOW:016x}"
        yield "-nvbit version = none"
        yield "-accelsim tracer version = 3"
        yield f"-enable lineinfo = {int(any(row['line'] for row in self.rows))}"

    def _blocks(self) -> Iterator[tuple[int, list[list[str]]]]:
        """Yield each block with the lines of each of its warps."""
        control = read_columns(self.trace.control_batches(), ("block", "warp", "step", "path"))
        order = np.lexsort((control["step"], control["warp"], control["block"]))
        whole = {name: values[order].astype(np.int64) for name, values in control.items()}
        mask = keeps_blocks(self.launch.kept, whole["block"])
        whole = {name: values[mask] for name, values in whole.items()}
        addresses = _Addresses(self.trace, self.windows)
        paths, templates = read_paths(self.trace), dict[int, _Template]()
        warp_lines: list[list[str]] = []
        last = -1
        for block, warp, step, path in zip(*(v.tolist() for v in whole.values()), strict=True):
            if block != last:
                if last >= 0:
                    yield last, warp_lines
                last, warp_lines = block, [[] for _ in range(self.launch.warps)]
            if path not in templates:
                templates[path] = self._template(paths, path)
            warp_lines[warp] += self._lines(addresses, (block, warp, step), templates[path])
        if last >= 0:
            yield last, warp_lines

    def _template(self, paths: Paths, path: int) -> "_Template":
        """Return the lines of a path without addresses; memory instructions without lanes."""
        steps = paths.steps(path)
        shown = np.flatnonzero(~np.array([row["class"] == "free" for row in self.rows])[steps.pc])
        steps = Steps(steps.pc[shown], steps.active[shown], steps.not_taken[shown])
        mask = steps.active & ~steps.not_taken
        lines = [
            self._without_lanes(pc) if self._has_addresses[pc] else self._line(pc, lanes)
            for pc, lanes in zip(steps.pc.tolist(), mask.tolist(), strict=True)
        ]
        return _Template(steps.pc, shown, lines, frozenset(steps.pc.tolist()) & self._counted)

    def _line(self, pc: int, lanes: int) -> str:
        before, suffix = self.texts[pc]
        return f"{before}{lanes:08x} {suffix} 0 \n"

    def _without_lanes(self, pc: int) -> str:
        before, suffix = self.texts[pc]
        return f"{before}{0:08x} {suffix} {self.rows[pc]['bytes']} 1 0x0 0 \n"

    @cached_property
    def _has_addresses(self) -> list[bool]:
        """Return whether the format represents the address of each instruction."""
        return [
            any((row["reads"] | row["writes"]) >> space & 1 for space in ADDRESSED)
            for row in self.rows
        ]

    @cached_property
    def _counted(self) -> frozenset[int]:
        """Return the instructions with counts of active lanes in LANES_ON."""
        return frozenset(
            row["pc"]
            for row in self.rows
            if row["predicate"] and not row["bytes"] and row["operation"] != "branch"
        )

    @cached_property
    def _on(self) -> dict[int, set[int]]:
        """Return, per block, the instructions of `_counted` with an active lane."""
        rows = read_columns(self.trace.lanes_on_batches(), ("block", "pc", "lanes"))
        some = rows["lanes"] > 0
        active_pcs: dict[int, set[int]] = {}
        for block, pc in zip(rows["block"][some].tolist(), rows["pc"][some].tolist(), strict=True):
            active_pcs.setdefault(block, set()).add(pc)
        return active_pcs

    def _lines(
        self, addresses: "_Addresses", where: tuple[int, int, int], template: "_Template"
    ) -> list[str]:
        """Return the lines of a warp that executed a path from a given step."""
        lines = [*template.lines]
        for pc in template.counted - self._on.get(where[0], set()):
            for place in np.flatnonzero(template.pc == pc).tolist():
                lines[place] = self._line(pc, 0)
        for step, pc, mask, text in addresses.of(where, int(template.step[-1]) + 1 if lines else 0):
            before, suffix = self.texts[pc]
            place = int(np.searchsorted(template.step, step))
            lines[place] = f"{before}{mask:08x} {suffix} {self.rows[pc]['bytes']} {text} \n"
        return lines


def _binary(launch: Launch) -> tuple[int, int]:
    """Return the newest target of a launch that the simulator knows, with its register count."""
    arch = {int(r.arch.removeprefix("sm_").rstrip("af")): r.registers for r in launch.resources}
    binary_version = max((binary for binary in BINARIES if binary in arch), default=BINARIES[-2])
    return binary_version, arch.get(binary_version, max(arch.values(), default=32))


@dataclass(frozen=True, slots=True, eq=False)
class _Template:
    """The lines of a path: `step` (n,) is the step of each in the path; `counted` marks those of
    LANES_ON.
    """

    pc: Ints
    step: Ints
    lines: list[str]
    counted: frozenset[int]


class _Addresses:
    """The accesses of a launch, indexed by warp and step."""

    def __init__(self, trace: LaunchTrace, windows: Mapping[Space, int]) -> None:
        self._windows = windows
        names = ("block", "warp", "step", "part", "pc", "space", "base", "pattern")
        rows = read_columns(trace.access_batches(), names)
        some = np.isin(rows["space"], ADDRESSED)
        rows = {name: values[some] for name, values in rows.items()}
        self._warps = trace.launch.warps
        key = self._key(*(rows[name].astype(np.int64) for name in ("block", "warp", "step")))
        order = np.lexsort((rows["part"], key))
        self._keys = key[order]
        self._rows = {name: rows[name][order] for name in ("pc", "space", "base", "pattern")}
        self._active, self._offsets = trace.patterns()
        self._known: dict[int, tuple[int, str, str]] = {}

    def _key(self, block: Any, warp: Any, step: Any) -> Any:
        return (block * self._warps + warp) << 32 | step

    def of(self, where: tuple[int, int, int], steps: int) -> Iterator[tuple[int, int, int, str]]:
        """Yield the accesses of some steps of a warp: step, pc, mask, and the text after the
        mask."""
        low = self._key(*where)
        first, last = np.searchsorted(self._keys, [low, low + steps]).tolist()
        at = first
        while at < last:
            end = at + 1
            while end < last and self._keys[end] == self._keys[at]:
                end += 1
            mask, text = self._one(at) if end == at + 1 else self._several(range(at, end))
            if mask:
                yield int(self._keys[at]) - low, int(self._rows["pc"][at]), mask, text
            at = end

    def _one(self, row: int) -> tuple[int, str]:
        pattern = int(self._rows["pattern"][row])
        if pattern not in self._known:
            mask = int(self._active[pattern])
            lanes = [lane for lane in range(LANES) if mask >> lane & 1]
            self._known[pattern] = mask, *_compressed(lanes, self._offsets[pattern][lanes].tolist())
        mask, mode, tail = self._known[pattern]
        return mask, f"{mode} 0x{self._base(row):x}{tail}"

    def _base(self, row: int) -> int:
        return int(self._rows["base"][row]) + self._windows[Space(int(self._rows["space"][row]))]

    def _several(self, rows: range) -> tuple[int, str]:
        """Merge the parts of one instruction; of a copy, use the read."""
        spaces = self._rows["space"][rows.start : rows.stop]
        masks = [int(self._active[self._rows["pattern"][row]]) for row in rows]
        if any(a & b for a, b in pairwise(masks)):
            global_rows = [row for row in rows if spaces[row - rows.start] == Space.GLOBAL]
            return (
                self._one(global_rows[0])
                if len(global_rows) == 1
                else self._several_lanes(global_rows)
            )
        return self._several_lanes(rows)

    def _several_lanes(self, rows: Any) -> tuple[int, str]:
        lane_addresses: dict[int, int] = {}
        for row in rows:
            pattern = int(self._rows["pattern"][row])
            for lane in range(LANES):
                if int(self._active[pattern]) >> lane & 1:
                    lane_addresses[lane] = self._base(row) + int(self._offsets[pattern][lane])
        text = " ".join(f"0x{lane_addresses[lane]:x}" for lane in sorted(lane_addresses))
        return sum(1 << lane for lane in lane_addresses), f"0 {text}"


def _compressed(lanes: list[int], offsets: list[int]) -> tuple[str, str]:
    """Return the address mode and the operands after the base: a stride, or differences."""
    steps = [after - before for before, after in pairwise(offsets)]
    # Mode 1 (base and stride) has no lane numbers: the simulator assigns the addresses to
    # consecutive lanes.
    side_by_side = lanes[-1] - lanes[0] == len(lanes) - 1
    if len(lanes) > 1 and side_by_side and len({*steps}) == 1:
        return "1", f" {steps[0]}"
    return "2", "".join(f" {step}" for step in steps)


_OPERATIONS = {
    ("single", "add"): "FADD",
    ("single", "mul"): "FMUL",
    ("single", "fma"): "FFMA",
    ("single", "special"): "MUFU.RCP",
    ("double", "add"): "DADD",
    ("double", "mul"): "DMUL",
    ("double", "fma"): "DFMA",
    ("double", "special"): "MUFU.RCP64H",
    ("half", "add"): "HADD2",
    ("half", "mul"): "HMUL2",
    ("half", "fma"): "HFMA2",
    ("half", "special"): "MUFU.EX2.F16",
}
_CLASSES = {
    "single": "FSETP",
    "double": "DSETP",
    "half": "HSETP2",
    "integer": "IADD3",
    "conversion": "F2F",
    "exchange": "SHFL.IDX",
    "other": "MOV",
    "memory": "CCTL",
}
_OPCODES = {
    **dict.fromkeys(("ret", "exit"), "EXIT"),
    **{"bra": "BRA", "brx": "BRX", "call": "CALL.REL", "trap": "BPT.TRAP"},
    **{
        "membar": "MEMBAR.SC.GPU",
        "fence": "MEMBAR.SC.GPU",
        "vote": "VOTE.ANY",
        "match": "MATCH.ANY",
    },
    **{"redux": "REDUX", "mma": "HMMA.16816.F32", "tex": "TEX", "tld4": "TLD4", "suld": "SULD"},
    **{"sust": "SUST", "sured": "SURED", "prefetch": "CCTL.PF2", "prefetchu": "CCTL.PF1"},
}
_SPACES = {
    Space.GLOBAL: {"load": "LDG.E", "store": "STG.E", "atomic": "ATOMG.E", "reduction": "RED.E"},
    Space.SHARED: {"load": "LDS", "store": "STS", "atomic": "ATOMS", "reduction": "ATOMS"},
    Space.LOCAL: {"load": "LDL", "store": "STL"},
    Space.CONST: {"load": "LDC"},
}
_GENERIC = {"load": "LD.E", "store": "ST.E", "atomic": "ATOM.E", "reduction": "ATOM.E"}
_WIDTHS = {1: ".U8", 2: ".U16", 4: "", 8: ".64", 16: ".128", 32: ".256"}
_CACHES = {"nc": ".CONSTANT", "cs": ".EF", "lu": ".LU", "cg": ".CG", "cv": ".CV", "wt": ".WT"}
_SCOPES = {"cta": ".CTA", "cluster": ".CLUSTER", "gpu": ".GPU", "sys": ".SYS", "": ".SYS"}


def machine_name(row: Mapping[str, object]) -> str:
    """Return the mnemonic of a row of INSTRUCTIONS; machine code keeps its own."""
    opcode = str(row["opcode"])
    if opcode.isupper():
        return str(row["mnemonic"])
    if row["access"] and opcode not in ("tex", "tld4", "suld", "sust", "sured"):
        return _access_name(row, opcode)
    if row["barrier"] is not None:
        return "BAR.ARV" if row["operation"] == "arrive" else "BAR.SYNC.DEFER_BLOCKING"
    kind, operation = str(row["class"]), str(row["operation"])
    mnemonic = _OPCODES.get(opcode) or _OPERATIONS.get((kind, operation))
    return mnemonic or _CLASSES.get(kind, "NOP")


def _access_name(row: Mapping[str, object], opcode: str) -> str:
    if opcode in ("ldmatrix", "stmatrix"):
        count = next((f".{n}" for n in "421" if f".x{n}" in str(row["mnemonic"])), "")
        return f"{'LDSM' if opcode == 'ldmatrix' else 'STSM'}.16.M88{count}"
    access, width = str(row["access"]), _WIDTHS.get(int(str(row["bytes"])), "")
    if access == "copy":
        return f"LDGSTS.E.BYPASS{width}"
    reach = int(str(row["reads"])) | int(str(row["writes"]))
    own = [space for space in _SPACES if reach == 1 << space]
    name = (_SPACES[own[0]] if own else _GENERIC).get(access, "NOP")
    if access in ("atomic", "reduction"):
        how = ".POPC.INC" if row["collision"] == "counted" else f".{str(row['operation']).upper()}"
        return f"{name}{how}{width}{_strength(row) if own != [Space.SHARED] else ''}"
    return f"{name}{width}{_CACHES.get(str(row['cache']), '')}{_strength(row)}"


def _strength(row: Mapping[str, object]) -> str:
    if row["order"] in STRONG_LOADS or row["order"] in ("acq_rel", "release", "sc"):
        return f".STRONG{_SCOPES[str(row['scope'])]}"
    return ""
