"""Operators of a torch with CUDA: computed on the host in their turn, named in the trace."""

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from program_run import HEAD, cutrace

from cutrace.tracer.program.startup import torch_host

IN_TURN = r"""
#include <dlfcn.h>
typedef int operate(cudaStream_t, const char *, void *, void (*)(void));
static float *x;
static void add() { x[0] += 1; }
static void twice() { x[0] *= 2; }
__global__ void square() { }
int main() {
    operate *compute = (operate *)dlsym(RTLD_DEFAULT, "_cutrace_operator");
    cudaStream_t stream; cudaGraph_t graph; cudaGraphExec_t run;
    CHECK(cudaMallocManaged(&x, 4)); CHECK(cudaStreamCreate(&stream));
    x[0] = 3;
    int did = compute(stream, "aten::add_.Scalar", x, add);
    printf("%d %g; ", did, x[0]);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    compute(stream, "aten::mul_.Scalar", x, twice);
    CHECK(cudaMemsetAsync(x + 0, 0, 0, stream));
    compute(stream, "aten::add_.Scalar", x, add);
    CHECK(cudaStreamEndCapture(stream, &graph));
    printf("%g; ", x[0]);
    CHECK(cudaGraphInstantiate(&run, graph, 0));
    CHECK(cudaGraphLaunch(run, stream)); CHECK(cudaGraphLaunch(run, stream));
    CHECK(cudaStreamSynchronize(stream));
    printf("%g", x[0]);
}
"""


def test_an_operator_is_computed_in_its_turn_and_by_each_replay(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(HEAD + IN_TURN)
    built = cutrace(tmp_path, "nvcc", "app.cu", "-ldl", "-o", "app")
    assert built.status == 0, built.err
    done = cutrace(tmp_path, "record", "--", "./app")
    # 3 + 1; captured operators wait; 2 (2 * 4 + 1) + 1 = 19
    assert done.out == "0 4; 4; 19", done.err
    names = [event.name for event in done.trace.manifest.events if event.kind == "library"]
    replay = ["aten::mul_.Scalar", "aten::add_.Scalar"]
    assert names == ["aten::add_.Scalar", *replay, *replay]
    assert not done.trace.launches


def test_operators_that_launch_kernels_are_replaced_and_no_others() -> None:
    class Operators:
        def __getattr__(self, name: str) -> Any:
            return SimpleNamespace(default=SimpleNamespace(name=lambda: name), out=None)

    replaced: list[str] = []
    kinds = {f"enable_{kind}_sdp": lambda on: None for kind in ("flash", "mem_efficient", "cudnn")}
    listed = ["aten::mm", "aten::empty.memory_format", "aten::cudnn_convolution", "other::op"]

    class Range:
        name = "step"

        def __enter__(self) -> str:
            return self.name

        def __exit__(self, *problem: object) -> None:
            pass

    pushed: list[str] = []
    pools: list[bool] = []
    graph = SimpleNamespace(capture_begin=lambda: pools.append)
    nvtx = SimpleNamespace(range_push=pushed.append, range_pop=lambda: pushed.append("pop"))
    library = SimpleNamespace(impl=lambda name, function, key: replaced.append(f"{name} {key}"))
    torch = SimpleNamespace(
        version=SimpleNamespace(cuda="13.0"),
        backends=SimpleNamespace(cudnn=SimpleNamespace(), cuda=SimpleNamespace(**kinds)),
        library=SimpleNamespace(Library=lambda name, kind: library),
        ops=SimpleNamespace(aten=Operators()),
        autograd=SimpleNamespace(profiler=SimpleNamespace(record_function=Range)),
        cuda=SimpleNamespace(nvtx=nvtx, CUDAGraph=graph),
        nn=SimpleNamespace(Module=SimpleNamespace(_apply=None)),
        _C=SimpleNamespace(
            _dispatch_get_registrations_for_dispatch_key=lambda key: listed,
            _cuda_cudaCachingAllocator_enable=pools.append,
        ),
    )
    torch_host.choose_host(torch)
    assert replaced == ["mm CUDA", "copy_ CUDA", "convolution CUDA"]
    assert torch.backends.cudnn.enabled is False
    assert pools == [False]  # each tensor is an array
    graph.capture_begin()
    assert pools == [False, True]  # graphs have pools
    with Range() as name:
        assert (name, pushed) == ("step", ["step"])
    assert pushed == ["step", "pop"]


def test_attention_of_a_gpu_is_computed_by_the_cpus_operator() -> None:
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    class Tensor(str):
        def size(self, dimension: int) -> int:
            return len(self) + dimension

        def new_empty(self, size: int) -> str:
            return "empty"

    def operator(name: str) -> Any:
        def call(*values: Any, **named: Any) -> tuple[str, ...]:
            calls.append((name, values, named))
            return ("dq", "dk", "dv") if name.endswith("backward") else ("out", "sums")

        return call

    cpu = "_scaled_dot_product_flash_attention_for_cpu"
    names = (cpu, f"{cpu}_backward")
    torch: Any = SimpleNamespace(
        ops=SimpleNamespace(aten=SimpleNamespace(**{name: operator(name) for name in names})),
        empty=lambda size, dtype: "lengths",
        zeros=lambda size, dtype: "seed",
        int32=None,
        int64=None,
    )
    flash = torch_host.PARTS["aten::_scaled_dot_product_flash_attention"]
    back = torch_host.PARTS["aten::_scaled_dot_product_flash_attention_backward"]
    values = (Tensor("q"), Tensor("keys"), Tensor("v"))
    got = flash(torch, *values, 0.0, True, scale=0.5)
    # lengths of queries and keys: the third dimension
    assert got == ("out", "sums", "lengths", "lengths", 3, 6, "seed", "seed", "empty")
    arguments = ("above", *values, *got[:6], 0.0, True, *got[6:8])
    assert back(torch, *arguments, scale=0.5) == ("dq", "dk", "dv")
    assert calls == [
        (names[0], (*values, 0.0, True), {"scale": 0.5}),
        (names[1], ("above", *values, "out", "sums", 0.0, True), {"scale": 0.5}),
    ]
    calls.clear()
    efficient = torch_host.PARTS["aten::_scaled_dot_product_efficient_attention"]
    back = torch_host.PARTS["aten::_scaled_dot_product_efficient_attention_backward"]
    got = efficient(torch, *values, "bias", True)
    assert got == ("out", "sums", "seed", "seed")
    arguments = ("above", *values, "bias", *got, 0.0)
    assert back(torch, *arguments, [True, True, True, False]) == ("dq", "dk", "dv", None)
    named = {"attn_mask": "bias", "scale": None}
    assert calls == [
        (names[0], (*values, 0.0, False), named),
        (names[1], ("above", *values, "out", "sums", 0.0, False), named),
    ]
    with pytest.raises(NotImplementedError, match="the gradient of an attention's bias"):
        back(torch, *arguments, [True] * 4)


TRAINED = """
import torch, torch.nn.functional as F
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
x, y = torch.randn(5, 8), torch.randint(0, 4, (5,))
def gradients(x, y):
    model.zero_grad()
    F.cross_entropy(model(x), y).backward()
    return [each.grad.cpu().clone() for each in model.parameters()]
host = gradients(x, y)
model.cuda()
for a, b in zip(host, gradients(x.cuda(), y.cuda())):
    assert torch.allclose(a, b)
graph, a = torch.cuda.CUDAGraph(), torch.ones(4, device="cuda")
with torch.cuda.graph(graph):
    b = a * 2 + 1
    a.add_(1)
assert a.tolist() == [1] * 4
a.fill_(5)
graph.replay()
assert (a.tolist(), b.tolist()) == ([6] * 4, [11] * 4)
z = torch.view_as_complex(torch.randn(3, 2, device="cuda"))
assert torch.equal(z.conj().resolve_conj().cpu(), z.cpu().conj())
out = torch.empty(0, device="cuda")
torch.add(a, a, out=out)
assert out.tolist() == [12] * 4
for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
    torch.manual_seed(1)
    net, x = kind(6, 5, num_layers=2, batch_first=True), torch.randn(3, 4, 6)
    def outcome(x):
        net.zero_grad()
        y, _ = net(x)
        (y * y).sum().backward()
        return [y.detach().cpu(), *(each.grad.cpu().clone() for each in net.parameters())]
    host = outcome(x)
    net.cuda()
    for a, b in zip(host, outcome(x.cuda())):
        assert torch.allclose(a, b, atol=1e-6), kind
norm, x = torch.nn.BatchNorm1d(3).cuda(), torch.randn(8, 3, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = norm(x)
assert norm.running_mean.tolist() == [0, 0, 0]
graph.replay()
assert torch.allclose(norm.running_mean, 0.1 * x.mean(0), atol=1e-6)
a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
a.record()
with torch.profiler.record_function("step"):
    x + x
b.record()
b.synchronize()
assert a.elapsed_time(b) >= 0
"""


def _has_cuda_torch() -> bool:
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    return any("cuda" in each.name for each in Path(spec.origin).parent.glob("lib/*.so"))


@pytest.mark.slow
@pytest.mark.skipif(not _has_cuda_torch(), reason="needs pip install torch, built with CUDA")
def test_gradients_are_those_of_the_cpu_and_nothing_is_a_launch(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(TRAINED)
    done = cutrace(tmp_path, "record", "app.py")
    assert done.status == 0, done.err
    names = {event.name for event in done.trace.manifest.events if event.kind == "library"}
    assert {"aten::addmm", "aten::gelu_backward"} <= names
    assert not done.trace.launches


NAMED = """
import torch, triton, triton.language as tl
@triton.jit
def scale(x_ptr, weight_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * tl.load(weight_ptr + at))
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(64)).cuda()
x = torch.randn(64, device="cuda")
scale[(1,)](x, model[1].weight, torch.empty_like(x), BLOCK=64)
"""


@pytest.mark.slow
@pytest.mark.skipif(not _has_cuda_torch(), reason="needs pip install torch, built with CUDA")
def test_a_parameter_of_a_module_is_an_array_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(NAMED)
    done = cutrace(tmp_path, "record", "app.py")
    (launch,) = done.trace.launches
    values = {each.name: each.value for each in launch.launch.arguments}
    assert (values["weight_ptr"], values["x_ptr"]) == ("1.weight", "x_ptr"), done.err
