"""Loops in which a warp only waits for another thread: polls, and locks.

How often a warp asks is chance, on a chip and in the engine, and no other warp waits for the
asking: a loop of polls counts once, as the last of them does.

A lock is an exchange that is tried again with the same operands until another thread releases it.
The threads that want it hold it one after the other: its time is that of all their critical
sections.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...base.dataclass import dataclass
from ...traces.identity_cache import cached_by_identity, rows_of
from .chain import read_operands as _names

AGAIN = re.compile(r"(?:@\S+ )?ld\.(?:volatile|acquire|relaxed|\S*\.cv)")
"""A load that asks memory each time."""
ASKS = re.compile(r"(?:@\S+ )?atom\.\S*(?:add|or|xor)\.[^,]+, \[[^]]+\], 0;")
"""An atomic that only asks: it leaves what it reads."""
EXCHANGES = ("cas", "exch")
SETS = re.compile(r"mov\.\w+ \S+, (?:-?\d|0[xfd])")
"""A register that gets a constant."""
POLL = re.compile(r"mbarrier\.(?:try|test)_wait")


@cached_by_identity
def find_polls(instructions: pa.Table, waiting: tuple[int, ...]) -> Mapping[int, bool]:
    """Return the basic blocks that poll (true), and the ones between them that only branch.

    A warp polls an mbarrier, or an address that others write, in a loop without other work: how
    often it does so is chance, and no other warp waits for it. `waiting` are the blocks of loops
    that wait for other threads.
    """
    rows = rows_of(instructions, "pc", "block", "class", "access", "text")
    polls = {row["block"] for row in rows if POLL.search(row["text"])}
    for loop in _runs_of(waiting):
        own = [row for row in rows if row["block"] in loop]
        loads = [row for row in own if row["access"] == "load" or ASKS.match(row["text"])]
        accesses = ("atomic", "reduction", "store", "copy")
        if any(row["access"] in accesses and row not in loads for row in own):
            continue
        written = {name for row in own for name in _names(row["text"]).writes}
        if loads and all(_repeats(row["text"], written) for row in loads):
            polls.update(row["block"] for row in loads)
    working = {row["block"] for row in rows if row["class"] not in ("control", "free")}
    every = {row["block"] for row in rows} if polls else set()
    return {block: block in polls for block in every if block in polls or block not in working}


@dataclass(frozen=True, slots=True)
class Lock:
    """The blocks of a loop that waits for a lock, and the pcs of its critical section.

    The section ends with the last access to the lock, in block `release`.
    """

    blocks: range
    section: range
    release: int


@cached_by_identity
def find_locks(instructions: pa.Table, waiting: tuple[int, ...]) -> Sequence[Lock]:
    """Return the locks that a launch's loops wait for; `waiting` as in `find_polls`."""
    rows = rows_of(instructions, "pc", "block", "operation", "access", "text")
    return [lock for loop in _runs_of(waiting) if (lock := _lock_of(rows, loop))]


@cached_by_identity
def insists(instructions: pa.Table, waiting: tuple[int, ...]) -> bool:
    """Return whether all lanes of each loop of exchanges stay until they have succeeded.

    Such a loop has one branch. In a search for the maximum another one leaves it with less.
    """
    rows = rows_of(instructions, "block", "operation", "opcode", "text")
    loops = [[row for row in rows if row["block"] in loop] for loop in _runs_of(waiting)]
    exchanging = [rows for rows in loops if any(row["operation"] in EXCHANGES for row in rows)]
    return all(
        sum(row["opcode"] == "bra" and row["text"].startswith("@") for row in each) == 1
        for each in exchanging
    )


def _lock_of(rows: Sequence[Mapping[str, Any]], loop: range) -> Lock | None:
    own = [row for row in rows if row["block"] in loop]
    exchanges = [row for row in own if row["operation"] in EXCHANGES]
    written = {n for row in own if not SETS.match(row["text"]) for n in _names(row["text"]).writes}
    if len(exchanges) != 1 or not written.isdisjoint(_names(exchanges[0]["text"]).reads):
        return None
    address, last = _names(exchanges[0]["text"]).address, own[-1]["pc"]
    later = [row for row in rows if row["pc"] > last and row["access"]]
    releases = [row for row in later if address and _names(row["text"]).address == address]
    end = (releases or rows)[-1]
    return Lock(loop, range(last + 1, end["pc"] + 1), end["block"])


def _runs_of(blocks: Sequence[int]) -> Iterator[range]:
    """Yield the runs of consecutive numbers.

    >>> list(_runs_of((2, 3, 7)))
    [range(2, 4), range(7, 8)]
    """
    for place, first in enumerate(blocks):
        if place == 0 or blocks[place - 1] != first - 1:
            last = first
            while last + 1 in blocks:
                last += 1
            yield range(first, last + 1)


def _repeats(text: str, written: set[str]) -> bool:
    """Return whether a load asks memory for one address again."""
    address = _names(text).address
    asks = AGAIN.match(text) or ASKS.match(text)
    return bool(asks) and (address is None or address[0] not in written)


def drop_polls(
    history: Iterable[tuple[int, int]], polls: Mapping[int, bool]
) -> list[tuple[int, int]]:
    """Return a history in which a warp asks each mbarrier once: how often it polls is chance.

    >>> drop_polls([(1, 1), (2, 3), (3, 1), (2, 1), (4, 1), (2, 1)], {2: True, 3: False})
    [(1, 1), (2, 1), (3, 1), (4, 1), (2, 1)]
    """
    kept, polled = list[tuple[int, int]](), set[int]()
    for block, times in history:
        if block not in polls:
            polled.clear()
        elif block in polled:
            continue
        else:
            polled.add(block)
            times = 1 if polls[block] else times
        kept.append((block, times))
    return kept
