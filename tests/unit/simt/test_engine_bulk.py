"""Bulk copies: bytes, boxes of tensors and reductions, told to an mbarrier when they have come."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.tracer.session.array import DeviceArray
from cutrace.tracer.simt.tma.tensor_map import TensorMap
from cutrace.tracer.simt.tma.transfer import pieces_of, rows_of
from cutrace.traces.reader import read_trace
from cutrace.traces.verify import verify

HEAD = """typedef unsigned long long u64; typedef unsigned u32;
struct alignas(64) Map { char bytes[128]; };
__device__ u32 sh(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void init(u64 *b, u32 n)
{ asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(sh(b)), "r"(n) : "memory"); }
__device__ void expect(u64 *b, u32 bytes)
{ asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(sh(b)), "r"(bytes) : "memory"); }
__device__ void await(u64 *b, u32 parity)
{ asm volatile("{ .reg .pred p; A: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
               " @!p bra A; }" :: "r"(sh(b)), "r"(parity) : "memory"); }
__device__ void sync()
{ asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory"); }
"""


def launch(body: str, configuration: tuple[Any, ...], *arguments: Any) -> list[NDArray[Any]]:
    """Run `k`, whose parameters `body` begins with; return the arrays among the arguments.

    A TensorMap among them has the place of the array that follows as its address.
    """
    with cutrace.Session() as gpu:
        module = gpu.compile(f'{HEAD}extern "C" __global__ void {body}', arch="compute_90a")
        devices = [gpu.to_device(a) if isinstance(a, np.ndarray) else a for a in arguments]
        given = [
            _placed(a, devices[k + 1]) if isinstance(a, TensorMap) else d
            for k, (a, d) in enumerate(zip(arguments, devices, strict=True))
        ]
        module.get_function("k")[configuration](*given)
        return [d.copy_to_host() for d in devices if isinstance(d, DeviceArray)]


def _placed(tensor: TensorMap, array: DeviceArray) -> bytes:
    return replace(tensor, address=array.address).encode()


def test_bytes_come_to_shared_memory_and_go_to_global_memory() -> None:
    body = """k(const int *in, int *out) {
        __shared__ alignas(16) int box[64];
        __shared__ u64 gate;
        if (threadIdx.x == 0) {
            init(&gate, 1);
            expect(&gate, 256);
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1], %2, [%3];"
                         :: "r"(sh(box)), "l"(in), "r"(256), "r"(sh(&gate)) : "memory");
        }
        __syncthreads();
        await(&gate, 0);
        box[threadIdx.x] *= 3;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                         "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
                         :: "l"(out), "r"(sh(box)), "r"(240) : "memory");
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 "
                         "[%0], [%1], %2;"
                         :: "l"(out + 4), "r"(sh(box)), "r"(16) : "memory");
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        }
    }"""
    values = np.arange(64, dtype=np.int32)
    _, out = launch(body, (1, 64), values, np.zeros(64, np.int32))
    wanted = 3 * values
    wanted[60:] = 0
    wanted[4:8] += 3 * values[:4]
    assert out.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("kind", "dtype", "operation"),
    [
        ("add.f32", np.float32, np.add),
        ("add.f64", np.float64, np.add),
        ("add.noftz.f16", np.float16, np.add),
        ("min.s32", np.int32, np.minimum),
        ("max.u64", np.uint64, np.maximum),
        ("xor.b32", np.uint32, np.bitwise_xor),
        ("max.f16", np.float16, np.maximum),
    ],
)
def test_reductions_update_each_element(kind, dtype, operation) -> None:  # type: ignore[no-untyped-def]
    body = f"""k(const u64 *in, u64 *out) {{
        __shared__ alignas(16) u64 box[8];
        if (threadIdx.x < 8) box[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.{kind} [%0], [%1], 64;"
                         :: "l"(out), "r"(sh(box)) : "memory");
    }}"""
    size = 64 // np.dtype(dtype).itemsize
    one = np.arange(size).astype(dtype)
    other = (np.arange(size)[::-1] * 3).astype(dtype)
    _, out = launch(body, (1, 32), one.view(np.uint64), other.view(np.uint64))
    assert out.view(dtype).tolist() == operation(one, other).tolist()


def test_a_block_sends_to_the_next_one_of_its_cluster_and_to_all_at_once() -> None:
    body = """__cluster_dims__(4, 1, 1) k(const int *in, int *out) {
        __shared__ alignas(16) int from[4], to[4], all[4], words[4];
        __shared__ u64 gate, told;
        u32 rank, there, gate_there, word, told_there;
        asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
        if (threadIdx.x < 4) from[threadIdx.x] = 10 * rank + threadIdx.x;
        if (threadIdx.x == 0) {
            init(&gate, 1); init(&told, 1); expect(&gate, 32); expect(&told, 16);
        }
        sync();
        u32 next = (rank + 1) % 4;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(sh(to)), "r"(next));
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(gate_there) : "r"(sh(&gate)), "r"(next));
        asm("mapa.shared::cluster.u32 %0, %1, %2;"
            : "=r"(word) : "r"(sh(words + threadIdx.x % 4)), "r"(next));
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(told_there) : "r"(sh(&told)), "r"(next));
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                         "[%0], [%1], 16, [%2];"
                         :: "r"(there), "r"(sh(from)), "r"(gate_there) : "memory");
            if (rank == 2)
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                             ".multicast::cluster [%0], [%1], 16, [%2], %3;"
                             :: "r"(sh(all)), "l"(in), "r"(sh(&gate)), "h"((short)0xf) : "memory");
        }
        if (threadIdx.x < 4)
            asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 "
                         "[%0], %1, [%2];"
                         :: "r"(word), "r"(100 * rank + threadIdx.x), "r"(told_there) : "memory");
        await(&gate, 0);
        await(&told, 0);
        if (threadIdx.x < 4) {
            out[12 * rank + threadIdx.x] = to[threadIdx.x];
            out[12 * rank + 4 + threadIdx.x] = all[threadIdx.x];
            out[12 * rank + 8 + threadIdx.x] = words[threadIdx.x];
        }
        sync();
    }"""
    given = np.array([7, 8, 9, 11], np.int32)
    _, out = launch(body, (4, 32), given, np.zeros((4, 12), np.int32))
    for rank in range(4):
        before = (rank + 3) % 4
        sent = [10 * before + t for t in range(4)]
        words = [100 * before + t for t in range(4)]
        assert out[rank].tolist() == [*sent, *given.tolist(), *words]


LOAD = """k(const __grid_constant__ Map map, const {c} *in, {c} *out, int x, int y) {{
    extern __shared__ __align__(1024) {c} box[];
    __shared__ u64 gate;
    if (threadIdx.x == 0) {{
        init(&gate, 1);
        expect(&gate, {size});
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {{%2, %3}}], [%4];"
                     :: "r"(sh(box)), "l"(&map), "r"(x), "r"(y), "r"(sh(&gate)) : "memory");
    }}
    __syncthreads();
    await(&gate, 0);
    for (int i = threadIdx.x; i < {size} / sizeof({c}); i += blockDim.x) out[i] = box[i];
}}"""


@pytest.mark.parametrize("swizzle", [0, 1, 2, 3])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (4, 3), (-4, -2), (36, 17)])
def test_a_box_lies_swizzled_in_shared_memory_and_zeros_are_out_of_bounds(
    swizzle: int, x: int, y: int
) -> None:
    width, rows = (8, 8, 16, 32)[swizzle], 16
    array = np.arange(20 * 40, dtype=np.float32).reshape(20, 40) + 1
    tensor = TensorMap(0, 0, 7, (40, 20), (160,), (width, rows), (1, 1), swizzle)
    size = 4 * width * rows
    body = LOAD.format(c="float", size=size)
    _, out = launch(
        body, (1, 32, 0, size + 1024), tensor, array, np.zeros(width * rows, "f4"), x, y
    )
    wanted = np.zeros(width * rows, np.float32)
    for row in range(rows):
        for column in range(width):
            byte = 4 * (row * width + column)
            chunk = byte >> 4
            # each span of 128 bytes of shared memory exchanges its chunks by its own number
            chunk ^= (byte >> 7) & (0, 1, 3, 7)[swizzle]
            if 0 <= y + row < 20 and 0 <= x + column < 40:
                wanted[(chunk << 4 | byte & 15) >> 2] = array[y + row, x + column]
    assert out.tolist() == wanted.tolist()


def test_a_box_of_every_second_element_of_three_dimensions_may_be_filled_with_nans() -> None:
    body = """k(const __grid_constant__ Map map, const short *in, short *out) {
        __shared__ alignas(128) short box[3 * 2 * 8];
        __shared__ u64 gate;
        if (threadIdx.x == 0) {
            init(&gate, 1);
            expect(&gate, 96);
            asm volatile("cp.async.bulk.tensor.3d.shared::cta.global.tile"
                         ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                         :: "r"(sh(box)), "l"(&map),
                         "r"(8), "r"(1), "r"(0), "r"(sh(&gate)) : "memory");
        }
        __syncthreads();
        await(&gate, 0);
        for (int i = threadIdx.x; i < 48; i += 32) out[i] = box[i];
    }"""
    array = np.arange(5 * 6 * 16, dtype=np.int16).reshape(5, 6, 16)
    tensor = TensorMap(0, 0, 6, (12, 6, 5), (32, 192), (8, 3, 9), (1, 2, 3), 0, True)
    _, out = launch(body, (1, 32), tensor, array, np.zeros(48, np.int16))
    wanted = np.full((3, 2, 8), 0x7FF7, np.int16)  # as an H200 fills
    wanted[:2, :, :4] = array[0:5:3, 1:5:2, 8:12]
    assert out.tolist() == wanted.reshape(-1).tolist()


def test_a_box_is_stored_and_reduced_within_the_bounds() -> None:
    body = """k(const __grid_constant__ Map map, int *out) {
        __shared__ alignas(128) int box[4 * 4];
        if (threadIdx.x < 16) box[threadIdx.x] = threadIdx.x + 1;
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
                         "[%0, {%1, %2}], [%3];"
                         "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
                         "[%0, {%4, %2}], [%3];" :: "l"(&map), "r"(4), "r"(3), "r"(sh(box)), "r"(0)
                         : "memory");
    }"""
    tensor = TensorMap(0, 0, 3, (6, 5), (32,), (4, 4), (1, 1))
    (out,) = launch(body, (1, 32), tensor, np.full((5, 8), 100, np.int32))
    box = np.arange(16).reshape(4, 4) + 1
    wanted = np.full((5, 8), 100)
    wanted[3:, 4:6] = box[:2, :2]
    wanted[3:, :4] += box[:2]
    assert out.tolist() == wanted.tolist()


def test_a_warp_whose_lanes_name_one_box_copies_it_once() -> None:
    body = """k(const __grid_constant__ Map map, int *out) {
        __shared__ alignas(128) int box[4 * 4];
        if (threadIdx.x < 16) box[threadIdx.x] = 1;
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
                     "[%0, {%1, %2}], [%3];" :: "l"(&map), "r"(4 * (threadIdx.x % 64 / 48)), "r"(0),
                     "r"(sh(box)) : "memory");
    }"""
    tensor = TensorMap(0, 0, 3, (8, 4), (32,), (4, 4), (1, 1))
    (out,) = launch(body, (1, 64), tensor, np.zeros((4, 8), np.int32))
    assert out.tolist() == [[2] * 4 + [1] * 4] * 4  # two warps; the second names two boxes


COPY = """k(int *in, int *out) {{
    __shared__ alignas(16) int box[64];
    __shared__ u64 gate;
    if (threadIdx.x == 0) {{
        init(&gate, 1);
        {before}
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" :: "r"(sh(box) + {to}), "l"(in + {source}),
                     "r"({bytes}), "r"(sh(&gate)) : "memory");
        await(&gate, 0);
    }}
}}"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"bytes": 24},
            r"`cp\.async\.bulk.*` of 24 bytes, no multiple of 16, in thread",
        ),
        ({"to": 8}, r"at shared address 0x[0-9a-f]*8, no multiple of 16"),
        ({"source": 2}, r"at global address 0x[0-9a-f]*, no multiple of 16"),
        ({"source": 60}, r"takes 32 bytes at global address .*: ends 16 bytes after|16 bytes"),
        ({"to": 512}, r"takes 32 bytes at shared address .*, and the block has"),
        ({"before": "expect(&gate, 32); expect(&gate, 32);"}, "expects no more arrivals"),
        ({"before": ""}, ""),
    ],
)
def test_what_a_bulk_copy_may_not_do_is_a_fault_with_its_line(change, said) -> None:  # type: ignore[no-untyped-def]
    plain = {"before": "expect(&gate, 32);", "to": 0, "source": 0, "bytes": 32}
    body = COPY.format(**plain | change)
    wanted = rf"source\.cu:\d+.*{said}" if said else r"waits in a loop at source\.cu"
    with pytest.raises(KernelFault, match=wanted):
        launch(body, (1, 32), np.zeros(64, np.int32), np.zeros(4, np.int32))


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (TensorMap(0, 0, 7, (4096, 20), (16384,), (8, 16), (1, 1)), "bytes at global address"),
        (TensorMap(0, 0, 7, (40, 20, 1), (160, 3200), (8, 16, 1), (1, 1, 1)),
         "takes a map of a tiled tensor of 3 dimensions"),
        (TensorMap(0, 1, 7, (40, 20, 1), (160, 3200), (0, 0, 0), (1, 1, 1), lower=(0,), upper=(0,),
                   channels=8, pixels=4), "takes a map of a im2col tensor"),
        (bytes(128), "that cuTensorMapEncode has not made"),
        (TensorMap(0, 0, 7, (40, 20), (160,), (8, 16), (1, 1)),
         "begins at element 2 of the innermost dimension, 8 bytes and no multiple of 16"),
    ],
)  # fmt: skip
def test_maps_of_something_else_and_tensors_outside_memory_are_faults(tensor, said) -> None:  # type: ignore[no-untyped-def]
    body = LOAD.format(c="float", size=512)
    array, out = np.zeros((20, 40), np.float32), np.zeros(128, np.float32)
    x = 2 if "element 2" in said else 0
    with pytest.raises(KernelFault, match=r"source\.cu:\d+.*`cp\.async\.bulk\.tensor.*" + said):
        launch(body, (1, 32, 0, 2048), tensor, array, out, x, 4)


@pytest.mark.parametrize(
    ("corner", "kind", "said"),
    [
        ('"r"(0), "r"(-1)', "cp.async", r"stores a box that begins at \(0, -1\), below zero"),
        ('"r"(0), "r"(0)', "cp.reduce.async", "cannot reduce elements of u8"),
    ],
)
def test_boxes_that_the_chip_does_not_store_are_faults(corner: str, kind: str, said: str) -> None:
    operation = ".add.tile" if "reduce" in kind else ""
    body = f"""k(const __grid_constant__ Map map, char *out) {{
        __shared__ alignas(128) char box[256];
        asm volatile("{kind}.bulk.tensor.2d.global.shared::cta{operation}.bulk_group "
                     "[%0, {{%2, %3}}], [%1];"
                     :: "l"(&map), "r"(sh(box)), {corner} : "memory");
    }}"""
    tensor = TensorMap(0, 0, 0, (64, 8), (64,), (16, 4), (1, 1))
    with pytest.raises(KernelFault, match=said):
        launch(body, (1, 32), tensor, np.zeros(512, np.int8))


def test_pixels_are_stored_without_offsets() -> None:
    body = """k(const __grid_constant__ Map map, char *out) {
        __shared__ alignas(128) char box[64];
        for (int i = threadIdx.x; i < 64; i += 32) box[i] = i + 1;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (threadIdx.x == 0)
            asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group "
                         "[%0, {%2, %3, %4}], [%1];"
                         :: "l"(&map), "r"(sh(box)), "r"(0), "r"(3), "r"(0) : "memory");
    }"""
    # two images of five pixels of 16 channels; a box of four pixels from the fourth on
    tensor = TensorMap(
        0, 1, 0, (16, 5, 2), (16, 80), (0, 0, 0), (1, 1, 1), lower=(0,), upper=(0,), channels=16,
        pixels=4,
    )  # fmt: skip
    out = np.zeros(160, np.int8)
    *_, found = launch(body, (1, 32), tensor, out)
    wanted = np.zeros((2, 5, 16), np.int8)
    wanted.reshape(10, 16)[3:7] = np.arange(1, 65).reshape(4, 16)
    assert found.reshape(2, 5, 16).tolist() == wanted.tolist()


def lanes_on(masks: NDArray[np.uint32]) -> list[int]:
    """Return the number of pieces of each row."""
    return [int(mask).bit_count() for mask in masks]


def test_no_row_ends_within_a_sector() -> None:
    base, masks, offsets = rows_of(pieces_of(0x1010, 40 * 16))
    # piece 31 is at 0x1200, the first half of the sector of piece 32
    assert lanes_on(masks) == [31, 9]
    assert base.tolist() == [0x1010, 0x1200]
    assert offsets[0, :31].tolist() == list(range(0, 31 * 16, 16))
    assert offsets[1, 9:].tolist() == [0] * 23


def test_chunks_of_a_copy_share_sectors() -> None:
    """5 sectors per 128 bytes from byte 16 on: 160 per copy of 4,096 bytes on an H100."""
    base, masks, _ = rows_of(pieces_of(0x1010, 256), in_chunks=True)
    assert (base.tolist(), lanes_on(masks)) == ([0x1010, 0x1090], [8, 8])
    base, masks, _ = rows_of(pieces_of(0x1000, 1024), in_chunks=True)
    assert (base.tolist(), lanes_on(masks)) == ([0x1000, 0x1200], [32, 32])


def test_pieces_2_gib_apart_have_a_row_each() -> None:
    pieces = np.array([16, (3 << 30), 32])
    base, masks, offsets = rows_of(pieces)
    assert (base.tolist(), lanes_on(masks)) == (pieces.tolist(), [1, 1, 1])
    assert not offsets.any()


BULK = """k(int *out, const int *in)
{
    __shared__ alignas(16) int tile[4096];
    __shared__ u64 gate;
    if (threadIdx.x == 0) { init(&gate, 1); expect(&gate, 2 * 4096 + 64); }
    __syncthreads();
    if (threadIdx.x < 3)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];"
                     :: "r"(sh(tile + 1024 * threadIdx.x)), "l"(in + 1028 * threadIdx.x),
                        "r"(threadIdx.x < 2 ? 4096 : 64), "r"(sh(&gate)) : "memory");
    await(&gate, 0);
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], 1024;" :: "l"(in) : "memory");
}"""


@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_copies_of_several_lanes_count_their_own_sectors(tmp_path: Path, engine: str) -> None:
    trace = tmp_path / "bulk.cutrace"
    with cutrace.Session(trace, engine=engine) as gpu:
        module = gpu.compile(f'{HEAD}extern "C" __global__ void {BULK}', arch="compute_90a")
        out, given = gpu.device_array(16, np.int32), gpu.device_array(8192, np.int32)
        module.get_function("k")[2, 32](out, given)
    assert not verify(read_trace(trace))
    counters = cutrace.analyze(trace, device="h200").launches[0].counters
    # two blocks; copies begin at bytes 0, 4112 and 8224, the second in the midst of a sector
    assert counters["bulk_load_bytes"] == 2 * (4096 + 4096 + 64 + 1024)
    assert counters["bulk_transactions"] == 2 * (128 + 32 * 5 + 2 + 32)
    assert counters["bulk_store_bytes"] == 0
    assert counters["global_load_requests"] == 0


BOX = """k(const __grid_constant__ Map map, char *at, int x, int y)
{
    extern __shared__ __align__(128) char tile[];
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
                     "[%0, {%1, %2}], [%3];"
                     :: "l"(&map), "r"(x), "r"(y), "r"(sh(tile)) : "memory");
}"""


def test_a_box_counts_what_is_within_the_tensor(tmp_path: Path) -> None:
    trace = tmp_path / "box.cutrace"
    # 100 halves of a row of 224 bytes, 50 rows; a box of 64 x 64 at (64, 32)
    tensor = TensorMap(0, 0, 6, (100, 50), (224,), (64, 64), (1, 1))
    with cutrace.Session(trace) as gpu:
        module = gpu.compile(f'{HEAD}extern "C" __global__ void {BOX}', arch="compute_90a")
        array = gpu.device_array(50 * 224 - 24, np.uint8)
        given = replace(tensor, address=array.address).encode()
        module.get_function("k")[1, 32, 0, 8192](given, array, 64, 32)
    assert not verify(read_trace(trace))
    counters = cutrace.analyze(trace, device="h200").launches[0].counters
    # 18 rows from byte 128 to 200: five pieces, in three sectors
    assert counters["bulk_store_bytes"] == 18 * 5 * 16
    assert counters["bulk_transactions"] == 18 * 3
    assert counters["bulk_load_bytes"] == 0
