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
- `bounds`: the lowest and the highest base that there is room for.
- `told`: rows, named, sites, reach, zones, scopes, heard, seated, bits and bounds.
- `head`: how many groups there are, how many rows are held, and the lowest wave of these.
- `held`: FIELDS of each row, each (n,). Its key is what it is sorted by, and tells whose it is.
  Where no key does, it is its interval and, in the last STEP_BITS, `since`; only then rows have a
  block and a warp.
"""

from typing import Any

from ....jit.value import prefetch
from ..histogram.counting import FAR, NONE, SPACE_SHIFT, SPACES, SPREAD, find_zone
from ..schedule.turns import STEP_BITS, TURN_BITS, key_of, place_of, warp_of

FIELDS = ("key", "base", "pattern", "group", "block", "warp")
OUT_FIELDS = ("number", "shift", "group")
GROUPS, ROW_COUNT, LOWEST = 0, 1, 2
WORTH = 1 << 12
"""Rows from which on the compiled loops pay; caches, if a device has any, load a compiler before so
many have come."""
AHEAD = 24
"""Rows whose places are asked for before they are looked at."""
MIXED = 31
"""Bits of a key that it is found by, with those above mixed in."""
SAMPLED = (1 << 32) - 1
"""The pattern of a row of texels; its base is its number among all of them."""


def insert_rows(inputs: Any, groups: Any, head: Any, columns: Any, begin: int) -> int:
    """Hold rows from number `begin` on; return the number of the first that was not looked at.

    That is one for whose group, base or key there is no room, or the end. -1 - i if row i lies in a
    space that its instruction cannot reach.
    """
    rows, (first, shapes), sites, reach, zones, scopes, heard, seated, bits, bounds = inputs
    blocks, warps, intervals, sinces, pcs, spaces, bases, patterns = rows
    kinds, widths = sites
    lows, highs = reach
    keys, bases_held, patterns_held, groups_held, blocks_held, warps_held = columns
    near = groups[2]
    waves, slots, sms, ranks = seated
    seat_of, wave, seat, sm, scope, group = NONE, 0, 0, 0, 0, NONE
    pc, space, pattern, site, mixed, is_heard = NONE, NONE, NONE, 0, 0, 0
    zone, start, end, lowest, highest = 0, FAR, FAR, FAR, -FAR
    least, many = head[LOWEST], head[ROW_COUNT]
    for row in range(begin, len(pcs)):
        base, block = bases[row], blocks[row]
        if not (
            pcs[row] == pc
            and spaces[row] == space
            and patterns[row] == pattern
            and lowest <= base <= highest
        ):
            if base < bounds[0] or base > bounds[1]:
                head[ROW_COUNT], head[LOWEST] = many, least
                return row
            pc, space, pattern = pcs[row], spaces[row], patterns[row]
            site, shape = pc * SPACES + space, shapes[pattern - first]
            if space >= SPACES or kinds[site] < 0:
                return -1 - row
            window = space << SPACE_SHIFT
            if window + base < start or window + base >= end:
                zone = find_zone(zones, window + base)
                start, end = -FAR if zone == 0 else zones[zone - 1], zones[zone]
            low, high = start - window, end - window
            before, reach_end = lows[shape], highs[shape] + widths[site]
            mixed = int(base + before < low or base + reach_end > high)
            lowest, highest = FAR, -FAR
            if not mixed:
                lowest = max(bounds[0], low - min(0, before))
                highest = min(bounds[1], high - max(1, reach_end))
            is_heard, group = int(heard[space]), NONE
            for number in range(len(near)):
                near[number] = NONE
        if is_heard:
            if block != seat_of:
                seat_of, wave, sm, scope = block, waves[block], sms[block], scopes[block]
                seat, group = slots[block] * bits[4], near[scope]
                least = min(least, wave)
            if group < 0:
                if near[scope] < 0:
                    if 2 * head[GROUPS] >= len(groups[0]):
                        head[ROW_COUNT], head[LOWEST] = many, least
                        return row
                    key = ((site * len(zones) + zone) * len(near) + scope) * 2 + mixed
                    near[scope] = find_group(groups, head, key)
                group = near[scope]
            if bits[1]:
                if sinces[row] >> TURN_BITS + bits[1]:
                    head[ROW_COUNT], head[LOWEST] = many, least
                    return row
                rank = ranks[seat + warps[row]]
                keys[many] = key_of(wave, intervals[row], sinces[row], rank, sm, bits)
            else:
                keys[many] = intervals[row] << STEP_BITS | sinces[row]
                blocks_held[many] = block
                warps_held[many] = warps[row]
            bases_held[many] = base
            patterns_held[many] = pattern
            groups_held[many] = group
            many += 1
    head[ROW_COUNT], head[LOWEST] = many, least
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
    order: Any,
    columns: Any,
    seats: Any,
    units: Any,
    windows: Any,
    table: Any,
    moves: Any,
    outputs: Any,
) -> tuple[int, int]:
    """Tell of rows in order which distinct one each is, and how far from that it lies.

    - `order` (n,): numbers of held rows. `columns`: as above.
    - `seats`: (place, bits, seating, warps, bytes): of each block its place, as keys have it, and
      how they tell that (`turns.place_of`); the warps of a block, and the local memory of a thread.
    - `units`: of each place what it is in, in all scopes.
    - `windows`: (kind, window, is_local), each (groups,): the kind of a group's rows, where their
      space begins in the memory that caches see, and whether it is local.
    - `table`: (slots, found, head): distinct rows, each (kind * patterns + pattern) * period + base
      modulo the period, (distinct,); `head` is how many there are.
    - `moves`: (patterns, period, lift): the last is a multiple of the period that a distinct row's
      base is moved by.
    - `outputs`: MADE, each (n,), and units, (n,). Rows of texels have NONE as number, and their own
      as shift.

    Returns how many distinct rows there are, and how many rows of texels.
    """
    keys, bases, patterns, groups, blocks, warps = columns
    places, bits, seating, many_warps, local_bytes = seats
    kinds, begins, are_local = windows
    slots, distinct_keys, head = table
    many, period, lift = moves
    numbers, shifts, group_of, unit_of = outputs
    is_power, mask = period & (period - 1) == 0, period - 1
    group, kind, begin, is_local, sampled = NONE, NONE, 0, 0, 0
    for place in range(len(order)):
        row, later = order[place], order[min(place + AHEAD, len(order) - 1)]
        prefetch(keys[later])
        seat = place_of(keys[row], bits, seating) if bits[1] else places[blocks[row]]
        unit_of[place] = units[seat]
        if groups[row] != group:
            group = groups[row]
            kind, begin, is_local = kinds[group] * many, begins[group], int(are_local[group])
        base = bases[row]
        group_of[place] = group
        if patterns[row] == SAMPLED:
            numbers[place] = NONE
            shifts[place] = base
            sampled += 1
            continue
        residue = base & mask if is_power else base % period
        numbers[place] = find_row(
            slots, distinct_keys, head, (kind + patterns[row]) * period + residue
        )
        shift = base - residue - lift + begin
        if is_local:
            warp = warp_of(keys[row], bits, seating) if bits[1] else warps[row]
            slot = seat // seating[3] % seating[2]
            own = seat % seating[3] * seating[2] + slot
            shift += (own * many_warps + warp) * local_bytes
        shifts[place] = shift
    return head[0], sampled


def find_row(slots: Any, distinct_keys: Any, head: Any, key: int) -> int:
    """Return the number of a distinct row, the next one if it is new."""
    mask = len(slots) - 1
    slot = ((key ^ key >> MIXED) & (1 << MIXED) - 1) * SPREAD >> 7 & mask
    while slots[slot] >= 0:
        if distinct_keys[slots[slot]] == key:
            return slots[slot]  # type: ignore[no-any-return]
        slot = (slot + 1) & mask
    number = head[0]
    slots[slot] = number
    distinct_keys[number] = key
    head[0] = number + 1
    return number  # type: ignore[no-any-return]
