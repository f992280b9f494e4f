"""What waves work in goes, or goes on to others, as soon as they have run."""

import gc
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.tracer.simt import wave
from cutrace.tracer.simt.memory import memory as memory_module
from cutrace.tracer.simt.memory.memory import BufferPool, Memory
from cutrace.tracer.simt.rows.pattern import PatternTable
from cutrace.tracer.simt.wave import Wave

TWICE = "__global__ void twice(int *a) { a[threadIdx.x] *= 2; }"


def launch(trace: Path) -> None:
    with cutrace.Session(trace, engine="compiled") as gpu:
        a = gpu.to_device(np.arange(64, dtype=np.int32))
        gpu.compile(TWICE).get_function("twice")[1, 64](a)


def live_waves() -> list[Wave]:
    return [each for each in gc.get_objects() if isinstance(each, Wave)]


def test_a_wave_goes_without_waiting_for_the_collector(tmp_path: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        others = live_waves()  # another test's session may still be open in this process
        launch(tmp_path / "t.cutrace")
        waves = [wave for wave in live_waves() if not any(wave is other for other in others)]
    finally:
        gc.enable()
    assert waves == []


def test_a_session_works_in_the_memory_of_one_that_has_ended(tmp_path: Path) -> None:
    kept = wave._POOLS._kept
    launch(tmp_path / "one.cutrace")
    (first,) = kept
    launch(tmp_path / "two.cutrace")
    (second,) = kept
    assert second is first


def test_sessions_that_are_open_together_share_no_memory() -> None:
    patterns, one, two = BufferPool(PatternTable), Memory(), Memory()
    assert patterns.of(one) is not patterns.of(two)
    assert patterns.of(one) is patterns.of(one)


def test_more_than_so_many_bytes_go_with_their_session(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns, memory = BufferPool(PatternTable), Memory()
    monkeypatch.setattr(memory_module, "MOST_BYTES", patterns.of(memory).nbytes - 1)
    BufferPool.end(memory)
    assert patterns._kept == []
