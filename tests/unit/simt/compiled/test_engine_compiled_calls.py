"""Calls in machine code: values as Python has them, traces as the array engine has them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from engines import assert_same_under_both, files_of
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.tracer.simt import tier
from cutrace.tracer.simt.ops.lanes import Array
from cutrace.tracer.simt.warp.instruction_set import Executor
from cutrace.tracer.simt.warp.program import Wave

SHAPES = [(3, 128), (2, 33), (5, 40), (1, 64)]
"""Blocks and threads: whole warps, and blocks whose last warp has lanes that do not exist."""

SOURCE = r"""
struct Mixed { int a; float b; short c[3]; double d; };
__noinline__ __device__ int add(int a, int b) { return a + b; }
__noinline__ __device__ int take(int a, int b) { return a - b; }
__noinline__ __device__ int times(int a, int b) { if (a > 50) return -1; return a * b; }
__noinline__ __device__ Mixed mix(Mixed s, int k)
{
    s.a += k;
    s.b *= 2;
    s.c[k % 3] = 7;
    s.d += s.a;
    return s;
}
__noinline__ __device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__noinline__ __device__ int climb(int n)
{
    if (n == 0) return 0;
    int t[4];
    for (int k = 0; k < 4; ++k) t[k] = n + k;
    int below = climb(n - 1);
    return below + t[n & 3];
}
__noinline__ __device__ void sort(int *a, int low, int high)
{
    if (low >= high) return;
    int pivot = a[high], at = low, t;
    for (int j = low; j < high; ++j)
        if (a[j] < pivot) { t = a[at]; a[at] = a[j]; a[j] = t; ++at; }
    t = a[at]; a[at] = a[high]; a[high] = t;
    sort(a, low, at - 1);
    sort(a, at + 1, high);
}
__noinline__ __device__ bool even(unsigned n);
__noinline__ __device__ bool odd(unsigned n) { return n == 0 ? false : even(n - 1); }
__noinline__ __device__ bool even(unsigned n) { return n == 0 ? true : odd(n - 1); }
typedef int (*Operation)(int, int);
__device__ Operation table[3] = {add, take, times};

__noinline__ __device__ int leave(int n)
{
    if (n % 5 == 2) asm volatile("exit;");
    return n + 1;
}
__noinline__ __device__ void share(int *s, int x) { s[threadIdx.x] = x; __syncthreads(); }
struct Shape { int k; virtual __device__ int f(int) = 0; };
struct Line : Shape { __device__ int f(int x) override { return x + k; } };
struct Field : Shape { __device__ int f(int x) override { return x < 1 ? 0 : x * k + f(x - 1); } };

#define I (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" {
__global__ void adds(int *out) { int i = I; out[i] = add(i, 7); if (i % 3) out[i] += add(i, 5); }
__global__ void mixes(int *out)
{
    Mixed s = {(int)I, 0.5f, {1, 2, 3}, 0.25};
    for (int k = 0; k < I % 4; ++k) s = mix(s, k);
    out[I] = s.a * 1000 + (int)(s.b * 2) * 100 + s.c[0] + s.c[1] + s.c[2] + (int)s.d;
}
__global__ void fibs(int *out) { out[I] = fib(I % 9); }
__global__ void climbs(int *out) { out[I] = climb(I % 23); }
__global__ void sorts(int *out)
{
    int t[7], sum = 0;
    for (int k = 0; k < 7; ++k) t[k] = (I * 7 + k * 13) % 31;
    sort(t, 0, 6);
    for (int k = 0; k < 7; ++k) sum = sum * 31 + t[k];
    out[I] = sum;
}
__global__ void turns(int *out) { out[I] = even(I % 12) + 2 * odd(I % 5); }
__global__ void through(int *out)
{
    int sum = 0;
    for (int k = 0; k < 4; ++k) sum += table[(I + k) % 3](I, k);
    out[I] = sum;
}
__global__ void returns(int *out)
{
    int i = I;
    out[i] = 1;
    if (i % 4 == 1) { out[i] = fib(6); return; }
    int x = times(i, 3);
    __syncthreads();
    out[i] = x + fib(i % 3);
}
__global__ void exits(int *out)
{
    int i = I;
    out[i] = 1;
    out[i] = leave(i) * 2;
    if (i % 3) out[i] += 100;
}
__global__ void meets(int *out)
{
    __shared__ int s[128];
    share(s, I);
    out[I] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ void shapes(int *out)
{
    Line line;
    Field field;
    line.k = 3, field.k = 2;
    Shape *both[2] = {&line, &field};
    Shape *volatile *seen = both;
    out[I] = seen[I & 1]->f(I % 5) + seen[I % 3 == 0]->f(2);
}
}
"""


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def wrapped(n: int) -> int:
    return (n + (1 << 31)) % (1 << 32) - (1 << 31)


def mixed(i: int) -> int:
    a, b, c, d = i, 0.5, [1, 2, 3], 0.25
    for k in range(i % 4):
        a, b = a + k, b * 2
        c[k] = 7
        d += a
    return wrapped(a * 1000 + int(b * 2) * 100 + sum(c) + int(d))


def climbed(n: int) -> int:
    return sum(k + (k & 3) for k in range(1, n + 1))


def in_order(i: int) -> int:
    found = 0
    for value in sorted((i * 7 + k * 13) % 31 for k in range(7)):
        found = wrapped(found * 31 + value)
    return found


def chosen(i: int) -> int:
    return sum((i + k, i - k, -1 if i > 50 else i * k)[(i + k) % 3] for k in range(4))


def returned(i: int) -> int:
    return 8 if i % 4 == 1 else (-1 if i > 50 else 3 * i) + fib(i % 3)


def shaped(i: int) -> int:
    first = (i % 5) * (i % 5 + 1) if i & 1 else i % 5 + 3
    return first + (5 if i % 3 else 6)  # a field gives 2 (1 + ... + x) = x (x + 1)


EXPECTED: dict[str, Callable[[int], int]] = {
    "adds": lambda i: i + 7 + (i + 5 if i % 3 else 0),
    "mixes": mixed,
    "fibs": lambda i: fib(i % 9),
    "climbs": lambda i: climbed(i % 23),
    "sorts": in_order,
    "turns": lambda i: int(i % 12 % 2 == 0) + 2 * (i % 5 % 2),
    "through": chosen,
    "returns": returned,
    "exits": lambda i: 1 if i % 5 == 2 else 2 * (i + 1) + (100 if i % 3 else 0),
    "shapes": shaped,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_calls_run_compiled(name: str, tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[NDArray[np.int32]]:
        kernel = gpu.compile(SOURCE).get_function(name)
        found = []
        for blocks, threads in SHAPES:
            out = gpu.device_array(blocks * threads, np.int32)
            kernel[blocks, threads](out)
            found.append(out.copy_to_host())
            assert found[-1].tolist() == list(map(EXPECTED[name], range(blocks * threads)))
        return found

    assert_same_under_both(tmp_path, run)


def test_functions_may_hold_barriers(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[NDArray[np.int32]]:
        kernel = gpu.compile(SOURCE).get_function("meets")
        found = []
        for blocks, threads in SHAPES:
            out = gpu.device_array(blocks * threads, np.int32)
            kernel[blocks, threads](out)
            found.append(out.copy_to_host())
            wanted = np.arange(blocks * threads).reshape(blocks, threads)[:, ::-1]
            assert found[-1].tolist() == wanted.reshape(-1).tolist()
        return found

    assert_same_under_both(tmp_path, run)


FAULTS = r"""
__noinline__ __device__ int down(int n) { return n == 0 ? 0 : 1 + down(n - 1) * 2; }
__noinline__ __device__ int up(int n) { return n; }
__device__ int (*table[2])(int) = {up, 0};
extern "C" __global__ void deep(int *out, int n) { out[threadIdx.x] = down(n + threadIdx.x); }
extern "C" __global__ void lost(int *out, int n) { out[threadIdx.x] = table[threadIdx.x > 35](n); }
"""


@pytest.mark.parametrize(("kernel", "says"), [("deep", "levels deep"), ("lost", "not the address")])
def test_a_fault_of_a_call_is_told_in_the_same_words(
    kernel: str, says: str, tmp_path: Path
) -> None:
    def run(gpu: cutrace.Session) -> None:
        out = gpu.device_array(64, np.int32)
        gpu.compile(FAULTS).get_function(kernel)[1, 64](out, 220)

    words = []
    for engine in ("array", "compiled"):
        session = cutrace.Session(tmp_path / "fault.cutrace", engine=engine)
        with pytest.raises(KernelFault, match=says) as caught, session as gpu:
            run(gpu)
        words.append(str(caught.value))
    assert words[0] == words[1]


def test_lanes_go_as_deep_as_there_are_levels(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[NDArray[np.int32]]:
        out = gpu.device_array(64, np.int32)
        gpu.compile(FAULTS).get_function("deep")[1, 64](out, 150)
        found = out.copy_to_host()
        assert set(found.tolist()) == {-1}  # twice and one more, from 0: 2^n - 1 in 32 bits
        return [found]

    assert_same_under_both(tmp_path, run)


SWITCH = r"""
extern "C" __global__ void ways(int *out)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x, found = 0;
    for (int k = 0; k < i % 11; ++k) {
        switch ((i + k) % 13) {
            case 0: found += 5; break;
            case 1: found *= 3; break;
            case 2: found -= k;
            case 3: found ^= i; break;
            case 4: found += out[i]; break;
            case 5: if (found > 40) { out[i] = found; return; } break;
            case 6: found = found / 3 + 1; break;
            case 7: found += 100; continue;
            case 8: found |= 8; break;
            case 9: found = -found; break;
            default: found += 2;
        }
        found += 1;
    }
    out[i] = found;
}
"""


def switched(i: int) -> int:
    found = 0
    for k in range(i % 11):
        way = (i + k) % 13
        if way == 7:
            found += 100
            continue
        if way == 5 and found > 40:
            return found
        if way == 2:
            found -= k
        if way in (2, 3):
            found ^= i
        third = abs(found) // 3 * (1 if found >= 0 else -1)
        more = {0: 5, 1: 2 * found, 4: 0, 6: third + 1 - found, 8: (found | 8) - found}
        found += {**more, 2: 0, 3: 0, 5: 0, 9: -2 * found}.get(way, 2) + 1
    return found


def test_a_switch_of_many_ways_runs_compiled(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[NDArray[np.int32]]:
        kernel = gpu.compile(SWITCH).get_function("ways")
        found = []
        for blocks, threads in SHAPES:
            out = gpu.device_array(blocks * threads, np.int32)
            kernel[blocks, threads](out)
            found.append(out.copy_to_host())
            assert found[-1].tolist() == list(map(switched, range(blocks * threads)))
        return found

    assert_same_under_both(tmp_path, run)


TWO_WAYS = r"""
__noinline__ __device__ unsigned wide(unsigned n, unsigned lane)
{
    if (n == 0) { __syncthreads(); return lane; }  // here these lanes wait, and others go down
    unsigned long long kept = 0x100000003ull * (lane * 16 + n);
    unsigned below = wide(n - 1, lane);
    return below + (unsigned)(kept >> 32) * 5 + (unsigned)kept;
}
__noinline__ __device__ unsigned narrow(unsigned n, unsigned lane)
{
    if (n == 0) { __syncthreads(); return lane; }
    unsigned a = lane * 7 + n, b = lane * 11 + n, c = a * b, d = a ^ b;
    unsigned below = narrow(n - 1, lane);
    return below + a + 3 * b + 5 * c + 7 * d;
}
extern "C" __global__ void two_ways(unsigned *out, unsigned n)
{
    unsigned lane = threadIdx.x;
    out[lane] = lane & 1 ? wide(n, lane) : narrow(n, lane);
}
"""


def go_down(n: int, lane: int) -> int:
    """What `wide` returns for odd lanes, `narrow` for even ones."""
    if n == 0:
        return lane
    if lane & 1:
        kept = 0x100000003 * (lane * 16 + n)
        return go_down(n - 1, lane) + (kept >> 32) * 5 + kept % 2**32
    a, b = lane * 7 + n, lane * 11 + n
    return go_down(n - 1, lane) + a + 3 * b + 5 * a * b + 7 * (a ^ b)


def test_lanes_as_deep_by_other_calls_keep_their_own(tmp_path: Path) -> None:
    """Values of 64 bits that some lanes put aside lie where others have none of 32 bits."""

    def run(gpu: cutrace.Session) -> list[NDArray[np.uint32]]:
        out = gpu.device_array(64, np.uint32)
        gpu.compile(TWO_WAYS, options=["-G"]).get_function("two_ways")[1, 64](out, 6)
        found = out.copy_to_host()
        assert found.tolist() == [go_down(6, lane) % 2**32 for lane in range(64)]
        return [found]

    assert_same_under_both(tmp_path, run)


WALK = r"""
__noinline__ __device__ int walk(int n, const int *at)
{
    int a[4] = {n, n + 1, n + 2, n + 3};
    int one = n > 0 ? walk(n - 1, at) : 0;
    int two = n > 3 ? walk(n - 2 - (n & 1), at) : n;
    return one + 3 * two + a[at[n & 3]];
}
extern "C" __global__ void walks(int *out, const int *at)
{
    out[threadIdx.x] = walk(threadIdx.x % 9, at);
}
"""


def walk(n: int, at: list[int]) -> int:
    one = walk(n - 1, at) if n > 0 else 0
    two = walk(n - 2 - (n & 1), at) if n > 3 else n
    return one + 3 * two + n + at[n & 3]


@pytest.mark.parametrize("instructions", [4, 12, 40, 90, 200, 500])
def test_a_recursion_goes_on_in_machine_code_from_where_it_is(
    instructions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tier, "BRIEF", instructions)
    monkeypatch.setattr(tier, "_is_worth_compiling", lambda code: False)
    went_over: list[bool] = []
    begin = tier.LaunchTier.executor

    def count(own: tier.LaunchTier, wave: Wave, registers: Sequence[Array] | None) -> Executor:
        went_over.append(registers is not None)
        return begin(own, wave, registers)

    monkeypatch.setattr(tier.LaunchTier, "executor", count)
    at, traces = [2, 0, 3, 1], []
    for engine in ("array", "auto"):
        path = tmp_path / f"{engine}.cutrace"
        with cutrace.Session(path, engine=engine) as gpu:
            out, places = gpu.device_array(64, np.int32), gpu.to_device(np.array(at, np.int32))
            gpu.compile(WALK).get_function("walks")[1, 64](out, places)
            assert out.copy_to_host().tolist() == [walk(t % 9, at) for t in range(64)]
            deep = gpu.device_array(64, np.uint32)
            gpu.compile(TWO_WAYS, options=["-G"]).get_function("two_ways")[1, 64](deep, 6)
            expected = [go_down(6, lane) % 2**32 for lane in range(64)]
            assert deep.copy_to_host().tolist() == expected
        traces.append(files_of(path))
    assert traces[0] == traces[1]
    assert went_over
    assert all(went_over)
