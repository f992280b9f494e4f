"""What waves work in goes, or goes on to others, as soon as they have run."""

import gc
from pathlib import Path

import numpy as np

import cutrace
from cutrace.tracer.engine.compiled.wave import CompiledWave

TWICE = "__global__ void twice(int *a) { a[threadIdx.x] *= 2; }"


def launch(trace: Path) -> None:
    with cutrace.Session(trace, engine="compiled") as gpu:
        a = gpu.to_device(np.arange(64, dtype=np.int32))
        gpu.compile(TWICE).get_function("twice")[1, 64](a)


def test_a_wave_goes_without_waiting_for_the_collector(tmp_path: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        launch(tmp_path / "t.cutrace")
        waves = [each for each in gc.get_objects() if isinstance(each, CompiledWave)]
    finally:
        gc.enable()
    assert waves == []
