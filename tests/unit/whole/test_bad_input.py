"""Input that asks for too much or makes no sense: one message, soon, and no memory taken for it."""

import io
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.base.errors import CutraceError, KernelFault
from cutrace.commands._main import run
from cutrace.tracer.session.configuration import check_cost
from cutrace.tracer.simt.memory import memory

COPY = """
__global__ void copy(int *out)
{
    out[blockIdx.x] = threadIdx.x;
}
"""

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def launch_ptx(
    body: str, outside: str = "", head: str = HEAD, threads: int = 32, shared: int = 0
) -> None:
    """Launch one block of an entry around `body`; its first line is line 6 of a plain head."""
    text = f"{head}{outside}\n.visible .entry k(.param .u64 out)\n{{\n{body}\nret;\n}}\n"
    with cutrace.Session(output=io.StringIO()) as gpu:
        kernel = gpu.load_ptx(text).get_function("k")
        kernel[1, threads, 0, shared](gpu.device_array(4, np.int32))


def test_the_largest_grid_is_refused_with_what_it_would_cost() -> None:
    # (2^31 - 1) * 256 threads at 5 million a second: 109951 seconds
    with (
        pytest.raises(
            CutraceError, match=r"copy<<<2147483647, 256>>>: 549755813632 threads.*30 ho"
        ),
        cutrace.Session() as gpu,
    ):
        gpu.compile(COPY).get_function("copy")[2**31 - 1, 256]


@pytest.mark.parametrize(
    ("grid", "duration"),
    [
        ((2**18 + 1, 1, 1), "53 seconds"),  # 268436480 / 5 million
        ((2**20, 1, 1), "3 minutes"),  # 1073741824: 214 seconds
        ((2**31 - 1, 1, 1), "5 days"),  # 2199023254528: 439804 seconds
        ((2**31 - 1, 65535, 65535), "59856507 years"),
    ],
)
def test_a_launch_that_costs_too_much_says_how_long_it_would_take(
    grid: tuple[int, int, int], duration: str
) -> None:
    with pytest.raises(CutraceError, match=f" {duration} at the very best"):
        check_cost("k", grid, (1024, 1, 1), 1 << 28)


def test_the_limit_on_threads_is_lifted_by_an_option(tmp_path: Path) -> None:
    source = tmp_path / "copy.cu"
    source.write_text(f"// cutrace: copy<<<64, 32>>>(out:i32[64])\n{COPY}")
    out = ["-o", str(tmp_path / "copy.cutrace")]
    assert run(["record", str(source), *out, "--max-threads", "2047"]) == 2
    assert run(["record", str(source), *out, "--max-threads", "2048"]) == 0
    with cutrace.Session(max_threads=2048) as gpu:
        kernel = gpu.compile(COPY).get_function("copy")
        kernel[64, 32](gpu.device_array(64, np.int32))
        with pytest.raises(CutraceError, match="2080 threads, over the limit of 2048"):
            kernel[65, 32]


def test_more_threads_than_a_counter_holds_are_refused_for_a_sample_too() -> None:
    with cutrace.Session(sample_blocks=2) as gpu:
        kernel = gpu.compile(COPY).get_function("copy")
        with pytest.raises(
            CutraceError, match=f"{(2**31 - 1) * 65535 * 32767 * 1024} threads; {2**60} can be"
        ):
            kernel[(2**31 - 1, 65535, 32767), 1024]


@pytest.mark.parametrize("most", [0, -1, 2**31 * 65536**2 * 1024])
def test_a_limit_on_threads_that_makes_no_sense_is_refused(most: int) -> None:
    with pytest.raises(CutraceError, match=r"max_threads is .*, expected 1 to"):
        cutrace.Session(max_threads=most)


@pytest.mark.parametrize("size", [1 << 18, 1 << 40])
def test_a_gigantic_shared_array_is_refused(size: int) -> None:
    named = rf"k<<<1, 32, 0>>>: {size} bytes of shared memory.*`line`, {size} bytes \(PTX line 7\)"
    with pytest.raises(CutraceError, match=named):
        launch_ptx(f".shared .b8 line[{size}]; .reg .b32 %r; ld.shared.u32 %r, [line];")


def test_gigantic_dynamic_shared_memory_is_refused() -> None:
    with pytest.raises(CutraceError, match=r"1099511627776 bytes of shared memory a block"):
        launch_ptx("", shared=1 << 40)


@pytest.mark.parametrize("size", [(1 << 19) + 1, 1 << 40])
def test_a_gigantic_local_array_is_refused(size: int) -> None:
    named = rf"{size} bytes of local memory a thread.*524288.*`depot`, {size} bytes \(PTX line 7\)"
    with pytest.raises(CutraceError, match=named):
        launch_ptx(f".local .b8 depot[{size}]; .reg .b32 %r; ld.local.u32 %r, [depot];")


def test_the_largest_local_array_that_a_device_has_is_not() -> None:
    body = """
    .local .b8 depot[524288]; .reg .b32 %r; .reg .b64 %d;
    mov.u32 %r, 5; st.local.u32 [depot+524284], %r; ld.local.u32 %r, [depot+524284];
    ld.param.u64 %d, [out]; st.global.u32 [%d], %r;
    """
    launch_ptx(body, threads=64)


@pytest.mark.parametrize("size", [1 << 40, 1 << 44])
def test_a_gigantic_global_array_is_refused(size: int) -> None:
    named = rf"^PTX line 4: `table` needs {size} bytes of global memory"
    with pytest.raises(CutraceError, match=named):
        launch_ptx("", outside=f".global .b8 table[{size}];")


def test_constants_of_more_than_64_kilobytes_name_the_line_of_the_one_too_many() -> None:
    # 65536 - 40000 = 25536
    outside = ".const .b8 some[40000];\n.const .b8 more[30000];"
    named = "^PTX line 5: `more` needs 30000 bytes of const memory; 25536 of 65536 are free"
    with pytest.raises(CutraceError, match=named):
        launch_ptx("", outside=outside)
    launch_ptx("", outside=".const .b8 all[65536];")


def test_too_many_constants_of_a_source_name_the_sources_line() -> None:
    source = (
        "__constant__ float some[10000];\n\nnamespace n {\n__constant__ double more[3750];\n}\n"
        "__global__ void k(float *a) { a[0] = some[0] + n::more[1]; }\n"
    )
    named = "^source.cu:4: `.*more.*` needs 30000 bytes of const memory; 25536 of 65536 are free"
    with pytest.raises(CutraceError, match=named), cutrace.Session() as gpu:
        gpu.compile(source)


@pytest.mark.parametrize("size", [1 << 40, 1 << 60])
def test_a_gigantic_device_array_is_refused(size: int) -> None:
    with pytest.raises(CutraceError, match=rf"`big` needs {size} bytes"), cutrace.Session() as gpu:
        gpu.device_array(size, np.uint8, name="big")


def test_an_array_that_the_machine_has_no_room_for_is_refused_and_the_session_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(old: object, size: int) -> None:
        raise MemoryError

    with cutrace.Session() as gpu:
        with monkeypatch.context() as patch:
            patch.setattr(memory, "_grown", fail)
            with pytest.raises(CutraceError, match=r"`big` needs 1048576 bytes.*this machine"):
                gpu.device_array(1 << 20, np.uint8, name="big")
        assert gpu.device_array(1 << 20, np.uint8).copy_to_host().sum() == 0


def test_recursion_without_end_is_a_fault_that_names_the_line() -> None:
    source = """
    __device__ __noinline__ int deeper(int *out, int n)
    {
        return n < 0 ? 1 : deeper(out, n + deeper(out, n + 1)) + out[n & 3];
    }
    __global__ void k(int *out) { out[0] = deeper(out, threadIdx.x); }
    """
    with (
        pytest.raises(KernelFault, match=r"source\.cu:4: .*calls itself more than"),
        cutrace.Session() as gpu,
    ):
        gpu.compile(source).get_function("k")[4, 256](gpu.device_array(4, np.int32))


@pytest.mark.slow
def test_recursion_with_large_arrays_has_the_local_memory_of_a_device() -> None:
    # 100000 integers a level, 400000 bytes and some registers: two levels are over 524288
    source = """
    __device__ __noinline__ int deeper(int *out, int n)
    {
        int own[100000];
        for (int i = 0; i < 100000; i += 25000)
            own[i] = out[i & 3];
        return n <= 0 ? 1 : own[n * 25000] + deeper(out, n - 1) + deeper(out, n - 3);
    }
    __global__ void k(int *out, int n) { out[0] = deeper(out, n); }
    """
    assert call_deeper(source, 0) == 1
    with pytest.raises(KernelFault, match="more than 1 level deep"):
        call_deeper(source, 3)


def call_deeper(source: str, n: int) -> int:
    with cutrace.Session() as gpu:
        out = gpu.device_array(4, np.int32)
        gpu.compile(source).get_function("k")[1, 1024](out, n)
        return int(out.copy_to_host()[0])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("bra NOWHERE;", r"PTX line 7: found `NOWHERE`, expected a label"),
        ("mov.u32 %r1, 5; .reg .b32 %r<2>;", r"PTX line 7: found `%r1`, expected a declared"),
        (".reg .b32 %r; .weird %r;", None),
        (f".shared .b8 line[{1 << 62}];", rf"PTX line 7: found `{1 << 62}`, expected a number of"),
        (f".local .b8 depot[{1 << 64}];", rf"PTX line 7: found `{1 << 64}`, expected a number"),
        (".reg .b32 %r; tcgen05.alloc.b32 %r;", r"tcgen05.*PTX line 7"),
        (".reg .b32 %r; brand.new.u32 %r, %r;", r"`brand.new.u32 %r, %r;` \(PTX line 7"),
    ],
)
def test_what_is_not_ptx_or_not_yet_known_names_its_line(body: str, message: str | None) -> None:
    if message is None:
        launch_ptx(body)
        return
    with pytest.raises(CutraceError, match=message):
        launch_ptx(body)


@pytest.mark.parametrize(
    "head", [".version 9.3\n.target sm_120a\n", ".version 99.9\n.target sm_999\n"]
)
def test_ptx_of_newer_versions_runs_as_far_as_it_is_known(head: str) -> None:
    launch_ptx(".reg .b32 %r; mov.u32 %r, %tid.x;", head=f"{head}.address_size 64\n")
    with pytest.raises(CutraceError, match=r"does not know this instruction.*PTX line 7"):
        launch_ptx(".reg .b32 %r; warp.drive.u32 %r, 9;", head=f"{head}.address_size 64\n")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("bar.sync 16;", r"PTX line 7: found 16 in `bar.sync 16;`, expected 0 to 15"),
        (f"bar.sync {2**64 - 1};", r"PTX line 7: found 18446744073709551615 in"),
        ("bar.sync 1, 2048;", r"PTX line 7: found 2048 in `bar.sync 1, 2048;`, expected 0 to 1024"),
        ("bar.sync 1, 33;", r"PTX line 7: a barrier is for a multiple of 32 threads .*not for 33"),
        (".reg .b32 %r; not.b32 %r, %r; bar.sync %r;", r"line 7: there is no barrier 4294967295"),
        (".reg .b32 %r; not.b32 %r, %r; bar.sync 1, %r;", r"up to 1024, not for 4294967295"),
    ],
)
def test_a_barrier_that_no_block_has_names_its_line(body: str, message: str) -> None:
    with pytest.raises(CutraceError, match=message):
        launch_ptx(body)


@pytest.mark.parametrize("lane", [0, 5])
@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (0, "global address 0x0 "),
        (-8, "global address -0x8 "),
        (2**63 - 4, "global address 0x7ffffffffffffffc "),
        (-(2**63), "global address -0x8000000000000000 "),
        (0x04000000, "global address 0x4000000 "),
        (0x02000000, "local address 0x0 "),
    ],
)
def test_a_wild_generic_pointer_in_one_lane_is_a_fault(lane: int, address: int, shown: str) -> None:
    body = f"""
    .reg .b64 %d; .reg .b32 %r<2>; .reg .pred %p;
    ld.param.u64 %d, [out]; mov.u32 %r0, %tid.x; setp.eq.u32 %p, %r0, {lane};
    @%p mov.u64 %d, {address};
    ld.u32 %r1, [%d];
    """
    with pytest.raises(KernelFault, match=rf"{shown}.*thread \({lane}, 0, 0\)"):
        launch_ptx(body)


def test_offsets_wrap_as_addresses_of_64_bits_do() -> None:
    body = f"""
    .reg .b64 %d; .reg .b32 %r;
    ld.param.u64 %d, [out]; ld.global.u32 %r, [%d+{2**64 - 4}];
    """
    with pytest.raises(KernelFault, match="4 bytes before `array0`"):
        launch_ptx(body)


def test_integers_of_more_than_64_bits_are_refused() -> None:
    with pytest.raises(CutraceError, match=rf"PTX line 7: found `{2**64}`, expected"):
        launch_ptx(f".reg .b64 %d; mov.u64 %d, {2**64};")


def test_a_pointer_does_not_fit_into_four_bytes() -> None:
    text = f"{HEAD}.visible .entry _Z1kPi(.param .u32 p) {{ ret; }}\n"
    with (
        pytest.raises(CutraceError, match=r"argument 1.* PTX gives it 4 bytes, not 8"),
        cutrace.Session() as gpu,
    ):
        gpu.load_ptx(text).get_function("k")[1, 1](gpu.device_array(4, np.int32))


def test_a_call_with_too_few_arguments_is_refused_with_its_line() -> None:
    outside = ".func f(.param .b32 x, .param .b32 y) { ret; }"
    named = "PTX line 7: call f, .1.; has 0 results and 1 arguments, f has 0 and 2"
    with pytest.raises(CutraceError, match=named):
        launch_ptx("call f, (1);", outside=outside)


def test_a_number_is_no_address_of_a_parameter() -> None:
    said = r"the name of a parameter, or a pointer to one, as address: .*\[8\];` \(PTX line 7; "
    with pytest.raises(CutraceError, match=said):
        launch_ptx(".reg .b64 %d; ld.param.u64 %d, [8];")


def test_a_register_for_a_parameter_of_other_size_is_refused() -> None:
    outside = ".func (.param .align 4 .b8 r[12]) f() { ret; }"
    named = r"`r` has 12 bytes, and is no register.s: `call .%r., f"
    with pytest.raises(CutraceError, match=named):
        launch_ptx(".reg .b32 %r; call (%r), f;", outside=outside)


@pytest.mark.parametrize("align", [3, 0, 1 << 25])
def test_an_alignment_that_no_variable_has_is_refused(align: int) -> None:
    named = f"PTX line 4: found `{align}`, expected a power of two up to 16777216"
    with pytest.raises(CutraceError, match=named):
        launch_ptx("", outside=f".global .align {align} .b32 x;")
