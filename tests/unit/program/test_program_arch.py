"""Programs for `sm_90a` and its like, and for several architectures at once."""

from pathlib import Path

import pytest
from program_run import cutrace, record_built

from cutrace.base.errors import CutraceError
from cutrace.tracer.program.build import for_device
from cutrace.tracer.program.code import PTX, Entry, choose_ptx, link_texts, read_ptx

MACROS = r"""
#include <cstdio>
__global__ void which(int *out)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    out[0] = 1;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
#endif
#ifdef __CUDA_ARCH_SPECIFIC__
    out[1] = __CUDA_ARCH_SPECIFIC__;
#endif
#ifdef __CUDA_ARCH_FAMILY_SPECIFIC__
    out[2] = __CUDA_ARCH_FAMILY_SPECIFIC__;
#endif
#ifdef __CUDA_ARCH__
    out[3] = __CUDA_ARCH__;
#endif
}
int main()
{
    int *out;
    cudaMallocManaged(&out, 16);
    for (int i = 0; i < 4; i++)
        out[i] = 0;
    cudaFuncAttributes facts;
    cudaFuncGetAttributes(&facts, which);
    which<<<1, 128>>>(out);
    cudaError_t launched = cudaGetLastError(), ended = cudaDeviceSynchronize();
    printf("%s: %d %d %d %d\n", cudaGetErrorString(launched ? launched : ended), out[0], out[1],
           out[2], out[3]);
}
"""
BOTH = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a"


@pytest.mark.parametrize(
    ("options", "device", "macros"),
    [
        ("-arch=sm_90a", "h200", "1 900 900 900"),
        ("-arch=sm_90", "h200", "0 0 0 900"),
        ("-gencode arch=compute_80,code=sm_90", "h200", "0 0 0 800"),
        (BOTH, "h200", "1 900 900 900"),
        (BOTH, "b200", "0 0 0 800"),
        (BOTH, "a100", "0 0 0 800"),
    ],
)
def test_a_program_gets_the_code_for_its_device(
    tmp_path: Path, options: str, device: str, macros: str
) -> None:
    done = record_built(tmp_path, MACROS, words=options.split(), options=("-d", device))
    assert f"no error: {macros}\n" in done.out, done.err


def compiled(target: str) -> Entry:
    """PTX for `sm_90a`, in an image whose head has the number alone."""
    digits = "".join(filter(str.isdigit, target))
    return Entry(PTX, int(digits), f"// {target}\n.version 9.0\n.target sm_{target}\n".encode())


@pytest.mark.parametrize(
    ("targets", "capability", "chosen"),
    [
        ("80 90 90a", 90, "90a"),
        ("90a 80 90", 90, "90a"),
        ("80 90a", 100, "80"),
        ("80 90a 100f", 103, "100f"),
        ("100 100f 100a", 100, "100a"),
        ("100 100f 100a", 103, "100f"),
        ("100 100f 100a", 120, "100"),
        ("100f 75", 120, "75"),
        ("75 80", 20, "75"),  # older than any code of nvcc 13, whose oldest runs there
    ],
)
def test_a_device_gets_the_newest_and_most_special_that_it_runs(
    targets: str, capability: int, chosen: str
) -> None:
    images = [[compiled(target) for target in targets.split()]]
    (text,) = choose_ptx(images, capability)
    assert text.startswith(f"// {chosen}\n")


@pytest.mark.parametrize(
    ("targets", "capability", "message"),
    [
        ("90a", 80, r"8\.0, the code for sm_90a \(9\.0 alone\): choose -d sm_90"),
        ("90a", 100, r"10\.0, the code for sm_90a \(9\.0 alone\): choose -d sm_90"),
        ("100f 100a", 90, r"sm_100f \(10\.0 to 10\.9\), sm_100a \(10\.0 alone\): choose -d sm_100"),
        ("120f", 103, r"10\.3, the code for sm_120f \(12\.0 to 12\.9\): choose -d sm_120"),
        ("89 86", 80, r"sm_86 \(8\.6 and newer\), sm_89 \(8\.9 and newer\): choose -d sm_86"),
        ("80", 70, r"7\.0, the code for sm_80 \(8\.0 and newer\): choose -d sm_80"),
    ],
)
def test_code_that_a_device_does_not_run_is_named_with_the_devices_that_do(
    targets: str, capability: int, message: str
) -> None:
    images = [[compiled(target) for target in targets.split()]]
    with pytest.raises(CutraceError, match=message):
        choose_ptx(images, capability)
    with pytest.raises(CutraceError, match="choose -d sm_"):
        read_ptx(images[0][0].data, capability)


def test_texts_for_90_and_for_90a_link_to_one_for_90a_of_the_newest_version() -> None:
    texts = [
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry a() { ret; }\n",
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry b() { ret; }\n",
    ]
    for order in (texts, texts[::-1]):
        assert link_texts(order).splitlines()[:3] == [
            ".version 9.0",
            ".target sm_90a",
            ".address_size 64",
        ]


def test_a_program_for_another_device_gets_the_drivers_error_and_the_line_names_it(
    tmp_path: Path,
) -> None:
    done = record_built(tmp_path, MACROS, words=("-arch=sm_90a",), options=("-d", "a100"))
    assert done.out.startswith("no kernel image is available for execution on the device: 0"), (
        done.out
    )
    assert done.err.count("the code for sm_90a (9.0 alone): choose -d sm_90") == 1


@pytest.mark.parametrize(
    "options",
    ["-arch=sm_90b", "-arch sm_90b", "-gencode arch=compute_90b,code=sm_90b", "-arch=sm_91"],
)
def test_an_architecture_that_does_not_exist_is_nvccs_error(tmp_path: Path, options: str) -> None:
    (tmp_path / "which.cu").write_text(MACROS)
    built = cutrace(tmp_path, "nvcc", *options.split(), "-o", "which", "which.cu")
    assert built.status == 1
    assert f"Unsupported gpu architecture 'compute_{options[-3:].strip('_')}'" in built.err


def test_a_source_is_compiled_for_the_best_architecture_of_the_device_alone() -> None:
    words = [
        "-gencode",
        "arch=compute_80,code=sm_80",
        "-gencode",
        "arch=compute_90a,code=sm_90a",
        "-O3",
    ]
    assert for_device(words, 90) == ["-arch=compute_90a", "-O3"]
    assert for_device(words, 100) == ["-arch=compute_80", "-O3"]
    assert for_device(words, 75) == words  # none runs: the driver refuses the program
    assert for_device(["-arch=sm_90a"], 80) == ["-arch=sm_90a"]
