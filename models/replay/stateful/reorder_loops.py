"""Loops of the reorder buffer, between the trace and the stages that keep state.

They work on plain integers and sequences, so that `jit/loop.py` can compile them.

- `rows`: (block, warp, interval, since, pc, space, base, pattern), each (n,). `interval` counts the
  barriers that the warp has passed, `since` its instructions since the last of these.
- `named`, `sites`, `reach` and `zones`: as in `histogram/counting.py`.
- `scopes`: the scope per block. `heard`: per space, whether any stage subscribes to it.
- `groups`: (slots, keys, near). Rows of one group are added up together; the key of a group is
  ((site * zones + zone) * scopes + scope) * 2 + mixed. `slots` is an open-addressing hash table of
  indices in `keys`, or NONE, twice as long. `near` (scopes,) caches the groups of neighbouring
  rows.
- `seated`: (wave, slot, sm), each (blocks,), and the issue order of each seat, (seats,). `bits` are
  the field widths of a sort key, as in `schedule/turns.py`, and the warps per block; all but the
  last are 0 where rows have no sort key.
- `bounds`: the lowest and the highest base that a record can hold.
- `inputs`: rows, named, sites, reach, zones, scopes, heard, seated, bits and bounds.
- `head`: the number of groups, the number of buffered rows, and their lowest wave.
- `columns`: FIELDS of each buffered row, each (n,). The key gives the issue order and the owner of
  a row. Without sort keys it is the interval and, in the last STEP_BITS, `since`; only then rows
  have a block and a warp.
"""

from typing import Any

from ....jit.value import prefetch
from ..histogram.counting import FAR, NONE, SPACE_SHIFT, SPACES, SPREAD, find_zone
from ..schedule.turns import STEP_BITS, TURN_BITS, key_of, place_of, warp_of

FIELDS = ("key", "base", "pattern", "group", "block", "warp")
OUT_FIELDS = ("number", "shift", "group")
GROUPS, ROW_COUNT, LOWEST = 0, 1, 2
WORTH = 1 << 12
"""Rows from which on the compiled loops pay. A device with caches loads a compiler before."""
AHEAD = 24
"""Rows that are prefetched."""
MIXED = 31
"""Bits of a key's hash, with the higher bits mixed in."""
SAMPLED = (1 << 32) - 1
"""The pattern of a texel row; its base is its number among all of them."""


def insert_rows(inputs: Any, groups: Any, head: Any, columns: Any, begin: int) -> int:
    """Buffer rows from `begin` on; return the number of the first row that was not buffered.

    The loop stops at the end, or at a row whose group, base or key does not fit. Returns -1 - i if
    row i is in a space that its instruction cannot reach.
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
        # Adjacent rows mostly share pc, space and pattern. Then site, zone and `mixed` are those of
        # the last row while the base stays within [lowest, highest]: there all lanes are inside
        # the zone. A mixed row leaves an empty range, so that the next row is looked up again.
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
                # the turn needs more bits than a narrow key has: the caller widens the buffer
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
    """Return the number of a group; append a new one."""
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
    """Map rows in order to distinct rows, each with its distance from that.

    - `order` (n,): numbers of buffered rows. `columns`: as above.
    - `seats`: (place, bits, seating, warps, bytes): the place of each block, the key's field widths
      and `seating` (`turns.place_of`), the warps per block, and the local memory per thread in
      bytes.
    - `units`: the packed units of each place, in all scopes.
    - `windows`: (kind, window, is_local), each (groups,): the kind of a group's rows, the first
      address of their space in the memory that caches see, and whether it is local.
    - `table`: (slots, found, head): the hash table of distinct rows; the key of each is (kind *
      patterns + pattern) * period + base modulo the period, (distinct,). `head` is their number.
    - `moves`: (patterns, period, lift): the lift is a multiple of the period, added to the base of
      a distinct row.
    - `outputs`: OUT_FIELDS, each (n,), and units, (n,). A texel row has NONE as number, and its own
      number as shift.

    Returns the number of distinct rows, and the number of texel rows.
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
    """Return the number of a distinct row; append a new one."""
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
