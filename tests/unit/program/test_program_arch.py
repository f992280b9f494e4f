"""Programs for `sm_90a` and its like, and for several architectures at once."""

from pathlib import Path

import pytest
from program_run import cutrace

from cutrace.tracer.program.code import PTX, Entry, choose_ptx

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
    which<<<1, 128>>>(out);
    printf("%s: %d %d %d %d\n", cudaGetErrorString(cudaDeviceSynchronize()), out[0], out[1],
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
    (tmp_path / "which.cu").write_text(MACROS)
    built = cutrace(tmp_path, "nvcc", *options.split(), "-o", "which", "which.cu")
    assert built.status == 0, built.err
    done = cutrace(tmp_path, "record", "-d", device, "-o", "out.cutrace", "--", "./which")
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
        ("86 89", 80, "86"),  # nothing fits: the oldest
    ],
)
def test_a_device_gets_the_newest_and_most_special_that_it_runs(
    targets: str, capability: int, chosen: str
) -> None:
    images = [[compiled(target) for target in targets.split()]]
    (text,) = choose_ptx(images, capability)
    assert text.startswith(f"// {chosen}\n")
