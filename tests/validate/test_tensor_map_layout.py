"""Tensor maps have the bytes that NVIDIA's driver gives them, and the same ones are refused.

`tensor_map_layout.csv.gz` is a sample of 9,037 calls of cuTensorMapEncodeTiled (kind 0) and
cuTensorMapEncodeIm2col (kind 1) on an H100 with CUDA 13.0 (scripts/capture/tensor_map_layout.c):
each parameter alone through its range, then all at random; the status, and the first ten of
sixteen words, of which the others are 0.
"""

import csv
import ctypes
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from cutrace.tracer.program.build import make_builder
from cutrace.tracer.simt.tma.tensor_map import decode

WORDS = 10
ENCODE = """
import ctypes, json, sys
cuda = ctypes.CDLL(sys.argv[1] + "/libcuda.so.1")
room = (ctypes.c_uint64 * 32)()
start = ctypes.addressof(room) + -ctypes.addressof(room) % 128
found = []
for kind, type, rank, address, extents, strides, box, steps, layout, corners, sizes in json.load(
    sys.stdin
):
    wide = [(ctypes.c_uint64 * 5)(*each) for each in (extents, strides)]
    narrow = [(ctypes.c_uint32 * 5)(*each) for each in (box, steps)]
    sides = [(ctypes.c_int32 * 3)(*each) for each in corners]
    head = ctypes.c_void_p(start), type, rank, ctypes.c_void_p(address), *wide
    if kind == 0:
        status = cuda.cuTensorMapEncodeTiled(*head, *narrow, *layout)
    else:
        status = cuda.cuTensorMapEncodeIm2col(*head, *sides, *sizes, narrow[1], *layout)
    words = (ctypes.c_uint64 * 16).from_address(start)
    found.append((status, [*words] if status == 0 else []))
json.dump(found, sys.stdout)
"""
NOT_SUPPORTED = 801


def test_a_tensor_map_has_the_bytes_that_the_driver_gives_it() -> None:
    path = Path(__file__).with_name("tensor_map_layout.csv.gz")
    with gzip.open(path, "rt", newline="") as file:
        rows = [*csv.reader(file)][1:]
    calls: list[tuple[Any, ...]] = []
    wanted = []
    for row in rows:
        n = [int(each) for each in row[:36]]
        arrays = n[4:9], n[9:13], n[13:18], n[18:23]
        calls.append((*n[:4], *arrays, n[23:27], (n[27:30], n[30:33]), n[33:35]))
        wanted.append((n[23], n[35], [int(each, 16) for each in row[36:]]))
    done = subprocess.run(
        [sys.executable, "-c", ENCODE, str(make_builder().library)],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    compared = 0
    for call, expected, (own, own_words) in zip(calls, wanted, found, strict=True):
        interleave, status, words = expected
        if own == NOT_SUPPORTED:
            assert interleave, call
            continue
        assert own == status, call
        if status == 0:
            assert own_words == [*words, *(0,) * (16 - WORDS)], call
            map_ = decode(bytes((ctypes.c_uint64 * 16)(*own_words)))
            assert map_ is not None
            # all but the promotion and the last two words, which only describe the box
            own_bits = int.from_bytes(map_.encode(), "little")
            bits = int.from_bytes(bytes((ctypes.c_uint64 * 8)(*words[:8])), "little")
            assert own_bits == bits & ~(0b11 << 81), call
            compared += 1
    assert compared > 650
