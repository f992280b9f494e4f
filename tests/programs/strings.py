import hashlib
import zlib
from fractions import Fraction

import numpy as np
from program import Program


def run(program: Program) -> None:
    search(program)
    digests(program)
    numbers(program)


def failure_table(pattern: bytes) -> list[int]:
    table = [0] * len(pattern)
    for i in range(1, len(pattern)):
        k = table[i - 1]
        while k and pattern[i] != pattern[k]:
            k = table[k - 1]
        table[i] = k + (pattern[i] == pattern[k])
    return table


def search(program: Program) -> None:
    text = bytes(program.integers(97, 99, 1000, np.uint8))
    pattern = b"abaab"
    expected = [text[i : i + 5] == pattern for i in range(996)]
    device = program.to_device(np.frombuffer(text, np.int8))
    hits, wanted = program.zeros(996, np.int32), program.to_device(np.frombuffer(pattern, np.int8))
    program.launch("naive_search", 8, 128, hits, device, 1000, wanted, 5)
    program.same(hits, expected)

    program.write("needle", np.frombuffer(pattern.ljust(32, b"\0"), np.int8))
    program.write("failure", np.array(failure_table(pattern) + [0] * 27, np.int32))
    counts = program.zeros(64, np.int32)
    program.launch("knuth_morris_pratt", 2, 32, counts, device, 1000, 5, 20)
    pieces = np.zeros(1280, int)
    pieces[:996] = expected
    program.same(counts, pieces.reshape(64, 20).sum(axis=1))


def primes(count: int) -> list[int]:
    return [n for n in range(2, 400) if all(n % d for d in range(2, n))][:count]


def cube_root_bits(n: int) -> int:
    """The first 32 bits of the fraction of a cube root."""
    root = round(float(Fraction(n) ** Fraction(1, 3)) * 2**32)
    while root**3 > n << 96:
        root -= 1
    while (root + 1) ** 3 <= n << 96:
        root += 1
    return root % 2**32


def digests(program: Program) -> None:
    messages = program.integers(0, 256, (64, 32), np.uint8)
    device, crcs = program.to_device(messages), program.zeros(64, np.uint32)
    program.launch("crc32", 2, 32, crcs, device, 32)
    program.same(crcs, [zlib.crc32(bytes(m)) for m in messages])

    program.write("round_constants", np.array([cube_root_bits(p) for p in primes(64)], np.uint32))
    out = program.zeros((64, 8), np.uint32)
    program.launch("sha256", 2, 32, out, program.to_device(messages.view(np.uint32)))
    hashes = b"".join(hashlib.sha256(bytes(m)).digest() for m in messages)
    program.same(out, np.frombuffer(hashes, ">u4"))


def numbers(program: Program) -> None:
    written = [int(v) for v in program.integers(-(10**15), 10**15, 90, np.int64)]
    lines = [str(v >> k % 40) for k, v in enumerate(written)]
    expected = [int(line) for line in lines]
    lines[5], lines[17], lines[60], lines[61] = "12x4", "", "--3", "-"
    for bad in (5, 17, 60, 61):
        expected[bad] = -1
    text = "".join(f"{line}\n" for line in lines)
    starts = np.cumsum([0, *(len(line) + 1 for line in lines)])[:-1].astype(np.int32)
    values = program.zeros(90, np.int64)
    sent = program.to_device(np.frombuffer(text.encode(), np.int8)), program.to_device(starts)
    program.launch("read_numbers", 3, 32, values, *sent, 90)
    program.same(values, expected)
