"""Kernels by their C signatures: PTX names read, and parameters found in the source."""

import pytest

from cutrace.tracer.front.demangle import demangle, plain
from cutrace.tracer.front.signature import list_kernels
from cutrace.tracer.front.syntax.syntax import written_kernels


@pytest.mark.parametrize(
    ("mangled", "called"),
    [
        ("_Z17reverseArrayBlockPiPKi", "reverseArrayBlock(int *, const int *)"),
        ("_ZN2ns2k2EPK6float4P6__half", "ns::k2(const float4 *, __half *)"),
        ("_Z5scaleILi4EfEvPT0_PKi", "scale<4, float>(float *, const int *)"),
        ("_Z1kPA16_fRKi", "k(float (*)[16], const int &)"),
        ("_Z1kI3FooS0_EvPT_PT0_", "k<Foo, Foo>(Foo *, Foo *)"),
        ("_Z1kISt4pairIifEEvT_", "k<std::pair<int, float>>(std::pair<int, float>)"),
        ("_Z3fooIfJidEEvv", "foo<float, int, double>()"),
        ("_Z1kILb1ELin3EEvv", "k<true, -3>()"),
        ("_Z4testI4ModeLS0_2EEvv", "test<Mode, (Mode)2>()"),
        ("_Z1kIJifdEEvPiDpT_", "k<int, float, double>(int *, int, float, double)"),
        ("_Z1kIiJfdEEvT_DpPKT0_", "k<int, float, double>(int, const float *, const double *)"),
        ("_Z1kIJEEvPiDpT_", "k<>(int *)"),
        (  # `std` in a namespace may be referred to, the one of `St` may not
            "_ZN1a1fIN4cuda3std1xENS2_1yEEEvT_T0_S4_",
            "a::f<cuda::std::x, cuda::std::y>(cuda::std::x, cuda::std::y, cuda::std::y)",
        ),
        ("_ZN1a1kINS_1bILi3EEEEEvNT_1cE", "a::k<a::b<3>>(a::b<3>::c)"),
        ("_ZN34_GLOBAL__N__00000000_4_s_cu__Z1kPf4anonIiEEvPT_", "anon<int>(int *)"),
        ("_Z3runIZ4mainEUliE_EvT_", "run<main::{lambda(int)#1}>(main::{lambda(int)#1})"),
        (  # the second lambda of S::go<float>, as binutils' c++filt has it
            "_Z1kIZN1S2goIfEEvT_EUlRfE0_N1a1bIS0_EEEvT0_",
            "k<S::go<float>::{lambda(float &)#2}, a::b<S>>(a::b<S>)",
        ),
        ("_Z1kIZ4mainE5Local_0Evv", "k<main::Local>()"),
        ("_Z1kIN1SUlvE_EEvv", "k<S::{lambda()#1}>()"),
        (  # an argument that is a function or a variable, as Nsight Compute has the first
            "_Z3sumIdXadL_Z3gpuIdET_S1_EEEvS1_S1_iPS1_",
            "sum<double, &gpu<double>>(double, double, int, double *)",
        ),
        ("_Z3mapIXadL_ZN1n5timesILi3EEEffEEEvPf", "map<&n::times<3>>(float *)"),
        ("_Z3oneIL_Z5valueEiEvPT0_", "one<value, int>(int *)"),
        ("_Z1kIXsr3FooE1nEEvv", "k<Foo::n>()"),
        (  # expressions, as nvcc and c++filt have them
            "_Z2k1IiENSt9enable_ifIXsr3std11is_integralIT_EE5valueEvE4typeEPS1_",
            "k1<int>(int *)",
        ),
        ("_Z1kIiENSt9enable_ifIXntsrSt7is_voidIT_E5valueEvE4typeEPS2_", "k<int>(int *)"),
        (
            "_Z2k8IfEvPT_NSt11conditionalIXeqstS0_Li4EEilE4typeE",
            "k8<float>(float *, std::conditional<(sizeof(float) == 4), int, long>::type)",
        ),
        (
            "_Z2k3IfLb1EEvPT_St17integral_constantIbXT0_EE",
            "k3<float, true>(float *, std::integral_constant<bool, true>)",
        ),
        ("_Z2k4ILi3EEv1VIXmlT_Li2EEES0_IXplT_Li1EEEPf", "k4<3>(V<(3 * 2)>, V<(3 + 1)>, float *)"),
        ("_Z2k9I3BoxiEvT_IT0_EPS2_", "k9<Box, int>(Box<int>, int *)"),
        ("__nv_static_25__d6e9c21f_8_clock_cu_main__Z1kPfS_", "k(float *, float *)"),
    ],
)
def test_a_mangled_name_is_read_by_the_itanium_abi(mangled: str, called: str) -> None:
    read = demangle(mangled)
    assert read is not None
    arguments = "" if read.arguments is None else f"<{', '.join(read.arguments)}>"
    assert f"{read.name}{arguments}({', '.join(map(plain, read.parameters))})" == called


@pytest.mark.parametrize(
    "name", ["plain", "_Z", "_Z99k", "_ZN", "_Z1kIXcv3FooLi1EEEvv", "_Z1kIXsr3FooEEvv", "_Z1kS9_"]
)
def test_a_name_that_cannot_be_read_is_left_alone(name: str) -> None:
    assert demangle(name) is None


WRITTEN = """
static __global__ void __launch_bounds__(128) first(float b[], const float * __restrict__ p) {}
extern "C" { __global__ void second(float (*rows)[16], int n = 3) {} }
template <typename T, int N = 4> __global__ void third(T *p, const unsigned int q) {}
#ifdef NEVER
void __global__ fourth(void);
#endif
namespace a { namespace b { __global__ void fifth(struct pair s, unsigned long long z) {} } }
__device__ int helper(int i) { return i; }
"""


def test_every_kernel_of_a_source_is_found_with_its_parameters() -> None:
    found = {kernel.name: kernel for kernel in written_kernels(WRITTEN)}
    assert list(found) == ["first", "second", "third", "fourth", "a::b::fifth"]
    assert found["first"].parameters == (("float []", "b"), ("const float * __restrict__", "p"))
    assert found["second"].parameters == (("float (*)[16]", "rows"), ("int", "n"))
    assert found["third"].template == ("T", "N")
    assert found["fourth"].parameters == ()
    assert found["a::b::fifth"].line == 8


def test_a_signature_reads_as_c_declares_it() -> None:
    ptx = ".entry _Z5firstPfPKf(\n.param .u64 x\n)\n.visible .entry second(\n.param .u64 y\n)\n"
    assert [str(kernel) for kernel in list_kernels(ptx, [WRITTEN])] == [
        "first(float b[], const float * __restrict__ p)",
        "second(float (*rows)[16], int n)",
    ]


def test_what_ptx_says_to_be_a_pointer_is_one() -> None:
    ptx = (
        ".visible .entry k(\n\t.param .u64 .ptr .global .align 1 k_param_0,\n"
        "\t.param .u64 k_param_1,\n\t.param .u32 k_param_2\n)\n.reqntid 128, 1, 1\n{\n}\n"
        ".visible .entry free()\n{\n}\n"
    )
    bound, free = list_kernels(ptx)
    assert str(bound) == "k(void *k_param_0, u64 k_param_1, u32 k_param_2)"
    assert (bound.max_threads, free.max_threads) == (128, 0)


def test_an_overload_takes_the_writing_with_its_own_types() -> None:
    text = "__global__ void k(int *a, int n) {}\n__global__ void k(float *x, int m) {}\n"
    ptx = ".visible .entry _Z1kPfi(\n)\n.visible .entry _Z1kPii(\n)\n"
    assert [str(kernel) for kernel in list_kernels(ptx, [text])] == [
        "k(float *x, int m)",
        "k(int *a, int n)",
    ]


def test_an_overload_by_an_array_or_a_handle_is_told_from_the_others() -> None:
    text = (
        "__global__ void k(float *a) {}\n__global__ void k(float b[R][16]) {}\n"
        "__global__ void k(cudaSurfaceObject_t c) {}\n"
    )
    names = ("_Z1ky", "_Z1kPA16_f", "_Z1kPf")
    ptx = "".join(f".visible .entry {name}(\n)\n" for name in names)
    assert [str(kernel) for kernel in list_kernels(ptx, [text])] == [
        "k(cudaSurfaceObject_t c)",
        "k(float b[R][16])",
        "k(float *a)",
    ]


def test_nvcc_numbers_template_arguments_from_the_twelfth_on_in_decimal() -> None:
    # as of CUTE's gemm_device, of 13 template arguments: the ABI has TA_ and TB_ in their place
    many = "ifdcabhstjlm"
    name = demangle(f"_Z1kI{many}fEvT_T9_T10_T11_")
    assert name is not None
    assert name.parameters == ("int @", "long @", "unsigned long @", "float @")
    assert demangle(f"_Z1kI{many}fEvT_T9_TA_TB_") == name
    assert demangle("_Z1kIiEvT_T1_") is None
