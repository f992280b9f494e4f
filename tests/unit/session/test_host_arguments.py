import struct
from pathlib import Path

import numpy as np
import pytest

from cutrace.tracer.front.source import KernelSignature
from cutrace.tracer.ptx.kernel import TYPE_BYTES, Variable
from cutrace.tracer.session.arguments import (
    ArgumentError,
    Signature,
    pack_arguments,
    read_signature,
)
from cutrace.tracer.session.array import DeviceArray, allocate_array
from cutrace.tracer.session.recording import Recording
from cutrace.traces.schema import Argument
from cutrace.traces.writer import TraceWriter


def signature(*parameters: tuple[str, str, int]) -> Signature:
    """A kernel `k` of (C type, PTX element, bytes or 0 for the element's) named a, b, c..."""
    names = "abcdefgh"
    declared = tuple(
        Variable(f"k_param_{i}", "param", element, 8, size or TYPE_BYTES[element])
        for i, (_, element, size) in enumerate(parameters)
    )
    spoken = tuple((c_type or e, names[i]) for i, (c_type, e, _) in enumerate(parameters))
    return read_signature(KernelSignature("_Z1k", "k", spoken), declared)


def pack(c_type: str, element: str, value: object, size: int = 0) -> bytes:
    (data,), _ = pack_arguments(signature((c_type, element, size)), [value])
    return data


def refusal(c_type: str, element: str, value: object, size: int = 0) -> str:
    with pytest.raises(ArgumentError) as raised:
        pack(c_type, element, value, size)
    assert raised.value.number == 1
    return str(raised.value)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording(TraceWriter(tmp_path / "t.cutrace"), lambda text: None)


def array(recording: Recording, dtype: str, name: str = "d") -> DeviceArray:
    return allocate_array(recording, 4, dtype, name, is_pitched=False)


@pytest.mark.parametrize(
    ("c_type", "element", "value", "data"),
    [
        ("int", "u32", -2, b"\xfe\xff\xff\xff"),
        ("unsigned int", "u32", 2**32 - 1, b"\xff\xff\xff\xff"),
        ("char", "u8", -1, b"\xff"),
        ("unsigned char", "u8", 255, b"\xff"),
        ("short", "u16", -32768, b"\x00\x80"),
        ("long long", "u64", -1, b"\xff" * 8),
        ("size_t", "u64", 2**64 - 1, b"\xff" * 8),
        ("uint8_t", "u8", np.int64(7), b"\x07"),
        ("bool", "u8", True, b"\x01"),
        ("bool", "u8", np.bool_(False), b"\x00"),
        ("int", "u32", np.array(5, np.int16), b"\x05\x00\x00\x00"),
        ("float", "f32", 1, struct.pack("<f", 1.0)),
        ("float", "f32", np.float64(0.1), struct.pack("<f", 0.1)),
        ("double", "f64", np.float32(0.5), struct.pack("<d", 0.5)),
        ("__half", "b8", 1.5, b"\x00\x3e"),
    ],
)
def test_numbers_become_the_bytes_of_their_parameter(
    c_type: str, element: str, value: object, data: bytes
) -> None:
    assert pack(c_type, element, value, len(data)) == data


@pytest.mark.parametrize(
    ("c_type", "element", "value", "range_"),
    [
        ("int", "u32", 2**31, "-2147483648 to 2147483647"),
        ("unsigned int", "u32", -1, "0 to 4294967295"),
        ("unsigned", "u32", -1, "0 to 4294967295"),
        ("const signed char", "u8", 128, "-128 to 127"),
        ("uint16_t", "u16", 65536, "0 to 65535"),
        ("bool", "u8", 2, "0 to 1"),
        ("size_t", "u64", -1, "0 to 18446744073709551615"),
        ("index_t", "u32", -(2**31) - 1, "-2147483648 to 4294967295"),
        ("index_t", "u32", 2**32, "-2147483648 to 4294967295"),
    ],
)
def test_integers_keep_to_the_range_of_their_c_type(
    c_type: str, element: str, value: int, range_: str
) -> None:
    expected = f"k({c_type} a): argument 1 `a` is {c_type}: {value} is not in {range_}"
    assert refusal(c_type, element, value) == expected


def test_a_float_is_no_integer() -> None:
    assert "expected an integer, got float 3.0" in refusal("int", "u32", 3.0)


@pytest.mark.parametrize(
    ("c_type", "element", "size", "value"),
    [
        ("float", "f32", 4, 3.5e38),
        ("__half", "b8", 2, 65520.0),
        ("double", "f64", 8, 10**400),
    ],
)
def test_floats_keep_to_the_range_of_their_type(
    c_type: str, element: str, size: int, value: float
) -> None:
    message = refusal(c_type, element, value, size)
    assert f"is out of the range of {8 * size}-bit floats" in message


def test_infinity_is_a_float_and_has_a_text_in_the_trace() -> None:
    packed, described = pack_arguments(signature(("float", "f32", 0)), [float("inf")])
    assert packed == (struct.pack("<f", float("inf")),)
    assert described == (Argument("a", "float", "inf"),)


def test_a_pointer_takes_the_address_of_an_array(recording: Recording) -> None:
    d = array(recording, "i4")
    packed, described = pack_arguments(signature(("const int *", "u64", 0)), [d])
    assert packed == (d.address.to_bytes(8, "little"),)
    assert described == (Argument("a", "const int *", "d"),)


def test_none_is_the_null_pointer() -> None:
    assert pack("float *", "u64", None) == bytes(8)


@pytest.mark.parametrize(
    ("c_type", "dtype"),
    [
        ("int *", "u4"),
        ("unsigned int *__restrict__", "i4"),
        ("const float *", "f4"),
        ("unsigned long long *", "u8"),
        ("__half *", "f2"),
        ("bool *", "?"),
        ("uint8_t *", "i1"),
        ("long *", "i8"),
        ("float4 *", "f4"),
        ("void *", "f8"),
        ("float **", "u8"),
        ("pair<int, float> *", "i4"),
    ],
)
def test_a_pointer_takes_elements_of_its_own_size_and_kind(
    recording: Recording, c_type: str, dtype: str
) -> None:
    assert pack(c_type, "u64", array(recording, dtype)) != bytes(8)


@pytest.mark.parametrize(
    ("c_type", "dtype"),
    [("int *", "f4"), ("float *", "f8"), ("short *", "i4"), ("double *", "i8")],
)
def test_a_pointer_to_other_elements_is_refused_unless_viewed(
    recording: Recording, c_type: str, dtype: str
) -> None:
    d = array(recording, dtype)
    message = refusal(c_type, "u64", d)
    assert f"`a` is {c_type}: got `d` of {d.dtype}" in message


def test_a_view_has_the_same_address_as_another_type(recording: Recording) -> None:
    d = array(recording, "f4")
    assert pack("int *", "u64", d.view(np.int32)) == d.address.to_bytes(8, "little")


def test_a_host_array_is_not_yet_on_the_device() -> None:
    message = refusal("float *", "u64", np.zeros((2, 3), np.float32))
    assert "a host array of float32 and shape (2, 3); copy it with gpu.to_device" in message


def test_an_array_is_no_number(recording: Recording) -> None:
    message = refusal("int", "u32", array(recording, "i4"))
    assert "expected an integer, got the device array `d`" in message


def test_without_a_c_type_eight_bytes_are_an_array_or_an_integer(recording: Recording) -> None:
    d = array(recording, "f4")
    assert pack("", "u64", d) == d.address.to_bytes(8, "little")
    assert pack("", "u64", -1) == b"\xff" * 8
    assert refusal("", "b64", 1.5).startswith(
        "k(b64 a): argument 1 `a` is .b64: expected an integer"
    )


def test_a_struct_is_passed_by_its_bytes() -> None:
    layout = np.dtype([("a", "i4"), ("b", "f4"), ("c", "f8")], align=True)
    value = np.array((1, 0.5, 2.0), layout)[()]
    packed, described = pack_arguments(signature(("Point", "b8", 16)), [value])
    expected = struct.pack("<ifd", 1, 0.5, 2.0)
    assert packed == (expected,)
    assert described == (Argument("a", "Point", expected.hex()),)


def test_a_vector_type_takes_an_array_of_its_size() -> None:
    assert pack("float4", "b8", np.arange(4, dtype=np.float32), 16) == struct.pack("<4f", *range(4))


def test_a_struct_of_another_size_is_refused() -> None:
    message = refusal("Point", "b8", np.zeros(3, np.float32), 16)
    assert "is Point of 16 bytes: expected a NumPy scalar of that size" in message
    assert message.endswith("got 12 bytes")


def test_the_count_of_arguments_is_checked_against_the_c_signature() -> None:
    with pytest.raises(ArgumentError) as raised:
        pack_arguments(signature(("int *", "u64", 0), ("int", "u32", 0)), [1, 2, 3])
    assert str(raised.value) == "k(int *a, int b): expected 2 arguments, got 3"
    assert raised.value.number == 0


def test_the_second_argument_is_called_by_its_number_and_name() -> None:
    with pytest.raises(ArgumentError, match="argument 2 `b` is int") as raised:
        pack_arguments(signature(("int", "u32", 0), ("int", "u32", 0)), [1, "2"])
    assert raised.value.number == 2
