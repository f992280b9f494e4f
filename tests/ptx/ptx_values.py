"""Operands for instructions: the edge cases of every type, and bits that look random.

The random bits come from PCG64's raw stream, which NumPy promises not to change.
"""

import itertools
import zlib
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ptx.ptx_case import bits_of, dtype_of

Values = NDArray[Any]

LANES = {0: 32, 1: 256, 2: 512, 3: 512}
"""Lanes of a case by the number of its sources; 512 for more."""

_F32 = """0 80000000 1 80000001 7fffff 807fffff 800000 80800000 3f800000 bf800000 3f800001 3f7fffff
40000000 3f000000 c0490fdb 4b000001 4effffff 4f000000 cf000000 5f000000 7f7fffff ff7fffff 7f800000
ff800000 7fc00000 7fffffff ff800001 ffc12345 3effffff 3fc00000 40200000 c2ffffff"""
_F64 = """0 8000000000000000 1 8000000000000001 fffffffffffff 10000000000000 8010000000000000
3ff0000000000000 bff0000000000000 3ff0000000000001 3fefffffffffffff 4000000000000000
3fe0000000000000 400921fb54442d18 41dfffffffc00000 41efffffffe00000 c1e0000000000000
43e0000000000000 43efffffffffffff c3e0000000000000 47efffffe0000000 47effffff0000000
36a0000000000000 3690000000000000 7fefffffffffffff ffefffffffffffff 7ff0000000000000
fff0000000000000 7ff8000000000000 fff8000000000123 7ff0000000000001 3ff8000000000000
4004000000000000 3810000000000000 380fffffffffffff 40efffe000000000 40f0000000000000"""
_F16 = """0 8000 1 8001 3ff 83ff 400 8400 3c00 bc00 3c01 3bff 4000 3800 4248 7800 7bff fbff 7c00
fc00 7e00 7fff fc01 7c55 3e00 4100 7ff7 fff7"""
_BF16 = """0 8000 1 8001 7f 807f 80 8080 3f80 bf80 3f81 3f7f 4000 3f00 4049 4f00 7f7f ff7f 7f80
ff80 7fc0 7fff ff81 7f95 3fc0 4020 7ff7 fff7"""
_PAIRED = {
    "f32": """80000000 800000 3f7fffff ff800000 7f800001 ffc12345 0 1 7fffff 80800000 3f800000
    3f800001 bf800000 7f7fffff 7f800000 7fffffff""",
    "f64": """8000000000000000 10000000000000 3fefffffffffffff fff0000000000000 7ff0000000000001
    fff8000000000123 0 1 fffffffffffff 8010000000000000 3ff0000000000000 3ff0000000000001
    bff0000000000000 7fefffffffffffff 7ff0000000000000 7ffa000000000000""",
    "f16": "8000 400 3bff fc00 7c01 fe55 0 1 3ff 8400 3c00 3c01 bc00 7bff 7c00 7fff",
    "bf16": "8000 80 3f7f ff80 7f81 ffd5 0 1 7f 8080 3f80 3f81 bf80 7f7f 7f80 7fff",
}
"""Numbers of which every pair meets; of the first six every three."""
_FLOATS = {"f32": _F32, "f64": _F64, "f16": _F16, "bf16": _BF16, "tf32": _F32}
_EXPONENT = {"f32": (23, 8), "f64": (52, 11), "f16": (10, 5), "bf16": (7, 8), "tf32": (23, 8)}
_PACKED = {"f16x2": "f16", "bf16x2": "bf16", "u16x2": "u16", "s16x2": "s16"}


def raw(seed: str, count: int) -> NDArray[np.uint64]:
    """Return `count` 64-bit words that depend on `seed` alone."""
    words: NDArray[np.uint64] = np.random.PCG64(zlib.crc32(seed.encode())).random_raw(count)
    return words


def edges(kind: str) -> list[int]:
    """Return the bit patterns of a type at which instructions change their mind."""
    if kind in _FLOATS:
        return [int(word, 16) for word in _FLOATS[kind].split()]
    if kind == "n":
        return [0, 1, 2, 5, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 127, 255, 256, 0x80000001]
    if kind == "lane":
        return list(range(32))
    if kind == "turn":
        return [0, 1, 2, 0xFFFFFFFF, 0xFFFFFFFE, 31, 32]
    bits = bits_of(kind)
    powers = [1 << k for k in (3, 7, 8, 15, 16, 24, 31, 32, 47, 62) if k < bits - 1]
    near = [0, 1, 2, 3, 5, 10, (1 << bits) - 1, (1 << bits) - 2, (1 << bits) - 7]
    middle = [1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1]
    return [*near, *middle, *powers, *(p - 1 for p in powers), 0x55 * ((1 << bits) // 255)]


@cache
def pool(kind: str, seed: str, count: int) -> Values:
    """Return `count` bit patterns of a type: a fifth of them edges, the rest random."""
    kind = "f32" if kind == "angle" else kind
    if kind.startswith("m_"):
        return matrix_pool(kind[2:], seed, count)
    if kind in _PACKED:
        low = pool(_PACKED[kind], seed + "low", count).astype(np.uint32)
        return low | pool(_PACKED[kind], seed + "high", count).astype(np.uint32) << np.uint32(16)
    if kind == "pred":
        return (raw(seed, count) & np.uint64(1)).astype(np.uint32)
    if kind == "b128":
        return np.stack([raw(seed, count), raw(seed + "high", count)], 1).view("V16")[:, 0]
    words, dice = raw(seed, count), raw(seed + "dice", count)
    special = np.array(edges(kind), dtype=np.uint64)
    values = _moderate(kind, words) if kind in _FLOATS else _shorter(kind, words, dice)
    chosen = special[(words >> np.uint64(13)) % np.uint64(len(special))]
    values = np.where(dice % np.uint64(5) == 0, chosen, values)
    return values.astype(dtype_of(kind))


def matrix_pool(kind: str, seed: str, count: int) -> Values:
    """Return elements of matrices: every warp has another range of magnitudes."""
    if kind.endswith("x2"):
        low, high = (matrix_pool(kind[:-2], seed + part, count) for part in ("low", "high"))
        return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
    if kind in ("e4m3", "e5m2"):
        return _matrix_octets(kind, seed, count)
    fraction, exponent = _EXPONENT[kind]
    words, warp = raw(seed, count), np.arange(count) // 32 % 8
    one = (1 << (exponent - 1)) - 1
    spread = np.array([0, 0, 0, 2, 5, 10, 2, 2])[warp]
    drawn = (words >> np.uint64(55) & np.uint64(255)).astype(np.int64) % (2 * spread + 1)
    biased = np.clip(one - 1 + drawn - spread, 0, 2 * one).astype(np.uint64)
    biased = np.where((warp == 6) & (drawn == 0), np.uint64(0), biased)
    keep = np.uint64((1 << fraction) - 1 | 1 << (fraction + exponent))
    small = ((words >> np.uint64(40)) % np.uint64(4)).astype(np.float32).view(np.uint32)
    shift = np.uint64(0 if kind in ("f32", "tf32") else 16)
    whole = small.astype(np.uint64) >> shift
    if kind == "f16":
        whole = small.view(np.float32).astype(np.float16).view(np.uint16).astype(np.uint64)
    values = np.where(warp == 0, whole, words & keep | biased << np.uint64(fraction))
    special = np.array(edges(kind), dtype=np.uint64)[words % np.uint64(len(edges(kind)))]
    values = np.where((warp == 7) & (words >> np.uint64(48) & np.uint64(63) == 0), special, values)
    return values.astype(dtype_of(kind))


def _matrix_octets(kind: str, seed: str, count: int) -> Values:
    """Return four 8-bit floats a word: exponents near 1, random bits in every eighth warp."""
    words, warp = raw(seed, count), np.arange(count) // 32 % 8
    fraction, one = (3, 7) if kind == "e4m3" else (2, 15)
    result = np.zeros(count, dtype=np.uint32)
    for place in range(4):
        octet = words >> np.uint64(16 * place)
        spread = np.array([0, 0, 1, 1, 3, 5, 2, 2])[warp].astype(np.uint64)
        drawn = (octet >> np.uint64(8)) % (2 * spread + np.uint64(1)) + np.uint64(one) - spread
        keep = octet & np.uint64(0x80 | (1 << fraction) - 1)
        value = np.where(warp == 7, octet & np.uint64(255), keep | drawn << np.uint64(fraction))
        result |= value.astype(np.uint32) << np.uint32(8 * place)
    return result


def _moderate(kind: str, words: Values) -> Values:
    """Bring half of the random bits to magnitudes near 1, where sums round and cancel."""
    fraction, exponent = _EXPONENT[kind]
    one = (1 << (exponent - 1)) - 1
    near = np.uint64(one - 3) + (words >> np.uint64(57) & np.uint64(7))
    keep = np.uint64((1 << fraction) - 1 | 1 << (fraction + exponent))
    moderate = words & keep | near << np.uint64(fraction)
    return np.where(words >> np.uint64(56) & np.uint64(1), moderate, words)


def _shorter(kind: str, words: Values, dice: Values) -> Values:
    """Cut half of the random integers to a random length."""
    if kind == "n":
        return words % np.uint64(70)
    if kind == "lane":
        return words % np.uint64(32)
    if kind == "turn":
        return (words % np.uint64(80) - np.uint64(40)) & np.uint64(0xFFFFFFFF)
    length = (dice >> np.uint64(20)) % np.uint64(bits_of(kind))
    return np.where(dice & np.uint64(64), words, words & ((np.uint64(1) << length) - np.uint64(1)))


def operands(sources: tuple[str, ...], lanes: int = 0) -> list[Values]:
    """Return an array of bit patterns a source: edges with edges first, then pools."""
    lanes = lanes or LANES.get(len(sources), 512)
    columns = [pool(k, f"{k} {n} of {len(sources)}", lanes).copy() for n, k in enumerate(sources)]
    if len(sources) == 1 and sources[0] not in _PACKED and sources[0] not in ("pred", "b128"):
        special = edges(sources[0])[:lanes]
        columns[0][: len(special)] = special
    if len(sources) == 1 and sources[0] == "angle":
        _spread_angles(columns[0])
    if len(sources) in (2, 3) and not {*_PACKED, "pred", "b128"} & {*sources}:
        for lane, together in enumerate(_combinations(sources)):
            for column, bits in zip(columns, together, strict=True):
                column[lane] = bits
    return columns


def _combinations(sources: tuple[str, ...]) -> Iterable[tuple[int, ...]]:
    """Yield edges with edges, as far as they are few enough."""
    if not {*sources} <= {*_PAIRED}:
        return itertools.product(*(edges(k)[:16] for k in sources)) if len(sources) == 2 else ()
    paired = [[int(word, 16) for word in _PAIRED[k].split()] for k in sources]
    return itertools.product(*(k[: 16 if len(sources) == 2 else 6] for k in paired))


def _spread_angles(column: Values) -> None:
    """Put numbers from -2 pi to 2 pi, and to 100 pi, behind the edges."""
    count = len(column)
    near = np.linspace(-6.28, 6.28, count // 2).astype(np.float32)
    column[count // 4 : count // 4 + len(near)] = near.view(np.uint32)
    far = np.linspace(-314, 314, count // 4).astype(np.float32)
    column[-len(far) :] = far.view(np.uint32)


def checksum(sources: tuple[str, ...]) -> int:
    """Return a number that changes when the operands do."""
    return zlib.crc32(b"".join(np.ascontiguousarray(s).tobytes() for s in operands(sources)))
