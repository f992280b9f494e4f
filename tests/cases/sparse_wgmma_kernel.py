"""PTX of a warpgroup that runs one `wgmma.mma_async.sp`, and the forms that ran on an H100."""

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 box[4096];\n"
A_BYTES, B_BYTES = 2048, 512
"""64 rows of 32 bytes of A, and 8 columns of 64 bytes of B."""


FORMS = {
    "f16": ("m64n8k32.f32.f16.f16", ", 0, 0"),
    "f16h": ("m64n8k32.f16.f16.f16", ", 0, 0"),
    "bf16": ("m64n8k32.f32.bf16.bf16", ", 0, 0"),
    "tf32": ("m64n8k16.f32.tf32.tf32", ""),
    "e4m3": ("m64n8k64.f32.e4m3.e4m3", ""),
    "e5m2": ("m64n8k64.f32.e5m2.e4m3", ""),
    "e4m3h": ("m64n8k64.f16.e4m3.e4m3", ""),
}
"""Shape and types by the name of a case, and its last operands."""


def kernel_of(name: str) -> str:
    """The kernel of a case, `FORM_SELECTOR_NUMBER`: A from shared memory, D from zero on."""
    form, selector, _ = name.split("_")
    shape, turns = FORMS[form]
    is_half = shape.split(".")[1] == "f16"
    return kernel(
        f"wgmma.mma_async.sp.sync.aligned.{shape}", f"{selector}, 0, 1, 1{turns}", False,
        "b32" if is_half else "f32", 2 if is_half else 4,
    )  # fmt: skip


def kernel(form: str, tail: str, from_registers: bool, kind: str, results: int = 4) -> str:
    """A warpgroup: A and B from global to shared memory, the metadata in a register, D stored."""
    a = "{%a0, %a1, %a2, %a3}" if from_registers else "%qa"
    d = "{" + ", ".join(f"%d{k}" for k in range(results)) + "}"
    zeros = " ".join(f"mov.b32 %d{k}, {'0' if kind == 'b32' else '0f00000000'};" for k in range(4))
    return f"""{HEAD}
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)
{{
.reg .b64 %p<8>; .reg .b64 %q<4>; .reg .b64 %qa; .reg .b64 %qb; .reg .b32 %r<16>;
.reg .b32 %a<4>; .reg .b32 %m; .reg .{kind} %d<4>; .reg .pred %c;
ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; ld.param.u64 %p2, [p2]; ld.param.u64 %p3, [p3];
mov.u32 %r0, %tid.x; mov.u32 %r1, box; mov.u32 %r2, 0;
FILL: cvt.u64.u32 %q0, %r2; mad.wide.u32 %q0, %r0, 4, %q0; add.u64 %q1, %p0, %q0;
ld.global.b32 %r3, [%q1]; mad.lo.u32 %r4, %r0, 4, %r1; add.u32 %r4, %r4, %r2;
st.shared.b32 [%r4], %r3; add.u32 %r2, %r2, 512;
setp.lt.u32 %c, %r2, {A_BYTES + B_BYTES}; @%c bra FILL;
fence.proxy.async.shared::cta; bar.sync 0;
mul.wide.u32 %q2, %r0, 16; add.u64 %q2, %p1, %q2;
ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%q2];
mul.wide.u32 %q2, %r0, 4; add.u64 %q2, %p2, %q2; ld.global.b32 %m, [%q2];
shr.u32 %r5, %r1, 4; cvt.u64.u32 %qa, %r5; add.u64 %qb, %qa, {A_BYTES // 16};
// chunks of 16 bytes of 8 rows lie together, 128 bytes; the next chunk is 128 bytes on,
// the next 8 rows as many chunks as a row has
add.u64 %qa, %qa, {8 << 16 | 16 << 32}; add.u64 %qb, %qb, {8 << 16 | 32 << 32};
{zeros}
wgmma.fence.sync.aligned;
{form} {d}, {a}, %qb, %m, {tail};
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
mul.wide.u32 %q3, %r0, 16; add.u64 %q3, %p3, %q3;
st.global.v4.b32 [%q3], {{%d0, %d1, %d2, %d3}};
ret;
}}
"""
