import numpy as np
from program import Program

TEMPLATES = ["zip<int, Add>", "zip<float, Clamp<float>>"]


def run(program: Program) -> None:
    structs(program)
    functors(program)
    recursion(program)
    tree(program)
    machine(program)
    parameters(program)
    pointers(program)


def structs(program: Program) -> None:
    base = np.dtype([("m", np.float32, (2, 2)), ("power", np.int32)])
    fibonacci = np.array(([[1, 1], [1, 0]], 1), base)[()]
    out, powers = program.zeros((32, 4), np.float32), program.zeros(32, np.int32)
    program.launch("matrix_powers", 1, 32, out, powers, fibonacci)
    f = [1, 0]  # F(-1), F(0)
    while len(f) < 40:
        f.append(f[-1] + f[-2])
    program.same(out, [[f[k + 2], f[k + 1], f[k + 1], f[k]] for k in range(32)])
    program.same(powers, range(32))


def functors(program: Program) -> None:
    a, b = program.integers(-99, 99, (2, 200))
    out = program.zeros(200, np.int32)
    empty = np.zeros(1, np.uint8)[0].tobytes()
    program.launch(
        "zip<int, Add>", 2, 64, out, program.to_device(a), program.to_device(b), 200, empty
    )
    program.same(out, a + b)
    limits = np.array((-1000, 500), [("low", np.float32), ("high", np.float32)])[()]
    wide = program.zeros(200, np.float32)
    sent = [program.to_device(each.astype(np.float32)) for each in (a, b)]
    program.launch("zip<float, Clamp<float>>", 2, 64, wide, *sent, 200, limits)
    program.same(wide, np.clip(a * b, -1000, 500))


def recursion(program: Program) -> None:
    data = program.integers(0, 100, (64, 9))
    values, device = program.zeros(64, np.int32), program.to_device(data)
    program.launch("recursion", 2, 32, values, device, 9)
    program.same(device, np.sort(data, axis=1))
    ackermann = [[1, 2, 3, 4], [2, 3, 4, 5], [3, 5, 7, 9]]
    program.same(values, [ackermann[i % 3][i % 4] for i in range(64)])


def tree(program: Program) -> None:
    keys = np.sort(program.integers(0, 100, 31))
    nodes = np.full((31, 3), -1, np.int32)

    def plant(low: int, high: int) -> int:
        if low >= high:
            return -1
        middle = (low + high) // 2
        nodes[middle] = keys[middle], plant(low, middle), plant(middle + 1, high)
        return middle

    root = plant(0, 31)
    out = program.zeros(40, np.int32)
    program.launch("search_tree", 1, 40, out, program.to_device(nodes), root)
    program.same(out, np.searchsorted(keys, np.arange(40) * 3))


def machine(program: Program) -> None:
    push, add, multiply, copy, swap, jump, odd, half = 0, 1, 3, 4, 5, 6, 7, 8
    negate, invert, drop, stop = 9, 10, 11, 99
    code = [copy, odd, jump, 9, half, push, 1, jump, 15]  # an even number is halved
    code += [push, 3, multiply, push, 1, add]  # an odd one becomes 3x + 1
    code += [negate, invert, push, 77, swap, push, 8, drop, stop, push, 1]
    out = program.zeros(96, np.int32)
    sent = program.to_device(np.array(code, np.uint8))
    program.launch("machine", 3, 32, out, sent, len(code), 100)
    x = np.arange(96)
    program.same(out, ~-np.where(x % 2 == 1, 3 * x + 1, x // 2))


def parameters(program: Program) -> None:
    kinds = {"a": np.int8, "b": np.int8, "c": np.int16, "d": np.int32, "e": np.float64}
    mixed = np.array((1, 2, 3, 4, 0.5), list(kinds.items()))[()]
    values = program.integers(0, 1000, 64)
    table = np.array((values,), [("values", np.int32, 64)])[()]
    sums, picked = program.zeros(64, np.float64), program.zeros(64, np.int32)
    program.launch("by_value", 1, 64, sums, picked, mixed, table)
    lane = np.arange(64)
    program.same(sums, (1 + lane) + 2 + 3 + 2 * 4 + 0.5 + 2)
    bumped = np.where(lane // 2 == lane, 3, 0)  # the same element twice, for lane 0 only
    program.same(picked, values[lane // 2] + bumped + values + 3)
    program.launch("by_reference", 1, 64, picked, table)
    program.same(picked, np.cumsum(values) - values)


def pointers(program: Program) -> None:
    codes = program.integers(0, 4, 11)
    out = program.zeros(64, np.int32)
    program.launch("fold", 1, 64, out, program.to_device(codes), 11)
    steps = (np.add, np.subtract, np.multiply, np.maximum)
    value = np.arange(64, dtype=np.int32)
    for i in range(11):
        chosen = codes[(i + np.arange(64)) % 11]
        value = np.choose(chosen, [step(value, np.int32(i)) for step in steps])
    program.same(out, value)
