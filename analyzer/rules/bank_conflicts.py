"""Lanes that meet in a bank of shared memory, and the padding of rows that parts them.

The padding is tried: the worst access is asked of the device's model again with every row of the
lanes' stride so many words longer.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...models.replay.seam import Batch
from ..advice import Evidence, Finding
from ..why.search import Access

WORD = 4
PADS = (1, 2, 3, 4)


def find(evidence: Evidence) -> Iterator[Finding]:
    """Look at every access to shared memory."""
    for access in evidence.worst:
        conflicts = evidence.of(access.pc, access.kind.prefix + "conflicts")
        if access.kind.space != "shared" or not conflicts or access.cost <= access.ideal:
            continue
        requests = evidence.of(access.pc, access.kind.prefix + "passes")
        yield Finding(
            f"lanes meet in banks: {conflicts} of {requests} passes are conflicts",
            evidence.describe(access),
            _change(access),
            access.pc,
            evidence.share(access, "passes"),
            access.identifier,
        )


def _change(access: Access) -> str:
    """The padding that helps, tried out; else a general word."""
    if access.kind.access in ("atomic", "reduction"):
        return "give each warp a copy of its own, or combine the lanes' values before"
    asked = [a for a in access.addresses if a is not None]
    rows = {b - a for a, b in pairwise(asked) if b > a}
    for row in sorted(rows, reverse=True):
        for pad in PADS:
            passes = _passes(access, row, pad * WORD)
            if row % WORD == 0 and row > WORD and passes <= access.ideal:
                words = "one word" if pad == 1 else f"{pad} words"
                return (
                    f"make rows of {row} bytes {words} longer: the same access then takes {passes}"
                    f" instead of {access.cost} passes (tried)"
                )
    return "let the lanes of a request take words of different banks: exchange or permute indices"


def _passes(access: Access, row: int, pad: int) -> int:
    """The passes of the access if each row were `pad` bytes longer."""
    moved = tuple(None if a is None else a + a // row * pad for a in access.addresses)
    padded = replace(access, addresses=moved)
    batch = Batch(
        (padded.kind,),
        np.zeros(1, np.int64),
        np.array([[a or 0 for a in moved]], np.int64),
        np.array([[a is not None for a in moved]], np.bool_),
        np.zeros(1, np.int64),
    )
    return int(access.model.step(batch).counts["passes"][0])
