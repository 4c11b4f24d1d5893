#!/usr/bin/env python3
"""Calls one compiled BERT with many random lengths in one process, through the C interface.

Usage: random_lengths.py --tenon PROGRAM --library libtenon_runtime.so [--model BERT.onnx]
                         [--calls 10000] [--longest 128] [--batches 1,2,4]

Prints resident memory along the way, which must be flat after the first tenth, and the latency of
shapes that were not seen before beside that of the same shapes called again. With the full BERT the
lengths are short by default, so that 10,000 calls take minutes; `make_models.py --layers 2` gives a
smaller one. Exits 1 when memory grew by more than 2 % and 8 MB.
"""

import argparse
import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

INT, TENSOR, CPU = 1, 70, 1


class Any(ctypes.Structure):
    """tenon_any."""

    _fields_ = [("type_index", ctypes.c_int32), ("small_length", ctypes.c_uint32), ("v", ctypes.c_int64)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Runtime:
    """The few functions of tenon/c_api.h that this needs."""

    def __init__(self, path: Path):
        self.c = ctypes.CDLL(str(path))
        self.c.tenon_last_error.restype = ctypes.c_char_p
        self.c.tenon_tensor_view.restype = ctypes.POINTER(DLTensor)

    def do(self, function: str, *arguments) -> None:
        if getattr(self.c, function)(*arguments) != 0:
            raise RuntimeError((self.c.tenon_last_error() or b"?").decode())

    def load(self, file: str) -> Any:
        program, machine = Any(), Any()
        self.do("tenon_program_load", file.encode(), ctypes.byref(program))
        self.do("tenon_machine_create", ctypes.byref(program), ctypes.byref(machine))
        self.c.tenon_any_release(ctypes.byref(program))
        return machine

    def tensor(self, value: np.ndarray) -> Any:
        tensor = Any()
        shape = (ctypes.c_int64 * value.ndim)(*value.shape)
        int64 = DataType(0, 64, 1)
        self.do("tenon_tensor_create", shape, value.ndim, int64, Device(CPU, 0), ctypes.byref(tensor))
        data = self.c.tenon_tensor_view(ctypes.byref(tensor)).contents.data
        ctypes.memmove(data, value.ctypes.data, value.nbytes)
        return tensor

    def call(self, machine: Any, inputs: list[np.ndarray]) -> float:
        """Seconds of one call."""
        tensors = [self.tensor(value) for value in inputs]
        arguments, result = (Any * len(tensors))(*tensors), Any()
        start = time.perf_counter()
        self.do(
            "tenon_machine_call", ctypes.byref(machine), b"main", arguments, len(tensors), ctypes.byref(result)
        )
        took = time.perf_counter() - start
        for value in (result, *tensors):
            self.c.tenon_any_release(ctypes.byref(value))
        return took


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("build/bench-models/bert.onnx"))
    parser.add_argument("--calls", type=int, default=10000)
    parser.add_argument("--longest", type=int, default=128)
    parser.add_argument("--batches", default="1,2,4")
    options = parser.parse_args()
    runtime = Runtime(options.library.resolve())
    batches = [int(b) for b in options.batches.split(",")]
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/model.tnx"
        subprocess.run([options.tenon.resolve(), "compile", options.model, "-o", file, "-q"], check=True)
        machine = runtime.load(file)

    def call(shape: tuple[int, int]) -> float:
        ids = rng.integers(0, 30522, shape)
        return runtime.call(machine, [ids, np.ones(shape, np.int64), np.zeros(shape, np.int64)])

    # Lengths repeat, as they do in a service; the first call of each shape is set beside its second.
    first: dict[tuple[int, int], float] = {}
    again: dict[tuple[int, int], list[float]] = {}
    memory: list[tuple[int, float]] = []
    start = time.perf_counter()
    for i in range(options.calls):
        shape = (int(rng.choice(batches)), int(rng.integers(1, options.longest + 1)))
        took = call(shape)
        if shape in first:
            again.setdefault(shape, []).append(took)
        else:
            first[shape] = took
        if (i + 1) % max(1, options.calls // 10) == 0:
            memory.append((i + 1, resident_mb()))
            print(f"{i + 1:6} calls  {len(first):5} shapes  {memory[-1][1]:8.1f} MB resident", flush=True)
    print(f"{options.calls} calls in {time.perf_counter() - start:.0f} s")

    seen = {shape: statistics.median(times) for shape, times in again.items()}
    ratios = sorted(first[shape] / seen[shape] for shape in seen)
    extra = sorted(1000 * (first[shape] - seen[shape]) for shape in seen)
    if ratios:
        p50, p99 = ratios[len(ratios) // 2], ratios[len(ratios) * 99 // 100]
        print(f"first call of a shape through its later ones: p50 {p50:.2f}, p99 {p99:.2f} ({len(ratios)} shapes)")
        print(f"extra time of an unseen shape: p50 {extra[len(extra) // 2]:.2f} ms, greatest {extra[-1]:.2f} ms")
    grown = memory[-1][1] - memory[0][1]
    flat = grown <= max(8.0, 0.02 * memory[0][1])
    print(f"memory {'is flat' if flat else 'GREW'}: {grown:+.1f} MB after the first tenth of the calls")
    sys.exit(0 if flat else 1)


if __name__ == "__main__":
    main()
