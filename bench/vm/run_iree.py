"""Prints IREE's rows as JSON: nanoseconds of CPU time per operation of its VM on iree.mlir and
iree_recursion.mlir, the median of several. With `depth`: how deep a recursion gets.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import iree.runtime as rt
import numpy as np

HERE = Path(__file__).resolve().parent
COMPILER = Path(sys.executable).parent / "iree-compile"


class Machine:
    """The functions of both files, in one context with a HAL on this thread."""

    def __init__(self):
        instance = rt.VmInstance()
        self.device = rt.get_device("local-sync")
        self.modules = [
            rt.VmModule.copy_buffer(instance, compiled("iree.mlir", "--compile-mode=vm")),
            rt.VmModule.copy_buffer(instance, compiled("iree_recursion.mlir", "--compile-from=vm")),
        ]
        hal = rt.create_hal_module(instance, self.device)
        self.context = rt.VmContext(instance, [hal, *self.modules])

    def tensor(self, array: np.ndarray) -> rt.HalBufferView:
        return self.device.allocator.allocate_buffer_copy(
            memory_type=rt.MemoryType.DEVICE_LOCAL,
            allowed_usage=rt.BufferUsage.DEFAULT,
            device=self.device,
            buffer=array,
            element_type=rt.HalElementType.FLOAT_32,
        )

    def call(self, name: str, *arguments) -> tuple[int, int]:
        """The result and the nanoseconds."""
        function = next(f for m in self.modules if (f := m.lookup_function(name)))
        given, results = rt.VmVariantList(len(arguments)), rt.VmVariantList(1)
        for a in arguments:
            given.push_int(a) if isinstance(a, int) else given.push_ref(a)
        start = time.thread_time_ns()
        self.context.invoke(function, given, results)
        return results.get_variant(0), time.thread_time_ns() - start

    def nanoseconds(self, count: int, name: str, *arguments) -> float:
        return statistics.median(self.call(name, *arguments)[1] for _ in range(5)) / count


def compiled(source: str, mode: str) -> bytes:
    with tempfile.NamedTemporaryFile(suffix=".vmfb") as out:
        subprocess.run([COMPILER, mode, HERE / source, "-o", out.name], check=True, timeout=60)
        return Path(out.name).read_bytes()


def rows(m: Machine) -> dict[str, float]:
    x = m.tensor(np.zeros((32, 32), np.float32))
    n = 400_000
    assert (m.call("loop", n)[0], m.call("sum", 5)[0], m.call("fib", 18)[0]) == (n, 10, 2584)
    return {
        "packed": m.nanoseconds(n, "packed", n, x),
        "call": m.nanoseconds(n, "call", n, 1),
        "pool": m.nanoseconds(n, "pool", n),
        "shape": m.nanoseconds(n, "shape", n, x),
        "loop": m.nanoseconds(n, "loop", n),
        "sum": m.nanoseconds(n, "sum", n),
        "fib": m.nanoseconds(242785, "fib", 25),  # its number of calls
    }


def depth(m: Machine) -> dict:
    """The greatest depth that returns, by bisection."""
    least, most, end = 1, 1_000_001, "reached"
    while least + 1 < most:
        middle = (least + most) // 2
        try:
            m.call("down", middle)
            least = middle
        except Exception as e:  # noqa: BLE001: its status is what is told
            most, end = middle, re.search(r"[A-Z]+_[A-Z]+|$", str(e)).group()
    return {"depth": least, "end": end}


machine = Machine()
if sys.argv[1:] == ["depth"]:
    print(json.dumps(depth(machine)))
else:
    print(json.dumps({"version": version("iree-base-runtime"), "rows": rows(machine)}))
