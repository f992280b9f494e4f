"""Retries: in which turn of a loop each lane's atomic succeeds, by the addresses of the warp.

What the hardware does. ptxas makes loops of atomics that the chip has not. There are two:

- `spun` (`ATOMS.CAST.SPIN`): in a turn all lanes that are left load their words, and one lane of
  each bank, the lowest, stores. Of 8 bytes each half-warp has such lanes, and those of the second
  half fail whose word the first half has just changed.
- `swapped` (`ATOM.CAS`): all lanes load once; in a turn one lane of each word of 4 bytes succeeds.

What is modelled. A warp alone, each of whose values changes its word. What is not: warps that
change one another's words, whose turns are more, and another number each time; minima and maxima
(and sums that rounding leaves as they were) of which lanes are done early.

Source: measured on an H100, `tests/validate/test_retries.py`; docs/validation.md.
"""

import numpy as np

from ..seam import Bools, Ints

BANKS, WORD, WIDE, HALF = 32, 4, 8, 16


def spun_turns(addresses: Ints, active: Bools, width: int) -> Ints:
    """Return the turn in which each lane stores, (n, 32), -1 of lanes that are not active.

    `addresses` (n, 32) are right modulo the bytes of all banks, `width` is in bytes a lane.
    """
    if width <= WORD:
        return _queue(addresses // WORD % BANKS, active)
    bank = addresses // WIDE % (BANKS * WORD // WIDE)
    first = _queue(bank[:, :HALF], active[:, :HALF])
    second = np.full_like(first, -1)
    for lane in range(HALF):
        mine, word = bank[:, HALF + lane, None], addresses[:, HALF + lane, None]
        before = bank[:, HALF : HALF + lane] == mine
        turn = np.max(second[:, :lane], axis=1, initial=-1, where=before) + 1
        changed = np.where(addresses[:, :HALF] == word, first, -1)
        while (late := (changed == turn[:, None]).any(axis=1)).any():
            turn += late
        second[:, lane] = np.where(active[:, HALF + lane], turn, -1)
    return np.concatenate([first, second], axis=1)


def swapped_turns(addresses: Ints, active: Bools) -> Ints:
    """Return the turn in which each lane's word is swapped, (n, 32), -1 of lanes not active."""
    return _queue(addresses // WORD, active)


def _queue(place: Ints, active: Bools) -> Ints:
    """Return how many lower lanes want a lane's place, (n, lanes), -1 of those not active."""
    turn = np.full(place.shape, -1, np.int64)
    for lane in range(place.shape[1]):
        same = (place[:, :lane] == place[:, lane, None]) & active[:, :lane]
        turn[:, lane] = np.where(active[:, lane], same.sum(axis=1), -1)
    return turn
