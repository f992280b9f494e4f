"""NVTX ranges of a program are in its trace, with the launches that it makes in them."""

import json
from pathlib import Path

from program_run import cutrace, record

SOURCE = """
#include <nvToolsExt.h>  // of CUDA 12 and older, and its library below
__global__ void put(int *x) { x[threadIdx.x] = blockIdx.x; }

int main()
{
    int *d;
    CHECK(cudaMalloc(&d, 4096));
    put<<<1, 32>>>(d);
    nvtxRangeId_t whole = nvtxRangeStartA("whole");
    nvtxDomainHandle_t domain = nvtxDomainCreateA("solver");
    nvtxEventAttributes_t event = {};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, "relax");
    printf("%d ", nvtxRangePushA("step"));
    nvtxDomainRangePushEx(domain, &event);
    put<<<2, 32>>>(d);
    nvtxDomainRangePop(domain);
    printf("%d ", nvtxRangePushW(L"na\\u00efve"));
    put<<<3, 32>>>(d);
    printf("%d ", nvtxRangePop());
    nvtxRangeEnd(whole);
    put<<<4, 32>>>(d);
    printf("%d ", nvtxRangePop());
    printf("%d", nvtxRangePop() < 0);
}
"""


def test_a_launch_has_the_ranges_in_which_it_was_called_for(tmp_path: Path) -> None:
    done = record(tmp_path, SOURCE, options=["--nvcc-flags=-lnvToolsExt"])
    # push and pop answer how deep the range is, from 0 on, and a negative number without one
    assert (done.status, done.out) == (0, "0 1 1 0 1"), done.err
    assert [each.launch.ranges for each in done.trace.launches] == [
        (),
        ("whole", "step", "solver@relax"),
        ("whole", "step", "naïve"),
        ("step",),
    ]
    said = cutrace(tmp_path, "info", "app.cutrace", "--launch", "1").out
    assert "whole / step / solver@relax" in said
    assert "In range step." in cutrace(tmp_path, "analyze", "app.cutrace", "--launch", "3").out
    found = json.loads(cutrace(tmp_path, "analyze", "app.cutrace", "--format", "json").out)
    assert [each.get("ranges", "") for each in found["launches"]] == [
        *("", "whole / step / solver@relax", "whole / step / naïve", "step")
    ]
    # a block is one warp, which makes one request
    line = ("analyze", "app.cutrace", "--by", "range", "--counters", "global_store_requests")
    table = cutrace(tmp_path, *line).out.splitlines()
    ranges = ("in no range", "whole / step / solver@relax", "whole / step / naïve", "step")
    for number, name in enumerate(ranges):
        (cells,) = (row.split() for row in table if row.startswith(f"{name}  "))
        assert cells[-3:] == [str(number + 1), "launch", str(number)]
