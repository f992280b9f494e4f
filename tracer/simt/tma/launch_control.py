"""`clusterlaunchcontrol`: requests to take over a cluster that has not begun (PTX ISA 9.7.13.18).

The blocks of a wave have all begun, so no cluster is left to take over: each request fails, one of
the answers that the ISA allows, and every block of the grid runs. The answer completes at the
mbarrier when it is requested. Its 16 bytes are opaque: the first block's coordinates, then 1 if a
cluster was cancelled.
"""

import numpy as np

from ...ptx.kernel import Instruction
from ..decode.address import elements
from ..decode.decoder import Decoder, StepTable
from ..ops.lanes import Array
from ..warp.program import Group, Step
from .transfer import Lane, Site, as_shared, complete, fetch_address, step_of_lanes, targets

ANSWER = 16
"""Bytes of an answer."""

_CANCELLED = 3
"""The word of an answer that tells whether a cluster was cancelled."""

_PLACES = {"get_first_ctaid::x": 0, "get_first_ctaid::y": 1, "get_first_ctaid::z": 2}


def _decode_control(decoder: Decoder, instruction: Instruction) -> Step:
    if "try_cancel" in instruction.modifiers:
        return _request(decoder, instruction)
    return _read(decoder, instruction)


def _request(decoder: Decoder, instruction: Instruction) -> Step:
    to_all = "multicast::cluster::all" in instruction.modifiers
    is_generic = not instruction.space

    def request(lane: Lane, site: Site, to: int, barrier: int) -> None:
        there, word_at = (as_shared(address, is_generic) for address in (to, barrier))
        mask = (1 << lane.group.wave.program.launch.blocks_a_cluster) - 1 if to_all else 0
        for target, word in targets(lane, site, there, word_at, mask, ANSWER):
            target.view[:] = 0
            target.mark()
            complete(word, ANSWER)

    fetches = [fetch_address(decoder, operand) for operand in instruction.operands]
    return step_of_lanes(decoder, instruction, fetches, request)


def _read(decoder: Decoder, instruction: Instruction) -> Step:
    to, answer = instruction.operands
    fetch, modifiers = decoder.fetch(answer, "b128"), set(instruction.modifiers)

    def word(frame: list[Array], number: int) -> Array:
        words = np.ascontiguousarray(fetch(frame)).view(np.uint32)
        return np.ascontiguousarray(words.reshape(*fetch(frame).shape, 4)[..., number])

    if "is_canceled" in modifiers:
        holds = decoder.store(to, "pred")
        return lambda group: holds(group.frame, word(group.frame, _CANCELLED) != 0)
    places = [_PLACES[m] for m in instruction.modifiers if m in _PLACES] or [0, 1, 2, _CANCELLED]
    parts = zip(places, elements(to), strict=True)
    stores = [(number, decoder.store(element, "b32")) for number, element in parts]

    def read(group: Group) -> None:
        values = [(store, word(group.frame, number)) for number, store in stores]
        for store, value in values:
            store(group.frame, value)

    return read


STEPS: StepTable = {"clusterlaunchcontrol": _decode_control}
