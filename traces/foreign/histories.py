"""Histories: the executed instructions of all warps, to basic blocks and run-length coded paths.

Instructions stand in one block if, in all that ran, each was followed by the next with the same
lanes on. Tracers tell lanes that were active and whose predicate held; what was active alone is not
told: where no lane is left, the lanes of the instruction before are taken, and of a branch those of
the instruction right before it.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...lazy_dataclass import dataclass
from ..launch_writer import LaunchWriter
from .seam import Ints

Flags = npt.NDArray[np.bool_]

ENTRIES = 1 << 20
"""Entries of a path at most; a longer history is several."""

_ENTRY = np.dtype(
    [("block", "u4"), ("active", "u4"), ("not_taken", "u4"), ("targets", "u1"), ("repeat", "u4")]
)


@dataclass(frozen=True, slots=True, eq=False)
class Executed:
    """What n instructions were, sorted by warp: `pc` counts from 0 without gaps; `opens` marks the
    first of each warp; `warp` numbers the warps of the grid. `branch` and `ends` (pcs,) say which
    are branches, and which end a basic block."""

    pc: Ints
    mask: Ints
    warp: Ints
    opens: Flags
    branch: Flags
    ends: Flags

    @property
    def active(self) -> Ints:
        """The lanes that were active, as far as they can be told; 0 for none at all."""
        found = np.where(self.mask == 0, self._before(_filled(self.mask, self.opens)), self.mask)
        right_behind = ~self.opens & (self.pc == self._before(self.pc) + 1)
        before = self._before(found)
        wider = right_behind & self.branch[self.pc] & (found & ~before == 0)
        return np.where(wider, before, found)

    @staticmethod
    def _before(values: Ints) -> Ints:
        return np.concatenate([values[:1], values[:-1]])


def _filled(mask: Ints, opens: Flags) -> Ints:
    """Return masks with those before in place of 0; all lanes where a warp begins with 0."""
    known = (mask != 0) | opens
    place = np.maximum.accumulate(np.where(known, np.arange(len(mask)), 0))
    values = mask[place]
    return np.where(values == 0, 0xFFFFFFFF, values)


def number_blocks(executed: Executed, active: Ints, pcs: int) -> Ints:
    """Return the basic block of each pc, (pcs,), numbered in order."""
    pc = executed.pc
    follows = (pc[1:] == pc[:-1] + 1) & ~executed.opens[1:] & (active[1:] == active[:-1])
    times = np.bincount(pc, minlength=pcs)
    together = np.bincount(pc[:-1][follows], minlength=pcs)
    glued = (together == times) & (together == np.append(times[1:], -1)) & ~executed.ends
    return np.concatenate([[0], np.cumsum(~glued[:-1])]).astype(np.int64)


def write_histories(
    rows: LaunchWriter, executed: Executed, active: Ints, of_pc: Ints, warps: int
) -> None:
    """Write paths and control; `of_pc` is the basic block of each pc, `warps` are those of a block.

    A history that several warps have is written once.
    """
    first_pc = np.searchsorted(of_pc, np.arange(of_pc.max(initial=-1) + 2))
    starts = np.flatnonzero(first_pc[of_pc[executed.pc]] == executed.pc)
    last = first_pc[of_pc[executed.pc[starts]] + 1] - first_pc[of_pc[executed.pc[starts]]] - 1
    entries, merged = _entries(executed, active, of_pc, starts, starts + last)
    begins = starts[merged]
    bounds = np.searchsorted(begins, np.append(np.flatnonzero(executed.opens), len(executed.pc)))
    known: dict[bytes, int] = {}
    paths: list[npt.NDArray[np.void]] = []
    control: list[tuple[int, int, int, int]] = []
    for low, high, opened in zip(bounds, bounds[1:], np.flatnonzero(executed.opens), strict=False):
        warp = int(executed.warp[opened])
        for start in range(int(low), int(high), ENTRIES):
            piece = entries[start : min(start + ENTRIES, int(high))]
            number = known.setdefault(piece.tobytes(), len(paths))
            if number == len(paths):
                paths.append(piece)
            control.append((warp // warps, warp % warps, int(begins[start] - opened), number))
    for some in _batches(paths):
        flat = np.concatenate(some)
        names = ("block", "active", "not_taken", "targets", "repeat")
        rows.paths([len(path) for path in some], *(np.array(flat[name]) for name in names))
    if control:
        rows.control(*np.array(control, np.int64).T)


def _entries(
    executed: Executed, active: Ints, of_pc: Ints, starts: Ints, ends: Ints
) -> tuple[npt.NDArray[np.void], Ints]:
    """Return the entries of all warps one after another, and the number of each one's first run."""
    found = np.zeros(len(starts), _ENTRY)
    found["block"], found["active"] = of_pc[executed.pc[starts]], active[starts]
    branch = executed.branch[executed.pc[ends]]
    off = np.where(branch, active[ends] & ~executed.mask[ends], 0)
    found["not_taken"] = off
    found["targets"] = np.where(branch, (off != 0).astype(int) + (executed.mask[ends] != 0), 0)
    opens = executed.opens[starts]
    new = np.ones(len(found), bool)
    new[1:] = (found[1:] != found[:-1]) | opens[1:]
    merged = np.flatnonzero(new)
    kept = found[merged]
    kept["repeat"] = np.diff(np.append(merged, len(found)))
    return kept, merged


def _batches(paths: list[npt.NDArray[np.void]]) -> Iterator[list[npt.NDArray[np.void]]]:
    """Yield some paths at a time, of not much more than ENTRIES entries together."""
    some: list[npt.NDArray[np.void]] = []
    held = 0
    for path in paths:
        some.append(path)
        held += len(path)
        if held >= ENTRIES:
            yield some
            some, held = [], 0
    if some:
        yield some
