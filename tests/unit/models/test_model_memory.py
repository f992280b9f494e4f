from dataclasses import replace

import numpy as np
from cases.cache_case import ATOMIC, LOAD, STORE, batch_of, column

from cutrace.models.memory import Memory
from cutrace.models.replay.interface.model import Kind


def test_loads_are_read_and_stores_are_written() -> None:
    wide = Kind("texture", "load", "", 128)
    step = Memory().step(batch_of([(LOAD, 0), (STORE, 64), (wide, 0)]))
    assert column(step, "bytes_read") == [32, 0, 128]
    assert column(step, "bytes_written") == [0, 32, 0]


def test_an_atomic_that_no_cache_does_reads_and_writes() -> None:
    step = Memory().step(batch_of([(ATOMIC, 0), (Kind("global", "reduction", "", 32), 0)]))
    assert column(step, "bytes_read") == [32, 32]
    assert column(step, "bytes_written") == [32, 32]


def test_memory_keeps_nothing_in_mind() -> None:
    batch = batch_of([(LOAD, 0)] * 3)
    counts = [Memory().step(batch.take(np.array([n]))).counts["bytes_read"][0] for n in range(3)]
    assert counts == [32, 32, 32] == column(Memory().step(batch), "bytes_read")


def test_what_groups_move_is_added_up() -> None:
    """Group 0 reads two sectors and writes one, group 2 writes one."""
    batch = batch_of([(LOAD, 0), (STORE, 64), (STORE, 0), (LOAD, 32)])
    step = Memory().step(replace(batch, group=np.array([0, 0, 2, 0]), groups=3))
    assert column(step, "bytes_read") == [64, 0, 0]
    assert column(step, "bytes_written") == [32, 0, 32]
