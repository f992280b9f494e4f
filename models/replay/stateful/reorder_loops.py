"""Loops of the reorder buffer, between the trace and the stages that keep state; for `jit/loop.py`
to compile.
"""

from typing import NamedTuple

from ....jit.structure import I64, Column, Struct
from ....jit.value import prefetch
from ..histogram.counting import (
    NOWHERE,
    AccessRows,
    Bounds,
    Facts,
    is_like,
    locate,
)
from ..histogram.hash_table import NONE, Table, find
from ..schedule.turns import STEP_BITS, TURN_BITS, Seating, Widths, key_of, place_of, warp_of

WORTH = 1 << 12
"""Rows from which on the compiled loops pay. A device with caches loads a compiler before."""
AHEAD = 24
"""Rows that are prefetched."""
SAMPLED = (1 << 32) - 1
"""The pattern of a texel row; its base is its number among all of them."""


class Times(NamedTuple):
    """When rows were issued, each (n,): the warp of each, the barriers that it has passed, and its
    instructions since the last of these.
    """

    warp: Column
    interval: Column
    since: Column


class Subscriptions(NamedTuple):
    """Per space, whether any stage subscribes to it; per block, its scope."""

    is_heard: Column
    scope: Column


class Seats(NamedTuple):
    """Per block: its wave, its slot and its SM. `rank` is the issue order of each seat, (seats,),
    `warps` those of a block. The widths of a key are 0 where rows have no sort key.
    """

    wave: I64
    slot: I64
    sm: I64
    rank: I64
    warps: int
    widths: Widths


class Head(Struct):
    """The number of rows that were buffered, and their lowest wave."""

    rows: int
    lowest: int


class Groups(NamedTuple):
    """Rows of one group are added up together. The key of a group is (site * zones + zone), and
    scope * 2 + mixed. `near` (scopes,) caches the groups of neighbouring rows.
    """

    table: Table
    near: I64


class Waiting(NamedTuple):
    """Buffered rows, each (n,). The key gives the issue order and the owner of a row. Without sort
    keys it is the interval and, in the last STEP_BITS, the instructions since; only then rows have
    a block and a warp.
    """

    key: Column
    base: Column
    pattern: Column
    group: Column
    block: Column
    warp: Column


def insert_rows(
    rows: AccessRows,
    times: Times,
    facts: Facts,
    subscriptions: Subscriptions,
    seats: Seats,
    bounds: Bounds,
    groups: Groups,
    head: Head,
    waiting: Waiting,
    begin: int,
) -> int:
    """Buffer rows from `begin` on; return the number of the first row that was not buffered.

    The loop stops at the end, or at a row whose group, base or key does not fit. Returns -1 - i if
    row i is in a space that its instruction cannot reach.
    """
    last, is_heard, group, near, widths = NOWHERE, 0, NONE, groups.near, seats.widths
    owner, wave, seat, sm, scope = NONE, 0, 0, 0, 0
    lowest, many, stop = head.lowest, head.rows, len(rows.pc)
    for row in range(begin, len(rows.pc)):
        if not is_like(rows, row, last):
            if rows.base[row] < bounds.low or rows.base[row] > bounds.high:
                stop = row
                break
            last = locate(rows, row, facts, bounds, last)
            if last.site < 0:
                return -1 - row
            is_heard, group = int(subscriptions.is_heard[last.space]), NONE
            for number in range(len(near)):
                near[number] = NONE
        if not is_heard:
            continue
        if rows.block[row] != owner:
            owner = rows.block[row]
            wave, sm, scope = seats.wave[owner], seats.sm[owner], subscriptions.scope[owner]
            seat, group = seats.slot[owner] * seats.warps, near[scope]
            lowest = min(lowest, wave)
        if group < 0:
            group = find_group(
                groups, last.site * len(facts.zone_end) + last.zone, scope, last.mixed
            )
            if group < 0:
                stop = row
                break
        since = times.since[row]
        if widths.turn:
            # the turn needs more bits than a narrow key has: the caller widens the buffer
            if since >> TURN_BITS + widths.turn:
                stop = row
                break
            rank = seats.rank[seat + times.warp[row]]
            waiting.key[many] = key_of(wave, times.interval[row], since, rank, sm, widths)
        else:
            waiting.key[many] = times.interval[row] << STEP_BITS | since
            waiting.block[many] = owner
            waiting.warp[many] = times.warp[row]
        waiting.base[many] = rows.base[row]
        waiting.pattern[many] = rows.pattern[row]
        waiting.group[many] = group
        many += 1
    head.rows, head.lowest = many, lowest
    return stop


def find_group(groups: Groups, place: int, scope: int, mixed: int) -> int:
    """Return the group of a row, or NONE where the table has no room for a new one."""
    if groups.near[scope] < 0:
        if groups.table.size.keys >= len(groups.table.first):
            return NONE
        groups.near[scope] = find(groups.table, place, scope * 2 + mixed)
    return int(groups.near[scope])


class Windows(NamedTuple):
    """Per group, (groups,): the kind of its rows, the first address of their space in the memory
    that caches see, and whether that is local memory, of `local_bytes` per thread.
    """

    kind: I64
    begin: I64
    is_local: Column
    local_bytes: int


class Places(NamedTuple):
    """The place of each block, and how a key gives it (`turns.place_of`). `unit` (places,) are the
    packed units of each place, in all scopes; `warps` are those of a block.
    """

    of_block: I64
    widths: Widths
    seating: Seating
    unit: Column
    warps: int


class Moves(NamedTuple):
    """The number of patterns, the period of the stages in front, and a multiple of the period that
    is added to the base of a distinct row.
    """

    patterns: int
    period: int
    lift: int


class Chosen(NamedTuple):
    """Rows in order, each (n,): the distinct row of each, its distance from that in bytes, and its
    group. A texel row has NONE as number, and its own number as shift.
    """

    number: Column
    shift: Column
    group: Column


def choose(
    order: I64,
    waiting: Waiting,
    places: Places,
    windows: Windows,
    table: Table,
    moves: Moves,
    chosen: Chosen,
    unit_of: Column,
) -> int:
    """Map rows, numbers of waiting ones in `order` (n,), to distinct rows, and find their units.

    The key of a distinct row is kind * patterns + pattern, and the base modulo the period. Returns
    the number of texel rows.
    """
    widths, seating, period = places.widths, places.seating, moves.period
    is_power, mask = period & (period - 1) == 0, period - 1
    group, kind, begin, is_local, sampled = NONE, NONE, 0, 0, 0
    pattern, phase, number = NONE, NONE, NONE
    for at in range(len(order)):
        row, later = order[at], order[min(at + AHEAD, len(order) - 1)]
        prefetch(waiting.key[later])
        key = waiting.key[row]
        place = (
            place_of(key, widths, seating) if widths.turn else places.of_block[waiting.block[row]]
        )
        unit_of[at] = places.unit[place]
        if waiting.group[row] != group:
            group = waiting.group[row]
            kind, begin = windows.kind[group], windows.begin[group]
            is_local = int(windows.is_local[group])
        base = waiting.base[row]
        chosen.group[at] = group
        if waiting.pattern[row] == SAMPLED:
            chosen.number[at] = NONE
            chosen.shift[at] = base
            sampled += 1
            continue
        residue = base & mask if is_power else base % period
        if kind * moves.patterns + waiting.pattern[row] != pattern or residue != phase:
            # adjacent rows, of several SMs at one step, are mostly the same distinct row
            pattern, phase = kind * moves.patterns + waiting.pattern[row], residue
            number = find(table, pattern, phase)
        chosen.number[at] = number
        shift = base - residue - moves.lift + begin
        if is_local:
            # a place counts SMs first, local memory lies by SM: block after block of each
            warp = warp_of(key, widths, seating) if widths.turn else waiting.warp[row]
            slot = place // seating.sms % seating.resident
            own = place % seating.sms * seating.resident + slot
            shift += (own * places.warps + warp) * windows.local_bytes
        chosen.shift[at] = shift
    return sampled
