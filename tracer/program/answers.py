"""What an answer to a program is: the fields of `runtime/wire.h`, or an error of CUDA's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Answer: TypeAlias = Sequence[Any] | int
Verbs: TypeAlias = Mapping[str, Callable[..., Answer]]
"""What answers a message, by its name."""

SUCCESS = 0
INVALID_VALUE = 1
OUT_OF_MEMORY = 2
INVALID_CHANNEL_DESCRIPTOR = 20
INVALID_RESOURCE_HANDLE = 400
SYMBOL_NOT_FOUND = 500
INVALID_FILTER_SETTING = 26
INVALID_NORM_SETTING = 27
NOT_READY = 600
ILLEGAL_ADDRESS = 700
LAUNCH_TIMEOUT = 702
ASSERT = 710
MISALIGNED_ADDRESS = 716
LAUNCH_FAILURE = 719
NOT_SUPPORTED = 801
INVALID_CLUSTER_SIZE = 912
INVALID_IMAGE = 200
NO_IMAGE = 209
"""cudaError_t, of CUDA's driver_types.h."""
