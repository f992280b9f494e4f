"""Variables, parameters and their initial values (PTX ISA, 5.1 to 5.4)."""

import struct

import pytest
from ptx.ptx_text import module_of

from cutrace.tracer.ptx.kernel import Variable


def variable(text: str) -> Variable:
    """Parse one declaration at module level."""
    (found,) = module_of(text).variables.values()
    return found


@pytest.mark.parametrize(
    ("text", "space", "element", "align", "size"),
    [
        (".global .b32 v;", "global", "b32", 4, 4),
        (".visible .const .align 16 .b8 v[40];", "const", "b8", 16, 40),
        (".shared .f64 v[4][8];", "shared", "f64", 8, 256),
        (".global .v4 .f32 v;", "global", "f32", 16, 16),
        (".global .align 4 .v2 .u16 v[3];", "global", "u16", 4, 12),
        (".const[3] .u32 v;", "const", "u32", 4, 4),
        (".global .attribute(.managed) .align 8 .s32 v;", "global", "s32", 8, 4),
        (".global .b8 v[4*8+2];", "global", "b8", 1, 34),
        (".global .texref v;", "global", "texref", 8, 8),
        (".tex .u32 v;", "tex", "u32", 4, 4),
        (".weak .global .u64 v;", "global", "u64", 8, 8),
        (".common .global .align 8 .u64 v;", "global", "u64", 8, 8),
    ],
)
def test_space_type_alignment_and_size(
    text: str, space: str, element: str, align: int, size: int
) -> None:
    found = variable(text)
    assert (found.space, found.element, found.align, found.size) == (space, element, align, size)
    assert not found.is_extern
    assert found.is_managed == (".managed" in text)


def test_open_shared_array_is_extern_of_size_0() -> None:
    found = variable(".extern .shared .align 16 .b8 v[];")
    assert (found.is_extern, found.align, found.size) == (True, 16, 0)


def test_a_definition_replaces_its_extern_declaration() -> None:
    found = variable(".extern .global .b32 v;\n.global .b32 v = 3;")
    assert (found.is_extern, found.initializer) == (False, b"\3\0\0\0")


def test_one_declaration_may_have_several_names() -> None:
    variables = module_of(".global .u16 x = 1, y[2] = {2, 3}, z<3>;").variables
    assert list(variables) == ["x", "y", "z0", "z1", "z2"]
    assert variables["y"].initializer == b"\2\0\3\0"


@pytest.mark.parametrize(
    ("text", "image"),
    [
        (".global .b8 v[6] = {1, 0xFF, 010, 0b11};", b"\1\xff\10\3"),
        (".global .b8 v[4] = {1, 2, 255};", b"\1\2\xff"),
        (".global .b8 v[4] = {1, 02, -1};", b"\1\2\xff"),
        (".global .s32 v = -2;", b"\xfe\xff\xff\xff"),
        (".global .u16 v[] = {1, 2, 3};", b"\1\0\2\0\3\0"),
        (".global .f32 v = 0f3F800000;", struct.pack("<f", 1.0)),
        (".global .f32 v[2] = {1.5, -2};", struct.pack("<2f", 1.5, -2.0)),
        (".global .f64 v = 0d4000000000000000;", struct.pack("<d", 2.0)),
        (".global .f64 v = 0f3F800000;", struct.pack("<d", 1.0)),
        (".global .b32 v = 0f3F800000;", struct.pack("<f", 1.0)),
        (".global .b64 v = 1 << 40;", struct.pack("<Q", 1 << 40)),
        (".global .u32 v[2] = {WARP_SZ, 4*8+2};", struct.pack("<2I", 32, 34)),
        ('.global .b8 v[] = "hi";', b"hi\0"),
        # {-1, 0}, {1}, {}, {2}: each inner brace starts at the next whole row of 2 bytes
        (".global .s8 v[][2] = { {-1, 0}, {1}, {}, {2} };", b"\xff\0\1\0\0\0\2"),
        (".global .s8 v[2][2] = { 1, 2, 3, 4 };", b"\1\2\3\4"),
        (".global .v2 .u8 v[2] = { {1, 2}, {3, 4} };", b"\1\2\3\4"),
    ],
)
def test_initial_values_are_little_endian_bytes(text: str, image: bytes) -> None:
    assert variable(text).initializer == image


def test_an_open_array_is_as_long_as_its_values() -> None:
    assert variable(".global .u16 v[] = {1, 2, 3};").size == 3 * 2
    assert variable(".global .s8 v[][2] = { {1}, {2}, {3} };").size == 3 * 2


def test_addresses_in_initial_values_are_relocations() -> None:
    outside = (
        ".global .b8 t[64];\n.func f() { ret; }\n"
        ".global .u64 v[5] = {t, t+8, generic(t), generic(t)+16, f};"
    )
    found = module_of(outside).variables["v"]
    assert found.relocations == (
        (0, "t", 0),
        (8, "t", 8),
        (16, "t", 0),
        (24, "t", 16),
        (32, "f", 0),
    )


@pytest.mark.parametrize("place", ["t", "t+8", "generic(t)", "generic(t)+8"])
def test_eight_masked_bytes_make_one_address(place: str) -> None:
    masks = ", ".join(f"0xFF{'00' * byte}({place})" for byte in range(8))
    text = f".global .b8 t[64];\n.global .align 1 .b8 v[10] = {{7, {masks}, 3}};"
    found = module_of(text).variables["v"]
    assert found.initializer == b"\7" + bytes(8) + b"\3"
    assert found.relocations == ((1, "t", 8 if place.endswith("+8") else 0),)


def test_an_initial_value_may_name_what_is_declared_later() -> None:
    found = module_of(".global .u64 v = f;\n.func f() { ret; }").variables["v"]
    assert found.relocations == ((0, "f", 0),)


def test_values_of_a_sampler_are_passed_over() -> None:
    text = ".global .samplerref v = { addr_mode_0 = clamp_to_border, filter_mode = nearest };"
    assert variable(text).initializer == b""


def test_parameters_of_entries() -> None:
    text = """.visible .entry k(
        .param .u64 .ptr .global .align 16 p,
        .param .u64 .ptr q,
        .param .align 8 .b8 s[24],
        .param .f32 x
    ) .maxntid 256, 2, 1 .minnctapersm 2 .maxnreg 32 .noreturn { ret; }"""
    entry = module_of(text).functions["k"]
    assert [(v.name, v.pointer_space, v.align, v.size) for v in entry.parameters] == [
        ("p", "global", 8, 8),
        ("q", "generic", 8, 8),
        ("s", None, 8, 24),
        ("x", None, 4, 4),
    ]
    assert entry.directives == {
        "maxntid": (256, 2, 1),
        "minnctapersm": (2,),
        "maxnreg": (32,),
        "noreturn": (),
    }


def test_functions_of_old_ptx_pass_registers() -> None:
    text = """.func (.reg .u32 result) twice (.reg .u32 x)
    { add.u32 result, x, x; ret; }"""
    function = module_of(text).functions["twice"]
    assert [(v.name, v.space) for v in function.returns + function.parameters] == [
        ("result", "reg"),
        ("x", "reg"),
    ]
    assert function.registers == {"result": "u32", "x": "u32"}


def test_a_function_without_a_body_is_extern_until_it_is_defined() -> None:
    declared = ".extern .func (.param .b32 r) f (.param .b64 x, .param .b64 y)\n;"
    assert module_of(declared).functions["f"].is_extern
    defined = declared + ".func (.param .b32 r) f (.param .b64 x, .param .b64 y) { ret; }"
    assert not module_of(defined + declared).functions["f"].is_extern


def test_version_target_and_aliases() -> None:
    module = module_of(".func f() { ret; }\n.alias g, f;")
    assert (module.version, module.target, module.address_size) == ("8.0", "sm_80", 64)
    assert module.aliases == {"g": "f"}


def test_unknown_directives_are_warned_about() -> None:
    text = """.future 1, 2 { .b8 1 }
    .visible .entry k() .shiny 3 { .sparkle "x";
    ret; }"""
    assert [warning.split(" is not")[0] for warning in module_of(text).warnings] == [
        "PTX line 4: directive .future",
        "PTX line 5: directive .shiny",
        "PTX line 5: directive .sparkle",
    ]


def test_debug_sections_and_comments_are_passed_over() -> None:
    text = """@@DWARF .section .debug_info
    // a comment { ( "
    /* another { */
    .section .debug_str { $L__info_string0: .b8 95, 90 }
    .section .debug_loc { }
    .pragma "nounroll";
    .visible .entry k() { .pragma "used_bytes_mask 0xf"; ret; } // the end"""
    module = module_of(text)
    assert (list(module.functions), module.warnings) == (["k"], ())
