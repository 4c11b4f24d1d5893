#!/usr/bin/env python3
"""Times a call from Python of an empty function with three arrays, in Tenon, TVM's Relax VM and ONNX Runtime.

Usage: calls.py [--rounds N]

The package tenon must be importable; peers that aren't installed are left out (bench/vm/requirements.txt,
bench/models/requirements.txt), as are torch's tensors without torch. Engines take turns in one process; a time is the
median over the rounds of nanoseconds per call, a ratio the median of Tenon's time divided by the peer's.
"""

import argparse
import importlib.util
import statistics
import time

import numpy as np

import tenon

CALLS = 20_000
PROGRAM = """
fn @main(%x: tensor[n; f32], %y: tensor[n; f32], %z: tensor[n; f32]) -> tensor[n; f32] { %x }
"""


def arrays():
    return [np.ones(4, "float32") for _ in range(3)]


def tensors():
    import torch

    return [torch.ones(4) for _ in range(3)]


def of_tenon(arguments):
    vm = tenon.VirtualMachine(tenon.compile(tenon.ir.parse(PROGRAM)))
    return lambda: vm["main"](*arguments)


def of_relax(arguments):
    import tvm
    from tvm import relax

    builder = relax.ExecBuilder()
    with builder.function("main", num_inputs=3):
        builder.emit_ret(builder.r(0))
    executable = builder.get()
    vm = relax.VirtualMachine(executable, tvm.cpu())
    return lambda: vm["main"](*arguments)


def of_onnx_runtime(arguments):
    import onnxruntime
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xyz"]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["out"])], "g", values, [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda: session.run(None, dict(zip("xyz", arguments)))


# What is called: its name, the module that it needs, what makes the call, what makes the arguments.
ROWS = [
    ("tenon, NumPy", "tenon", of_tenon, arrays),
    ("Relax, NumPy", "tvm", of_relax, arrays),
    ("ONNX Runtime, NumPy", "onnxruntime", of_onnx_runtime, arrays),
    ("tenon, torch", "torch", of_tenon, tensors),
    ("Relax, torch", "tvm", of_relax, tensors),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    calls = {}
    for name, needed, make, arguments in ROWS:
        if importlib.util.find_spec(needed) and (arguments is arrays or importlib.util.find_spec("torch")):
            try:
                calls[name] = make(arguments())
                calls[name]()
            except Exception as error:  # an engine that can't take the arguments
                print(f"{name}: left out: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
                calls.pop(name, None)
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                call()
            times[name].append((time.perf_counter_ns() - start) / CALLS)
    for name, measured in times.items():
        own = times.get(f"tenon, {name.split(', ')[1]}")
        ratio = statistics.median(t / m for t, m in zip(own, measured)) if own else float("nan")
        print(f"{name:24}{statistics.median(measured):8.0f} ns {ratio:8.2f}")


if __name__ == "__main__":
    main()
