#!/usr/bin/env python3
"""Measures what a recording (tenon.profile, tenon trace) costs the calls that it records.

Usage: recording.py MODEL.onnx... [--dim NAME=N]... [--rounds N]

The package tenon must be importable. Calls with and without a recording take turns in one process, with one thread
and random inputs. The time is the process's CPU time, which other work on the machine hardly changes; a figure is the
median over the rounds, a ratio the median of a round's two times, one divided by the other.
"""

import argparse
import contextlib
import statistics
import time
from pathlib import Path

import numpy as np

import tenon

SECONDS = 0.3  # of calls in each half of a round


def random_input(parameter, rng):
    if parameter.dtype.startswith("float"):
        return rng.standard_normal(parameter.dims).astype(parameter.dtype)
    return rng.integers(0, 2, parameter.dims).astype(parameter.dtype)


def seconds_per_call(call, count, recording):
    with recording:
        start = time.process_time()
        for _ in range(count):
            call()
        return (time.process_time() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL.onnx", type=Path)
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    dims = {name: int(size) for name, size in (dim.split("=") for dim in args.dim)}
    rng = np.random.default_rng(0)
    print("| model | without, ms | with, ms | ratio |\n| --- | --- | --- | --- |")
    for path in args.models:
        symbols = tenon.compile(path).signature().params
        fixed = {d: dims.get(d, 1) for p in symbols for d in p.dims or () if isinstance(d, str)}
        exe = tenon.compile(path, dims=fixed)
        inputs = [random_input(p, rng) for p in exe.signature().params]
        main = tenon.VirtualMachine(exe, threads=1)["main"]

        def call():
            main(*inputs)

        call()
        count = max(1, round(SECONDS / seconds_per_call(call, 3, contextlib.nullcontext())))
        without, within = [], []
        for _ in range(args.rounds):
            without.append(seconds_per_call(call, count, contextlib.nullcontext()))
            within.append(seconds_per_call(call, count, tenon.profile()))
        ratio = statistics.median(b / a for a, b in zip(without, within))
        times = [f"{statistics.median(t) * 1e3:.2f}" for t in (without, within)]
        print(f"| {path.stem} | {times[0]} | {times[1]} | {ratio:.3f} |", flush=True)


if __name__ == "__main__":
    main()
