"""`tensormap.replace` and `tensormap.cp_fenceproxy`: kernels that edit tensor maps."""

from ...ptx.kernel import Immediate, Instruction
from ..decode.decoder import Decoder, StepTable
from ..ops.lanes import LANES
from ..warp.program import Group, Step
from .tensor_map import BYTES, Bits
from .transfer import (
    Bytes,
    Lane,
    Site,
    as_shared,
    fetch_address,
    global_bytes,
    lanes_of,
    shared_bytes,
    site_of,
)

_TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12, 13, 14, 15)
"""CUtensorMapDataType by PTX's number of an element type (PTX ISA 9.7.9.28)."""

_EDITED = frozenset(
    {
        *("global_address", "elemtype", "rank", "interleave_layout", "swizzle_mode", "fill_mode"),
        *("swizzle_atomicity", "global_dim", "global_stride", "box_dim", "element_stride"),
    }
)
_LESS_ONE = frozenset({"global_dim", "box_dim", "element_stride"})
_OF_DIMENSIONS = _LESS_ONE | {"global_stride"}


def _decode_edit(decoder: Decoder, instruction: Instruction) -> Step:
    if "cp_fenceproxy" in instruction.modifiers:
        return _copy(decoder, instruction)
    return _replace(decoder, instruction)


def _map_at(lane: Lane, site: Site, address: int, space: str) -> Bytes:
    """Find the bytes of a map, in shared or global memory."""
    if space == "global" or (not space and as_shared(address, True) == address):
        return global_bytes(lane, site, address, BYTES, 64)
    return shared_bytes(lane, site, as_shared(address, not space), BYTES, 64)


def _replace(decoder: Decoder, instruction: Instruction) -> Step:
    field = next((m for m in instruction.modifiers if m in _EDITED), "")
    if not field or "im2col" in instruction.modifiers:
        raise decoder.refuse("cutrace does not know this field of a tensor map")
    operands, guard = list(instruction.operands), decoder.guard()
    address, site = fetch_address(decoder, operands.pop(0)), site_of(decoder, instruction)
    axis = 0
    if field in _OF_DIMENSIONS:
        dimension = operands.pop(0)
        if not isinstance(dimension, Immediate):
            raise decoder.refuse("expected the number of a dimension")
        axis = dimension.bits
    kind = "u64" if instruction.modifiers[-1] == "b64" else "u32"
    value = decoder.fetch(operands[0], kind)

    def replace(group: Group) -> None:
        frame = group.frame
        for lane in lanes_of(group, guard, [address(frame), value(frame)]):
            where, new = lane.values
            bytes_ = _map_at(lane, site, where, instruction.space)
            bits = Bits(int.from_bytes(bytes_.view.tobytes(), "little"))
            _put(bits, lane, site, field, axis, new)
            bytes_.view[:] = list(bits.value.to_bytes(BYTES, "little"))
            bytes_.mark()

    return replace


def _put(bits: Bits, lane: Lane, site: Site, field: str, axis: int, value: int) -> None:
    """Replace a field of a map by PTX's value for it: a rank is less one there, too."""
    if field == "elemtype":
        if value >= len(_TYPES):
            raise site.fault(lane, f"names element type {value}, which does not exist,", "map")
        bits.put_type(_TYPES[value])
    elif field == "global_stride":
        bits.put_stride(axis, value)
    else:
        bits.put(field, value - (field in _LESS_ONE), axis)


def _copy(decoder: Decoder, instruction: Instruction) -> Step:
    """`tensormap.cp_fenceproxy.global.shared::cta...`: a warp copies a map to global memory."""
    to, source = (fetch_address(decoder, operand) for operand in instruction.operands[:2])
    site, guard = site_of(decoder, instruction), decoder.guard()

    def copy(group: Group) -> None:
        frame = group.frame
        warps: set[int] = set()
        for lane in lanes_of(group, guard, [to(frame), source(frame)]):
            there, here = lane.values
            if lane.place // LANES in warps:
                continue
            warps.add(lane.place // LANES)
            target = global_bytes(lane, site, there, BYTES, 64)
            target.view[:] = shared_bytes(lane, site, here, BYTES, 64).view
            target.mark()

    return copy


STEPS: StepTable = {"tensormap": _decode_edit}
