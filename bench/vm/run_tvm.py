"""Prints TVM's rows as JSON: nanoseconds of CPU time per operation of its Relax VM on hand-emitted
instructions, the median of several. With `depth`: how deep a recursion gets.

Each row is a function that repeats the operation 256 times, called 256 times by another one, so that
Python's overhead occurs once per 65536 operations. That VM has no integer instructions: integer
arithmetic is calls of compiled functions, here `add` and `less`.
"""

import json
import os
import statistics
import sys
import time

import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import tirx as T

REPEAT = 256


@I.ir_module
class Kernels:
    @T.prim_func
    def add(a: T.int64, b: T.int64) -> T.int64:
        return a + b

    @T.prim_func
    def less(a: T.int64, b: T.int64) -> T.int64:
        return T.Select(a < b, T.int64(1), T.int64(0))

    @T.prim_func
    def add_tensors(x: T.handle, y: T.handle, z: T.handle):
        n, c, h, w = T.int64(), T.int64(), T.int64(), T.int64()
        a = T.match_buffer(x, (n, c, h, w), "float32")
        b = T.match_buffer(y, (n, c, h, w), "float32")
        s = T.match_buffer(z, (n, c, h, w), "float32")
        for i, j, k, m in T.grid(n, c, h, w):
            s[i, j, k, m] = a[i, j, k, m] + b[i, j, k, m]


def machine(emit) -> relax.VirtualMachine:
    """A VM with the functions that `emit` adds to a builder, and with the kernels."""
    builder = relax.ExecBuilder()
    emit(builder)
    executable = builder.get()
    executable.mod.import_module(tvm.compile(Kernels, target="llvm").mod)
    return relax.VirtualMachine(executable, tvm.cpu())


def nanoseconds(f, count: int, *arguments) -> float:
    f(*arguments)
    times = []
    for _ in range(5):
        start = time.thread_time_ns()
        f(*arguments)
        times.append(time.thread_time_ns() - start)
    return statistics.median(times) / count


def repeated(operation, *arguments, before=None) -> float:
    """Nanoseconds of the instructions that `operation(builder)` emits, in a function of these arguments."""

    def emit(b):
        if before:
            before(b)
        with b.function("inner", num_inputs=len(arguments)):
            for _ in range(REPEAT):
                operation(b)
            b.emit_ret(b.r(0))
        with b.function("outer", num_inputs=len(arguments)):
            given = [b.r(i) for i in range(len(arguments))]
            for _ in range(REPEAT):
                b.emit_call("inner", args=given, dst=b.r(len(arguments)))
            b.emit_ret(b.r(0))

    return nanoseconds(machine(emit)["outer"], REPEAT * REPEAT, *arguments)


def empty(b):
    b.emit_call("testing.nop", args=[b.r(0), b.r(1), b.r(2)], dst=b.r(3))


def kernel(b):
    b.emit_call("add_tensors", args=[b.r(0), b.r(1), b.r(2)], dst=b.r(3))


def callee(b):
    with b.function("callee", num_inputs=1):
        b.emit_ret(b.r(0))


def call(b):
    b.emit_call("callee", args=[b.r(0)], dst=b.r(1))


def allocate(b):
    """Allocates storage and a tensor in it, and drops both like compiled programs do."""
    b.emit_call(
        "vm.builtin.alloc_storage",
        args=[b.vm_state(), (4096,), b.imm(0), b.convert_constant(tvm.DataType("uint8")),
              b.convert_constant("global")],
        dst=b.r(1),
    )
    b.emit_call(
        "vm.builtin.alloc_tensor",
        args=[b.r(1), b.imm(0), (32, 32), b.convert_constant(tvm.DataType("float32"))],
        dst=b.r(2),
    )
    b.emit_call("vm.builtin.null_value", args=[], dst=b.r(1))
    b.emit_call("vm.builtin.null_value", args=[], dst=b.r(2))


STORE, LOAD = 1, 1  # codes of match_shape and make_shape


def shape(b):
    """Binds both axes of a tensor to slots of the heap and makes a shape of them."""
    b.emit_call(
        "vm.builtin.match_shape",
        args=[b.r(0), b.r(1), b.imm(2), b.imm(STORE), b.imm(0), b.imm(STORE), b.imm(1),
              b.convert_constant("")],
        dst=b.r(2),
    )
    b.emit_call(
        "vm.builtin.make_shape",
        args=[b.r(1), b.imm(2), b.imm(LOAD), b.imm(0), b.imm(LOAD), b.imm(1)],
        dst=b.r(2),
    )


def loops(b):
    with b.function("loop", num_inputs=1):
        b.emit_call("add", args=[b.imm(0), b.imm(0)], dst=b.r(1))
        b.emit_call("add", args=[b.r(1), b.imm(1)], dst=b.r(1))
        b.emit_call("less", args=[b.r(1), b.r(0)], dst=b.r(2))
        b.emit_if(b.r(2), 2)
        b.emit_goto(-3)
        b.emit_ret(b.r(1))
    with b.function("sum", num_inputs=1):
        b.emit_call("add", args=[b.imm(0), b.imm(0)], dst=b.r(1))
        b.emit_call("add", args=[b.imm(0), b.imm(0)], dst=b.r(3))
        b.emit_call("less", args=[b.r(1), b.r(0)], dst=b.r(2))
        b.emit_if(b.r(2), 4)
        b.emit_call("add", args=[b.r(3), b.r(1)], dst=b.r(3))
        b.emit_call("add", args=[b.r(1), b.imm(1)], dst=b.r(1))
        b.emit_goto(-4)
        b.emit_ret(b.r(3))
    with b.function("fib", num_inputs=1):
        b.emit_call("less", args=[b.r(0), b.imm(2)], dst=b.r(1))
        b.emit_if(b.r(1), 2)
        b.emit_ret(b.r(0))
        b.emit_call("add", args=[b.r(0), b.imm(-1)], dst=b.r(1))
        b.emit_call("add", args=[b.r(0), b.imm(-2)], dst=b.r(2))
        b.emit_call("fib", args=[b.r(1)], dst=b.r(1))
        b.emit_call("fib", args=[b.r(2)], dst=b.r(2))
        b.emit_call("add", args=[b.r(1), b.r(2)], dst=b.r(1))
        b.emit_ret(b.r(1))
    with b.function("down", num_inputs=1):
        b.emit_call("less", args=[b.imm(0), b.r(0)], dst=b.r(1))
        b.emit_if(b.r(1), 5)
        b.emit_call("add", args=[b.r(0), b.imm(-1)], dst=b.r(1))
        b.emit_call("down", args=[b.r(1)], dst=b.r(1))
        b.emit_call("add", args=[b.r(1), b.imm(1)], dst=b.r(1))
        b.emit_ret(b.r(1))
        b.emit_ret(b.r(0))


def rows() -> dict[str, float]:
    x = tvm.runtime.tensor(np.zeros((32, 32), "float32"))
    none = tvm.runtime.tensor(np.zeros((0, 4, 4, 4), "float32"))
    heap = tvm.runtime.tensor(np.zeros(2, "int64"))
    vm = machine(loops)
    count, n = 20_000, 18
    assert vm["loop"](count) == count and vm["sum"](5) == 10 and vm["fib"](n) == 2584
    packed = repeated(empty, x, x, x)
    return {
        "packed": packed,
        "kernel": repeated(kernel, none, none, none) - repeated(empty, none, none, none),
        "call": repeated(call, x, before=callee),
        "pool": repeated(allocate, x),
        "shape": repeated(shape, x, heap),
        "loop": nanoseconds(vm["loop"], count, count),
        "sum": nanoseconds(vm["sum"], count, count),
        "fib": nanoseconds(vm["fib"], 8361, n),  # its number of calls
    }


def depth() -> dict:
    """The greatest depth that returns. A child process tries each, since a stack overflow ends it."""
    down = machine(loops)["down"]
    end = "reached"

    def fine(n: int) -> bool:
        nonlocal end
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if down(n) == n else 1)
            except Exception:  # noqa: BLE001: what it is doesn't matter
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        if status == 0:
            return True
        end = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "error"
        return False

    least, most = 1, 1_000_001
    while least + 1 < most:
        middle = (least + most) // 2
        least, most = (middle, most) if fine(middle) else (least, middle)
    return {"depth": least, "end": end}


if sys.argv[1:] == ["depth"]:
    print(json.dumps(depth()))
else:
    print(json.dumps({"version": tvm.__version__, "rows": rows()}))
