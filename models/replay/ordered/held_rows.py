"""Rows of accesses between the trace and the stages that keep state: plain integers and sequences,
so that `compiled.py` can compile the loops.

- `rows`: (block, warp, interval, since, pc, space, base, pattern), each (n,): where `since` counts
  instructions behind the warp's last barrier, and `interval` the barriers before it.
- `named`, `sites`, `reach` and `zones`: as `count/counting.py` has them.
- `scopes`: for each block its scope. `heard`: for each space whether any stage hears of it.
- `groups`: (slots, keys, near): rows whose counts are added up together are a group, of the key
  ((site * zones + zone) * scopes + scope) * 2 + mixed. `slots` are places in `keys`, or NONE, twice
  as many; `near` (scopes,) are the groups of neighbouring rows.
- `seated`: (wave, slot, sm), each (blocks,), and when each seat has its turn, (seats,). `bits`
  are those of a key, as `schedule/turns.py` has it, and the warps of a block; all 0 but the last
  where rows are not sorted by keys.
- `told`: rows, named, sites, reach, zones, scopes, heard, seated and bits.
- `head`: how many groups there are, how many rows are held, and the lowest block of these.
- `held`: FIELDS of each row, each (n,). `keys` (n,): what each is sorted by; where that is no key,
  its interval and, in the last STEP_BITS, `since`.
"""

from typing import Any

from ....native.intrinsic import prefetch
from ..schedule.turns import STEP_BITS, key_of
from ..tally.counting import FAR, NONE, SPACE_SHIFT, SPACES, SPREAD, find_zone

FIELDS = ("block", "warp", "base", "pattern", "group")
MADE = ("number", "shift", "group")
GROUPS, HELD, LOWEST = 0, 1, 2
WORTH = 1 << 12
"""Rows from which on the compiled loops pay; caches, if a device has any, load a compiler before so
many have come."""
AHEAD = 24
"""Rows whose places are asked for before they are looked at."""
SAMPLED = (1 << 32) - 1
"""The pattern of a row of texels; its base is its number among all of them."""


def hold(told: Any, groups: Any, head: Any, held: Any, keys: Any, begin: int) -> int:
    """Hold rows from number `begin` on; return the number of the first that was not looked at.

    That is one for whose group there is no more room, or the end. -1 - i if row i lies in a space
    that its instruction cannot reach.
    """
    rows, (first, shapes), sites, reach, zones, scopes, heard, seated, bits = told
    blocks, warps, intervals, sinces, pcs, spaces, bases, patterns = rows
    kinds, widths = sites
    lows, highs = reach
    near = groups[2]
    waves, slots, sms, turns = seated
    seat_of, wave, seat, sm = NONE, 0, 0, 0
    pc, space, pattern, site, mixed = NONE, NONE, NONE, 0, 0
    zone, start, end, lowest, highest = 0, FAR, FAR, FAR, -FAR
    least, many = head[LOWEST], head[HELD]
    for row in range(begin, len(pcs)):
        base, block = bases[row], blocks[row]
        if not (
            pcs[row] == pc
            and spaces[row] == space
            and patterns[row] == pattern
            and lowest <= base <= highest
        ):
            pc, space, pattern = pcs[row], spaces[row], patterns[row]
            site, shape = pc * SPACES + space, shapes[pattern - first]
            if space >= SPACES or kinds[site] < 0:
                return -1 - row
            window = space << SPACE_SHIFT
            if window + base < start or window + base >= end:
                zone = find_zone(zones, window + base)
                start, end = -FAR if zone == 0 else zones[zone - 1], zones[zone]
            low, high = start - window, end - window
            before, behind = lows[shape], highs[shape] + widths[site]
            mixed = int(base + before < low or base + behind > high)
            lowest, highest = FAR, -FAR
            if not mixed:
                lowest, highest = low - min(0, before), high - max(1, behind)
            for scope in range(len(near)):
                near[scope] = NONE
        if heard[space]:
            scope = scopes[block]
            if near[scope] < 0:
                if 2 * head[GROUPS] >= len(groups[0]):
                    head[HELD], head[LOWEST] = many, least
                    return row
                key = ((site * len(zones) + zone) * len(near) + scope) * 2 + mixed
                near[scope] = find_group(groups, head, key)
            least = min(least, block)
            held[0][many] = block
            held[1][many] = warps[row]
            held[2][many] = base
            held[3][many] = pattern
            held[4][many] = near[scope]
            if bits[1]:
                if block != seat_of:
                    seat_of, wave, sm = block, waves[block], sms[block]
                    seat = slots[block] * bits[4]
                turn = turns[seat + warps[row]]
                keys[many] = key_of(wave, intervals[row], sinces[row], turn, sm, bits)
            else:
                keys[many] = intervals[row] << STEP_BITS | sinces[row]
            many += 1
    head[HELD], head[LOWEST] = many, least
    return len(pcs)


def find_group(groups: Any, head: Any, key: int) -> int:
    """Return the number of a group, the next one if it is new."""
    slots, keys, _ = groups
    mask = len(slots) - 1
    slot = (key * SPREAD >> 7) & mask
    while slots[slot] >= 0:
        if keys[slots[slot]] == key:
            return slots[slot]  # type: ignore[no-any-return]
        slot = (slot + 1) & mask
    number = head[GROUPS]
    slots[slot] = number
    keys[number] = key
    head[GROUPS] = number + 1
    return number  # type: ignore[no-any-return]


def choose(
    order: Any, held: Any, seats: Any, units: Any, windows: Any, table: Any, moves: Any, made: Any
) -> tuple[int, int]:
    """Tell of rows in order which distinct one each is, and how far from that it lies.

    - `order` (n,): numbers of held rows. `held`: as above.
    - `seats`: (sm, slot, resident, warps, bytes): of each block its SM and its place there; how
      many an SM holds, the warps of a block, and the local memory of a thread.
    - `units` (scopes, blocks): the unit of each block, in each scope.
    - `windows`: (kind, window, is_local), each (groups,): the kind of a group's rows, where their
      space begins in the memory that caches see, and whether it is local.
    - `table`: (slots, found, head): distinct rows by kind, pattern and base modulo the period,
      `found` (3, distinct); `head` is how many there are.
    - `moves`: (period, lift): a multiple of the period that a distinct row's base is moved by.
    - `made`: MADE, each (n,), and the units of all scopes, (scopes, n). Rows of texels have NONE as
      number, and their own as shift.

    Returns how many distinct rows there are, and how many rows of texels.
    """
    blocks, warps, bases, patterns, groups = held
    sms, slots_of, resident, many_warps, local_bytes = seats
    kinds, begins, are_local = windows
    slots, found, head = table
    period, lift = moves
    numbers, shifts, whose, unit_of = made
    is_power, mask = period & (period - 1) == 0, period - 1
    kind, pattern, phase, number, sampled = NONE, NONE, NONE, NONE, 0
    for place in range(len(order)):
        row, later = order[place], order[min(place + AHEAD, len(order) - 1)]
        prefetch(bases[later])
        prefetch(blocks[later])
        base, block, group = bases[row], blocks[row], groups[row]
        whose[place] = group
        for scope in range(len(units)):
            unit_of[scope, place] = units[scope, block]
        if patterns[row] == SAMPLED:
            numbers[place] = NONE
            shifts[place] = base
            sampled += 1
            continue
        rest = base & mask if is_power else base % period
        if kinds[group] != kind or patterns[row] != pattern or rest != phase:
            kind, pattern, phase = kinds[group], patterns[row], rest
            number = find_row(slots, found, head, kind, pattern, phase)
        window = begins[group]
        if are_local[group]:
            seat = sms[block] * resident + slots_of[block]
            window += (seat * many_warps + warps[row]) * local_bytes
        numbers[place] = number
        shifts[place] = base - phase - lift + window
    return head[0], sampled


def find_row(slots: Any, found: Any, head: Any, kind: int, pattern: int, phase: int) -> int:
    """Return the number of a distinct row, the next one if it is new."""
    mask, many = len(slots) - 1, head[0]
    slot = (((pattern * 31 + kind) * 4099 + phase) * SPREAD >> 7) & mask
    while slots[slot] >= 0:
        number = slots[slot]
        if found[1, number] == pattern and found[2, number] == phase and found[0, number] == kind:
            return number  # type: ignore[no-any-return]
        slot = (slot + 1) & mask
    slots[slot] = many
    found[0, many] = kind
    found[1, many] = pattern
    found[2, many] = phase
    head[0] = many + 1
    return many  # type: ignore[no-any-return]
