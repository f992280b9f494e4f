"""Names in nested braces: registers, parameters and labels become unique in their function."""

from ptx.ptx_text import function_around, module_of

from cutrace.tracer.ptx.kernel import CallTarget, Guard, Label, Register, Symbol

CALLS = """
{ // callseq 0, 0
.reg .b32 temp_param_reg;
.param .b64 param0;
st.param.b64 [param0+0], %rd1;
.param .b32 retval0;
call.uni (retval0), f, (param0);
ld.param.b32 %r1, [retval0+0];
} // callseq 0
{ // callseq 1, 0
.reg .b32 temp_param_reg;
.param .align 8 .b8 param0[16];
.param .b32 retval0;
call.uni (retval0), f, (param0);
} // callseq 1
"""
CALLEE = ".extern .func (.param .b32 r) f (.param .b64 x);"


def test_parameters_of_call_sequences_are_told_apart() -> None:
    function = function_around(CALLS, CALLEE)
    assert [(v.name, v.size) for v in function.variables] == [
        ("param0@1", 8),
        ("retval0@1", 4),
        ("param0@2", 16),
        ("retval0@2", 4),
    ]
    calls = [i.operands[0] for i in function.instructions if i.opcode == "call"]
    assert calls == [
        CallTarget((Symbol(f"retval0@{n}"),), Symbol("f"), (Symbol(f"param0@{n}"),)) for n in (1, 2)
    ]


def test_inner_registers_hide_outer_ones() -> None:
    function = function_around(
        """
        mov.u32 %r1, 1;
        { .reg .b64 %r<4>; .reg .pred q; setp.eq.u32 q, %r9, 0; @q mov.u64 %r1, 2;
          { .reg .pred q; @q mov.u64 %r1, 3; } }
        mov.u32 %r1, 4;"""
    )
    first, compare, second, third, fourth, _ = function.instructions
    assert first.operands[0] == fourth.operands[0] == Register("%r1", "b32")
    assert second.operands[0] == third.operands[0] == Register("%r1@1", "b64")
    assert compare.operands[1] == Register("%r9", "b32")
    assert second.guard == Guard(Register("q@1", "pred"))
    assert third.guard == Guard(Register("q@2", "pred"))


def test_registers_are_those_that_the_function_names() -> None:
    function = function_around("mov.u32 %r3, %r7; { .reg .f32 x; mov.f32 x, %f1; }")
    assert function.registers == {"%r3": "b32", "%r7": "b32", "x@1": "f32", "%f1": "f32"}


def test_inner_labels_are_told_apart_also_before_they_are_declared() -> None:
    function = function_around(
        """
        { bra DONE; WAIT: bra WAIT; DONE: }
        { WAIT: @%p1 bra WAIT; bra OUT; }
        OUT: bra DONE;
        DONE: ret;"""
    )
    assert function.labels == {"WAIT@1": 1, "DONE@1": 2, "WAIT@2": 2, "OUT": 4, "DONE": 5}
    targets = [i.operands[0] for i in function.instructions if i.opcode == "bra"]
    names = ["DONE@1", "WAIT@1", "WAIT@2", "OUT", "DONE"]
    assert targets == [Label(name) for name in names]


def test_prototypes_inside_call_sequences_are_found() -> None:
    function = function_around(
        """{ .param .b32 out;
        prototype_0 : .callprototype (.param .b32 _) _ ();
        call (out), %rd1, prototype_0; }"""
    )
    target = function.instructions[0].operands[0]
    assert isinstance(target, CallTarget)
    assert target.prototype == "prototype_0@1"
    assert function.branch_targets == {"prototype_0@1": ()}


def test_two_functions_may_use_the_same_names() -> None:
    body = "{ .reg .b32 x; .shared .b32 s; L: mov.u32 x, s; bra L; }"
    functions = module_of(f".entry a() {body}\n.entry b() {body}").functions
    assert functions["a"].instructions[0].operands == functions["b"].instructions[0].operands


def test_a_function_that_runs_to_its_brace_returns_there() -> None:
    assert function_around("").instructions[-1].opcode == "ret"
    guarded = function_around("@%p1 ret;").instructions
    assert [i.opcode for i in guarded] == ["ret", "ret"]
    to_the_end = function_around("bra END;\nEND:").instructions
    assert [i.opcode for i in to_the_end] == ["bra", "ret"]
    marked = function_around("ret;\n$L__func_end0:").instructions
    assert [i.opcode for i in marked] == ["ret"]
