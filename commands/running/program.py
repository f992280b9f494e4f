"""The program after `--` on a command line: build it, run it unchanged, and record it."""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import of_kind
from ...base.progress import running
from ...models.replay.interface.options import DEFAULT_DEVICE
from ..options.command_line import device_of, quote
from ..options.recording import SOURCES, Recording
from ..terminal.progress import progress
from .analyzer_hooks import estimate_time, make_stopwatch

if TYPE_CHECKING:
    from ...models.replay.device.device import Device as Model
    from ...tracer.program.run import Ended, Order
    from ...tracer.program.session import Device


_RECORDS_ITSELF = re.compile(r"^\s*(?:import|from)\s+cutrace\b", re.MULTILINE)


_SCRIPT, _ELF = b"#!", b"\x7fELF"
_RELOCATABLE = 1
"""The type of an ELF file that a linker is yet to read."""


def is_program(path: Path) -> bool:
    """Return whether a file is an executable program, no source and no library or object file."""
    if path.suffix in SOURCES or not path.is_file() or not os.access(path, os.X_OK):
        return False
    with path.open("rb") as file:
        head = file.read(18)
    if head.startswith(_ELF):
        return head[16:] != bytes((_RELOCATABLE, 0)) and ".so" not in path.suffixes
    return head.startswith(_SCRIPT)


def command_of(sources: Sequence[Path], arguments: Sequence[str] | None) -> tuple[str, ...]:
    """Return the command for a program, or for a Python script that does not import cutrace; empty
    if the first source is neither.

    Its arguments are the words after it, and `arguments`, those after `--`.
    """
    first = sources[0] if sources else Path()
    words = (*map(str, sources[1:]), *(arguments or ()))
    if is_program(first):
        return (str(first) if os.sep in str(first) else f"./{first}", *words)
    if first.suffix != ".py" or not first.is_file():
        return ()
    if _RECORDS_ITSELF.search(first.read_text(encoding="utf-8", errors="replace")):
        return ()
    return (sys.executable, str(first), *words)


def choose_device(name: str | None) -> "Device":
    """Return the device that the program sees; without a name $CUTRACE_DEVICE or the default."""
    from ...models.analyses.occupancy import Need, occupancy
    from ...models.replay.device.device import load_device
    from ...tracer.program.session import Device

    named = name or os.environ.get("CUTRACE_DEVICE") or DEFAULT_DEVICE
    model = load_device(named)

    def fits(registers: int, shared: int, threads: int) -> int:
        return occupancy(model.limits, Need(threads, registers, shared)).blocks

    of_chip = model.chip.sms_per_cluster, model.limits.shared_unit
    time = partial(make_stopwatch, named)
    estimate = partial(estimate_time, named)
    return Device(model.cuda_name or model.name, _facts(model), fits, time, estimate, *of_chip)


def _facts(model: "Model") -> dict[str, int]:
    """Return a device's attributes by the names that the library uses."""
    limits, chip, rates = model.limits, model.chip, model.rates
    return {
        "major": model.capability[0],
        "minor": model.capability[1],
        "processors": chip.sms,
        "threads_per_block": limits.threads_per_block,
        **dict(zip(("block_x", "block_y", "block_z"), limits.block_dim, strict=True)),
        **dict(zip(("grid_x", "grid_y", "grid_z"), limits.grid_dim, strict=True)),
        "warps_per_sm": limits.warps_per_sm,
        "blocks_per_sm": limits.blocks_per_sm,
        "registers_per_sm": limits.registers_per_sm,
        "registers_per_block": limits.registers_per_block,
        "shared_per_sm": limits.shared_per_sm,
        "shared_per_block": limits.shared_per_block,
        "shared_reserved": limits.shared_reserved,
        "constant_bytes": limits.constant_bytes,
        "memory_bytes": chip.memory_bytes,
        "memory_kilohertz": 1000 * chip.memory_mhz,
        "bus_bits": chip.memory_bits,
        "l2_bytes": chip.l2_bytes,
        "kilohertz": 1000 * chip.clock_mhz,
        "single_to_double": round(rates.single / rates.double) if rates.double else 0,
    }


def tell_end(name: str, trace: Path, ended: "Ended", hint: str | None = "") -> int:
    """Report on stderr how the run ended and what to type next, with the options `hint`;
    return the shell's exit status.
    """
    summary = f"{trace} has {ended.launches} launch{'es' if ended.launches != 1 else ''}"
    are = "is" if ended.refused == 1 else "are"
    lost = f", {ended.refused} that failed {are} left out" if ended.refused else ""
    lost += f"; {ended.left_out}" if ended.left_out else ""
    how = ended.why or ending_text(ended.status)
    _print_note(f"{name}: {how}; {summary}{lost}" if how else f"{summary}{lost}")
    if ended.launches and hint is not None:
        _print_note(f"next: cutrace analyze {quote(trace)}{hint}")
    return ended.status if ended.status >= 0 else 128 - ended.status


def ending_text(status: int) -> str:
    """Return how a program ended, empty for success; a negative status is a signal's."""
    if status < 0:
        import signal

        return f"it was ended by {signal.Signals(-status).name}"
    return f"it ended with exit status {status}" if status else ""


def _print_note(text: str) -> None:
    print(f"cutrace: {text}", file=sys.stderr)


def record_command(
    order: "Order", name: str, out: Path | None, device: "Device", recording: Recording
) -> int:
    """Record a program under the user's name for it; return the shell's exit status."""
    trace = out or Path(f"{Path(name).stem}.cutrace")
    ended = run_program(order, trace, device, recording)
    return tell_end(name, trace, ended, device_of(ended.codes))


def run_program(order: "Order", trace: Path, device: "Device", recording: Recording) -> "Ended":
    """Run and record a program; its memory is mapped in pages, as on a chip."""
    from ...tracer.program.run import record_program
    from ...tracer.session.record_options import default_options

    named = f"recording {order.words[0]}"
    options = replace(recording, bounds=recording.bounds or "report")
    with (
        running() as ran,
        default_options(options),
        progress(named, lambda: order.tally.text(ran.part)),
    ):
        return record_program(order, trace, device)


def build(sources: Sequence[Path], recording: Recording, flags: str, device: "Device") -> Path:
    """Build sources into a program for the device."""
    from ...tracer.program.build import build_program

    options = [*recording.compiler_options, *shlex.split(flags)]
    if recording.arch:
        options += [f"-arch={recording.arch}"]
    with of_kind("build"):
        return build_program(sources, options, device.capability)
